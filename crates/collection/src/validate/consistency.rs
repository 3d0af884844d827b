//! The buckets of the first pass and the keys of the second.

use pando_base::RecordId;
use pando_index::Key;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

const BUCKETS: usize = 1 << 16;

/// An entry that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Difference {
    pub(super) index: usize,
    pub(super) key: Vec<u8>,
    pub(super) record_id: RecordId,
    pub(super) type_bits: Vec<u8>,
}

/// Compares what documents should have with what indexes have.
pub(super) struct Consistency {
    buckets: Vec<i64>,
    has_details: bool,
    bytes_left: usize,
    /// Some differences did not fit.
    pub(super) is_cut_off: bool,
    /// By entry, the `_id` of the document.
    pub(super) missing: BTreeMap<Difference, Vec<u8>>,
    pub(super) extra: Vec<Difference>,
}

impl Consistency {
    pub(super) fn new(details_bytes_max: usize) -> Consistency {
        Consistency {
            buckets: vec![0; BUCKETS],
            has_details: false,
            bytes_left: details_bytes_max,
            is_cut_off: false,
            missing: BTreeMap::new(),
            extra: Vec::new(),
        }
    }

    pub(super) fn has_differences(&self) -> bool {
        self.buckets.iter().any(|bucket| *bucket != 0)
    }

    /// From now on keys of buckets that are not zero are remembered.
    pub(super) fn begin_details(&mut self) {
        self.has_details = true;
    }

    /// A document should have this key; its `_id` is a document of one field.
    pub(super) fn add_expected(&mut self, index: usize, key: Key<'_>, record_id: &RecordId, id: &[u8]) {
        let bucket = bucket(index, key, record_id);
        if !self.has_details {
            self.change(bucket, 1);
        } else if self.is_different(bucket) && self.fits(key.bytes.len() + id.len()) {
            self.missing.insert(difference(index, key, record_id), id.to_vec());
        }
    }

    /// An index has this key.
    pub(super) fn add_found(&mut self, index: usize, key: Key<'_>, record_id: &RecordId) {
        let bucket = bucket(index, key, record_id);
        if !self.has_details {
            self.change(bucket, -1);
        } else if self.is_different(bucket) {
            let found = difference(index, key, record_id);
            if self.missing.remove(&found).is_none() && self.fits(key.bytes.len()) {
                self.extra.push(found);
            }
        }
    }

    fn change(&mut self, bucket: usize, by: i64) {
        if let Some(bucket) = self.buckets.get_mut(bucket) {
            *bucket += by;
        }
    }

    fn is_different(&self, bucket: usize) -> bool {
        self.buckets.get(bucket).is_some_and(|bucket| *bucket != 0)
    }

    fn fits(&mut self, length: usize) -> bool {
        let size_bytes = length + size_of::<Difference>();
        if size_bytes > self.bytes_left {
            self.is_cut_off = true;
            return false;
        }
        self.bytes_left -= size_bytes;
        true
    }
}

fn difference(index: usize, key: Key<'_>, record_id: &RecordId) -> Difference {
    Difference { index, key: key.bytes.to_vec(), record_id: record_id.clone(), type_bits: key.type_bits.to_vec() }
}

fn bucket(index: usize, key: Key<'_>, record_id: &RecordId) -> usize {
    let mut hasher = DefaultHasher::new();
    (index, key.bytes, key.type_bits, record_id).hash(&mut hasher);
    hasher.finish() as usize % BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(bytes: &[u8]) -> Key<'_> {
        Key { bytes, type_bits: &[] }
    }

    #[test]
    fn x24_buckets_tell_that_and_details_tell_which() {
        let mut consistency = Consistency::new(10_000);
        let expected: Vec<[u8; 2]> = (0..200).map(|number: u8| [number, 0]).collect();
        let passes = |consistency: &mut Consistency| {
            for (place, bytes) in expected.iter().enumerate() {
                consistency.add_expected(0, key(bytes), &RecordId::Long(place as i64), b"id");
            }
            for (place, bytes) in expected.iter().enumerate().filter(|(place, _)| *place != 7) {
                consistency.add_found(0, key(bytes), &RecordId::Long(place as i64));
            }
            consistency.add_found(0, key(b"zz"), &RecordId::Long(9));
        };
        passes(&mut consistency);
        assert!(consistency.has_differences());
        consistency.begin_details();
        passes(&mut consistency);
        assert_eq!(consistency.missing.keys().map(|missing| missing.key.clone()).collect::<Vec<_>>(), [vec![7, 0]]);
        assert_eq!(consistency.extra.iter().map(|extra| extra.key.clone()).collect::<Vec<_>>(), [b"zz".to_vec()]);
        assert!(!consistency.is_cut_off);
    }

    #[test]
    fn x24_details_stay_within_their_memory() {
        let mut consistency = Consistency::new(200);
        for details in [false, true] {
            if details {
                consistency.begin_details();
            }
            (0..100_i64).for_each(|number| consistency.add_found(0, key(b"k"), &RecordId::Long(number)));
        }
        assert!(consistency.is_cut_off && consistency.extra.len() < 5);
    }
}
