//! Whether a collection or view that is there already is the one that `create` was to make.

use crate::Data;
use pando_base::{Error, ErrorCode, Namespace, Result, bail, ensure};
use pando_catalog::{CollectionOptions, ViewDefinition};

/// Succeeds if what has the name has these options; else the error says in what it differs.
pub(super) fn check_same(
    data: &Data,
    namespace: &Namespace,
    options: &CollectionOptions,
    original: Error,
) -> Result<()> {
    let latest = data.catalog.latest();
    if let Some(collection) = latest.collection(namespace) {
        let existing = &*collection.options;
        ensure!(
            stored(options) == stored(existing),
            ErrorCode::NamespaceExists,
            "namespace {namespace} already exists, but with different options: {}",
            existing.to_doc()
        );
        return Ok(());
    }
    match latest.view(namespace)? {
        Some(view) => check_same_view(view, options),
        // Gone in between.
        None => Err(original),
    }
}

/// What is compared: not the id, which is the collection's own.
fn stored(options: &CollectionOptions) -> CollectionOptions {
    CollectionOptions { uuid: None, id_index: None, ..options.clone() }
}

fn check_same_view(view: &ViewDefinition, options: &CollectionOptions) -> Result<()> {
    let namespace = &view.namespace;
    let Some(view_on) = &options.view_on else {
        bail!(ErrorCode::NamespaceExists, "namespace {namespace} already exists, but is a view on {}", view.view_on)
    };
    let view_on = namespace.sibling(view_on)?;
    ensure!(
        view.view_on == view_on,
        ErrorCode::NamespaceExists,
        "namespace {namespace} already exists, but is a view on {} rather than {view_on}",
        view.view_on
    );
    let is_same_pipeline = match &options.pipeline {
        Some(pipeline) => *pipeline == view.pipeline,
        None => view.pipeline.is_empty(),
    };
    ensure!(
        is_same_pipeline,
        ErrorCode::NamespaceExists,
        "namespace {namespace} already exists, but with a different pipeline"
    );
    ensure!(
        view.collation == options.collation,
        ErrorCode::NamespaceExists,
        "namespace {namespace} already exists, but with a different collation"
    );
    Ok(())
}
