//! The rows of `$listCatalog`.

use crate::views::ViewDefinition;
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, DocRef};

/// The row of a collection: its catalog entry with database, name and type in front.
pub fn list_catalog_row(entry: DocRef<'_>) -> Result<Doc> {
    let missing = || Error::failed_to_parse("a catalog entry has no 'ns'");
    let namespace = entry.get("ns").and_then(|ns| ns.as_str()).ok_or_else(missing)?;
    let mut builder = row(namespace, "collection");
    builder.append_all(entry);
    Ok(builder.finish())
}

/// The row of a view: its definition with the same in front.
pub fn list_catalog_view_row(view: &ViewDefinition) -> Doc {
    let namespace = view.namespace.as_str();
    let is_timeseries = view.is_timeseries();
    let mut builder = row(namespace, if is_timeseries { "timeseries" } else { "view" });
    builder.append("ns", namespace);
    builder.append_all(view.to_doc().view());
    builder.finish()
}

fn row(namespace: &str, kind: &str) -> DocBuilder {
    let (database, name) = namespace.split_once('.').unwrap_or((namespace, ""));
    let mut builder = DocBuilder::new();
    builder.append("db", database);
    builder.append("name", name);
    builder.append("type", kind);
    builder
}
