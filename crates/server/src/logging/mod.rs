//! Where log lines go: a stream (readable if a person looks at it, JSON otherwise) or a file that can be rotated.

mod file;
mod stream;

use pando_base::LogLine;
use std::io;

pub use file::FileSink;
pub use stream::StreamSink;

/// A place for lines that may know how to begin anew.
pub trait LogTarget: Send + Sync {
    /// Takes a line; `json` is the line as JSON.
    fn write(&self, line: &LogLine, json: &str);

    /// Begins a new file, if lines go to one.
    fn rotate(&self) -> io::Result<()> {
        Ok(())
    }
}
