//! Lines to standard output.

use super::LogTarget;
use pando_base::LogLine;
use std::io::{IsTerminal, Write};

/// Standard output.
pub struct StreamSink {
    is_readable: bool,
    is_quiet: bool,
}

impl StreamSink {
    /// Readable lines if a person looks on, JSON if not.
    pub fn standard_output() -> StreamSink {
        StreamSink { is_readable: std::io::stdout().is_terminal(), is_quiet: false }
    }

    /// The same, but only what somebody should look at.
    #[must_use]
    pub fn quiet(self) -> StreamSink {
        StreamSink { is_quiet: true, ..self }
    }
}

impl LogTarget for StreamSink {
    fn write(&self, line: &LogLine, json: &str) {
        if self.is_quiet && line.severity > pando_base::Severity::Warning {
            return;
        }
        let mut out = std::io::stdout().lock();
        // There is nobody to tell that the output is gone.
        let _ = if self.is_readable { writeln!(out, "{}", line.to_text()) } else { writeln!(out, "{json}") };
    }
}
