//! Records and bytes of one table, exact now, at stable and after any crash or rollback.
//!
//! A change is entered under the log's lock, together with its commit, so that a checkpoint that takes its cut under the
//! same lock finds exactly the changes of the commits before the cut. Timestamped changes wait in `pending` until stable
//! has passed them.

use pando_base::Timestamp;
use pando_storage::TableSize;
use std::collections::BTreeMap;

/// More pending changes than this are folded as far as stable has passed them.
const PENDING_FOLD: usize = 256;

/// A size as a checkpoint keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    /// What no rollback can take back.
    pub settled: TableSize,
    /// What a rollback may take back, by durable timestamp: only a full checkpoint has such changes.
    pub pending: BTreeMap<Timestamp, TableSize>,
}

/// One table's book.
#[derive(Default)]
pub struct Ledger {
    /// What no rollback can take back.
    settled: TableSize,
    /// By durable timestamp.
    pending: BTreeMap<Timestamp, TableSize>,
    /// The sum of all.
    latest: TableSize,
}

impl Ledger {
    /// As the last checkpoint left it.
    pub fn new(book: Book) -> Ledger {
        let mut latest = book.settled;
        book.pending.values().for_each(|change| latest += *change);
        Ledger { settled: book.settled, pending: book.pending, latest }
    }

    /// What a checkpoint at a stable timestamp keeps; without one it keeps everything.
    pub fn book(&self, stable: Option<Timestamp>) -> Book {
        match stable {
            Some(stable) => Book { settled: self.at(stable), pending: BTreeMap::new() },
            None => Book { settled: self.settled, pending: self.pending.clone() },
        }
    }

    /// Enters a committed change; no timestamp means that it cannot be rolled back.
    pub fn enter(&mut self, durable: Timestamp, change: TableSize, stable: Timestamp) {
        self.latest += change;
        match durable.is_none() {
            true => self.settled += change,
            false => *self.pending.entry(durable).or_default() += change,
        }
        if self.pending.len() > PENDING_FOLD {
            self.fold(stable);
        }
    }

    /// Settles what stable has passed. Where stable stands still it costs one look: each document of a batch enters a change.
    fn fold(&mut self, stable: Timestamp) {
        while let Some(first) = self.pending.first_entry().filter(|first| *first.key() <= stable) {
            self.settled += first.remove();
        }
    }

    /// The size with every commit.
    pub fn latest(&self) -> TableSize {
        self.latest
    }

    /// The size with what was durable at stable; `MAX` gives the latest.
    pub fn at(&self, stable: Timestamp) -> TableSize {
        let mut size = self.settled;
        for change in self.pending.range(..=stable).map(|(_, change)| *change) {
            size += change;
        }
        size
    }

    /// Takes back what stable has not passed.
    pub fn roll_back(&mut self, stable: Timestamp) {
        self.fold(stable);
        self.pending.clear();
        self.latest = self.settled;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x18_sizes_follow_stable_and_rollback() {
        let mut ledger = Ledger::new(Book { settled: TableSize::new(10, 100), ..Book::default() });
        ledger.enter(Timestamp(5), TableSize::new(1, 7), Timestamp::NONE);
        ledger.enter(Timestamp(9), TableSize::new(1, 9), Timestamp::NONE);
        ledger.enter(Timestamp::NONE, TableSize::new(-2, -3), Timestamp::NONE);
        assert_eq!(ledger.latest(), TableSize::new(10, 113));
        assert_eq!(ledger.at(Timestamp(5)), TableSize::new(9, 104));
        assert_eq!(ledger.at(Timestamp::MAX), ledger.latest());
        ledger.roll_back(Timestamp(8));
        assert_eq!(ledger.latest(), TableSize::new(9, 104));
        assert_eq!(ledger.at(Timestamp::NONE), ledger.latest());
    }

    #[test]
    fn folding_keeps_the_sum() {
        let mut ledger = Ledger::default();
        for time in 1..=1000u64 {
            ledger.enter(Timestamp(time), TableSize::new(1, 1), Timestamp(time.saturating_sub(10)));
        }
        assert!(ledger.pending.len() <= PENDING_FOLD + 1);
        assert_eq!(ledger.latest(), TableSize::new(1000, 1000));
        assert_eq!(ledger.at(Timestamp(995)), TableSize::new(995, 995));
    }
}
