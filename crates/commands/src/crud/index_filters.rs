//! `planCacheSetFilter`, `planCacheClearFilters`, `planCacheListFilters`: which indexes queries of one shape may use.

use super::collections::refuse_view;
use super::reading::{begin_read, shared_or_empty};
use crate::table::run_boxed;
use crate::{Access, Action, Admission, CommandRow, Invocation, NamespaceOf, SecondaryOk};
use pando_base::{Component, Error, Result, Severity, log};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_query::request::FindRequest;

/// What the three have in common.
const FILTER_COMMAND: CommandRow = CommandRow {
    secondary_ok: SecondaryOk::OptIn,
    admission: Admission::Read,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Collection(&[Action::PlanCacheIndexFilter]),
    ..CommandRow::DEFAULT
};

pub(super) const LIST_ROW: CommandRow = CommandRow {
    name: "planCacheListFilters",
    help: "Displays index filters for all query shapes in a collection.",
    run: |invocation, reply| run_boxed(list(invocation, reply)),
    ..FILTER_COMMAND
};

pub(super) const CLEAR_ROW: CommandRow = CommandRow {
    name: "planCacheClearFilters",
    help: "Clears index filter for a single query shape or, if the query shape is omitted, all filters for the collection.",
    run: |invocation, _| run_boxed(clear(invocation)),
    ..FILTER_COMMAND
};

pub(super) const SET_ROW: CommandRow = CommandRow {
    name: "planCacheSetFilter",
    help: "Sets index filter for a query shape. Overrides existing filter.",
    run: |invocation, _| run_boxed(set(invocation)),
    ..FILTER_COMMAND
};

async fn list(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let namespace = invocation.collection()?;
    let uuid = data.catalog.latest().collection(&namespace).map(|collection| collection.uuid);
    let filters = uuid.map(|uuid| data.query.plan_cache.filters(&uuid)).unwrap_or_default();
    reply.array("filters", |array| {
        for filter in filters {
            array.document(|shown| {
                shown.append_all(filter.query.view());
                shown.array("indexes", |indexes| {
                    filter.patterns.iter().for_each(|pattern| indexes.push(pattern));
                    filter.names.iter().for_each(|name| indexes.push(name.as_str()));
                });
            });
        }
    });
    Ok(())
}

async fn clear(invocation: &Invocation) -> Result<()> {
    let data = invocation.data()?;
    let namespace = invocation.collection()?;
    refuse_view(data, &namespace)?;
    // There is nothing to take away, whatever else is said.
    if data.catalog.latest().collection(&namespace).is_none() {
        return Ok(());
    }
    let request = shape_request(invocation)?;
    let is_of_shape = is_of_shape(invocation)?;
    let mut operation = invocation.operation()?;
    begin_read(invocation, data, &mut operation).await?;
    data.query.clear_index_filters(&mut operation, &request, is_of_shape)?;
    let log = &invocation.node.log;
    let namespace = &request.namespace;
    log!(log, Severity::Info, Component::Query, 20480, "Removed index filters", "namespace" = namespace);
    Ok(())
}

async fn set(invocation: &Invocation) -> Result<()> {
    let data = invocation.data()?;
    let request = shape_request(invocation)?;
    refuse_view(data, &request.namespace)?;
    if data.catalog.latest().collection(&request.namespace).is_none() {
        return Err(Error::bad_value("no such collection"));
    }
    let (patterns, names) = indexes(invocation.body())?;
    if !invocation.body().contains("query") {
        return Err(Error::bad_value("required field query missing"));
    }
    let mut operation = invocation.operation()?;
    begin_read(invocation, data, &mut operation).await?;
    data.query.set_index_filter(&mut operation, &request, patterns, names)?;
    let log = &invocation.node.log;
    let namespace = &request.namespace;
    log!(log, Severity::Info, Component::Query, 20481, "Index filter set on query", "namespace" = namespace);
    Ok(())
}

/// True if one shape is meant, not all.
pub(super) fn is_of_shape(invocation: &Invocation) -> Result<bool> {
    let is_of_shape = invocation.body().contains("query");
    let has_more = ["sort", "projection", "collation"].iter().any(|field| invocation.body().contains(field));
    if !is_of_shape && has_more {
        return Err(Error::bad_value("sort, projection, or collation provided without query"));
    }
    Ok(is_of_shape)
}

/// The query whose shape is meant.
pub(super) fn shape_request(invocation: &Invocation) -> Result<FindRequest> {
    let field = |name: &str| {
        let kind = if name == "query" { "required" } else { "optional" };
        // An array is a document here.
        match invocation.body().get(name) {
            None => Ok(None),
            Some(Value::Document(document)) => Ok(Some(document)),
            Some(Value::Array(array)) => Ok(Some(array.as_doc())),
            Some(_) => Err(Error::bad_value(format!("{kind} field {name} must be an object"))),
        }
    };
    if field("collation")?.is_some_and(DocRef::is_empty) {
        return Err(Error::bad_value("optional field collation cannot be an empty object"));
    }
    let mut request = FindRequest::new(invocation.collection()?);
    request.filter = shared_or_empty(invocation, field("query")?);
    request.sort = shared_or_empty(invocation, field("sort")?);
    request.projection = shared_or_empty(invocation, field("projection")?);
    request.collation = shared_or_empty(invocation, field("collation")?);
    Ok(request)
}

/// The indexes, by their key patterns and by their names.
fn indexes(body: DocRef<'_>) -> Result<(Vec<Doc>, Vec<String>)> {
    let array = match body.get("indexes") {
        None => return Err(Error::bad_value("required field indexes missing")),
        Some(Value::Array(array)) => array,
        Some(_) => return Err(Error::bad_value("required field indexes must be an array")),
    };
    let (mut patterns, mut names) = (Vec::new(), Vec::new());
    for index in array.values() {
        match index {
            Value::Document(pattern) if pattern.is_empty() => {
                return Err(Error::bad_value("index specification cannot be empty"));
            }
            Value::Document(pattern) => patterns.push(pattern.to_doc()),
            Value::String(name) => names.push(name.to_string()),
            _ => return Err(Error::bad_value("each item in indexes must be an object or string")),
        }
    }
    if patterns.is_empty() && names.is_empty() {
        return Err(Error::bad_value("required field indexes must contain at least one index"));
    }
    Ok((patterns, names))
}
