//! What can go wrong with the log, as one enum.
//!
//! Only [`LogError::Stopped`] is final: after a failed write or sync nobody knows what the disk holds, so the log takes no
//! more work in this life. Every other error leaves the log as it was.

use std::io;
use std::path::{Path, PathBuf};

/// An error of the log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The disk refused a call that changes nothing (a read, an open); or opening the log failed.
    #[error("log input/output on {file}: {source}")]
    Io {
        /// The file or directory.
        file: PathBuf,
        /// What the disk said.
        source: io::Error,
    },
    /// Bytes that were known to be durable are not what was written.
    #[error("log corruption in {file} at offset {offset}: {detail}")]
    Corruption {
        /// The damaged file.
        file: PathBuf,
        /// Where the damage starts.
        offset: u64,
        /// What was expected there.
        detail: String,
    },
    /// The file is sound, but of a format that this version does not know.
    #[error("{file} has the log format {format}; this version knows {known}")]
    UnknownFormat {
        /// The file.
        file: PathBuf,
        /// The format it says it has.
        format: u32,
        /// The newest format that is known here.
        known: u32,
    },
    /// There is no room for another record. Nothing was changed; works again when there is room.
    #[error("no space for {needed_bytes} bytes of log")]
    OutOfSpace {
        /// How much was asked for.
        needed_bytes: u64,
    },
    /// The log stopped after a failed write or sync, or was closed.
    #[error("the log has stopped: {0}")]
    Stopped(String),
    /// The oplog entry on which a reader stood is no longer there.
    #[error("the oplog position at {0} was truncated away")]
    PositionLost(pando_base::Timestamp),
    /// The oplog entries whose durability was awaited were truncated before they became durable.
    #[error("the oplog entries up to {0} were truncated while their durability was awaited")]
    Truncated(pando_base::Timestamp),
    /// The record is larger than any segment may hold.
    #[error("a log record of {bytes} bytes is over the limit of {limit_bytes}")]
    RecordTooLarge {
        /// The size of the body.
        bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
}

/// The result of a call into the log.
pub type Result<T> = std::result::Result<T, LogError>;

impl LogError {
    /// An input/output error on a file.
    pub(crate) fn io(file: &Path, source: io::Error) -> LogError {
        LogError::Io { file: file.to_owned(), source }
    }

    /// Damage at a place.
    pub(crate) fn corruption(file: &Path, offset: u64, detail: impl Into<String>) -> LogError {
        LogError::Corruption { file: file.to_owned(), offset, detail: detail.into() }
    }
}

/// True for the errors that mean "no room", which refuse one call but do not stop the log.
pub(crate) fn is_out_of_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
