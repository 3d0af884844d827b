//! Asking whether an index has what it should: for `validate` and for tests.

use super::{IndexAccess, Indexing};
use crate::{Key, KeySet};
use pando_base::{RecordId, Result};
use pando_catalog::Index;
use pando_doc::DocRef;
use pando_keystring::{Discriminator, HeapBuilder, KeyString, Version};
use pando_operation::Operation;
use pando_storage::{Direction, IndexFormat};

impl Indexing {
    /// True if the index has this entry.
    pub fn has_entry(
        &self,
        operation: &mut Operation,
        index: &Index,
        key: Key<'_>,
        record_id: &RecordId,
    ) -> Result<bool> {
        let unit = &mut operation.recovery_unit;
        if index.data.format() == IndexFormat::Id {
            return Ok(index.data.find_key(unit, key.bytes)?.as_ref() == Some(record_id));
        }
        let access = self.access(index)?;
        let place = with_record_id(&access, key, record_id);
        let mut cursor = index.data.cursor(Direction::Forward);
        let found = cursor.seek(unit, &place)?;
        Ok(found.is_some_and(|entry| entry.key == key.bytes && entry.record_id == *record_id))
    }

    /// The keys that a document should have in the index and has not.
    pub fn missing_entries(
        &self,
        operation: &mut Operation,
        index: &Index,
        document: DocRef<'_>,
        record_id: &RecordId,
    ) -> Result<Vec<KeyString>> {
        let mut keys = KeySet::new();
        self.access(index)?.keys(document, &mut keys)?;
        let mut missing = Vec::new();
        for key in keys.iter() {
            if !self.has_entry(operation, index, key, record_id)? {
                missing.push(key.to_key_string());
            }
        }
        Ok(missing)
    }
}

/// The key with its record id behind it, as the table has it.
fn with_record_id(access: &IndexAccess, key: Key<'_>, record_id: &RecordId) -> Vec<u8> {
    let mut builder = HeapBuilder::new(Version::V1, access.generator().ordering());
    // The builder writes the terminator itself.
    builder.append_component(key.bytes.split_last().map_or(&[], |(_, components)| components));
    builder.finish(Discriminator::Inclusive);
    builder.append_record_id(record_id);
    builder.bytes().to_vec()
}
