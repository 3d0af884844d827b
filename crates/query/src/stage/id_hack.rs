//! The document with a given `_id`: one look-up in the index, one in the records, nothing else.

use super::found_ids::FoundIds;
use super::{Examined, Member, Stage, Step};
use pando_base::{Error, ErrorCode, RecordId, Result};
use pando_catalog::Collection;
use pando_doc::{Collator, Doc, DocBuilder, OwnedValue, SharedCollator, Value};
use pando_keystring::{Discriminator, KeyOrdering, StackBuilder, Version};
use pando_operation::Operation;
use std::sync::Arc;

/// Finds a document by its `_id`.
pub struct IdHackStage {
    collection: Arc<Collection>,
    id: OwnedValue,
    /// The collation of the `_id` index.
    collator: Option<SharedCollator>,
    is_finished: bool,
    examined: Examined,
}

impl IdHackStage {
    /// Will find it.
    pub fn new(collection: &Arc<Collection>, id: OwnedValue, collator: Option<SharedCollator>) -> IdHackStage {
        let (collection, examined) = (Arc::clone(collection), Examined::default());
        IdHackStage { collection, id, collator, is_finished: false, examined }
    }
}

/// Where the document with this `_id` is.
fn find_record_id(
    operation: &mut Operation,
    collection: &Collection,
    id: Value<'_>,
    collator: Option<&dyn Collator>,
) -> Result<Option<RecordId>> {
    if collection.is_clustered_by_id() {
        return pando_collection::cluster_key(id, collator).map(Some);
    }
    let Some(index) = collection.id_index() else {
        let reason = format!("the collection {} has no index on _id", collection.namespace);
        return Err(Error::new(ErrorCode::IndexNotFound, reason));
    };
    let mut key = StackBuilder::new(Version::V1, KeyOrdering::ASCENDING);
    match collator {
        None => key.append(id)?,
        Some(collator) => key.append_collated(id, collator)?,
    }
    key.finish(Discriminator::Inclusive);
    Ok(index.data.find_key(&mut operation.recovery_unit, key.bytes())?)
}

/// The document with this `_id` and where it is, strings compared by the collation of the `_id` index.
pub(crate) fn find_by_id(
    operation: &mut Operation,
    collection: &Collection,
    id: Value<'_>,
    collator: Option<&dyn Collator>,
) -> Result<Option<(RecordId, Doc)>> {
    let remembers = operation.in_multi_document_transaction() && collator.is_none() && !collection.is_clustered();
    if remembers && let Some(found) = find_again(operation, collection, id)? {
        return Ok(Some(found));
    }
    let Some(record_id) = find_record_id(operation, collection, id, collator)? else { return Ok(None) };
    let bytes = collection.records.get(&mut operation.recovery_unit, &record_id)?;
    if remembers && bytes.is_some() {
        operation.extensions.get_or_default::<FoundIds>().remember(collection.uuid, id, &record_id);
    }
    Ok(bytes.map(|bytes| (record_id, Doc::trusted(bytes))))
}

/// The document with this `_id`, if the transaction has found it before and it is there still: what is read and then changed is
/// looked for in the index once.
fn find_again(operation: &mut Operation, collection: &Collection, id: Value<'_>) -> Result<Option<(RecordId, Doc)>> {
    let known = operation.extensions.get::<FoundIds>().and_then(|found| found.get(collection.uuid, id));
    let Some(record_id) = known else { return Ok(None) };
    let Some(bytes) = collection.records.get(&mut operation.recovery_unit, &record_id)? else { return Ok(None) };
    let document = Doc::trusted(bytes);
    let is_same = document.view().get("_id") == Some(id);
    Ok(is_same.then_some((record_id, document)))
}

impl Stage for IdHackStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        if self.is_finished {
            return Ok(Step::Finished);
        }
        let collator = self.collator.as_deref().map(|collator| collator as &dyn Collator);
        let found = find_by_id(operation, &self.collection, self.id.view(), collator)?;
        self.is_finished = true;
        let Some((record_id, document)) = found else { return Ok(Step::Finished) };
        self.examined = Examined { keys: 1, documents: 1 };
        let snapshot = operation.recovery_unit.snapshot_id();
        Ok(Step::Advanced(Member {
            record_id: Some(record_id),
            document: Some(document),
            snapshot,
            ..Member::default()
        }))
    }

    fn name(&self) -> &'static str {
        "IDHACK"
    }

    fn restore(&mut self, _operation: &mut Operation, collection: &Arc<Collection>) -> Result<()> {
        self.collection = Arc::clone(collection);
        Ok(())
    }

    fn describe_run(&self, out: &mut DocBuilder) {
        out.append("keysExamined", self.examined.keys as i32);
        out.append("docsExamined", self.examined.documents as i32);
    }

    fn examined(&self) -> Examined {
        self.examined
    }
}
