//! `listCollections`: what collections and views a database has.
//!
//! Without locks: what is listed is one version of the catalog.

use super::cursor_reply::{CursorArguments, append_cursor};
use crate::arguments::SafeBool;
use crate::locking::lock_for_read;
use crate::{Access, Admission, CommandRow, Data, Invocation, SecondaryOk, arguments, run_boxed};
use pando_base::{Namespace, Result};
use pando_catalog::{Collection, ViewDefinition};
use pando_doc::{Doc, DocBuilder, DocRef, Value, compare_docs, doc};
use pando_env::Place;
use pando_expr::MatchExpression;
use pando_operation::Operation;
use pando_security::Target;

pub(super) const ROW: CommandRow = CommandRow {
    name: "listCollections",
    help: "list collections for this db",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    secondary_ok: SecondaryOk::OptIn,
    is_in_api_version_1: true,
    is_stopped_when_abandoned: true,
    admission: Admission::Read,
    privileges: Access::Checked(crate::access::may_list_collections),
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    struct ListCollectionsArguments<'a> of "listCollections" {
        cursor: Option<CursorArguments<'a>> = "cursor",
        filter: Option<DocRef<'a>> = "filter",
        name_only: SafeBool = "nameOnly" or SafeBool(false),
        authorized_collections: bool = "authorizedCollections" or false,
        include_pending_drops: Option<SafeBool> = "includePendingDrops",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = ListCollectionsArguments::parse(&invocation.request)?;
    let limits = CursorArguments::limits(arguments.cursor.as_ref())?;
    let context = super::names::filter_context(invocation);
    let filter = arguments.filter.map(|filter| MatchExpression::parse(filter, &context)).transpose()?;
    let mut operation = invocation.operation()?;
    lock_for_read(&mut operation).await?;
    let list = List {
        name_only: arguments.name_only.0,
        is_read_only: invocation.node.options.is_read_only,
        filter: filter.as_ref(),
        leaves_views_out: arguments.filter.is_some_and(|filter| compare_docs(filter, without_views().view()).is_eq()),
    };
    let mut rows = match arguments.filter.and_then(exact_name) {
        Some(name) => list.one(invocation, data, &mut operation, name)?,
        None => list.all(invocation, data, &mut operation)?,
    };
    if arguments.authorized_collections {
        let database = invocation.database.as_str();
        let name = |row: &Doc| row.get("name").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
        rows.retain(|row| invocation.may_anything_on(Target::Collection(database, &name(row))));
    }
    let namespace = Namespace::list_collections_cursor(&invocation.database);
    append_cursor(invocation, data, &mut operation, &namespace, rows, limits, reply)
}

/// The name that a filter asks for, if it asks for exactly one.
fn exact_name(filter: DocRef<'_>) -> Option<&str> {
    filter.get("name").and_then(|name| name.as_str())
}

struct List<'a> {
    name_only: bool,
    is_read_only: bool,
    filter: Option<&'a MatchExpression>,
    /// The filter is the one by which drivers ask for collections alone: views are not looked at.
    leaves_views_out: bool,
}

fn without_views() -> Doc {
    doc! { "$or": [{ "type": "collection" }, { "type": { "$exists": false } }] }
}

impl List<'_> {
    /// The row of one name, found without looking at the others.
    fn one(&self, invocation: &Invocation, data: &Data, operation: &mut Operation, name: &str) -> Result<Vec<Doc>> {
        let mut rows = Vec::new();
        let Ok(namespace) = Namespace::new(&invocation.database, name) else { return Ok(rows) };
        let mut view = data.catalog.establish(operation)?;
        if let Some(collection) = view.collection(&data.catalog, operation, &namespace)? {
            self.push(self.collection_row(&collection), &mut rows)?;
        } else if let Some(definition) = view.latest().view(&namespace)? {
            let latest = data.catalog.latest();
            let buckets = latest.collection(&namespace.timeseries_buckets());
            let buckets = buckets.map(|buckets| &**buckets).filter(|_| definition.is_timeseries());
            self.push(self.view_row(definition, buckets), &mut rows)?;
        }
        Ok(rows)
    }

    fn all(&self, invocation: &Invocation, data: &Data, operation: &mut Operation) -> Result<Vec<Doc>> {
        let mut rows = Vec::new();
        let mut view = data.catalog.establish(operation)?;
        let collections = view.collections(&data.catalog, operation, &invocation.database)?;
        for collection in &collections {
            self.push(self.collection_row(collection), &mut rows)?;
        }
        if let Some(views) = view.latest().views(&invocation.database).filter(|_| !self.leaves_views_out) {
            views.require_readable()?;
            for definition in views.iter() {
                let buckets = collections
                    .iter()
                    .find(|collection| definition.is_timeseries() && collection.namespace == definition.view_on);
                self.push(self.view_row(definition, buckets.map(|buckets| &**buckets)), &mut rows)?;
            }
        }
        Ok(rows)
    }

    fn push(&self, row: Doc, rows: &mut Vec<Doc>) -> Result<()> {
        let is_wanted = self.filter.map_or(Ok(true), |filter| filter.try_matches(row.view()))?;
        if is_wanted {
            rows.push(row);
        }
        Ok(())
    }

    fn collection_row(&self, collection: &Collection) -> Doc {
        let mut row = DocBuilder::new();
        row.append("name", collection.namespace.collection());
        row.append("type", "collection");
        if self.name_only {
            return row.finish();
        }
        row.append("options", collection.options.to_doc_without_uuid());
        row.document("info", |info| {
            info.append("readOnly", self.is_read_only);
            info.append("uuid", Value::Binary { subtype: 4, bytes: collection.uuid.as_bytes() });
        });
        row.append_some("idIndex", collection.id_index().map(|index| &index.descriptor.specification));
        row.finish()
    }

    fn view_row(&self, view: &ViewDefinition, buckets: Option<&Collection>) -> Doc {
        let mut row = DocBuilder::new();
        row.append("name", view.namespace.collection());
        row.append("type", if view.is_timeseries() { "timeseries" } else { "view" });
        if self.name_only {
            return row.finish();
        }
        if let Some(buckets) = buckets {
            row.append("options", timeseries_options(buckets));
            row.append("info", doc! { "readOnly": self.is_read_only });
            return row.finish();
        }
        row.document("options", |options| {
            options.append("viewOn", view.view_on.collection());
            options.append("pipeline", &view.pipeline);
            options.append_some("collation", view.collation.as_ref());
        });
        row.append("info", doc! { "readOnly": !view.is_timeseries() });
        row.finish()
    }
}

/// The options of a time-series collection, without those that its buckets have for themselves.
fn timeseries_options(buckets: &Collection) -> Doc {
    let mut out = DocBuilder::new();
    let shown = ["storageEngine", "indexOptionDefaults", "collation", "timeseries", "expireAfterSeconds"];
    for element in buckets.options.to_doc_without_uuid().elements() {
        if shown.iter().any(|name| element.name == *name) {
            out.append_element(element);
        }
    }
    out.finish()
}
