//! What an engine tells of itself while it works: events for whoever writes them down.
//!
//! An engine raises them and goes on; nothing here logs. A listener must be quick and must not call the engine: it may be told while
//! the checkpoint's lock is held, though never under a lock that a reader or a commit needs.

use crate::StorageError;
use pando_base::Timestamp;
use std::fmt;
use std::sync::Arc;

/// What an engine found when it was opened, and did about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The data directory.
    pub directory: String,
    /// True if there was no store before.
    pub is_new: bool,
    /// True if the log is an oplog.
    pub has_oplog: bool,
    /// True if the last life ended in good order.
    pub was_clean: bool,
    /// Tables there are now.
    pub tables: u64,
    /// Where the checkpoint stood from which it went on.
    pub checkpoint: Timestamp,
    /// The segment of the log from which it was read again, and the place in it.
    pub log_from: (u64, u64),
    /// Records of the log that were applied again.
    pub records: u64,
    /// Where the log's torn end was cut: file and offset.
    pub torn_tail: Option<(String, u64)>,
    /// How long that took.
    pub elapsed_ms: u64,
}

/// A work that an engine does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Writing the log to disk.
    Flush,
    /// Preparing room for the log.
    LogSpace,
    /// Checkpoints.
    Checkpoint,
    /// Merging and removing files.
    Merge,
    /// Asking the disk how much is free.
    Measure,
}

impl Work {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Work::Flush => "flush",
            Work::LogSpace => "log space",
            Work::Checkpoint => "checkpoint",
            Work::Merge => "merge",
            Work::Measure => "measuring free space",
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineEvent {
    /// The store is open.
    Opened(Box<Opening>),
    /// A checkpoint was taken.
    CheckpointTaken {
        /// Its stable timestamp; none for one of everything.
        timestamp: Timestamp,
        /// Keys written.
        keys: u64,
        /// Bytes written.
        bytes: u64,
        /// How long it took.
        elapsed_ms: u64,
        /// True if that is longer than from one checkpoint to the next.
        is_long: bool,
    },
    /// Work of the engine's own failed; it is tried again.
    WorkFailed {
        /// Which.
        work: Work,
        /// How often in a row.
        failures: u64,
        /// Why.
        error: StorageError,
    },
    /// Work that had failed was done.
    WorkRecovered {
        /// Which.
        work: Work,
        /// How often it had failed.
        failures: u64,
    },
    /// Checkpoints fail again and again: what adds data is refused until one is taken.
    WritesRefused {
        /// How often in a row.
        failures: u64,
        /// Why the last one failed.
        error: StorageError,
    },
    /// A checkpoint was taken: writes go on.
    WritesAdmitted,
    /// Memory is short, and writers are made to wait.
    StallBegan {
        /// What no checkpoint has taken yet.
        dirty_bytes: u64,
        /// All that may be used.
        budget_bytes: u64,
    },
    /// Writers no longer wait.
    StallEnded {
        /// How long they did.
        elapsed_ms: u64,
        /// Writes that were made to wait meanwhile.
        slowed: u64,
    },
    /// There is little room left on the disk.
    DiskNearlyFull {
        /// What is free.
        free_bytes: u64,
        /// From which on this is told.
        limit_bytes: u64,
    },
    /// There is room again.
    DiskHasRoom {
        /// What is free.
        free_bytes: u64,
    },
    /// Everything after a time was taken back.
    RolledBack {
        /// The time.
        stable: Timestamp,
        /// How long it took.
        elapsed_ms: u64,
    },
    /// Bytes on disk are not what was written.
    Corruption {
        /// Which file.
        file: String,
        /// Where in it.
        offset: u64,
        /// What is wrong.
        detail: String,
    },
    /// The engine refuses writes until it is opened again.
    Stopped {
        /// Why.
        reason: String,
    },
    /// It was shut down in good order.
    ShutDown {
        /// How long that took.
        elapsed_ms: u64,
    },
}

/// Who is told of events.
pub trait EngineListener: Send + Sync {
    /// Something happened.
    fn engine_event(&self, event: &EngineEvent);
}

/// The one who is told, if there is one.
#[derive(Clone, Default)]
pub struct Listener(Option<Arc<dyn EngineListener>>);

impl Listener {
    /// This one.
    pub fn new(listener: Arc<dyn EngineListener>) -> Listener {
        Listener(Some(listener))
    }

    /// Tells of an event.
    pub fn tell(&self, event: &EngineEvent) {
        if let Some(listener) = &self.0 {
            listener.engine_event(event);
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Listener" } else { "nobody" })
    }
}
