//! Where log lines go: a stream (readable if a person looks at it, JSON otherwise), a file that can be rotated, or the system's log.

mod file;
mod stream;
mod syslog;

use pando_base::LogLine;
use std::io;

pub use file::FileSink;
pub use stream::StreamSink;
pub use syslog::{SyslogSink, syslog_facility};

/// A place for lines that may know how to begin anew.
pub trait LogTarget: Send + Sync {
    /// Takes a line; `json` is the line as JSON.
    fn write(&self, line: &LogLine, json: &str);

    /// Begins a new file, if lines go to one.
    fn rotate(&self) -> io::Result<()> {
        Ok(())
    }
}
