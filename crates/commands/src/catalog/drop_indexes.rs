//! `dropIndexes`, also called `deleteIndexes`: by name, by names, by key, or all but the one on `_id`.

use super::change::{change, lock_exclusively};
use super::fail_points::AFTER_ABORTING_INDEXES;
use super::names::{check_uuid, index_count};
use crate::arguments::SafeBool;
use crate::locking::{lock_collection, unlock};
use crate::timeseries::timeseries;
use crate::{Access, Action, Class, CommandRow, Data, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use bstr::ByteSlice;
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid, bail, ensure};
use pando_catalog::{Collection, Index};
use pando_doc::{ArrayRef, DocBuilder, DocRef, OwnedValue, Value, compare_docs};
use pando_index_build::ActiveBuild;
use pando_locks::Mode;
use pando_operation::Operation;
use pando_repl::ReplGate;
use pando_timeseries::{TimeseriesOptions, index_keys};
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) const ROW: CommandRow = CommandRow {
    name: "dropIndexes",
    aliases: &["deleteIndexes"],
    help: "drop indexes for a collection",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Catalog,
    secondary_ok: SecondaryOk::Never,
    is_in_api_version_1: true,
    takes_write_concern: true,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Collection(&[Action::DropIndex]),
    ..CommandRow::DEFAULT
};

arguments! {
    struct DropIndexesArguments<'a> of "dropIndexes" {
        index: Value<'a> = "index",
        is_timeseries: Option<SafeBool> = "isTimeseriesNamespace",
        collection_uuid: Option<Uuid> = "collectionUUID",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = DropIndexesArguments::parse(&invocation.request)?;
    let namespace = invocation.collection()?;
    let timeseries = timeseries(data, &namespace)?;
    let namespace = timeseries.as_ref().map_or(namespace, |found| found.buckets.namespace.clone());
    let translated = timeseries.map(|found| index_on_buckets(arguments.index, &found.options)).transpose()?;
    let index = translated.as_ref().map_or(arguments.index, OwnedValue::view);
    let mut operation = invocation.operation()?;
    let (mut count_before, mut has_looked) = (None, false);
    let mut ended: Vec<String> = Vec::new();
    let (mut namespace, mut known, mut has_rested): (Namespace, Option<Uuid>, bool) = (namespace, None, false);
    let (collection, names, is_all) = loop {
        // While there is no lock, the collection may get another name.
        if let Some(uuid) = &known {
            let present = data.catalog.latest().namespace_of(uuid).cloned();
            let gone = || format!("Collection '{namespace}' with UUID {uuid} does not exist");
            namespace = present.ok_or_else(|| Error::new(ErrorCode::NamespaceNotFound, gone()))?;
        }
        // Builds are looked for beside writers: a transaction may keep the collection for long.
        match has_looked {
            true => lock_exclusively(data, &mut operation, &[&namespace]).await?,
            false => lock_collection(&mut operation, &namespace, Mode::IX).await?,
        }
        check_uuid(data, &namespace, arguments.collection_uuid)?;
        let collection = find(data, &mut operation, &namespace)?;
        if *known.get_or_insert(collection.uuid) != collection.uuid {
            unlock(&operation);
            continue;
        }
        count_before.get_or_insert(index_count(&collection));
        check_not_clustered(&collection, index)?;
        let (names, is_all) = names(&collection, index, &ended)?;
        let build = build_in_the_way(data, &collection, &names, !is_all && matches!(index, Value::Array(_)))?;
        if !has_looked && build.is_none() {
            has_looked = true;
            unlock(&operation);
            continue;
        }
        has_looked = false;
        if !has_rested && AFTER_ABORTING_INDEXES.is_on() && build.is_none() {
            has_rested = true;
            unlock(&operation);
            AFTER_ABORTING_INDEXES.rest(&operation.context).await?;
            continue;
        }
        let Some(build) = build else { break (collection, names, is_all) };
        unlock(&operation);
        // The build needs the collection for itself to go: until it can have it, nothing has happened.
        data.index_builds.tell_abort(&build, "dropIndexes command");
        lock_exclusively(data, &mut operation, &[&namespace]).await?;
        unlock(&operation);
        if is_all {
            data.index_builds.abort_collection(collection.uuid, "dropIndexes command").await;
        } else {
            data.index_builds.abort(&build, "dropIndexes command").await;
        }
        ended.extend_from_slice(&build.index_names);
        operation.context.check()?;
    };
    change(&mut operation, "dropIndexes", &namespace, |operation| {
        let mut next = Arc::clone(&collection);
        for name in &names {
            next = match next.index(name) {
                Some(index) if !index.ready && !data.replication.is_replicated() => {
                    // What a replica set's build has left: alone, nobody goes on with it.
                    data.catalog.remove_index(operation, &next, name)?
                }
                _ => data.catalog.drop_index(operation, &*data.observers, &next, name)?,
            };
        }
        Ok(())
    })
    .await?;
    reply.append("nIndexesWas", count_before.unwrap_or_default());
    if is_all {
        reply.append("msg", "non-_id indexes dropped for collection");
    }
    Ok(())
}

/// A key on measurements is a key on buckets; names are the same.
fn index_on_buckets(index: Value<'_>, options: &TimeseriesOptions) -> Result<OwnedValue> {
    let Value::Document(key) = index else { return Ok(index.to_owned()) };
    let key = index_keys::buckets_key(key, options).map_err(|error| {
        Error::new(ErrorCode::IndexNotFound, format!("{error} Command request: {{ index: {key} }}"))
    })?;
    Ok(OwnedValue::Document(key))
}

/// A build under way of one of these indexes: it is ended, if all of its indexes are to go.
fn build_in_the_way(
    data: &Data,
    collection: &Collection,
    names: &[String],
    is_list: bool,
) -> Result<Option<Arc<ActiveBuild>>> {
    let builds = data.index_builds.of_collection(collection.uuid);
    let meant = |build: &&Arc<ActiveBuild>| build.index_names.iter().any(|name| names.contains(name));
    let Some(build) = builds.iter().find(meant) else { return Ok(None) };
    // A list of names ends a build if it names that one's indexes and nothing else; otherwise none of these is an index yet.
    let is_exact = names.len() == build.index_names.len();
    let unready = build.index_names.first().filter(|_| is_list && !is_exact);
    if let Some(name) = unready {
        bail!(ErrorCode::IndexNotFound, "index not found with name [{name}]");
    }
    ensure!(
        build.index_names.iter().all(|name| names.contains(name)),
        ErrorCode::BackgroundOperationInProgressForNamespace,
        "cannot perform operation: an index build is currently running for collection with UUID: {}. Found index build: {}",
        collection.uuid,
        build.build_uuid
    );
    Ok(Some(Arc::clone(build)))
}

fn find(data: &Data, operation: &mut Operation, namespace: &Namespace) -> Result<Arc<Collection>> {
    if let Some(collection) = data.catalog.collection_for_write(operation, namespace)? {
        return Ok(collection);
    }
    let is_view = data.catalog.latest().view(namespace)?.is_some();
    ensure!(!is_view, ErrorCode::CommandNotSupportedOnView, "Cannot drop indexes on view {namespace}");
    bail!(ErrorCode::NamespaceNotFound, "ns not found {namespace}")
}

fn check_not_clustered(collection: &Collection, index: Value<'_>) -> Result<()> {
    let Some(clustered) = &collection.options.clustered_index else { return Ok(()) };
    let is_meant = match index {
        Value::String(name) => name == clustered.name(),
        Value::Array(names) => names.values().any(|name| name.as_str() == Some(clustered.name())),
        Value::Document(key) => clustered.has_key(key),
        _ => false,
    };
    ensure!(!is_meant, ErrorCode::location(5979800), "It is illegal to drop the clusteredIndex");
    Ok(())
}

/// The names of the indexes to drop, each of which is there or was ended for this; and whether all are meant.
fn names(collection: &Collection, index: Value<'_>, ended: &[String]) -> Result<(Vec<String>, bool)> {
    let is_ended = |name: &str| ended.iter().any(|ended| ended == name);
    match index {
        Value::String(name) if name.to_str().is_ok_and(is_ended) => Ok((Vec::new(), false)),
        Value::Document(key) if !ended.is_empty() && collection.index_by_key(key).is_err() => Ok((Vec::new(), false)),
        Value::String(name) if name == "*" => Ok((all(collection), true)),
        Value::String(name) => Ok((vec![existing(collection, &name.to_string())?], false)),
        Value::Array(names) if first_is_star(names) => Ok((all(collection), true)),
        Value::Array(names) => several(collection, names, ended).map(|names| (names, false)),
        Value::Document(key) => Ok((vec![by_key(collection, key)?], false)),
        other => bail!(
            ErrorCode::TypeMismatch,
            "BSON field 'dropIndexes.index' is the wrong type '{}', expected types '[string, array, object']",
            other.value_type().name()
        ),
    }
}

fn first_is_star(names: ArrayRef<'_>) -> bool {
    names.get(0).is_some_and(|name| name.as_str() == Some("*"))
}

fn all(collection: &Collection) -> Vec<String> {
    let droppable = collection.indexes.iter().filter(|index| !index.descriptor.is_id_index());
    droppable.map(|index| index.name().to_owned()).collect()
}

fn several(collection: &Collection, names: ArrayRef<'_>, ended: &[String]) -> Result<Vec<String>> {
    let mut found: Vec<String> = Vec::with_capacity(names.len());
    for (place, name) in names.values().enumerate() {
        let Some(name) = name.as_str() else {
            bail!(
                ErrorCode::TypeMismatch,
                "BSON field 'dropIndexes.index.{place}' is the wrong type '{}', expected type 'string'",
                name.value_type().name()
            );
        };
        if ended.iter().any(|ended| ended == name) {
            continue;
        }
        let name = existing(collection, name)?;
        if !found.contains(&name) {
            found.push(name);
        }
    }
    Ok(found)
}

fn existing(collection: &Collection, name: &str) -> Result<String> {
    let Some(index) = collection.index(name) else {
        bail!(ErrorCode::IndexNotFound, "index not found with name [{name}]")
    };
    ensure!(!index.descriptor.is_id_index(), ErrorCode::InvalidOptions, "cannot drop _id index");
    Ok(name.to_owned())
}

fn by_key(collection: &Collection, key: DocRef<'_>) -> Result<String> {
    let has_key = |index: &&Arc<Index>| compare_docs(index.descriptor.key_pattern.view(), key) == Ordering::Equal;
    let found: Vec<&Arc<Index>> = collection.indexes.iter().filter(has_key).collect();
    match found.as_slice() {
        [] => bail!(ErrorCode::IndexNotFound, "can't find index with key: {key}"),
        [only] => existing(collection, only.name()),
        [first, second, ..] => bail!(
            ErrorCode::AmbiguousIndexKeyPattern,
            "{} indexes found for key: {key}, identify by name instead. Conflicting indexes: {}, {}",
            found.len(),
            first.descriptor.specification,
            second.descriptor.specification
        ),
    }
}
