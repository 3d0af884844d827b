//! A terminal that a person looks at: readable lines, and below them a bar for the work that is under way.
//!
//! The bar is one line that is drawn over and over in its place. A line of the log takes its place first and pushes it down; when
//! the work is over, nothing of it is left. Of several pieces of work the one that was heard of last is shown.
//!
//! Drawn with carriage returns and spaces alone, which every terminal knows, and narrower than the narrowest usual one, where a
//! line that wraps could not be taken away.

use pando_base::Progress;
use parking_lot::Mutex;
use std::io::{self, Write};

/// Terminals have eighty columns or more; the last one stays free, where some wrap already.
const COLUMNS_MAX: usize = 79;
/// Cells of the bar.
const CELLS: u64 = 10;

/// The terminal.
pub(super) struct Terminal {
    screen: Mutex<Screen>,
}

struct Screen {
    out: Box<dyn Write + Send>,
    /// The work that is under way, each with its bar; the last is shown.
    bars: Vec<(u64, String)>,
    /// Columns of the bar that is drawn.
    drawn_columns: usize,
}

impl Terminal {
    pub(super) fn new(out: Box<dyn Write + Send>) -> Terminal {
        Terminal { screen: Mutex::new(Screen { out, bars: Vec::new(), drawn_columns: 0 }) }
    }

    /// A line, above the bar.
    pub(super) fn write_line(&self, line: &str) {
        let mut screen = self.screen.lock();
        // There is nobody to tell that the output is gone.
        let _ = screen.clear().and_then(|()| writeln!(screen.out, "{line}")).and_then(|()| screen.draw());
    }

    /// Draws the bar of a piece of work, or takes it away.
    pub(super) fn show_progress(&self, id: u64, progress: Option<Progress<'_>>) {
        let mut screen = self.screen.lock();
        if progress.is_none() && screen.bars.iter().all(|(other, _)| *other != id) {
            return;
        }
        screen.bars.retain(|(other, _)| *other != id);
        screen.bars.extend(progress.map(|progress| (id, bar(&progress))));
        let _ = screen.clear().and_then(|()| screen.draw());
    }
}

impl Screen {
    fn clear(&mut self) -> io::Result<()> {
        let columns = std::mem::take(&mut self.drawn_columns);
        if columns > 0 {
            write!(self.out, "\r{:columns$}\r", "")?;
        }
        Ok(())
    }

    fn draw(&mut self) -> io::Result<()> {
        if let Some((_, bar)) = self.bars.last() {
            write!(self.out, "{bar}")?;
            self.drawn_columns = bar.chars().count();
        }
        self.out.flush()
    }
}

/// "[####......]  43 % Index Build: scanning collection".
fn bar(progress: &Progress<'_>) -> String {
    let percent = progress.percent();
    let cell = |place: u64| if place * 100 < percent * CELLS { '#' } else { '.' };
    let cells: String = (0..CELLS).map(cell).collect();
    format!("[{cells}] {percent:>3} % {}", progress.what).chars().take(COLUMNS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// What a person sees: rows, of which carriage returns overwrite the last.
    #[derive(Clone, Default)]
    struct FakeTerminal(Arc<Mutex<Vec<u8>>>);

    impl Write for FakeTerminal {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl FakeTerminal {
        fn rows(&self) -> Vec<String> {
            let (bytes, mut rows, mut column) = (self.0.lock().clone(), vec![Vec::new()], 0);
            for byte in bytes {
                let row: &mut Vec<u8> = rows.last_mut().unwrap();
                match byte {
                    b'\n' => {
                        rows.push(Vec::new());
                        column = 0;
                    }
                    b'\r' => column = 0,
                    _ => {
                        row.resize(row.len().max(column + 1), b' ');
                        row[column] = byte;
                        column += 1;
                    }
                }
                assert!(column <= COLUMNS_MAX, "the bar wraps");
            }
            rows.iter().map(|row| String::from_utf8_lossy(row).trim_end().to_owned()).collect()
        }
    }

    fn progress(what: &str, done: u64) -> Option<Progress<'_>> {
        Some(Progress { what, done, total: 200 })
    }

    #[test]
    fn i9_a_bar_is_redrawn_in_place_and_gone_at_the_end() {
        let fake = FakeTerminal::default();
        let terminal = Terminal::new(Box::new(fake.clone()));
        terminal.show_progress(1, progress("Index Build: scanning collection", 10));
        assert_eq!(fake.rows(), ["[#.........]   5 % Index Build: scanning collection"]);
        terminal.show_progress(1, progress("scanning", 87));
        assert_eq!(fake.rows(), ["[#####.....]  43 % scanning"]);
        terminal.show_progress(1, progress(&"long ".repeat(40), 500));
        assert!(fake.rows()[0].starts_with("[##########] 100 % long long"));
        terminal.show_progress(1, None);
        terminal.show_progress(1, None);
        assert_eq!(fake.rows(), [""]);
    }

    #[test]
    fn i9_lines_of_the_log_stand_above_the_bar() {
        let fake = FakeTerminal::default();
        let terminal = Terminal::new(Box::new(fake.clone()));
        terminal.write_line("first");
        terminal.show_progress(1, progress("a rather long piece of work", 100));
        terminal.write_line("second");
        terminal.show_progress(2, progress("other", 0));
        terminal.write_line("third");
        assert_eq!(fake.rows(), ["first", "second", "third", "[..........]   0 % other"]);
        terminal.show_progress(2, None);
        assert_eq!(fake.rows().last().unwrap(), "[#####.....]  50 % a rather long piece of work");
        terminal.show_progress(1, None);
        terminal.write_line("fourth");
        assert_eq!(fake.rows(), ["first", "second", "third", "fourth", ""]);
    }
}
