//! Keys of many documents in one piece of memory, to be sorted.

use pando_base::RecordId;
use pando_index::{Key, KeySet};

/// Keys in the order in which they came.
#[derive(Default)]
pub(super) struct CollectedKeys {
    bytes: Vec<u8>,
    places: Vec<Place>,
    record_ids: Vec<RecordId>,
}

/// Where a key lies, where its type bits, and which document has it.
#[derive(Clone, Copy)]
pub(super) struct Place {
    start: usize,
    key_length: u32,
    type_bits_length: u32,
    record: usize,
}

/// Keys in ascending order, those of one value by record id.
pub(super) struct SortedKeys(CollectedKeys);

impl CollectedKeys {
    /// Takes the keys of a document.
    pub(super) fn add(&mut self, keys: &KeySet, record_id: &RecordId) {
        let record = self.record_ids.len();
        self.record_ids.push(record_id.clone());
        for key in keys.iter() {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(key.bytes);
            self.bytes.extend_from_slice(key.type_bits);
            let (key_length, type_bits_length) = (key.bytes.len() as u32, key.type_bits.len() as u32);
            self.places.push(Place { start, key_length, type_bits_length, record });
        }
    }

    /// The memory that they take, about.
    pub(super) fn size_bytes(&self) -> usize {
        self.bytes.len() + self.places.len() * size_of::<Place>() + self.record_ids.len() * size_of::<RecordId>()
    }

    /// All of them, sorted; none are left.
    pub(super) fn take_sorted(&mut self) -> SortedKeys {
        let mut taken = std::mem::take(self);
        let (bytes, record_ids) = (&taken.bytes, &taken.record_ids);
        taken.places.sort_unstable_by(|left, right| {
            let by_record = || record_ids.get(left.record).cmp(&record_ids.get(right.record));
            key_bytes(bytes, left).cmp(key_bytes(bytes, right)).then_with(by_record)
        });
        SortedKeys(taken)
    }
}

impl SortedKeys {
    pub(super) fn places(&self) -> &[Place] {
        &self.0.places
    }

    /// The key at a place, and its document's record id.
    pub(super) fn at(&self, place: &Place) -> (Key<'_>, &RecordId) {
        let CollectedKeys { bytes, record_ids, .. } = &self.0;
        let type_bits_start = place.start + place.key_length as usize;
        let type_bits = bytes.get(type_bits_start..type_bits_start + place.type_bits_length as usize);
        let key = Key { bytes: key_bytes(bytes, place), type_bits: type_bits.unwrap_or_default() };
        // Places are made together with what they lead to.
        (key, &record_ids[place.record])
    }
}

fn key_bytes<'a>(bytes: &'a [u8], place: &Place) -> &'a [u8] {
    bytes.get(place.start..place.start + place.key_length as usize).unwrap_or_default()
}
