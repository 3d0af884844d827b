//! Where intents are counted without touching what other processors touch.
//!
//! Each locker belongs to one partition, chosen by the thread that made it. For a resource that nobody holds in S or X and
//! nobody waits for, taking IS or IX is adding one to a tally in the own partition. A resource is *open* in a partition or
//! not; a tally exists only while it is open. Opening and closing are done under the lock of the resource's bucket.
//!
//! What counts is the sum over the open partitions and the resource's head: an intent may be taken here and given back
//! there, so one tally may well be negative.
//!
//! The tallies of the global resources, which every operation takes, are atomic words whose lowest bit says *closed*: the
//! bit and the count change together, so an intent is either seen by whoever closes, or sees that it is closed. Those of
//! other resources are in a map under a lock, which is hardly ever contended as only few threads share a partition.

use super::seats::Seats;
use crate::mode::Mode;
use crate::resource::{GLOBAL_COUNT, IdHash, ResourceId};
use crate::stats::SharedLockStats;
use crate::sync::{AtomicU64, Mutex, Ordering};
use std::collections::HashMap;

/// How often IS and IX are taken, or a difference of such, in one number that adds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally(i64);

/// IX is counted from this bit on. A tally has 63 bits, so that one is left for *closed*.
const INTENT_EXCLUSIVE_SHIFT: u32 = 31;

impl Tally {
    /// One intent.
    pub(crate) fn one(mode: Mode) -> Tally {
        debug_assert!(mode.is_intent());
        Tally(if mode == Mode::IS { 1 } else { 1 << INTENT_EXCLUSIVE_SHIFT })
    }

    pub(crate) fn plus(self, other: Tally) -> Tally {
        Tally(self.0.wrapping_add(other.0))
    }

    pub(crate) fn negated(self) -> Tally {
        Tally(self.0.wrapping_neg())
    }

    /// The counts of IS and of IX.
    pub(crate) fn counts(self) -> (i64, i64) {
        let unused = i64::BITS - INTENT_EXCLUSIVE_SHIFT;
        let intent_shared = (self.0 << unused) >> unused;
        (intent_shared, self.0.wrapping_sub(intent_shared) >> INTENT_EXCLUSIVE_SHIFT)
    }

    fn from_word(word: u64) -> Tally {
        Tally(word as i64 >> 1)
    }

    fn word(self) -> u64 {
        (self.0 << 1) as u64
    }
}

/// The bit of a word that says: not open. A closed word is this and nothing else.
const CLOSED: u64 = 1;

/// The tallies of some lockers.
pub(crate) struct Partition {
    globals: [AtomicU64; GLOBAL_COUNT],
    others: Mutex<HashMap<ResourceId, Tally, IdHash>>,
    next_locker: std::sync::atomic::AtomicU64,
    pub stats: SharedLockStats,
    pub seats: Seats,
}

impl Partition {
    pub(crate) fn new() -> Partition {
        Partition {
            globals: std::array::from_fn(|_| AtomicU64::new(CLOSED)),
            others: Mutex::new(HashMap::default()),
            next_locker: std::sync::atomic::AtomicU64::new(0),
            stats: SharedLockStats::default(),
            seats: Seats::default(),
        }
    }

    /// A number that this partition has not given before.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_locker.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }

    /// Adds to the tally, if the resource is open here.
    pub(crate) fn add(&self, resource: ResourceId, difference: Tally) -> bool {
        match self.global_word(resource) {
            Some(word) => add_to_word(word, difference),
            None => match self.others.lock().get_mut(&resource) {
                Some(tally) => {
                    *tally = tally.plus(difference);
                    true
                }
                None => false,
            },
        }
    }

    /// Opens the resource with a first tally. It must be closed, and the caller must have the bucket's lock.
    pub(crate) fn open(&self, resource: ResourceId, first: Tally) {
        let before = match self.global_word(resource) {
            Some(word) => Some(word.swap(first.word(), Ordering::AcqRel)).filter(|word| *word != CLOSED),
            None => self.others.lock().insert(resource, first).map(Tally::word),
        };
        debug_assert!(before.is_none(), "{resource} was open");
    }

    /// Closes the resource and returns its tally. It must be open, and the caller must have the bucket's lock.
    pub(crate) fn close(&self, resource: ResourceId) -> Tally {
        let tally = match self.global_word(resource) {
            Some(word) => {
                Some(word.swap(CLOSED, Ordering::AcqRel)).filter(|word| *word != CLOSED).map(Tally::from_word)
            }
            None => self.others.lock().remove(&resource),
        };
        debug_assert!(tally.is_some(), "{resource} was closed");
        tally.unwrap_or_default()
    }

    fn global_word(&self, resource: ResourceId) -> Option<&AtomicU64> {
        resource.as_global().map(|global| &self.globals[global as usize])
    }
}

fn add_to_word(word: &AtomicU64, difference: Tally) -> bool {
    let mut before = word.load(Ordering::Relaxed);
    while before & CLOSED == 0 {
        let after = before.wrapping_add(difference.word());
        match word.compare_exchange_weak(before, after, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => before = now,
        }
    }
    false
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn tallies_add_up_whatever_the_signs() {
        let (shared, exclusive) = (Tally::one(Mode::IS), Tally::one(Mode::IX));
        let mut sum = Tally::default();
        for _ in 0..5 {
            sum = sum.plus(shared.negated());
        }
        assert_eq!(sum.counts(), (-5, 0));
        for _ in 0..3 {
            sum = sum.plus(exclusive);
        }
        assert_eq!(sum.counts(), (-5, 3));
        for _ in 0..7 {
            sum = sum.plus(exclusive.negated());
        }
        assert_eq!(sum.counts(), (-5, -4));
        assert_eq!(Tally::from_word(sum.word()).counts(), (-5, -4));
        assert_eq!(sum.word() & CLOSED, 0);
    }

    #[test]
    fn x9_nothing_is_counted_where_it_is_closed() {
        let partition = Partition::new();
        for resource in [ResourceId::GLOBAL, ResourceId::database(None, b"test")] {
            let one = Tally::one(Mode::IX);
            assert!(!partition.add(resource, one));
            partition.open(resource, one);
            assert!(partition.add(resource, one));
            assert!(partition.add(resource, Tally::one(Mode::IS).negated()));
            assert_eq!(partition.close(resource).counts(), (-1, 2));
            assert!(!partition.add(resource, one));
        }
    }
}
