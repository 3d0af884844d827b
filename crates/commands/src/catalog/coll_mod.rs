//! `collMod`: options of a collection, of one of its indexes, or what a view is.

use super::change::{change, lock_exclusively};
use super::collection_options::{check_expiry_of_documents, check_validator};
use super::fail_points::{self, rest_at};
use super::names::check_uuid;
use super::system_views::ViewDocuments;
use super::unique_conversion::check_unique;
use super::view_pipeline::check_view_pipeline;
use crate::arguments::{SafeBool, SafeLong, is_generic};
use crate::locking::{lock_collection, unlock};
use crate::timeseries::{Timeseries, timeseries};
use crate::{Access, Class, CommandRow, Data, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid, bail, ensure};
use pando_catalog::{
    CollModChange, Collection, Index, IndexChange, IndexDescriptor, ValidationAction, ValidationLevel, ViewDefinition,
};
use pando_doc::{Array, Doc, DocBuilder, DocRef, Value, compare_docs};
use pando_locks::Mode;
use pando_operation::Operation;
use pando_query::timeseries::options_of;
use pando_storage::Direction;
use pando_timeseries::{CollModTimeseries, has_mixed_schema, index_keys};
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) const ROW: CommandRow = CommandRow {
    name: "collMod",
    help: "Sets collection options.",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Catalog,
    secondary_ok: SecondaryOk::Never,
    is_in_api_version_1: true,
    takes_write_concern: true,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Checked(crate::access::may_change),
    ..CommandRow::DEFAULT
};

/// After so many buckets somebody may want to stop.
const CHECK_INTERVAL: u64 = 128;

arguments! {
    struct CollModArguments<'a> of "collMod" {
        index: Option<IndexArguments<'a>> = "index",
        validator: Option<DocRef<'a>> = "validator",
        validation_level: Option<&'a str> = "validationLevel",
        validation_action: Option<&'a str> = "validationAction",
        view_on: Option<&'a str> = "viewOn",
        pipeline: Option<Vec<DocRef<'a>>> = "pipeline",
        pre_and_post_images: Option<ImagesArguments<'a>> = "changeStreamPreAndPostImages",
        expire_after_seconds: Option<Value<'a>> = "expireAfterSeconds",
        timeseries: Option<DocRef<'a>> = "timeseries",
        mixed_schema: Option<SafeBool> = "timeseriesBucketsMayHaveMixedSchemaData",
        dry_run: SafeBool = "dryRun" or SafeBool(false),
        collection_uuid: Option<Uuid> = "collectionUUID",
        capped_size: Option<SafeLong> = "cappedSize",
        capped_max: Option<SafeLong> = "cappedMax",
    }
}

arguments! {
    struct IndexArguments<'a> of "collMod.index" {
        name: Option<&'a str> = "name",
        key_pattern: Option<DocRef<'a>> = "keyPattern",
        expire_after_seconds: Option<SafeLong> = "expireAfterSeconds",
        hidden: Option<SafeBool> = "hidden",
        unique: Option<SafeBool> = "unique",
        prepare_unique: Option<SafeBool> = "prepareUnique",
        force_non_unique: Option<SafeBool> = "forceNonUnique",
    }
}

arguments! {
    struct ImagesArguments<'a> of "collMod.changeStreamPreAndPostImages" {
        enabled: bool = "enabled",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = CollModArguments::parse(&invocation.request)?;
    let namespace = invocation.collection()?;
    ensure!(
        !namespace.is_timeseries_buckets(),
        ErrorCode::InvalidNamespace,
        "collMod on a time-series collection's underlying buckets collection is not supported."
    );
    if let Some(validator) = arguments.validator {
        check_validator(invocation, &namespace, validator, true)?;
    }
    if let Some(found) = timeseries(data, &namespace)? {
        return modify_timeseries(invocation, data, &namespace, &found, &arguments, reply).await;
    }
    let system_views = Namespace::system_views(&namespace.database_name());
    let mut operation = invocation.operation()?;
    let checked = check_unique_beside_writers(data, &mut operation, &namespace, &arguments).await?;
    lock_exclusively(data, &mut operation, &[&namespace, &system_views]).await?;
    rest_at(&fail_points::AFTER_LOCKS_OF_CHANGE, &operation.context, &namespace).await?;
    check_uuid(data, &namespace, arguments.collection_uuid)?;
    if let Some(collection) = data.catalog.collection_for_write(&mut operation, &namespace)? {
        if let Some(checked) = &checked {
            let now = collection.index(&checked.name).map(|index| &index.descriptor.specification);
            let is_same = now == Some(&checked.specification);
            ensure!(
                is_same,
                ErrorCode::CommandFailed,
                "The index {} was modified by another process while it was looked through for duplicates",
                checked.name
            );
        }
        let (is_checked, arguments) = (checked.is_some(), &arguments);
        return modify_collection(invocation, data, &mut operation, &collection, arguments, is_checked, reply).await;
    }
    match data.catalog.latest().view(&namespace)?.cloned() {
        Some(view) => modify_view(invocation, data, &mut operation, &view, &arguments).await,
        None => bail!(ErrorCode::NamespaceNotFound, "ns does not exist"),
    }
}

/// Looks for duplicates in an index that is to be unique, while others write: it refuses new ones already. Gives the index that
/// was looked at.
async fn check_unique_beside_writers(
    data: &Data,
    operation: &mut Operation,
    namespace: &Namespace,
    arguments: &CollModArguments<'_>,
) -> Result<Option<Arc<IndexDescriptor>>> {
    let wanted = arguments.index.as_ref().filter(|index| index.unique.is_some_and(|unique| unique.0));
    let Some(wanted) = wanted.filter(|_| !arguments.dry_run.0) else { return Ok(None) };
    lock_collection(operation, namespace, Mode::IX).await?;
    let Some(collection) = data.catalog.collection_for_write(operation, namespace)? else { return Ok(None) };
    let change = index_change(&collection, wanted)?;
    let Some(index) = collection.index(&change.name).filter(|index| index.descriptor.prepare_unique) else {
        return Ok(None);
    };
    check_unique(operation, &collection, index)?;
    unlock(operation);
    rest_at(&fail_points::AFTER_UNIQUE_CHECK, &operation.context, namespace).await?;
    Ok(Some(Arc::clone(&index.descriptor)))
}

async fn modify_collection(
    invocation: &Invocation,
    data: &Data,
    operation: &mut Operation,
    collection: &Arc<Collection>,
    arguments: &CollModArguments<'_>,
    is_checked: bool,
    reply: &mut DocBuilder,
) -> Result<()> {
    let is_internal =
        collection.namespace.is_admin() || collection.namespace.is_local() || collection.namespace.is_config();
    ensure!(
        !is_internal || !arguments.pre_and_post_images.as_ref().is_some_and(|images| images.enabled),
        ErrorCode::InvalidOptions,
        "changeStreamPreAndPostImages collection option is not supported on the {} database",
        collection.namespace.database()
    );
    for (is_given, name) in [(arguments.view_on.is_some(), "viewOn"), (arguments.pipeline.is_some(), "pipeline")] {
        ensure!(!is_given, ErrorCode::InvalidOptions, "option only supported on a view: {name}");
    }
    let mut change_of = change_of(collection, arguments, invocation.node.now_ms())?;
    require_prepare_unique_alone(arguments, change_of.index.as_ref())?;
    let rounded = |size_bytes| crate::settings::capped_size(&invocation.node.parameters, size_bytes);
    change_of.capped_size_bytes = change_of.capped_size_bytes.map(rounded);
    if let (Some(level), Some(action)) = (change_of.validation_level, change_of.validation_action) {
        let is_strict = level == ValidationLevel::Strict && action == ValidationAction::Error;
        let validator = arguments.validator.or(collection.options.validator.as_ref().map(Doc::view));
        check_validator(invocation, &collection.namespace, validator.unwrap_or(DocRef::EMPTY), is_strict)?;
    }
    if arguments.dry_run.0 {
        check_dry_run(arguments)?;
    }
    if let Some(change) = change_of.index.as_ref().filter(|change| change.unique == Some(true) && !is_checked)
        && let Some(index) = collection.index(&change.name)
    {
        check_unique(operation, collection, index)?;
    }
    if arguments.dry_run.0 {
        return Ok(());
    }
    let command = command_for_oplog(invocation.body(), &collection.namespace);
    let namespace = &collection.namespace;
    let outcome = change(operation, "collMod", namespace, |operation| {
        data.catalog.coll_mod(operation, &*data.observers, collection, &change_of, command.view())
    })
    .await?;
    if let (Some(change), Some(old)) = (&change_of.index, &outcome.old_index) {
        append_index_change(change, old, reply);
    }
    Ok(())
}

/// What a time-series collection is told goes to its buckets; a new span goes into the view too.
async fn modify_timeseries(
    invocation: &Invocation,
    data: &Data,
    namespace: &Namespace,
    found: &Timeseries,
    arguments: &CollModArguments<'_>,
    reply: &mut DocBuilder,
) -> Result<()> {
    let refused = [
        (arguments.validator.is_some(), "validator"),
        (arguments.validation_level.is_some(), "validationLevel"),
        (arguments.validation_action.is_some(), "validationAction"),
        (arguments.view_on.is_some(), "viewOn"),
        (arguments.pipeline.is_some(), "pipeline"),
        (arguments.pre_and_post_images.is_some(), "changeStreamPreAndPostImages"),
    ];
    // Sizes are not handed on to the buckets: they are passed over.
    for (is_given, name) in refused {
        ensure!(!is_given, ErrorCode::InvalidOptions, "option not supported on a time-series collection: {name}");
    }
    let buckets = &found.buckets.namespace;
    let system_views = Namespace::system_views(&namespace.database_name());
    let mut operation = invocation.operation()?;
    lock_exclusively(data, &mut operation, &[namespace, buckets, &system_views]).await?;
    rest_at(&fail_points::AFTER_LOCKS_OF_CHANGE, &operation.context, buckets).await?;
    check_uuid(data, buckets, arguments.collection_uuid)?;
    let Some(collection) = data.catalog.collection_for_write(&mut operation, buckets)? else {
        bail!(ErrorCode::NamespaceNotFound, "ns does not exist")
    };
    let options = options_of(&collection)?;
    let wanted = arguments.timeseries.map(CollModTimeseries::parse).transpose()?;
    let changed = wanted.map(|wanted| options.modified(&wanted)).transpose()?.flatten();
    let key = arguments.index.as_ref().and_then(|index| index.key_pattern);
    let key = key.map(|key| index_keys::buckets_key(key, &options)).transpose()?;
    let index = arguments
        .index
        .as_ref()
        .map(|index| IndexArguments { key_pattern: key.as_ref().map(Doc::view), ..index.clone() });
    let index = index.map(|index| index_change(&collection, &index)).transpose()?;
    let now_ms = invocation.node.now_ms();
    let expiry = arguments.expire_after_seconds.map(|given| expiry(&collection, given, now_ms)).transpose()?;
    require_prepare_unique_alone(arguments, index.as_ref())?;
    let change_of = CollModChange {
        timeseries: changed.as_ref().map(|options| options.to_doc()),
        expire_after_seconds: expiry,
        mixed_schema: arguments.mixed_schema.map(|mixed| mixed.0),
        index,
        ..CollModChange::default()
    };
    if change_of.mixed_schema == Some(false) {
        require_one_schema(&mut operation, &collection)?;
    }
    let command = timeseries_command(buckets, arguments, &change_of);
    let outcome = change(&mut operation, "collMod", buckets, |operation| {
        data.catalog.coll_mod(operation, &*data.observers, &collection, &change_of, command.view())
    })
    .await?;
    if let (Some(change), Some(old)) = (&change_of.index, &outcome.old_index) {
        append_index_change(change, old, reply);
    }
    let view = data.catalog.latest().view(namespace)?.cloned();
    let (Some(changed), Some(view)) = (changed, view) else { return Ok(()) };
    let view = ViewDefinition { pipeline: Array::from_iter([changed.view_stage()]), ..(*view).clone() };
    let writer = ViewDocuments(data.write_path());
    change(&mut operation, "collMod", namespace, |operation| {
        data.catalog.modify_view(operation, &*data.observers, &writer, view.clone())
    })
    .await
}

/// Refuses to take it that every bucket has one kind of value at a path, where one has not.
fn require_one_schema(operation: &mut Operation, buckets: &Collection) -> Result<()> {
    let mut cursor = buckets.records.cursor(Direction::Forward);
    let mut read: u64 = 0;
    while let Some(record) = cursor.next(&mut operation.recovery_unit)? {
        ensure!(
            !has_mixed_schema(DocRef::trusted(record.value)),
            ErrorCode::InvalidOptions,
            "Cannot set timeseriesBucketsMayHaveMixedSchemaData to false: there are buckets with mixed-schema data"
        );
        read += 1;
        if read.is_multiple_of(CHECK_INTERVAL) {
            operation.context.check()?;
        }
    }
    operation.recovery_unit.abandon_snapshot()?;
    Ok(())
}

/// The command as the oplog has it: on the buckets, with the options that they get.
fn timeseries_command(buckets: &Namespace, arguments: &CollModArguments<'_>, change: &CollModChange) -> Doc {
    let mut command = DocBuilder::new();
    command.append("collMod", buckets.collection());
    command.append_some("timeseries", change.timeseries.as_ref());
    command.append_some("expireAfterSeconds", arguments.expire_after_seconds);
    command.append_some("timeseriesBucketsMayHaveMixedSchemaData", change.mixed_schema);
    if let Some(change) = &change.index {
        command.document("index", |index| {
            index.append("name", change.name.as_str());
            index.append_some("hidden", change.hidden);
            index.append_some("expireAfterSeconds", change.expire_after_seconds);
        });
    }
    command.finish()
}

/// Only the conversion to a unique index can be tried, and only by itself.
fn check_dry_run(arguments: &CollModArguments<'_>) -> Result<()> {
    let Some(index) = &arguments.index else {
        bail!(ErrorCode::InvalidOptions, "dry run mode requires an valid index modification.");
    };
    ensure!(
        index.unique.is_some_and(|unique| unique.0),
        ErrorCode::InvalidOptions,
        "dry run mode requires an index modification with unique: true."
    );
    let others = [
        index.hidden.is_some(),
        index.expire_after_seconds.is_some(),
        index.prepare_unique.is_some(),
        index.force_non_unique.is_some(),
        arguments.validator.is_some(),
        arguments.validation_level.is_some(),
        arguments.validation_action.is_some(),
        arguments.pre_and_post_images.is_some(),
        arguments.expire_after_seconds.is_some(),
        arguments.timeseries.is_some(),
        arguments.capped_size.is_some(),
        arguments.capped_max.is_some(),
    ];
    ensure!(
        !others.contains(&true),
        ErrorCode::InvalidOptions,
        "unique: true cannot be combined with any other modification in dry run mode."
    );
    Ok(())
}

/// Whether new duplicates are refused is changed by itself.
fn require_prepare_unique_alone(arguments: &CollModArguments<'_>, change: Option<&IndexChange>) -> Result<()> {
    let Some(index) = arguments.index.as_ref().filter(|_| change.is_some_and(|change| change.prepare_unique.is_some()))
    else {
        return Ok(());
    };
    let others = [
        index.expire_after_seconds.is_some(),
        index.hidden.is_some(),
        index.unique.is_some(),
        index.force_non_unique.is_some(),
        arguments.validator.is_some(),
        arguments.validation_level.is_some(),
        arguments.validation_action.is_some(),
        arguments.pre_and_post_images.is_some(),
        arguments.expire_after_seconds.is_some(),
        arguments.timeseries.is_some(),
    ];
    ensure!(
        !others.contains(&true),
        ErrorCode::InvalidOptions,
        "prepareUnique cannot be combined with any other modification."
    );
    Ok(())
}

fn change_of(collection: &Collection, arguments: &CollModArguments<'_>, now_ms: i64) -> Result<CollModChange> {
    let options = &collection.options;
    let given_level = arguments.validation_level.map(level).transpose()?;
    let given_action = arguments.validation_action.map(action).transpose()?;
    // Whoever changes one of the three has the other two written down as well.
    let is_about_validation = arguments.validator.is_some() || given_level.is_some() || given_action.is_some();
    let expiry = arguments.expire_after_seconds.map(|given| expiry(collection, given, now_ms)).transpose()?;
    Ok(CollModChange {
        validator: arguments.validator.map(DocRef::to_doc),
        validation_level: given_level.or(is_about_validation.then(|| options.validation_level_or_default())),
        validation_action: given_action.or(is_about_validation.then(|| options.validation_action_or_default())),
        pre_and_post_images: arguments.pre_and_post_images.as_ref().map(|images| images.enabled),
        expire_after_seconds: expiry,
        capped_size_bytes: arguments.capped_size.map(|size| capped_size(size.0)).transpose()?,
        oplog_size_bytes: None,
        capped_documents_max: arguments.capped_max.map(|max| capped_max(max.0)).transpose()?,
        timeseries: arguments.timeseries.map(DocRef::to_doc),
        mixed_schema: arguments.mixed_schema.map(|mixed| mixed.0),
        index: arguments.index.as_ref().map(|index| index_change(collection, index)).transpose()?,
    })
}

fn level(name: &str) -> Result<ValidationLevel> {
    let invalid = || format!("Enumeration value '{name}' for field 'collMod.validationLevel' is not a valid value.");
    ValidationLevel::parse(name).ok_or_else(|| Error::bad_value(invalid()))
}

fn action(name: &str) -> Result<ValidationAction> {
    let invalid = || format!("Enumeration value '{name}' for field 'collMod.validationAction' is not a valid value.");
    ValidationAction::parse(name).ok_or_else(|| Error::bad_value(invalid()))
}

fn capped_size(size_bytes: i64) -> Result<i64> {
    ensure!(
        (1..=1 << 50).contains(&size_bytes),
        ErrorCode::location(51024),
        "BSON field 'cappedSize' value must be > 0 and <= 1125899906842624, actual value '{size_bytes}'"
    );
    Ok(size_bytes)
}

fn capped_max(documents: i64) -> Result<i64> {
    ensure!(
        documents < 1 << 31,
        ErrorCode::location(51024),
        "BSON field 'cappedMax' value must be < 2147483648, actual value '{documents}'"
    );
    Ok(documents)
}

/// A number of seconds, or "off".
fn expiry(collection: &Collection, given: Value<'_>, now_ms: i64) -> Result<Option<i64>> {
    ensure!(
        collection.is_clustered(),
        ErrorCode::InvalidOptions,
        "'expireAfterSeconds' option is only supported on collections clustered by _id"
    );
    match given {
        Value::String(text) if text == "off" => Ok(None),
        Value::String(text) => bail!(
            ErrorCode::InvalidOptions,
            "Invalid string value for the 'clusteredIndex::expireAfterSeconds' option. Got: '{text}'. Accepted value is \
             'off'"
        ),
        number if number.is_number() => {
            let seconds = check_expiry(number.to_i64_or_zero())?;
            check_expiry_of_documents(seconds, now_ms)?;
            Ok(Some(seconds))
        }
        other => bail!(
            ErrorCode::TypeMismatch,
            "BSON field 'collMod.expireAfterSeconds' is the wrong type '{}', expected types '[string, long']",
            other.value_type().name()
        ),
    }
}

fn check_expiry(seconds: i64) -> Result<i64> {
    ensure!(seconds >= 0, ErrorCode::InvalidOptions, "TTL index 'expireAfterSeconds' option cannot be less than 0");
    ensure!(
        seconds <= i64::from(i32::MAX),
        ErrorCode::InvalidOptions,
        "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a different number than {seconds}"
    );
    Ok(seconds)
}

// ---- Indexes.

fn index_change(collection: &Collection, arguments: &IndexArguments<'_>) -> Result<IndexChange> {
    check_not_clustered(collection, arguments)?;
    let index = find_index(collection, arguments)?;
    let flag = |given: Option<SafeBool>| given.map(|flag| flag.0);
    let is_anything = arguments.expire_after_seconds.is_some()
        || arguments.hidden.is_some()
        || arguments.unique.is_some()
        || arguments.prepare_unique.is_some()
        || arguments.force_non_unique.is_some();
    ensure!(is_anything, ErrorCode::InvalidOptions, "no expireAfterSeconds, hidden, unique, or prepareUnique field");
    if arguments.expire_after_seconds.is_some() {
        ensure!(
            !collection.is_capped(),
            ErrorCode::InvalidOptions,
            "TTL indexes are not supported for capped collections."
        );
    }
    let is_about_unique = arguments.unique.is_some() || arguments.prepare_unique.is_some();
    ensure!(
        collection.options.timeseries.is_none() || !is_about_unique,
        ErrorCode::InvalidOptions,
        "Unique indexes are not supported on time-series collections"
    );
    ensure!(flag(arguments.unique) != Some(false), ErrorCode::BadValue, "Cannot make index non-unique");
    ensure!(
        flag(arguments.force_non_unique) != Some(false),
        ErrorCode::BadValue,
        "'forceNonUnique: false' is not supported"
    );
    ensure!(
        arguments.unique.is_none() || arguments.force_non_unique.is_none(),
        ErrorCode::InvalidOptions,
        "collMod does not support 'unique' and 'forceNonUnique' options at the same time"
    );
    let is_unique = index.descriptor.unique || index.descriptor.is_id_index();
    ensure!(
        flag(arguments.unique) != Some(true) || is_unique || index.descriptor.prepare_unique,
        ErrorCode::InvalidOptions,
        "Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first."
    );
    // What is so already is nothing to be told.
    let changed = |given: Option<SafeBool>, now: bool| flag(given).filter(|given| *given != now);
    Ok(IndexChange {
        name: index.name().to_owned(),
        hidden: changed(arguments.hidden, index.descriptor.hidden),
        expire_after_seconds: arguments.expire_after_seconds.map(|seconds| check_expiry(seconds.0)).transpose()?,
        unique: changed(arguments.unique, is_unique),
        prepare_unique: changed(arguments.prepare_unique, index.descriptor.prepare_unique).filter(|_| !is_unique),
        force_non_unique: flag(arguments.force_non_unique) == Some(true) && index.descriptor.unique,
    })
}

/// The clustered index is no index that could be hidden.
fn check_not_clustered(collection: &Collection, arguments: &IndexArguments<'_>) -> Result<()> {
    let Some(clustered) = collection.options.clustered_index.as_ref().filter(|_| arguments.hidden.is_some()) else {
        return Ok(());
    };
    let is_named = arguments.name.is_some_and(|name| name == clustered.name());
    let is_meant = is_named || arguments.key_pattern.is_some_and(|key| clustered.has_key(key));
    ensure!(
        !is_meant || collection.namespace.is_timeseries_buckets(),
        ErrorCode::location(6011800),
        "The 'hidden' option is not supported for a clusteredIndex"
    );
    Ok(())
}

fn find_index<'a>(collection: &'a Collection, arguments: &IndexArguments<'_>) -> Result<&'a Arc<Index>> {
    let namespace = &collection.namespace;
    match (arguments.name, arguments.key_pattern) {
        (Some(_), Some(_)) => bail!(ErrorCode::InvalidOptions, "Cannot specify both key pattern and name."),
        (None, None) => bail!(ErrorCode::InvalidOptions, "Must specify either index name or key pattern."),
        (Some(name), None) => {
            let missing = || format!("cannot find index {name} for ns {namespace}");
            collection.index(name).ok_or_else(|| Error::new(ErrorCode::IndexNotFound, missing()))
        }
        (None, Some(key)) => {
            let has_key =
                |index: &&Arc<Index>| compare_docs(index.descriptor.key_pattern.view(), key) == Ordering::Equal;
            let found: Vec<&Arc<Index>> = collection.indexes.iter().filter(has_key).collect();
            match found.as_slice() {
                [] => bail!(ErrorCode::IndexNotFound, "cannot find index {key} for ns {namespace}"),
                [only] => Ok(only),
                [first, second, ..] => bail!(
                    ErrorCode::AmbiguousIndexKeyPattern,
                    "index keyPattern {key} matches {} indexes, must use index name. Conflicting indexes:{}, {}",
                    found.len(),
                    first.descriptor.specification,
                    second.descriptor.specification
                ),
            }
        }
    }
}

fn append_index_change(change: &IndexChange, old: &Index, reply: &mut DocBuilder) {
    if let Some(new) = change.expire_after_seconds {
        reply.append_some("expireAfterSeconds_old", old.descriptor.expire_after_seconds);
        reply.append("expireAfterSeconds_new", new);
    }
    if let Some(new) = change.hidden {
        reply.append("hidden_old", old.descriptor.hidden);
        reply.append("hidden_new", new);
    }
    if change.unique == Some(true) {
        reply.append("unique_new", true);
    }
    if let Some(new) = change.prepare_unique {
        reply.append("prepareUnique_old", old.descriptor.prepare_unique);
        reply.append("prepareUnique_new", new);
    }
    if change.force_non_unique {
        reply.append("forceNonUnique_new", true);
    }
}

/// The command as the oplog has it: without what every command takes. Whoever applies it comes to the same defaults.
fn command_for_oplog(body: DocRef<'_>, namespace: &Namespace) -> Doc {
    let mut command = DocBuilder::new();
    command.append("collMod", namespace.collection());
    for element in body.raw_elements().skip(1).filter(|element| !is_generic(element.name)) {
        command.append_raw(element);
    }
    command.finish()
}

// ---- Views.

async fn modify_view(
    invocation: &Invocation,
    data: &Data,
    operation: &mut Operation,
    view: &ViewDefinition,
    arguments: &CollModArguments<'_>,
) -> Result<()> {
    let refused = [
        (arguments.index.is_some(), "index"),
        (arguments.validator.is_some(), "validator"),
        (arguments.validation_level.is_some(), "validationLevel"),
        (arguments.validation_action.is_some(), "validationAction"),
        (arguments.pre_and_post_images.is_some(), "changeStreamPreAndPostImages"),
        (arguments.expire_after_seconds.is_some(), "expireAfterSeconds"),
        (arguments.timeseries.is_some(), "timeseries"),
        (arguments.capped_size.is_some(), "cappedSize"),
        (arguments.capped_max.is_some(), "cappedMax"),
        (arguments.mixed_schema.is_some(), "timeseriesBucketsMayHaveMixedSchemaData"),
    ];
    for (is_given, name) in refused {
        ensure!(!is_given, ErrorCode::InvalidOptions, "option not supported on a view: {name}");
    }
    let mut view = view.clone();
    if let Some(view_on) = arguments.view_on {
        view.view_on = view.namespace.sibling(view_on)?;
    }
    if let Some(pipeline) = &arguments.pipeline {
        view.pipeline = Array::from_iter(pipeline.iter().copied());
    }
    check_view_pipeline(invocation, data, operation, &view)?;
    let writer = ViewDocuments(data.write_path());
    let namespace = view.namespace.clone();
    change(operation, "collMod", &namespace, |operation| {
        data.catalog.modify_view(operation, &*data.observers, &writer, view.clone())
    })
    .await
}
