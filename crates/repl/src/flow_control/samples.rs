//! Which entry was the how-manieth: now and then the number of entries is written down beside the time of the newest, so that one
//! can say later how many lie between two times.

use pando_base::Timestamp;
use std::collections::VecDeque;

/// The samples, and when the next is taken.
#[derive(Debug)]
pub(crate) struct Samples {
    samples: VecDeque<(Timestamp, u64)>,
    entry_count: u64,
    sampled_count: u64,
    period: u64,
    count_max: usize,
}

impl Samples {
    pub(crate) fn new() -> Samples {
        Samples { samples: VecDeque::new(), entry_count: 0, sampled_count: 0, period: 1000, count_max: 1_000_000 }
    }

    /// A sample after so many entries, and so many of them.
    pub(crate) fn configure(&mut self, period: u64, count_max: usize) {
        (self.period, self.count_max) = (period.max(1), count_max.max(1));
        while self.samples.len() > self.count_max {
            self.samples.pop_front();
        }
    }

    /// Entries so far.
    pub(crate) fn entry_count(&self) -> u64 {
        self.entry_count
    }

    /// So many entries were written, the newest at this time.
    pub(crate) fn add(&mut self, newest: Timestamp, count: u64) {
        self.entry_count += count;
        let is_due = self.entry_count - self.sampled_count >= self.period;
        let is_newer = self.samples.back().is_none_or(|(time, _)| *time < newest);
        if is_due && is_newer {
            if self.samples.len() >= self.count_max {
                self.samples.pop_front();
            }
            self.samples.push_back((newest, self.entry_count));
            self.sampled_count = self.entry_count;
        }
    }

    /// How many entries there were up to a time, as far as the samples tell; none from before the first.
    fn count_at(&self, time: Timestamp) -> Option<u64> {
        let behind = self.samples.partition_point(|(sampled, _)| *sampled <= time);
        behind.checked_sub(1).and_then(|place| self.samples.get(place)).map(|(_, count)| *count)
    }

    /// How many entries lie between two times; none if that cannot be said.
    pub(crate) fn between(&self, from: Timestamp, to: Timestamp) -> Option<u64> {
        if to < from {
            return None;
        }
        let to = self.count_at(to).unwrap_or(0);
        Some(to.saturating_sub(self.count_at(from).unwrap_or(0)))
    }

    /// Nobody will ask about what lies before this time.
    pub(crate) fn trim(&mut self, time: Timestamp) {
        while self.samples.get(1).is_some_and(|(second, _)| *second <= time) {
            self.samples.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u32) -> Timestamp {
        Timestamp::new(seconds, 1)
    }

    #[test]
    fn x23_samples_tell_how_many_entries_lie_between_two_times() {
        let mut samples = Samples::new();
        samples.configure(10, 100);
        for second in 1..=10 {
            samples.add(at(second), 5);
        }
        // Every second one was taken.
        assert_eq!(samples.samples.len(), 5);
        assert_eq!(samples.between(at(2), at(6)), Some(20));
        assert_eq!(samples.between(at(3), at(7)), Some(20), "to the sample before");
        assert_eq!(samples.between(at(0), at(10)), Some(50));
        assert_eq!(samples.between(at(6), at(2)), None);
        samples.add(at(9), 100);
        assert_eq!((samples.samples.len(), samples.entry_count()), (5, 150), "none that is older");
        samples.trim(at(7));
        assert_eq!(samples.samples.front(), Some(&(at(6), 30)));
        samples.configure(10, 2);
        assert_eq!(samples.samples.front(), Some(&(at(8), 40)));
    }
}
