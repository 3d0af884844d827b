//! The last lines, for getLog.

use std::collections::VecDeque;
use std::sync::Arc;

const LINES_MAX: usize = 1024;
const BYTES_MAX: usize = 1024 * 1024;

/// The newest lines, as many as fit in number and in bytes; the newest always.
#[derive(Default)]
pub(super) struct Ring {
    lines: VecDeque<Arc<str>>,
    size_bytes: usize,
    lines_written: u64,
}

impl Ring {
    pub(super) fn push(&mut self, line: Arc<str>) {
        self.size_bytes += line.len();
        self.lines.push_back(line);
        self.lines_written += 1;
        while self.lines.len() > LINES_MAX || (self.size_bytes > BYTES_MAX && self.lines.len() > 1) {
            let oldest = self.lines.pop_front();
            self.size_bytes -= oldest.map_or(0, |line| line.len());
        }
    }

    pub(super) fn lines(&self) -> Vec<Arc<str>> {
        self.lines.iter().cloned().collect()
    }

    pub(super) fn lines_written(&self) -> u64 {
        self.lines_written
    }

    pub(super) fn clear(&mut self) {
        *self = Ring::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_newest() {
        let mut ring = Ring::default();
        (0..LINES_MAX + 5).for_each(|number| ring.push(Arc::from(number.to_string())));
        let lines = ring.lines();
        assert_eq!((lines.len(), &*lines[0], ring.lines_written()), (LINES_MAX, "5", LINES_MAX as u64 + 5));
        let half: Arc<str> = Arc::from("x".repeat(BYTES_MAX / 2));
        (0..3).for_each(|_| ring.push(Arc::clone(&half)));
        assert_eq!(ring.lines().len(), 2);
        ring.push(Arc::from("y".repeat(BYTES_MAX + 1)));
        assert_eq!(ring.lines().len(), 1);
        ring.push(Arc::from("z"));
        assert_eq!(&*ring.lines()[0], "z");
        ring.clear();
        assert_eq!(ring.lines().len(), 0);
    }
}
