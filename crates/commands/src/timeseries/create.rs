//! Creating a time-series collection: its buckets, the index on source and time, and the view.

use crate::arguments::is_generic;
use crate::catalog::{ViewDocuments, add_to_empty, change, ensure_system_views, lock_exclusively};
use crate::{Data, Invocation};
use pando_base::{Error, ErrorCode, Namespace, Result, bail, ensure};
use pando_catalog::{ClusteredIndex, CollectionOptions, ViewDefinition};
use pando_doc::{Array, Doc, DocBuilder, DocRef, doc};
use pando_timeseries::{TimeseriesOptions, bucket_validator, index_keys};

/// What the collection of buckets is like.
pub(crate) fn bucket_options(options: &CollectionOptions, timeseries: &TimeseriesOptions) -> CollectionOptions {
    CollectionOptions {
        timeseries: Some(timeseries.to_doc()),
        validator: Some(bucket_validator(&timeseries.time_field)),
        clustered_index: Some(ClusteredIndex::legacy()),
        ..options.clone()
    }
}

fn parse(namespace: &Namespace, options: &CollectionOptions) -> Result<TimeseriesOptions> {
    check_options(namespace, options.timeseries.as_ref().map_or(DocRef::EMPTY, Doc::view))
}

/// Reads what a time-series collection is to be like.
pub(crate) fn check_options(namespace: &Namespace, given: DocRef<'_>) -> Result<TimeseriesOptions> {
    let timeseries = TimeseriesOptions::parse(given)?;
    timeseries.check_fields(namespace.as_str())?;
    timeseries.completed()
}

/// The view on the buckets of a time-series collection.
pub(crate) fn timeseries_view(
    namespace: &Namespace,
    timeseries: &TimeseriesOptions,
    collation: Option<Doc>,
) -> ViewDefinition {
    ViewDefinition {
        namespace: namespace.clone(),
        view_on: namespace.timeseries_buckets(),
        pipeline: Array::from_iter([timeseries.view_stage()]),
        collation,
    }
}

/// What `create` takes beside `timeseries`.
const ALLOWED: [&str; 6] =
    ["storageEngine", "indexOptionDefaults", "collation", "timeseries", "expireAfterSeconds", "temp"];

/// Refuses options that a time-series collection does not have. Buckets that are restored have two more.
pub(crate) fn check_timeseries_options(body: DocRef<'_>, namespace: &Namespace) -> Result<()> {
    for element in body.elements().skip(1).filter(|element| !is_generic(element.name)) {
        let name = element.name.to_string();
        let is_default = element.value.is_nullish() || (name == "capped" && !element.value.is_true());
        let is_of_buckets =
            namespace.is_timeseries_buckets() && matches!(name.as_str(), "validator" | "clusteredIndex");
        ensure!(
            is_default || is_of_buckets || ALLOWED.contains(&name.as_str()),
            ErrorCode::InvalidOptions,
            "{namespace}: 'timeseries' is not allowed with '{name}'"
        );
    }
    Ok(())
}

/// Creates the buckets and the view. Where the name is that of buckets, only these: a collection that is restored.
pub(crate) async fn create_timeseries(
    invocation: &Invocation,
    data: &Data,
    namespace: &Namespace,
    options: &CollectionOptions,
) -> Result<()> {
    ensure!(
        invocation.transaction().is_none(),
        ErrorCode::OperationNotSupportedInTransaction,
        "Cannot create a time-series collection in a multi-document transaction."
    );
    let mut operation = invocation.operation()?;
    if namespace.is_timeseries_buckets() {
        // They are as they were; whether they are complete is seen when somebody writes to them.
        let given = options.timeseries.as_ref().map_or(DocRef::EMPTY, Doc::view);
        let timeseries = TimeseriesOptions::parse(given)?;
        timeseries.check_fields(namespace.as_str())?;
        let options = CollectionOptions { timeseries: Some(timeseries.to_doc()), ..options.clone() };
        lock_exclusively(data, &mut operation, &[namespace]).await?;
        return change(&mut operation, "create", namespace, |operation| {
            data.catalog.create_collection(operation, &*data.observers, namespace, options.clone()).map(|_| ())
        })
        .await;
    }
    let timeseries = parse(namespace, options)?;
    let buckets = namespace.timeseries_buckets();
    let system_views = Namespace::system_views(&namespace.database_name());
    lock_exclusively(data, &mut operation, &[namespace, &buckets, &system_views]).await?;
    data.catalog.check_database_case(&namespace.database_name())?;
    require_free(data, namespace)?;
    let wanted = bucket_options(options, &timeseries);
    match data.catalog.collection_for_write(&mut operation, &buckets)? {
        Some(there) => {
            let is_same = comparable(&there.options) == comparable(&wanted);
            ensure!(
                is_same,
                ErrorCode::NamespaceExists,
                "Bucket Collection already exists. NS: {buckets}. UUID: {}",
                there.uuid
            );
        }
        None => {
            change(&mut operation, "create", &buckets, |operation| {
                let made = data.catalog.create_collection(operation, &*data.observers, &buckets, wanted.clone())?;
                match default_index(&timeseries)? {
                    Some(index) => add_to_empty(data, operation, made, &[index]).map(|_| ()),
                    None => Ok(()),
                }
            })
            .await?;
        }
    }
    ensure_system_views(data, &mut operation, &system_views).await?;
    let view = timeseries_view(namespace, &timeseries, options.collation.clone());
    let writer = ViewDocuments(data.write_path());
    change(&mut operation, "create", namespace, |operation| {
        data.catalog.create_view(operation, &*data.observers, &writer, view.clone())
    })
    .await
}

fn require_free(data: &Data, namespace: &Namespace) -> Result<()> {
    let latest = data.catalog.latest();
    if latest.collection(namespace).is_some() {
        bail!(ErrorCode::NamespaceExists, "Collection already exists. NS: {namespace}");
    }
    match latest.view(namespace)? {
        Some(view) if view.is_timeseries() => {
            bail!(ErrorCode::NamespaceExists, "A timeseries collection already exists. NS: {namespace}")
        }
        Some(_) => bail!(ErrorCode::NamespaceExists, "A view already exists. NS: {namespace}"),
        None => Ok(()),
    }
}

/// The index that leads to the buckets of a source by time.
pub(crate) fn default_index(options: &TimeseriesOptions) -> Result<Option<Doc>> {
    let Some(meta) = &options.meta_field else { return Ok(None) };
    let time = &options.time_field;
    let mut key = DocBuilder::new();
    key.append(meta, 1);
    key.append(time, 1);
    let key = index_keys::buckets_key(key.finish().view(), options)?;
    // Sources are told apart byte by byte, whatever the collection's collation says.
    let collation = doc! { "locale": "simple" };
    Ok(Some(doc! { "v": 2, "key": key, "name": (format!("{meta}_1_{time}_1")), "collation": collation }))
}

/// What two collections of buckets must have in common to be as good as each other.
fn comparable(options: &CollectionOptions) -> CollectionOptions {
    CollectionOptions { uuid: None, id_index: None, validator: None, ..options.clone() }
}

/// A time-series collection that is there with the same options is as good as created.
pub(crate) fn check_same_timeseries(
    data: &Data,
    namespace: &Namespace,
    options: &CollectionOptions,
    original: Error,
) -> Result<()> {
    let Some(there) = super::timeseries(data, namespace)? else { return Err(original) };
    let wanted = bucket_options(options, &parse(namespace, options)?);
    match comparable(&there.buckets.options) == comparable(&wanted) {
        true => Ok(()),
        false => Err(original),
    }
}
