//! `collMod` entries: the command as it was carried out, an index always by its name.

use super::{Applier, Step};
use pando_base::{Error, Result};
use pando_catalog::{CollModChange, CollectionOptions, IndexChange, ValidationAction, ValidationLevel};
use pando_doc::{DocRef, Value};
use pando_operation::Operation;
use pando_session::fields::{Fields, boolean, document, safe_boolean, text, whole_number};

impl Applier {
    pub(super) fn coll_mod(&self, operation: &mut Operation, step: &Step<'_, '_>, object: DocRef<'_>) -> Result<()> {
        let mut change = parse(object)?;
        operation.in_unit_of_work(|operation| {
            let Some(collection) = self.collection(operation, step)? else { return Ok(()) };
            let is_there = |index: &IndexChange| collection.index(&index.name).is_some();
            if step.mode.may_be_ahead() && !change.index.as_ref().is_none_or(is_there) {
                change.index = None;
            }
            complete_validation(&mut change, &collection.options);
            self.catalog.coll_mod(operation, &self.nobody, &collection, &change, object).map(|_| ())
        })
    }
}

/// Whoever changes one of the three has the other two written down as well; the entry has what the client said.
fn complete_validation(change: &mut CollModChange, options: &CollectionOptions) {
    if change.validator.is_some() || change.validation_level.is_some() || change.validation_action.is_some() {
        change.validation_level.get_or_insert_with(|| options.validation_level_or_default());
        change.validation_action.get_or_insert_with(|| options.validation_action_or_default());
    }
}

fn parse(object: DocRef<'_>) -> Result<CollModChange> {
    let fields = Fields::of("collMod", object);
    let known = |what: &str, name: &str| Error::bad_value(format!("unknown {what} '{name}' in a collMod entry"));
    let level = fields.optional("validationLevel", text)?;
    let action = fields.optional("validationAction", text)?;
    let images = fields.optional("changeStreamPreAndPostImages", document)?;
    let images = images.map(|images| Fields::of("changeStreamPreAndPostImages", images).required("enabled", boolean));
    Ok(CollModChange {
        validator: fields.optional("validator", document)?.map(DocRef::to_doc),
        validation_level: level
            .map(|name| ValidationLevel::parse(name).ok_or_else(|| known("validation level", name)))
            .transpose()?,
        validation_action: action
            .map(|name| ValidationAction::parse(name).ok_or_else(|| known("validation action", name)))
            .transpose()?,
        pre_and_post_images: images.transpose()?,
        expire_after_seconds: fields.optional("expireAfterSeconds", expiry)?,
        capped_size_bytes: fields.optional("cappedSize", whole_number)?,
        oplog_size_bytes: None,
        capped_documents_max: fields.optional("cappedMax", whole_number)?,
        timeseries: fields.optional("timeseries", document)?.map(DocRef::to_doc),
        mixed_schema: fields.optional("timeseriesBucketsMayHaveMixedSchemaData", safe_boolean)?,
        index: fields.optional("index", document)?.map(index).transpose()?,
    })
}

/// A number, or the word "off".
fn expiry(value: Value<'_>) -> std::result::Result<Option<i64>, &'static str> {
    match value {
        Value::String(_) => Ok(None),
        value => whole_number(value).map(Some),
    }
}

fn index(index: DocRef<'_>) -> Result<IndexChange> {
    let fields = Fields::of("collMod.index", index);
    Ok(IndexChange {
        name: fields.required("name", text)?.to_owned(),
        hidden: fields.optional("hidden", safe_boolean)?,
        expire_after_seconds: fields.optional("expireAfterSeconds", whole_number)?,
        unique: fields.optional("unique", safe_boolean)?,
        prepare_unique: fields.optional("prepareUnique", safe_boolean)?,
        force_non_unique: index.get("forceNonUnique").is_some_and(|force| force.is_true()),
    })
}
