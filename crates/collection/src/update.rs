//! Updating a document in its place.

use crate::arguments::UpdateArguments;
use crate::document_key::document_key;
use crate::validation::check_updated;
use crate::write_path::{WritePath, count_keys};
use pando_base::{ErrorCode, Result, ensure};
use pando_catalog::Collection;
use pando_doc::{DocRef, compare};
use pando_index::{Constraints, KeyCounts, KeyScratch};
use pando_operation::Operation;
use pando_oplog::observer::Update;
use std::cmp::Ordering;

impl WritePath {
    /// Replaces a document by its new version. The record id stays, and only keys that differ are written. A document of a
    /// capped collection may grow or shrink.
    pub fn update_document(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        arguments: &UpdateArguments<'_>,
    ) -> Result<KeyCounts> {
        let UpdateArguments { record_id, old, new, constraints, .. } = arguments;
        check_same_id(*old, *new)?;
        check_same_place(collection, *old, *new)?;
        if *constraints == Constraints::Enforced {
            check_updated(*new)?;
            if !arguments.bypass_validation {
                self.validate_update(operation, collection, *old, *new)?;
            }
        }
        let mut unit = operation.unit_of_work();
        if let Some(slot) = arguments.slots.last() {
            unit.recovery_unit.set_timestamp(slot.timestamp)?;
        }
        collection.records.update_known(&mut unit.recovery_unit, record_id, old.size_bytes(), new.bytes())?;
        let mut scratch = KeyScratch::default();
        let counts = self.indexing.update(&mut unit, collection, *old, *new, record_id, *constraints, &mut scratch)?;
        if WritePath::is_observed(collection) {
            self.observe_update(&mut unit, collection, arguments)?;
        }
        count_keys(&unit, counts);
        unit.commit()?;
        Ok(counts)
    }

    fn observe_update(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        arguments: &UpdateArguments<'_>,
    ) -> Result<()> {
        let key = document_key(arguments.old);
        let update = Update {
            collection: collection.observed(),
            pre_image: arguments.old,
            post_image: arguments.new,
            change: arguments.change,
            document_key: DocRef::trusted(&key),
            statement_ids: arguments.statement_ids.clone(),
            retry_image: arguments.retry_image,
            slots: arguments.slots,
            from_migrate: arguments.from_migrate,
            check_existence_for_diff_insert: arguments.check_existence_for_diff_insert,
            destined_recipient: arguments.destined_recipient,
        };
        self.observers.on_update(operation, &update)
    }
}

/// So is what a document is stored by.
fn check_same_place(collection: &Collection, old: DocRef<'_>, new: DocRef<'_>) -> Result<()> {
    let Some(field) = collection.cluster_field().filter(|_| !collection.is_clustered_by_id()) else { return Ok(()) };
    let is_same = match (old.get(field), new.get(field)) {
        (Some(old), Some(new)) => compare(old, new) == Ordering::Equal,
        _ => false,
    };
    ensure!(
        is_same,
        ErrorCode::ImmutableField,
        "Performing an update on the path '{field}' would modify the immutable field '{field}'"
    );
    Ok(())
}

/// The `_id` is for life. Its type may change between equal values, as in MongoDB.
fn check_same_id(old: DocRef<'_>, new: DocRef<'_>) -> Result<()> {
    let is_same = match (old.get_raw("_id"), new.get_raw("_id")) {
        (None, _) => true,
        (Some(old), Some(new)) if old.bytes == new.bytes => true,
        (Some(old), Some(new)) => {
            let values = old.value().zip(new.value());
            values.is_some_and(|(old, new)| compare(old, new) == Ordering::Equal)
        }
        (Some(_), None) => false,
    };
    ensure!(
        is_same,
        ErrorCode::ImmutableField,
        "Performing an update on the path '_id' would modify the immutable field '_id'"
    );
    Ok(())
}
