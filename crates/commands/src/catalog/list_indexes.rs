//! `listIndexes`: what indexes a collection has, as their specifications.

use super::change::{does_not_exist, is_a_view};
use super::cursor_reply::{CursorArguments, append_cursor};
use crate::arguments::SafeBool;
use crate::locking::lock_for_read;
use crate::timeseries::timeseries;
use crate::{Access, Admission, CommandRow, Data, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use pando_base::{ErrorCode, Namespace, Result, Uuid, ensure};
use pando_catalog::{Collection, Index, with_usable_expiry};
use pando_doc::{Doc, DocBuilder, Value};
use pando_operation::Operation;
use pando_query::timeseries::measurements_index;
use pando_timeseries::TimeseriesOptions;
use std::sync::Arc;

pub(super) const ROW: CommandRow = CommandRow {
    name: "listIndexes",
    help: "list indexes for a collection",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    secondary_ok: SecondaryOk::OptIn,
    is_in_api_version_1: true,
    is_stopped_when_abandoned: true,
    admission: Admission::Read,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Checked(crate::access::may_list_indexes),
    ..CommandRow::DEFAULT
};

arguments! {
    struct ListIndexesArguments<'a> of "listIndexes" {
        cursor: Option<CursorArguments<'a>> = "cursor",
        include_build_uuids: SafeBool = "includeBuildUUIDs" or SafeBool(false),
        include_build_info: SafeBool = "includeIndexBuildInfo" or SafeBool(false),
        is_timeseries: Option<SafeBool> = "isTimeseriesNamespace",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = ListIndexesArguments::parse(&invocation.request)?;
    let limits = CursorArguments::limits(arguments.cursor.as_ref())?;
    ensure!(
        !(arguments.include_build_uuids.0 && arguments.include_build_info.0),
        ErrorCode::InvalidOptions,
        "The includeBuildUUIDs flag and includeBuildIndexInfo flag cannot both be set to true"
    );
    let mut operation = invocation.operation()?;
    lock_for_read(&mut operation).await?;
    let (collection, timeseries) = find(invocation, data, &mut operation)?;
    let form = match (arguments.include_build_uuids.0, arguments.include_build_info.0) {
        (true, _) => Form::WithBuildUuid,
        (_, true) => Form::WithBuildInfo,
        _ => Form::Plain,
    };
    let rows = rows(&collection, form);
    let Some((namespace, options)) = timeseries else {
        return append_cursor(invocation, data, &mut operation, &collection.namespace, rows, limits, reply);
    };
    let rows = rows.iter().filter_map(|row| measurements_index(row.view(), &options)).collect();
    append_cursor(invocation, data, &mut operation, &namespace, rows, limits, reply)
}

/// A time-series collection's name and options.
type Series = (Namespace, TimeseriesOptions);

/// The collection that the command names, by its name or its id.
fn find(invocation: &Invocation, data: &Data, operation: &mut Operation) -> Result<(Arc<Collection>, Option<Series>)> {
    let mut view = data.catalog.establish(operation)?;
    if let Value::Binary { subtype: 4, bytes } = invocation.target() {
        let uuid = Uuid::from_slice(bytes)?;
        let found = view.collection_by_uuid(&data.catalog, operation, &uuid)?;
        let missing = || {
            let reason = format!("Unable to resolve {uuid}");
            pando_base::Error::new(ErrorCode::NamespaceNotFound, reason)
        };
        let found = found.filter(|found| found.namespace.database_name() == invocation.database);
        return found.map(|found| (found, None)).ok_or_else(missing);
    }
    let namespace = invocation.collection()?;
    if let Some(collection) = view.collection(&data.catalog, operation, &namespace)? {
        return Ok((collection, None));
    }
    match timeseries(data, &namespace)? {
        Some(found) => Ok((found.buckets, Some((namespace, found.options)))),
        None if view.latest().view(&namespace)?.is_some() => Err(is_a_view(&namespace)),
        None => Err(does_not_exist(&namespace)),
    }
}

/// What is told of builds under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    WithBuildUuid,
    WithBuildInfo,
}

fn rows(collection: &Collection, form: Form) -> Vec<Doc> {
    let mut rows = Vec::with_capacity(collection.indexes.len() + 1);
    if let Some(specification) = clustered_specification(collection) {
        rows.push(specification);
    }
    rows.extend(collection.indexes.iter().map(|index| row(index, form)));
    rows
}

/// The clustered index, which has no table of its own.
pub(super) fn clustered_specification(collection: &Collection) -> Option<Doc> {
    let clustered = collection.options.clustered_index.as_ref().filter(|clustered| !clustered.legacy)?;
    let mut row = DocBuilder::new();
    row.append_all(clustered.specification.view());
    row.append_some("collation", collection.options.collation.as_ref());
    row.append_some("expireAfterSeconds", collection.options.expire_after_seconds);
    row.append("clustered", true);
    Some(row.finish())
}

/// Options as replies declare them, whatever number or truth the client gave.
fn with_declared_types(specification: &Doc) -> Doc {
    let mut row = DocBuilder::with_capacity(specification.size_bytes());
    for option in specification.view().elements() {
        let whole = || i32::try_from(option.value.to_i64_or_zero()).unwrap_or(i32::MAX);
        match &**option.name {
            b"expireAfterSeconds"
            | b"v"
            | b"bits"
            | b"textIndexVersion"
            | b"2dsphereIndexVersion"
            | b"coarsestIndexedLevel"
            | b"finestIndexedLevel" => row.append(option.name, whole()),
            b"min" | b"max" | b"bucketSize" => row.append(option.name, option.value.to_double().unwrap_or(0.0)),
            b"sparse" | b"unique" | b"hidden" | b"background" | b"dropDups" | b"prepareUnique" => {
                row.append(option.name, option.value.is_true());
            }
            _ => row.append_element(option),
        }
    }
    row.finish()
}

fn row(index: &Index, form: Form) -> Doc {
    let specification = with_declared_types(&with_usable_expiry(index.descriptor.specification.view()));
    let build = index.build_uuid.filter(|_| !index.ready);
    let uuid = build.as_ref().map(|uuid| Value::Binary { subtype: 4, bytes: uuid.as_bytes() });
    let mut row = DocBuilder::new();
    match (form, uuid) {
        (Form::Plain, _) | (Form::WithBuildUuid, None) => return specification,
        (Form::WithBuildUuid, Some(uuid)) => {
            row.append("spec", specification);
            row.append("buildUUID", uuid);
        }
        (Form::WithBuildInfo, uuid) => {
            row.append("spec", specification);
            if let Some(uuid) = uuid {
                row.document("indexBuildInfo", |info| info.append("buildUUID", uuid));
            }
        }
    }
    row.finish()
}
