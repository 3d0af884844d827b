//! Where a transaction has found documents by their `_id`.
//!
//! They are hints: a record may be gone since, by the transaction's own doing. Whoever follows one looks whether the record has the
//! `_id`. A record keeps its `_id` for life, so one that has it is the one that the index leads to.

use pando_base::{RecordId, Uuid};
use pando_doc::{OwnedValue, Value};
use smallvec::SmallVec;

/// As many are remembered; then the oldest are forgotten.
const COUNT_MAX: usize = 8;

/// The documents that were found last.
#[derive(Default)]
pub(super) struct FoundIds {
    found: SmallVec<[(Uuid, OwnedValue, RecordId); 4]>,
    /// The next to be forgotten.
    oldest: usize,
}

impl FoundIds {
    /// Where the document of this collection was.
    pub(super) fn get(&self, collection: Uuid, id: Value<'_>) -> Option<RecordId> {
        let is_it = |(uuid, known, _): &&(Uuid, OwnedValue, RecordId)| *uuid == collection && known.view() == id;
        self.found.iter().find(is_it).map(|(_, _, record_id)| record_id.clone())
    }

    /// It was found there.
    pub(super) fn remember(&mut self, collection: Uuid, id: Value<'_>, record_id: &RecordId) {
        let found = (collection, id.to_owned(), record_id.clone());
        if self.found.len() < COUNT_MAX {
            self.found.push(found);
        } else if let Some(place) = self.found.get_mut(self.oldest) {
            *place = found;
        }
        self.oldest = (self.oldest + 1) % COUNT_MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_last_is_remembered() {
        let (mut found, uuid) = (FoundIds::default(), Uuid::from_random([1; 16]));
        for number in 0..3 * COUNT_MAX as i64 {
            found.remember(uuid, Value::Int64(number), &RecordId::Long(number + 100));
            assert_eq!(found.get(uuid, Value::Int64(number)), Some(RecordId::Long(number + 100)));
        }
        assert_eq!(found.found.len(), COUNT_MAX);
        assert_eq!(found.get(uuid, Value::Int64(0)), None);
        assert_eq!(found.get(uuid, Value::Int32(20)), None);
        assert_eq!(found.get(Uuid::from_random([2; 16]), Value::Int64(20)), None);
        assert_eq!(found.get(uuid, Value::Int64(20)), Some(RecordId::Long(120)));
    }
}
