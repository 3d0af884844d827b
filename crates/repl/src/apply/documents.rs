//! Documents that were inserted, updated, deleted.

use super::{Applier, Step, text};
use pando_base::{Error, ErrorCode, RecordId, Result};
use pando_catalog::Collection;
use pando_collection::{Constraints, DeleteArguments, InsertOptions, InsertStatement, UpdateArguments};
use pando_doc::{Doc, DocRef, Value};
use pando_operation::Operation;
use pando_oplog::{OpKind, UpdateChange};
use pando_session::PreImage;
use std::sync::Arc;

/// A document's versions around a change, as far as they are known.
#[derive(Default)]
pub(super) struct Images {
    pub(super) before: Option<Doc>,
    pub(super) after: Option<Doc>,
}

impl Applier {
    /// Applies the change, the session's record and what follows for views in one unit of work.
    pub(super) fn apply_document(&self, operation: &mut Operation, step: &Step<'_, '_>) -> Result<()> {
        operation.in_unit_of_work(|operation| {
            let images = match self.collection(operation, step)? {
                Some(collection) => self.change_document(operation, &collection, step)?,
                None => Images::default(),
            };
            self.record_session(operation, step.entry, Some(&images))
        })
    }

    fn change_document(
        &self,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        step: &Step<'_, '_>,
    ) -> Result<Images> {
        let images = match step.what.kind {
            OpKind::Insert => self.insert(operation, collection, step)?,
            OpKind::Update => self.update(operation, collection, step)?,
            _ => self.delete(operation, collection, step)?,
        };
        let is_kept = collection.options.pre_and_post_images && step.what.kind != OpKind::Insert;
        if let Some(before) = images.before.as_ref().filter(|_| is_kept && step.what.from_migrate != Some(true)) {
            let (time, apply_ops_index) = step.image_place;
            let (wall_ms, document) = (step.entry.wall_ms, before.view());
            let image = PreImage { collection: collection.uuid, time, apply_ops_index, wall_ms, document };
            self.table.store_pre_image(operation, &image)?;
        }
        if collection.namespace.is_system_views() {
            self.catalog.reload_views(operation, &collection.namespace.database_name())?;
        }
        Ok(images)
    }

    fn insert(&self, operation: &mut Operation, collection: &Collection, step: &Step<'_, '_>) -> Result<Images> {
        let document = step.what.object;
        let has_id = collection.knows_ids();
        if has_id && let Some((record_id, before)) = self.find(operation, collection, step)? {
            self.replace(operation, collection, record_id, before.view(), document)?;
        } else {
            let options = InsertOptions { constraints: Constraints::Relaxed, ..InsertOptions::default() };
            self.write_path.insert_documents(operation, collection, &[InsertStatement::new(document)], options)?;
        }
        Ok(Images { before: None, after: Some(document.to_doc()) })
    }

    fn update(&self, operation: &mut Operation, collection: &Collection, step: &Step<'_, '_>) -> Result<Images> {
        let Some((record_id, before)) = self.find(operation, collection, step)? else {
            return missing(step);
        };
        let after = UpdateChange::parse(step.what.object)?.apply(before.view())?;
        self.replace(operation, collection, record_id, before.view(), after.view())?;
        Ok(Images { before: Some(before), after: Some(after) })
    }

    fn delete(&self, operation: &mut Operation, collection: &Collection, step: &Step<'_, '_>) -> Result<Images> {
        let Some((record_id, before)) = self.find(operation, collection, step)? else {
            // Also in steady state: an old rule of MongoDB's that deletes never fail.
            return Ok(Images::default());
        };
        self.write_path.delete_document(operation, collection, &DeleteArguments::new(record_id, before.view()))?;
        Ok(Images { before: Some(before), after: None })
    }

    fn find(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        step: &Step<'_, '_>,
    ) -> Result<Option<(RecordId, Doc)>> {
        let id = step.what.document_id().ok_or_else(|| {
            let reason = format!("Failed to apply operation due to missing _id: {}", text(step.what));
            Error::new(ErrorCode::NoSuchKey, reason)
        })?;
        self.find_by_id(operation, collection, id)
    }

    fn find_by_id(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        id: Value<'_>,
    ) -> Result<Option<(RecordId, Doc)>> {
        if collection.knows_ids() {
            return self.write_path.find_by_id(operation, collection, id);
        }
        // Collections without an index on `_id` are rare and small.
        let mut cursor = collection.records.cursor(pando_storage::Direction::Forward);
        while let Some(record) = cursor.next(&mut operation.recovery_unit)? {
            if DocRef::trusted(record.value).get("_id") == Some(id) {
                return Ok(Some((record.id, Doc::trusted(record.value.to_vec()))));
            }
        }
        Ok(None)
    }

    fn replace(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        record_id: RecordId,
        before: DocRef<'_>,
        after: DocRef<'_>,
    ) -> Result<()> {
        if before.bytes() == after.bytes() {
            return Ok(());
        }
        let mut arguments = UpdateArguments::new(record_id, before, after, after);
        arguments.constraints = Constraints::Relaxed;
        self.write_path.update_document(operation, collection, &arguments).map(|_| ())
    }
}

fn missing(step: &Step<'_, '_>) -> Result<Images> {
    if step.mode.may_be_ahead() {
        return Ok(Images::default());
    }
    let reason = format!("Failed to apply update due to missing document: {}", text(step.what));
    Err(Error::new(ErrorCode::UpdateOperationFailed, reason))
}
