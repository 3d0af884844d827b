//! What the binary can fail with, told to a person.

use pando_storage::StorageError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The result of a command.
pub type Result<T> = std::result::Result<T, PandoError>;

/// What to do about a failure, where that is known.
const ADVICE: &[(&str, &str)] = &[
    (
        "Address already in use",
        "something else listens there, perhaps another node: stop it, or choose another port with --port",
    ),
    ("Cannot assign requested address", "this machine does not have that address: correct --bind_ip"),
    (
        "is in use or cannot be locked",
        "stop the node that has the data open, or choose another directory with --dbpath",
    ),
    ("Permission denied", "give the user that runs this access to the file or port, or choose another"),
    ("Unknown --setParameter", "`pando reference` lists the parameters that there are"),
    (
        "data corruption",
        "`pando inspect verify` tells what is damaged, `pando repair` makes a store of the rest and says what is lost",
    ),
    ("An incomplete repair has been detected", "run `pando repair` again, with the same --dbpath"),
    ("Expected collection does not exist", "`pando repair` makes the data usable and says what is lost"),
    ("out of disk space", "make room on the disk that has the data, and start again"),
    ("are too open", "let only its owner have it: chmod 600"),
    ("the private key is encrypted", "give its password with --tlsCertificateKeyFilePassword"),
    ("need tlsCertificateKeyFile", "name the file with --tlsCertificateKeyFile, or leave --tlsMode out"),
    ("--fork", "name a file for the log with --logpath, or leave --fork out"),
];

impl PandoError {
    /// What a person can do about it.
    pub fn advice(&self) -> Option<&'static str> {
        let told = self.to_string();
        ADVICE.iter().find(|(cause, _)| told.contains(cause)).map(|(_, advice)| *advice)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::{Error, ErrorCode};

    #[test]
    fn u12_failures_at_start_say_what_to_do() {
        let taken = Error::new(
            ErrorCode::SocketException,
            "Failed to set up listener: 127.0.0.1:27017: Address already in use (os error 98)",
        );
        assert!(PandoError::Server(taken).advice().is_some_and(|advice| advice.contains("--port")));
        let locked = StorageError::DirectoryInUse("data is in use or cannot be locked: would block".into());
        assert!(PandoError::Storage(locked).advice().is_some_and(|advice| advice.contains("--dbpath")));
        assert_eq!(PandoError::Damaged(3).advice(), None);
    }
}
