//! What can go wrong, with MongoDB's codes.

use pando_base::{Error, ErrorCode};
use std::io;
use std::path::PathBuf;

/// The result of whatever may touch the disk.
pub type Result<T> = std::result::Result<T, SorterError>;

/// Why sorting failed.
#[derive(Debug, thiserror::Error)]
pub enum SorterError {
    /// More memory than allowed, and no disk to go to.
    #[error("Sort exceeded memory limit of {memory_bytes_max} bytes, but did not opt in to external sorting.")]
    MemoryExceeded {
        /// The budget.
        memory_bytes_max: u64,
    },
    /// There is too little space to begin with.
    #[error("Available space of {available_bytes} bytes is less than the required minimum of {required_bytes} bytes")]
    OutOfDiskSpace {
        /// What there is.
        available_bytes: u64,
        /// What there has to be.
        required_bytes: u64,
    },
    /// A file could not be created or opened.
    #[error("Error opening file {}: {source}", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A write failed.
    #[error("Error writing to file {}: {source}", path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A read failed.
    #[error("Error reading file {} at offset {offset}: {source}", path.display())]
    Read {
        /// Where.
        path: PathBuf,
        /// At which byte.
        offset: u64,
        /// Why.
        source: io::Error,
    },
    /// What was read is not what was written.
    #[error(
        "Data read from disk does not match what was written to disk. Possible corruption of data. File {} at offset {offset}",
        path.display()
    )]
    Damaged {
        /// Where.
        path: PathBuf,
        /// At which byte the block begins.
        offset: u64,
    },
    /// The thread that was to write a range has failed.
    #[error("Error writing beside a sorter: {source}")]
    Thread {
        /// Why.
        source: io::Error,
    },
    /// The operation that sorts was told to stop.
    #[error("{0}")]
    Stopped(Error),
    /// A file that was to be opened again is shorter than its ranges.
    #[error("Unexpected empty file: {}", path.display())]
    TooShort {
        /// Which.
        path: PathBuf,
    },
}

impl SorterError {
    /// MongoDB's code.
    pub fn code(&self) -> ErrorCode {
        match self {
            SorterError::MemoryExceeded { .. } => ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
            SorterError::OutOfDiskSpace { .. } => ErrorCode::OutOfDiskSpace,
            SorterError::Open { .. } => ErrorCode::location(16818),
            SorterError::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                ErrorCode::OutOfDiskSpace
            }
            SorterError::Write { .. } => ErrorCode::location(5642403),
            SorterError::Read { .. } => ErrorCode::location(16817),
            SorterError::Damaged { .. } => ErrorCode::location(31182),
            SorterError::Thread { .. } => ErrorCode::InternalError,
            SorterError::Stopped(error) => error.code(),
            SorterError::TooShort { .. } => ErrorCode::location(16815),
        }
    }
}

impl From<SorterError> for Error {
    fn from(error: SorterError) -> Error {
        match error {
            SorterError::Stopped(error) => error,
            other => Error::new(other.code(), other.to_string()),
        }
    }
}
