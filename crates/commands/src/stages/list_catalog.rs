//! `$listCatalog`: the durable catalog's entries, of one collection or, on the database admin, of all, with the views.

use super::{Asked, Make};
use pando_base::{ErrorCode, Namespace, Result, ensure};
use pando_doc::{Doc, Value};
use pando_operation::Operation;
use std::sync::Arc;

pub(super) fn parse(value: Value<'_>, namespace: &Namespace) -> Result<Make> {
    let is_empty = value.as_document().is_some_and(|options| options.is_empty());
    ensure!(is_empty, ErrorCode::location(6200600), "The $listCatalog stage specification must be an empty object");
    if !namespace.is_collectionless_aggregate() {
        let namespace = namespace.clone();
        return Ok(Arc::new(move |asked: &Asked, operation: &mut Operation| rows(asked, operation, Some(&namespace))));
    }
    ensure!(
        namespace.database() == "admin",
        ErrorCode::InvalidNamespace,
        "Collectionless $listCatalog must be run against the 'admin' database with {{aggregate: 1}}"
    );
    Ok(Arc::new(|asked: &Asked, operation: &mut Operation| rows(asked, operation, None)))
}

/// All of one snapshot, views included: what another has changed since is in none of the rows.
fn rows(asked: &Asked, operation: &mut Operation, only: Option<&Namespace>) -> Result<Vec<Doc>> {
    asked.data()?.catalog.list_catalog(operation, only)
}
