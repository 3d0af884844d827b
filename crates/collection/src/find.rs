//! The shortest ways to a document.

use crate::cluster_key::cluster_key;
use crate::write_path::WritePath;
use pando_base::{Error, ErrorCode, RecordId, Result};
use pando_catalog::Collection;
use pando_doc::{Doc, Value};
use pando_index::SharedCollator;
use pando_keystring::{Discriminator, KeyOrdering, StackBuilder, Version};
use pando_operation::Operation;
use pando_storage::Direction;

impl WritePath {
    /// The document at a place.
    pub fn find(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        record_id: &RecordId,
    ) -> Result<Option<Doc>> {
        Ok(collection.records.get(&mut operation.recovery_unit, record_id)?.map(Doc::trusted))
    }

    /// The document with this `_id`, compared by the collection's collation, and its place.
    pub fn find_by_id(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        id: Value<'_>,
    ) -> Result<Option<(RecordId, Doc)>> {
        let Some(record_id) = self.find_record_id(operation, collection, id)? else { return Ok(None) };
        let document = self.find(operation, collection, &record_id)?;
        debug_assert!(document.is_some() || collection.is_clustered(), "an entry leads to a document");
        Ok(document.map(|document| (record_id, document)))
    }

    /// Where the document with this `_id` is. In a clustered collection that is known before it is known to exist.
    pub fn find_record_id(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        id: Value<'_>,
    ) -> Result<Option<RecordId>> {
        if collection.is_clustered_by_id() {
            let collator = self.cluster_collator(collection)?;
            return cluster_key(id, collator.as_deref().map(|collator| collator as _)).map(Some);
        }
        let Some(index) = collection.id_index() else {
            let reason = format!("the collection {} has no index on _id", collection.namespace);
            return Err(Error::new(ErrorCode::IndexNotFound, reason));
        };
        let mut key = StackBuilder::new(Version::V1, KeyOrdering::ASCENDING);
        match index.descriptor.collation {
            None => key.append(id)?,
            Some(_) => match self.indexing.access(index)?.collator() {
                None => key.append(id)?,
                Some(collator) => key.append_collated(id, &**collator)?,
            },
        }
        key.finish(Discriminator::Inclusive);
        Ok(index.data.find_key(&mut operation.recovery_unit, key.bytes())?)
    }

    /// Documents in the order of their `_id` from this one on, as long as they are wanted. Not of clustered collections.
    pub fn scan_from_id(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        id: Value<'_>,
        mut wants: impl FnMut(&Doc) -> Result<bool>,
    ) -> Result<()> {
        let Some(index) = collection.id_index() else { return Ok(()) };
        let mut key = StackBuilder::new(Version::V1, KeyOrdering::ASCENDING);
        key.append(id)?;
        key.finish(Discriminator::Inclusive);
        let mut cursor = index.data.cursor(Direction::Forward);
        let found = cursor.seek_key(&mut operation.recovery_unit, key.bytes(), true)?;
        let mut next = found.map(|entry| entry.record_id);
        while let Some(record_id) = next {
            let Some(document) = self.find(operation, collection, &record_id)? else { break };
            if !wants(&document)? {
                break;
            }
            next = cursor.next(&mut operation.recovery_unit)?.map(|entry| entry.record_id);
        }
        Ok(())
    }

    /// The collation of a clustered collection's record ids.
    pub(crate) fn cluster_collator(&self, collection: &Collection) -> Result<Option<SharedCollator>> {
        let is_simple =
            |collation: &&Doc| collation.get("locale").is_none_or(|locale| locale.as_str() == Some("simple"));
        let collation = collection.options.collation.as_ref().filter(|collation| !is_simple(collation));
        collation.map(|collation| self.indexing.hooks().collator(collation.view())).transpose()
    }
}
