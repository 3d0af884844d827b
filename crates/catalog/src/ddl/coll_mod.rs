//! `collMod`: options of a collection or of one index.
//!
//! The command layer has parsed the command; what it says is applied to the entry here. Whether an index that becomes
//! unique has duplicates is for those who read its entries.

use super::{Observers, require_unit};
use crate::catalog::Catalog;
use crate::{Collection, CollectionOptions, Index, IndexEntry, ValidationAction, ValidationLevel};
use pando_base::{Error, ErrorCode, Result, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_operation::Operation;
use pando_oplog::build::IndexCollMod;
use pando_oplog::observer::CollMod;
use std::sync::Arc;

/// What is to change of a collection. None leaves an option as it is.
#[derive(Clone, Debug, Default)]
pub struct CollModChange {
    /// What documents must match; an empty document for anything.
    pub validator: Option<Doc>,
    /// When the validator is looked at.
    pub validation_level: Option<ValidationLevel>,
    /// What happens to documents that it refuses.
    pub validation_action: Option<ValidationAction>,
    /// Whether images are kept for change streams.
    pub pre_and_post_images: Option<bool>,
    /// When documents of a clustered collection expire; `Some(None)` for never.
    pub expire_after_seconds: Option<Option<i64>>,
    /// The most bytes of a capped collection.
    pub capped_size_bytes: Option<i64>,
    /// The most bytes of the oplog, which `collMod` itself may not change.
    pub oplog_size_bytes: Option<i64>,
    /// The most documents of a capped collection; zero and less for no limit.
    pub capped_documents_max: Option<i64>,
    /// What a time-series collection is like.
    pub timeseries: Option<Doc>,
    /// Whether buckets of a time series may have values of different kinds at a path.
    pub mixed_schema: Option<bool>,
    /// What is to change of an index.
    pub index: Option<IndexChange>,
}

/// What is to change of an index. None leaves an option as it is.
#[derive(Clone, Debug, Default)]
pub struct IndexChange {
    /// Which.
    pub name: String,
    /// Whether the planner sees it.
    pub hidden: Option<bool>,
    /// When documents expire.
    pub expire_after_seconds: Option<i64>,
    /// Becomes unique, if true; its entries were checked.
    pub unique: Option<bool>,
    /// Whether it refuses new duplicates.
    pub prepare_unique: Option<bool>,
    /// It is unique no longer.
    pub force_non_unique: bool,
}

/// What was before, for the command's reply.
#[derive(Clone, Debug)]
pub struct CollModOutcome {
    /// The collection as it is now.
    pub collection: Arc<Collection>,
    /// The index as it was, if one was to be changed.
    pub old_index: Option<Arc<Index>>,
}

impl Catalog {
    /// Changes options. The command is what the oplog is to have of it.
    pub fn coll_mod(
        self: &Arc<Self>,
        operation: &mut Operation,
        observers: &Observers,
        collection: &Arc<Collection>,
        change: &CollModChange,
        command: DocRef<'_>,
    ) -> Result<CollModOutcome> {
        require_unit(operation)?;
        change.check(collection)?;
        let find =
            |index: &IndexChange| collection.index(&index.name).cloned().ok_or_else(|| not_found(collection, index));
        let old_index = change.index.as_ref().map(find).transpose()?;
        let next = self.modify(operation, collection, |entry| {
            change.apply(&mut entry.options);
            entry.timeseries_mixed_schema = change.mixed_schema.or(entry.timeseries_mixed_schema);
            if let Some(change) = &change.index {
                let index = entry.index_mut(&change.name).ok_or_else(|| not_found(collection, change))?;
                change.apply(index);
            }
            Ok(())
        })?;
        let told = change.index.as_ref().zip(old_index.as_ref()).map(|(change, old)| change.told(old));
        let old_options = collection.options.to_doc_without_uuid();
        observers.on_coll_mod(
            operation,
            &CollMod { collection: next.observed(), command, old_options: old_options.view(), index: told.as_ref() },
        )?;
        Ok(CollModOutcome { collection: next, old_index })
    }
}

impl CollModChange {
    fn check(&self, collection: &Collection) -> Result<()> {
        let options = &collection.options;
        let is_capped_change = self.capped_size_bytes.is_some() || self.capped_documents_max.is_some();
        ensure!(!is_capped_change || options.capped, ErrorCode::InvalidOptions, "Collection must be capped.");
        ensure!(
            !is_capped_change || !collection.namespace.is_oplog(),
            ErrorCode::InvalidOptions,
            "Cannot resize the oplog using this command. Use the 'replSetResizeOplog' command instead."
        );
        ensure!(
            self.expire_after_seconds.is_none() || options.is_clustered(),
            ErrorCode::InvalidOptions,
            "'expireAfterSeconds' option is only supported on collections clustered by _id"
        );
        ensure!(
            self.timeseries.is_none() || options.timeseries.is_some(),
            ErrorCode::InvalidOptions,
            "option only supported on a time-series collection: timeseries"
        );
        ensure!(
            self.mixed_schema.is_none() || options.timeseries.is_some(),
            ErrorCode::InvalidOptions,
            "option only supported on a time-series collection: timeseriesBucketsMayHaveMixedSchemaData"
        );
        self.index.as_ref().map_or(Ok(()), |index| index.check(collection))
    }

    fn apply(&self, options: &mut CollectionOptions) {
        if let Some(validator) = &self.validator {
            options.validator = Some(validator.clone()).filter(|validator| !validator.is_empty());
        }
        options.validation_level = self.validation_level.or(options.validation_level);
        options.validation_action = self.validation_action.or(options.validation_action);
        options.pre_and_post_images = self.pre_and_post_images.unwrap_or(options.pre_and_post_images);
        options.expire_after_seconds = self.expire_after_seconds.unwrap_or(options.expire_after_seconds);
        let size_bytes = self.capped_size_bytes.or(self.oplog_size_bytes);
        options.capped_size_bytes = size_bytes.unwrap_or(options.capped_size_bytes);
        options.capped_documents_max =
            self.capped_documents_max.map_or(options.capped_documents_max, |documents| documents.max(0));
        if let Some(timeseries) = &self.timeseries {
            options.timeseries = Some(timeseries.clone());
        }
    }
}

impl IndexChange {
    fn check(&self, collection: &Collection) -> Result<()> {
        let index = collection.index(&self.name).ok_or_else(|| not_found(collection, self))?;
        let descriptor = &index.descriptor;
        if self.hidden.is_some() {
            ensure!(
                !collection.namespace.is_system() || collection.namespace.is_timeseries_buckets(),
                ErrorCode::BadValue,
                "Can't hide index on system collection"
            );
            ensure!(!descriptor.is_id_index(), ErrorCode::BadValue, "can't hide _id index");
        }
        if self.expire_after_seconds.is_some() && descriptor.expire_after_seconds.is_none() {
            ensure!(!descriptor.is_id_index(), ErrorCode::InvalidOptions, "the _id field does not support TTL indexes");
            ensure!(
                descriptor.field_count() == 1,
                ErrorCode::InvalidOptions,
                "TTL indexes are single-field indexes, compound indexes do not support TTL"
            );
        }
        ensure!(self.unique != Some(false), ErrorCode::BadValue, "Cannot make index non-unique");
        ensure!(
            self.unique != Some(true) || descriptor.unique || descriptor.prepare_unique,
            ErrorCode::InvalidOptions,
            "Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first."
        );
        Ok(())
    }

    fn apply(&self, entry: &mut IndexEntry) {
        // An index that became unique no longer needs to be prepared for it.
        let prepare_unique = if self.unique == Some(true) { Some(false) } else { self.prepare_unique };
        let seconds = self.expire_after_seconds.map(narrowed);
        let rows: [(&str, Option<Option<Value<'_>>>); 4] = [
            ("hidden", self.hidden.map(flag)),
            ("prepareUnique", prepare_unique.map(flag)),
            ("unique", if self.force_non_unique { Some(None) } else { self.unique.map(flag) }),
            ("expireAfterSeconds", seconds.map(Some)),
        ];
        let mut builder = DocBuilder::new();
        for element in entry.specification.elements() {
            match rows.iter().find(|(name, change)| element.name == *name && change.is_some()) {
                Some((name, Some(change))) => builder.append_some(*name, *change),
                _ => builder.append_element(element),
            }
        }
        for (name, change) in rows {
            if !entry.specification.view().contains(name) {
                builder.append_some(name, change.flatten());
            }
        }
        entry.specification = builder.finish();
    }

    fn told(&self, old: &Index) -> IndexCollMod<'_> {
        let changed = |now: Option<bool>, before: bool| now.map(|_| before);
        IndexCollMod {
            index_name: &self.name,
            expire_after_seconds: self.expire_after_seconds,
            old_expire_after_seconds: old
                .descriptor
                .expire_after_seconds
                .filter(|_| self.expire_after_seconds.is_some()),
            hidden: self.hidden,
            old_hidden: changed(self.hidden, old.descriptor.hidden),
            unique: self.unique,
            prepare_unique: self.prepare_unique,
            old_prepare_unique: changed(self.prepare_unique, old.descriptor.prepare_unique),
            force_non_unique: self.force_non_unique.then_some(true),
        }
    }
}

/// A flag that is not set is not there.
fn flag(is_set: bool) -> Option<Value<'static>> {
    is_set.then_some(Value::Bool(true))
}

fn narrowed(seconds: i64) -> Value<'static> {
    i32::try_from(seconds).map_or(Value::Int64(seconds), Value::Int32)
}

fn not_found(collection: &Collection, index: &IndexChange) -> Error {
    let reason = format!("cannot find index {} for ns {}", index.name, collection.namespace);
    Error::new(ErrorCode::IndexNotFound, reason)
}
