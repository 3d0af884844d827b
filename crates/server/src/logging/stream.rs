//! Lines to standard output.

use super::LogTarget;
use super::terminal::Terminal;
use pando_base::{LogLine, Progress, Severity};
use std::io::{IsTerminal, Write};

/// Standard output.
pub struct StreamSink {
    /// There if a person looks on.
    terminal: Option<Terminal>,
    is_quiet: bool,
}

impl StreamSink {
    /// Readable lines if a person looks on, JSON if not.
    pub fn standard_output() -> StreamSink {
        let out = std::io::stdout();
        let terminal = out.is_terminal().then(|| Terminal::new(Box::new(out)));
        StreamSink { terminal, is_quiet: false }
    }

    /// The same, but only what somebody should look at.
    #[must_use]
    pub fn quiet(self) -> StreamSink {
        StreamSink { is_quiet: true, ..self }
    }
}

impl LogTarget for StreamSink {
    fn write(&self, line: &LogLine, json: &str) {
        if self.is_quiet && line.severity > Severity::Warning {
            return;
        }
        match &self.terminal {
            Some(terminal) => terminal.write_line(&line.to_text()),
            // There is nobody to tell that the output is gone.
            None => drop(writeln!(std::io::stdout().lock(), "{json}")),
        }
    }

    fn show_progress(&self, id: u64, progress: Option<Progress<'_>>) {
        if let Some(terminal) = &self.terminal {
            terminal.show_progress(id, progress);
        }
    }
}
