//! `$listCatalog`: the durable catalog's entries, of one collection or, on the database admin, of all, with the views.

use super::{Asked, Make};
use pando_base::{Error, ErrorCode, Namespace, Result, ensure};
use pando_catalog::{list_catalog_row, list_catalog_view_row};
use pando_doc::{Doc, Value};
use pando_operation::Operation;
use std::sync::Arc;

pub(super) fn parse(value: Value<'_>, namespace: &Namespace) -> Result<Make> {
    let is_empty = value.as_document().is_some_and(|options| options.is_empty());
    ensure!(is_empty, ErrorCode::location(6200600), "The $listCatalog stage specification must be an empty object");
    if !namespace.is_collectionless_aggregate() {
        let namespace = namespace.clone();
        return Ok(Arc::new(move |asked: &Asked, operation: &mut Operation| one(asked, operation, &namespace)));
    }
    ensure!(
        namespace.database() == "admin",
        ErrorCode::InvalidNamespace,
        "Collectionless $listCatalog must be run against the 'admin' database with {{aggregate: 1}}"
    );
    Ok(Arc::new(all))
}

fn one(asked: &Asked, operation: &mut Operation, namespace: &Namespace) -> Result<Vec<Doc>> {
    let catalog = &asked.data()?.catalog;
    let latest = catalog.latest();
    let Some(collection) = latest.collection(namespace) else { return Ok(Vec::new()) };
    let entry = catalog.durable().get_doc(&mut operation.recovery_unit, &collection.catalog_id)?;
    entry.iter().map(|entry| list_catalog_row(entry.view())).collect()
}

fn all(asked: &Asked, operation: &mut Operation) -> Result<Vec<Doc>> {
    let catalog = &asked.data()?.catalog;
    let mut rows = Vec::new();
    catalog.durable().for_each(&mut operation.recovery_unit, |_, entry| {
        rows.push(list_catalog_row(entry)?);
        Ok::<(), Error>(())
    })?;
    let latest = catalog.latest();
    for views in latest.databases().filter_map(|database| latest.views(database)) {
        rows.extend(views.iter().map(list_catalog_view_row));
    }
    Ok(rows)
}
