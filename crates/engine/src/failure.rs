//! Errors of the log and of the base as the interface tells them.

use pando_engine_log::LogError;
use pando_engine_runs::RunsError;
use pando_storage::StorageError;
use std::io;
use std::path::Path;

/// A log error.
pub fn of_log(error: LogError) -> StorageError {
    match error {
        LogError::Corruption { file, offset, detail } => {
            StorageError::Corruption { file: file.display().to_string(), offset, detail }
        }
        LogError::UnknownFormat { .. } => unknown_format(&error.to_string()),
        LogError::OutOfSpace { .. } => StorageError::OutOfDiskSpace(error.to_string()),
        LogError::Stopped(text) => StorageError::Stopped(text),
        LogError::PositionLost(_) => StorageError::PositionLost,
        LogError::RecordTooLarge { bytes, limit_bytes } => {
            StorageError::TooLarge("log record", bytes as usize, limit_bytes as usize)
        }
        LogError::Truncated(_) | LogError::Io { .. } => StorageError::Io(error.to_string()),
    }
}

/// An error of the base.
pub fn of_runs(error: RunsError) -> StorageError {
    match error {
        RunsError::Corruption { file, offset, detail } => {
            StorageError::Corruption { file: file.display().to_string(), offset, detail }
        }
        RunsError::UnknownFormat { .. } => unknown_format(&error.to_string()),
        RunsError::OutOfSpace { .. } => StorageError::OutOfDiskSpace(error.to_string()),
        RunsError::Stopped(text) => StorageError::Stopped(text),
        RunsError::Invalid(text) => StorageError::IllegalOperation(text),
        RunsError::Io { .. } => StorageError::Io(error.to_string()),
    }
}

/// The disk could not be asked.
pub fn of_disk(path: &Path, error: &io::Error) -> StorageError {
    StorageError::Io(format!("{}: {error}", path.display()))
}

/// Says what to do about data that another version has written.
fn unknown_format(what: &str) -> StorageError {
    StorageError::BadDirectory(format!(
        "the data was written by another version of the server: {what}. Nothing was changed. Start the version that wrote it; \
         to move the data to this one, dump it there and restore it here"
    ))
}
