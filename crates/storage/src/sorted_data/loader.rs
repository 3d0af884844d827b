//! Building an index from sorted input.

use super::{IndexFormat, Insertion, stored_key};
use crate::record_id_codec::append_value;
use crate::{BulkLoader, RecordIdKind, Result, StorageError, TableSize};
use pando_base::RecordId;

/// Takes entries in ascending order of key and record id.
pub struct SortedDataLoader {
    loader: Box<dyn BulkLoader>,
    format: IndexFormat,
    kind: RecordIdKind,
    duplicates_allowed: bool,
    previous: Option<(Vec<u8>, RecordId)>,
}

impl SortedDataLoader {
    pub(super) fn new(
        loader: Box<dyn BulkLoader>,
        format: IndexFormat,
        kind: RecordIdKind,
        duplicates_allowed: bool,
    ) -> SortedDataLoader {
        SortedDataLoader { loader, format, kind, duplicates_allowed, previous: None }
    }

    /// Adds an entry. A key equal to the one before is a duplicate where that is not allowed; nothing is added then.
    pub fn add(&mut self, key: &[u8], id: &RecordId, type_bits: &[u8]) -> Result<Insertion> {
        if !self.kind.fits(id) {
            return Err(StorageError::IllegalOperation(format!("{id:?} is not of the index's kind")));
        }
        if let Some((_, found)) = self.previous.as_ref().filter(|(previous, _)| previous == key) {
            if found == id {
                return Ok(Insertion::Present);
            }
            if !self.duplicates_allowed || self.format == IndexFormat::Id {
                return Ok(Insertion::Duplicate(found.clone()));
            }
        }
        match self.format {
            IndexFormat::Id => {
                let mut value = Vec::new();
                append_value(&mut value, id, type_bits);
                self.loader.add(key, &value)?;
            }
            IndexFormat::Standard | IndexFormat::Unique => self.loader.add(&stored_key(key, id), type_bits)?,
        }
        self.remember(key, id);
        Ok(Insertion::Done)
    }

    /// Keeps the buffer of the key before.
    fn remember(&mut self, key: &[u8], id: &RecordId) {
        let mut buffer = self.previous.take().map_or_else(Vec::new, |(buffer, _)| buffer);
        buffer.clear();
        buffer.extend_from_slice(key);
        self.previous = Some((buffer, id.clone()));
    }

    /// Makes all of it durable and visible.
    pub fn finish(self) -> Result<()> {
        self.loader.finish(TableSize::default())
    }
}
