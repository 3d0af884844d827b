//! Where log lines go: a stream (readable and with bars of progress if a person looks at it, JSON otherwise), a file that can be rotated, or the system's log.

mod file;
mod stream;
mod syslog;
mod terminal;

use pando_base::{LogLine, Progress};
use std::io;

pub use file::FileSink;
pub use stream::StreamSink;
pub use syslog::{SyslogSink, syslog_facility};

/// A place for lines that may know how to begin anew.
pub trait LogTarget: Send + Sync {
    /// Takes a line; `json` is the line as JSON.
    fn write(&self, line: &LogLine, json: &str);

    /// Shows how far a piece of work has come, if a person looks on; none when it is over.
    fn show_progress(&self, _id: u64, _progress: Option<Progress<'_>>) {}

    /// Begins a new file, if lines go to one.
    fn rotate(&self) -> io::Result<()> {
        Ok(())
    }
}
