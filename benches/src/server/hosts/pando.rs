//! Starts Pando as `cargo run --release` does: a one-member replica set with default settings.

use super::{Host, empty_folder, free_address};
use crate::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The binary that was built beside this one.
pub fn default_binary() -> Result<PathBuf, Error> {
    Ok(std::env::current_exe()?.with_file_name("pando"))
}

/// Starts it with its data in this folder.
pub fn start(binary: &Path, directory: &Path) -> Result<Host, Error> {
    if !binary.exists() {
        return Err(format!("{} is not there: build it with cargo build --release", binary.display()).into());
    }
    let folder = empty_folder(directory)?;
    let address = free_address()?;
    let mut command = Command::new(binary.canonicalize()?);
    command.current_dir(&folder).arg("--dbpath").arg(folder.join("data"));
    command.args(["--port", &address.port().to_string()]);
    Host::start(command, address, folder.join("server.log"), libc::SIGTERM)
}
