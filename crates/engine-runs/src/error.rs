//! What can go wrong in the base: one enum. A damaged file is always named together with the offset.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of every fallible call of this crate.
pub type Result<T> = std::result::Result<T, RunsError>;

/// An error of the base.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunsError {
    /// The disk refused an operation.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried, as a verb: `read`, `write`, `sync`, ...
        operation: &'static str,
        /// Why it failed.
        source: Arc<io::Error>,
    },
    /// Stored bytes are not what was written.
    #[error("corruption in {} at offset {offset}: {detail}", file.display())]
    Corruption {
        /// The damaged file.
        file: PathBuf,
        /// Where the damaged unit (block, header, record) begins.
        offset: u64,
        /// What does not fit.
        detail: String,
    },
    /// The file is sound, but of a format that this version does not know.
    #[error("{} has the format {format}; this version knows {known}", file.display())]
    UnknownFormat {
        /// The file.
        file: PathBuf,
        /// The format it says it has.
        format: u64,
        /// The newest format that is known here.
        known: u64,
    },
    /// The disk is full. Nothing was changed; the call can be repeated when there is space.
    #[error("no space left while writing {}", path.display())]
    OutOfSpace {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// A sync failed earlier: what is on disk is unknown, every later write is refused.
    #[error("the base stopped writing: {0}")]
    Stopped(String),
    /// The caller broke a rule of the interface (keys out of order, an unknown table, ...).
    #[error("invalid use of the base: {0}")]
    Invalid(String),
}

impl RunsError {
    /// An I/O error with its place; a full disk becomes [`RunsError::OutOfSpace`].
    pub fn io(path: &Path, operation: &'static str, source: io::Error) -> RunsError {
        if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            return RunsError::OutOfSpace { path: path.to_path_buf() };
        }
        RunsError::Io { path: path.to_path_buf(), operation, source: Arc::new(source) }
    }

    /// Damage at a place.
    pub fn corruption(file: &Path, offset: u64, detail: impl Into<String>) -> RunsError {
        RunsError::Corruption { file: file.to_path_buf(), offset, detail: detail.into() }
    }

    /// True for damage, the one error that salvage can work around.
    pub fn is_corruption(&self) -> bool {
        matches!(self, RunsError::Corruption { .. })
    }

    /// True if a sync failed: the store must stop writing.
    pub fn is_failed_sync(&self) -> bool {
        matches!(self, RunsError::Io { operation: "sync", .. } | RunsError::Io { operation: "sync directory", .. })
    }
}
