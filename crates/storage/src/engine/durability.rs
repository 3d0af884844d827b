//! The log's flushes, checkpoints and rollback to stable.

use crate::{Result, TableSize};
use pando_base::{FailPoint, Timestamp};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The end of a record in the log. Later is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LogPosition {
    /// Which segment.
    pub segment: u64,
    /// Where in it.
    pub offset: u64,
    /// The record's newest oplog entry: it is durable only once a no-holes point at or past this is.
    pub oplog: pando_base::Timestamp,
}

impl LogPosition {
    /// What both stand for is durable once this is.
    #[must_use]
    pub fn joined(self, other: LogPosition) -> LogPosition {
        LogPosition { oplog: self.oplog.max(other.oplog), ..self.max(other) }
    }
}

/// Something to wait for, by awaiting it or by blocking the thread. Dropping it gives up.
pub struct Wait {
    future: Pin<Box<dyn Future<Output = Result<()>> + Send>>,
    block: Box<dyn FnOnce() -> Result<()> + Send>,
}

impl Wait {
    /// For engines: the two ways of the same wait.
    pub fn new(
        future: impl Future<Output = Result<()>> + Send + 'static,
        block: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Wait {
        Wait { future: Box::pin(future), block: Box::new(block) }
    }

    /// Nothing to wait for.
    pub fn done(result: Result<()>) -> Wait {
        let copy = result.clone();
        Wait::new(std::future::ready(result), move || copy)
    }

    /// Blocks this thread until it is over.
    pub fn block(self) -> Result<()> {
        (self.block)()
    }
}

impl Future for Wait {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.future.as_mut().poll(context)
    }
}

/// The engine's own thread takes no checkpoints, however long the last one is ago. Whoever asks for one gets it, and so does
/// memory that has to be freed.
pub static PAUSE_CHECKPOINT_THREAD: FailPoint = FailPoint::new("pauseCheckpointThread");

/// What a checkpoint is to contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CheckpointKind {
    /// At the stable timestamp, or full where the rules ask for a full one. Nothing is done when nothing changed.
    #[default]
    Automatic,
    /// Everything committed, whatever its timestamp: before initial data, or when the mode of the log changes.
    Full,
}

/// What a checkpoint did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CheckpointOutcome {
    /// False if there was nothing to do.
    pub taken: bool,
    /// Its stable timestamp; none for a full one.
    pub timestamp: Timestamp,
    /// Keys written.
    pub keys: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// Making writes last, and taking them back.
pub trait Durability {
    /// Flushes the log and returns what is durable then.
    fn flush_log(&self) -> Result<LogPosition>;
    /// Completes once `position`, and a no-holes point at or past it, is on disk. Asks for a flush by itself.
    fn wait_durable(&self, position: LogPosition) -> Wait;
    /// The end of the log as appended.
    fn log_end(&self) -> LogPosition;
    /// Takes a checkpoint.
    fn checkpoint(&self, kind: CheckpointKind) -> Result<CheckpointOutcome>;
    /// Drops everything with a durable timestamp after stable. No transaction may be open: `Busy` otherwise.
    fn roll_back_to_stable(&self) -> Result<()>;
    /// Does one bounded step of merging and reclaiming; false if there was nothing to do. For engines without threads
    /// of their own (simulation, tests); with background threads it is their work.
    fn maintain(&self) -> Result<bool>;
    /// Records and bytes of a table as a checkpoint taken now would keep them.
    fn stable_table_size(&self, table: &crate::Table) -> Result<TableSize>;
}
