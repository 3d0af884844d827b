//! Room in the log, promised before a commit may enter.
//!
//! A commit reserves its bytes first; what is promised never exceeds what the segments that are open for writing can hold
//! for certain. A record does not straddle segments, so each segment may waste less than the largest promised record at
//! its end: with `w` the largest outstanding promise, a segment with `r` bytes left holds at least `r − w` bytes of any
//! sequence of records. The sum of that over the segments is what may be promised.
//!
//! A promise is released after its record was appended; for a moment it counts twice, which errs on the safe side.

use crate::control::MARK_BYTES;
use crate::log::Inner;
use crate::record::PreparedRecord;
use std::sync::Arc;

/// Promised bytes, and how many promises there are of each size class (powers of two).
#[derive(Default)]
pub(crate) struct Space {
    pub(crate) promised_bytes: u64,
    classes: [u32; 32],
}

impl Space {
    /// At least the size of the largest promise, if `charge` is added.
    pub(crate) fn largest_with(&self, charge: u64) -> u64 {
        let class = self.classes.iter().rposition(|count| *count > 0);
        class.map_or(0, |class| 1 << class).max(charge)
    }

    /// True if segments with these bytes left can hold what is promised and `charge`.
    pub(crate) fn admits(&self, charge: u64, left: impl Iterator<Item = u64>) -> bool {
        let waste = self.largest_with(charge);
        let certain: u64 = left.map(|left| left.saturating_sub(waste)).sum();
        self.promised_bytes + charge <= certain
    }

    pub(crate) fn promise(&mut self, charge: u64) {
        self.promised_bytes += charge;
        self.classes[class_of(charge)] += 1;
    }

    fn release(&mut self, charge: u64) {
        self.promised_bytes -= charge;
        self.classes[class_of(charge)] -= 1;
    }
}

/// The class whose power of two is not below the charge.
fn class_of(charge: u64) -> usize {
    (charge.next_power_of_two().trailing_zeros() as usize).min(31)
}

/// Room for one record. Hold it until the record is appended.
#[must_use = "the room is given back when this is dropped"]
pub struct Reservation {
    inner: Arc<Inner>,
    charge: u64,
}

impl Reservation {
    pub(crate) fn new(inner: Arc<Inner>, charge: u64) -> Reservation {
        Reservation { inner, charge }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.inner.space.lock().release(self.charge);
    }
}

impl PreparedRecord {
    /// What must be reserved for this record: itself, its rows in the segment's index and the mark of its flush.
    pub fn reserved_bytes(&self) -> u64 {
        self.record_bytes() + self.entry_count() as u64 * crate::control::INDEX_ROW_BYTES + MARK_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_promised_fits_in_any_order() {
        let mut space = Space::default();
        assert!(space.admits(100, [200].into_iter()));
        assert!(!space.admits(100, [199].into_iter()));
        space.promise(64);
        space.promise(64);
        assert!(space.admits(64, [256].into_iter()));
        assert!(!space.admits(64, [255].into_iter()));
        assert!(space.admits(64, [160, 160].into_iter()), "each segment may waste one record");
        space.release(64);
        space.release(64);
        assert_eq!(space.largest_with(7), 7);
    }
}
