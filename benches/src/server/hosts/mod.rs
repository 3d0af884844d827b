//! Starting the servers: each as a child of the benchmark, on a port of its own, with its data in a folder of its own.
//!
//! A server ends with the benchmark, however that ends: the kernel sends it the signal to stop when its parent is gone.

pub mod pando;
pub mod postgres;

use super::dialects::Dialect;
use super::link::Link;
use crate::Error;
use std::ffi::c_int;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take until it listens.
const START_PATIENCE: Duration = Duration::from_secs(20);
const START_LOOK_EVERY: Duration = Duration::from_millis(2);
/// How long a server may take to end before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How much of a log is shown when a server did not start.
const LOG_LINES: usize = 15;

/// A running server.
pub struct Host {
    child: Child,
    stop_signal: c_int,
    log: PathBuf,
    /// Where it listens.
    pub address: SocketAddr,
    /// When it was started.
    pub started: Instant,
}

impl Host {
    /// Starts it, told which signal asks it to end.
    fn start(mut command: Command, address: SocketAddr, log: PathBuf, stop_signal: c_int) -> Result<Host, Error> {
        let output = File::create(&log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        // SAFETY: the closure makes one system call that may be made between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, stop_signal as libc::c_ulong);
                Ok(())
            });
        }
        let started = Instant::now();
        let child = command.spawn().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
        Ok(Host { child, stop_signal, log, address, started })
    }

    /// The first of its processes.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// What it said last, if it has ended by itself.
    pub fn check_alive(&mut self) -> Result<(), Error> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("the server ended with {status}\n{}", self.last_words()).into()),
        }
    }

    /// A connection, as soon as it listens.
    pub fn first_link(&mut self, dialect: impl Fn() -> Box<dyn Dialect>) -> Result<Link, Error> {
        loop {
            self.check_alive()?;
            match Link::open(self.address, dialect()) {
                Ok(link) => return Ok(link),
                Err(error) if self.started.elapsed() > START_PATIENCE => return Err(error),
                Err(_) => std::thread::sleep(START_LOOK_EVERY),
            }
        }
    }

    fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(LOG_LINES)..).unwrap_or_default().join("\n")
    }

    /// Asks it to end, and waits; how long that took.
    pub fn stop(&mut self) -> Result<Duration, Error> {
        let start = Instant::now();
        // SAFETY: no pointers; the child has not been waited for, so the number is still its own.
        unsafe { libc::kill(self.child.id() as libc::pid_t, self.stop_signal) };
        while self.child.try_wait()?.is_none() {
            if start.elapsed() > STOP_PATIENCE {
                self.child.kill()?;
                self.child.wait()?;
                return Err(format!("it did not end within {} s and was killed", STOP_PATIENCE.as_secs()).into());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(start.elapsed())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            _ = self.stop();
        }
    }
}

/// A port that was free a moment ago.
fn free_address() -> Result<SocketAddr, Error> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// A new, empty folder, by its absolute path.
fn empty_folder(directory: &Path) -> Result<PathBuf, Error> {
    crate::children::remove_folder(directory);
    std::fs::create_dir_all(directory)?;
    Ok(directory.canonicalize()?)
}
