//! What can go wrong below the collections, each with MongoDB's code.

use pando_base::{ErrorCode, Timestamp};
use thiserror::Error;

/// The result of a storage call.
pub type Result<T> = std::result::Result<T, StorageError>;

/// A storage error. Cheap to clone, so that one failure can be told to many waiters.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StorageError {
    /// Another transaction wrote the key first. Roll back and try again.
    #[error("write conflict")]
    WriteConflict,
    /// The key was written by a prepared transaction whose end is not known. Wait for
    /// [`prepare_wait`](crate::TransactionSource::prepare_wait), then repeat the call.
    #[error("prepare conflict: a prepared transaction wrote this key")]
    PrepareConflict,
    /// Memory is short: the operation cannot go on without blocking others.
    #[error("the operation was rolled back for want of cache: {0}")]
    TemporarilyUnavailable(String),
    /// The transaction alone is more than the cache can hold.
    #[error("the transaction is too large for the cache: {0}")]
    TransactionTooLargeForCache(String),
    /// The read timestamp is older than the history that is kept.
    #[error("read timestamp {requested} is older than the oldest available timestamp {oldest}")]
    SnapshotTooOld {
        /// What was asked for.
        requested: Timestamp,
        /// What there is.
        oldest: Timestamp,
    },
    /// A timestamp rule was broken by the caller.
    #[error("timestamp rule broken: {0}")]
    TimestampRule(String),
    /// The call does not fit the state, e.g. a write in a prepared transaction.
    #[error("illegal operation: {0}")]
    IllegalOperation(String),
    /// A table of this ident exists.
    #[error("ident '{0}' exists")]
    IdentExists(String),
    /// There is no table of this ident.
    #[error("ident '{0}' not found")]
    IdentNotFound(String),
    /// A key or value is over the limit.
    #[error("{0} is too large: {1} bytes, at most {2}")]
    TooLarge(&'static str, usize, usize),
    /// The same key is there already.
    #[error("duplicate key")]
    DuplicateKey,
    /// The place where a reader of the oplog stood was truncated.
    #[error("the cursor's position in the oplog was truncated")]
    PositionLost,
    /// Something is still in use.
    #[error("busy: {0}")]
    Busy(String),
    /// The disk is full. Reads go on; writes go on when there is room.
    #[error("out of disk space: {0}")]
    OutOfDiskSpace(String),
    /// A checksum does not hold.
    #[error("data corruption in {file} at offset {offset}: {detail}")]
    Corruption {
        /// Which file.
        file: String,
        /// Where in it.
        offset: u64,
        /// What was wrong.
        detail: String,
    },
    /// A file operation failed.
    #[error("i/o error: {0}")]
    Io(String),
    /// The engine has stopped and refuses writes until it is opened again.
    #[error("the storage engine has stopped: {0}")]
    Stopped(String),
    /// The data directory cannot be used as asked.
    #[error("{0}")]
    BadDirectory(String),
    /// Somebody else has the data directory, or it cannot be told that nobody has.
    #[error("{0}")]
    DirectoryInUse(String),
    /// The data directory is that of a member of a set, and its oplog has writes that are nowhere else.
    #[error("{0}")]
    OplogNotApplied(String),
}

impl StorageError {
    /// MongoDB's code for this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            StorageError::WriteConflict | StorageError::PrepareConflict => ErrorCode::WriteConflict,
            StorageError::TemporarilyUnavailable(_) => ErrorCode::TemporarilyUnavailable,
            StorageError::TransactionTooLargeForCache(_) => ErrorCode::TransactionTooLargeForCache,
            StorageError::SnapshotTooOld { .. } => ErrorCode::SnapshotTooOld,
            StorageError::TimestampRule(_) => ErrorCode::BadValue,
            StorageError::IllegalOperation(_) => ErrorCode::IllegalOperation,
            StorageError::IdentExists(_) => ErrorCode::NamespaceExists,
            StorageError::IdentNotFound(_) => ErrorCode::NamespaceNotFound,
            StorageError::TooLarge(..) => ErrorCode::BSONObjectTooLarge,
            StorageError::DuplicateKey => ErrorCode::DuplicateKey,
            StorageError::PositionLost => ErrorCode::CappedPositionLost,
            StorageError::Busy(_) => ErrorCode::ObjectIsBusy,
            StorageError::OutOfDiskSpace(_) => ErrorCode::OutOfDiskSpace,
            StorageError::Corruption { .. } => ErrorCode::DataCorruptionDetected,
            StorageError::Io(_) => ErrorCode::UnknownError,
            StorageError::Stopped(_) => ErrorCode::InterruptedAtShutdown,
            StorageError::BadDirectory(_) | StorageError::DirectoryInUse(_) | StorageError::OplogNotApplied(_) => {
                ErrorCode::InvalidOptions
            }
        }
    }

    /// True where the transaction was rolled back for contention or memory, and a retry may succeed.
    pub fn is_storage_unavailable(&self) -> bool {
        matches!(
            self,
            StorageError::WriteConflict
                | StorageError::TemporarilyUnavailable(_)
                | StorageError::TransactionTooLargeForCache(_)
        )
    }
}

impl From<StorageError> for pando_base::Error {
    fn from(error: StorageError) -> pando_base::Error {
        pando_base::Error::new(error.code(), error.to_string()).with_source(error)
    }
}
