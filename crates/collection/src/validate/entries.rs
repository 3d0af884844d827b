//! The indexes: each in order, unique where it should be, its entries counted.

use super::records::shown;
use super::{FAIL_INDEX_KEY_ORDERING, Validation};
use pando_base::{RecordId, Result};
use pando_index::Key;
use pando_keystring::{Version, to_doc};
use pando_operation::Operation;
use pando_storage::Direction;

impl Validation<'_> {
    /// Goes through all entries of all indexes. The first time their order is looked at too.
    pub(super) fn scan_entries(&mut self, operation: &mut Operation, is_first: bool) -> Result<()> {
        for place in 0..self.targets.len() {
            self.scan_index(operation, place, is_first)?;
        }
        Ok(())
    }

    fn scan_index(&mut self, operation: &mut Operation, place: usize, is_first: bool) -> Result<()> {
        let Some(target) = self.targets.get(place) else { return Ok(()) };
        let (index, ordering) = (target.index.clone(), target.access.generator().ordering());
        let is_unique = index.descriptor.unique || index.descriptor.is_id_index();
        let mut cursor = index.data.cursor(Direction::Forward);
        let mut previous: Option<(Vec<u8>, RecordId)> = None;
        let (mut count, mut errors) = (0, Vec::new());
        loop {
            self.step(operation)?;
            let Some(entry) = cursor.next(&mut operation.recovery_unit)? else { break };
            self.note_read(operation, entry.key.len() + entry.type_bits.len())?;
            count += 1;
            let key = Key { bytes: entry.key, type_bits: entry.type_bits };
            if is_first && let Some((last, last_id)) = &previous {
                let order = last.as_slice().cmp(entry.key).then_with(|| last_id.cmp(&entry.record_id));
                if order.is_ge() || FAIL_INDEX_KEY_ORDERING.should_fail() {
                    let name = index.name();
                    errors.push(format!("index '{name}' is not in strictly ascending or descending order"));
                } else if is_unique && last.as_slice() == entry.key {
                    let values = to_doc(entry.key, ordering, entry.type_bits, Version::V1).unwrap_or_default();
                    let (name, id) = (index.name(), shown(&entry.record_id));
                    errors.push(format!("Unique index '{name}' has duplicate key: {values}, RecordId {id}"));
                }
            }
            self.consistency.add_found(place, key, &entry.record_id);
            if is_first {
                let (mut buffer, _) = previous.take().unwrap_or_else(|| (Vec::new(), RecordId::Long(0)));
                buffer.clear();
                buffer.extend_from_slice(entry.key);
                previous = Some((buffer, entry.record_id));
            }
        }
        if let Some(report) = self.report.indexes.get_mut(place).filter(|_| is_first) {
            report.keys = count;
            // One of a kind says enough.
            errors.dedup();
            errors.truncate(100);
            report.errors.extend(errors);
        }
        Ok(())
    }
}
