//! What the suite needs from an engine crate: a store that can be opened, crashed, opened again and copied.
//!
//! Stores made for the suite take no checkpoints by themselves: the cases say when. Apart from that they are configured
//! like real ones, perhaps with smaller files so that small cases reach every path.

use crate::{BackupFile, Engine};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a store is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Every table has redo in the log; no oplog.
    StandAlone,
    /// The log is the oplog; tables that are not replicated have redo.
    ReplicaSet,
}

/// One store.
pub trait EngineFactory {
    /// Opens the store, or opens it again. No engine of it is open at this time.
    fn open(&self) -> Arc<dyn Engine>;
    /// Cuts the power: what was not durable may be lost. All handles were dropped before, without shutting down.
    fn crash(&self);
    /// The engine's name.
    fn name(&self) -> &str;
    /// How the store is run.
    fn mode(&self) -> Mode;
    /// Lets the store's wall clock go on; false if it cannot.
    fn advance_clock(&self, _by: Duration) -> bool {
        false
    }
    /// Copies the files of a backup into a fresh directory and returns the store there; none if stores are no files.
    fn copy(&self, _files: &[BackupFile]) -> Option<Box<dyn EngineFactory>> {
        None
    }
    /// Where the store's files are; none if stores are no files.
    fn directory(&self) -> Option<PathBuf> {
        None
    }
}

/// Makes fresh, empty stores.
pub trait EngineFactoryMaker {
    /// A fresh store.
    fn make(&self, mode: Mode) -> Box<dyn EngineFactory>;
}

impl<F: Fn(Mode) -> Box<dyn EngineFactory>> EngineFactoryMaker for F {
    fn make(&self, mode: Mode) -> Box<dyn EngineFactory> {
        self(mode)
    }
}
