//! What the binary can fail with, told to a person.

use pando_storage::StorageError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The result of a command.
pub type Result<T> = std::result::Result<T, PandoError>;

/// A command's failure.
#[derive(Debug, Error)]
pub enum PandoError {
    /// The engine refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// What was found could not be printed.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// The data directory could not even be looked at.
    #[error("{directory}: {source}", directory = .0.display(), source = .1)]
    Directory(PathBuf, io::Error),
    /// There is no store.
    #[error("there is no store in {}; `pando demo` makes a small one", .0.display())]
    NoStore(PathBuf),
    /// A store is in the way.
    #[error("{} is there already; choose another with --data-directory", .0.display())]
    Occupied(PathBuf),
    /// The server could not start, or not end.
    #[error("{0}")]
    Server(pando_base::Error),
    /// A word of the command line means nothing.
    #[error("{0}")]
    Argument(String),
    /// The check found something.
    #[error("{0} damaged places")]
    Damaged(usize),
}
