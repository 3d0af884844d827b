//! `dropIndexes`, also called `deleteIndexes`: by name, by names, by key, or all but the one on `_id`.

use super::change::{change, lock_exclusively};
use super::names::{check_uuid, index_count};
use crate::arguments::SafeBool;
use crate::timeseries::timeseries;
use crate::{Access, Action, Class, CommandRow, Data, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid, bail, ensure};
use pando_catalog::{Collection, Index};
use pando_doc::{ArrayRef, DocBuilder, DocRef, OwnedValue, Value, compare_docs};
use pando_operation::Operation;
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
    lock_exclusively(data, &mut operation, &[&namespace]).await?;
    check_uuid(data, &namespace, arguments.collection_uuid)?;
    let collection = find(data, &mut operation, &namespace)?;
    check_not_clustered(&collection, index)?;
    let (names, is_all) = names(&collection, index)?;
    change(&mut operation, "dropIndexes", &namespace, |operation| {
        let mut next = Arc::clone(&collection);
        for name in &names {
            next = data.catalog.drop_index(operation, &*data.observers, &next, name)?;
        }
        Ok(())
    })
    .await?;
    reply.append("nIndexesWas", index_count(&collection));
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
        Value::Document(key) => pando_catalog::is_id_key_pattern(key),
        _ => false,
    };
    ensure!(!is_meant, ErrorCode::location(5979800), "It is illegal to drop the clusteredIndex");
    Ok(())
}

/// The names of the indexes to drop, each of which is there; and whether all are meant.
fn names(collection: &Collection, index: Value<'_>) -> Result<(Vec<String>, bool)> {
    match index {
        Value::String(name) if name == "*" => Ok((all(collection), true)),
        Value::String(name) => Ok((vec![existing(collection, &name.to_string())?], false)),
        Value::Array(names) if first_is_star(names) => Ok((all(collection), true)),
        Value::Array(names) => several(collection, names).map(|names| (names, false)),
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

fn several(collection: &Collection, names: ArrayRef<'_>) -> Result<Vec<String>> {
    let mut found: Vec<String> = Vec::with_capacity(names.len());
    for (place, name) in names.values().enumerate() {
        let Some(name) = name.as_str() else {
            bail!(
                ErrorCode::TypeMismatch,
                "BSON field 'dropIndexes.index.{place}' is the wrong type '{}', expected type 'string'",
                name.value_type().name()
            );
        };
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
