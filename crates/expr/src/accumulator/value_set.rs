//! Values, each once, as `$addToSet` collects them: found by a hash, so that the next costs the
//! same however many there are.

use pando_base::operation;
use pando_doc::{CompareOptions, OwnedValue, compare_with, hash_value_with};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

/// Values that are not equal to each other.
#[derive(Clone, Default)]
pub(super) struct ValueSet {
    values: Vec<OwnedValue>,
    /// The places of values by their hashes.
    places: HashMap<u64, Vec<usize>>,
}

impl ValueSet {
    /// Takes a value; false if it was there.
    pub(super) fn insert(&mut self, value: OwnedValue, options: &CompareOptions<'_>) -> bool {
        let mut hasher = DefaultHasher::new();
        hash_value_with(value.view(), options, &mut hasher);
        let places = self.places.entry(hasher.finish()).or_default();
        let is_there = places.iter().filter_map(|place| self.values.get(*place)).any(|known| {
            operation::count(1);
            compare_with(known.view(), value.view(), options).is_eq()
        });
        if !is_there {
            places.push(self.values.len());
            self.values.push(value);
        }
        !is_there
    }

    /// The values as they came.
    pub(super) fn values(&self) -> &[OwnedValue] {
        &self.values
    }

    /// The values in their order.
    pub(super) fn sorted(&self, options: &CompareOptions<'_>) -> Vec<&OwnedValue> {
        let mut sorted: Vec<&OwnedValue> = self.values.iter().collect();
        sorted.sort_by(|left, right| {
            operation::count(1);
            compare_with(left.view(), right.view(), options)
        });
        sorted
    }
}
