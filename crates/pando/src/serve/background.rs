//! `--fork`: the node runs in a child process, and the parent ends when the child listens.
//!
//! The program starts itself again with the same words and a mark in its environment. The child says one line when it is
//! ready; its input and output are then nobody's.

use crate::error::{PandoError, Result};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

/// The mark of the child.
const MARK: &str = "PANDO_IN_BACKGROUND";
/// What the child says.
const READY: &str = "ready";

/// Is this the child?
pub fn is_background() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Starts the child and waits until it listens or fails.
pub fn start(words: &[OsString]) -> Result<ExitCode> {
    let program = std::env::current_exe().map_err(PandoError::Output)?;
    let mut command = Command::new(program);
    command.args(words.iter().skip(1)).env(MARK, "1").stdin(Stdio::null()).stdout(Stdio::piped());
    if let Some(name) = words.first() {
        command.arg0(name);
    }
    // A group of its own: what ends the terminal's programs does not end it.
    let mut child = command.process_group(0).spawn().map_err(PandoError::Output)?;
    println!("about to fork child process, waiting until server is ready for connections.");
    println!("forked process: {}", child.id());
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line).map_err(PandoError::Output)?;
    }
    if line.trim_end() == READY {
        println!("child process started successfully, parent exiting");
        return Ok(ExitCode::SUCCESS);
    }
    let status = child.wait().map_err(PandoError::Output)?;
    eprintln!("ERROR: child process failed, exited with {}", status.code().unwrap_or(1));
    eprintln!("To see additional information in this output, start without the \"--fork\" option.");
    Ok(ExitCode::FAILURE)
}

/// Tells the parent, if there is one.
pub fn tell_ready() {
    if is_background() {
        let mut output = std::io::stdout().lock();
        // A parent that is gone does not wait.
        let _ = writeln!(output, "{READY}").and_then(|()| output.flush());
    }
}
