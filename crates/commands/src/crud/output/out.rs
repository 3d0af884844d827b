//! `$out`: the results replace a collection.
//!
//! They are written to a temporary collection with the options and indexes of the one to be replaced, which then takes its
//! name in one step. Whatever fails before leaves the old collection as it was. Of a time series it is the buckets that are replaced.

use super::Turns;
use super::out_target::Target;
use crate::catalog::{ViewDocuments, ensure_system_views, lock_exclusively};
use crate::crud::collections::{check_can_write, refuse_view};
use crate::locking::{lock_collection, unlock};
use crate::{Data, Invocation};
use pando_base::{Error, ErrorCode, Namespace, Result, ensure};
use pando_catalog::{Collection, CollectionOptions, PreparedIndex, RenameOptions};
use pando_collection::InsertOptions;
use pando_doc::Doc;
use pando_locks::Mode;
use pando_operation::{Operation, write_conflict_retry};
use pando_query::request::AggregateRequest;
use pando_query::write::InsertDocument;
use std::sync::Arc;

pub(super) async fn run(
    invocation: &Invocation,
    data: &Data,
    operation: &mut Operation,
    request: &AggregateRequest,
    (target, timeseries): (&Namespace, Option<&Doc>),
    mut source: Turns<'_>,
) -> Result<()> {
    let is_fit = target.is_valid() && target.database_name().is_valid_for_create();
    ensure!(is_fit, ErrorCode::InvalidNamespace, "Invalid $out target namespace, {target}");
    // A name that no collection can have is found when the results are to get it.
    check_can_write(invocation, data, target, None).map_err(|error| match error.code() {
        ErrorCode::InvalidNamespace => {
            error.with_code(ErrorCode::IllegalOperation).context("error with target namespace")
        }
        _ => error,
    })?;
    ensure!(
        !target.is_system(),
        ErrorCode::location(17385),
        "Can't $out to special collection: {}",
        target.collection()
    );
    let target = Target::of(data, target, timeseries)?;
    let temporary = temporary_name(invocation, &target)?;
    let options = InsertOptions { bypass_validation: request.bypass_document_validation, ..InsertOptions::default() };
    let filled = fill(data, operation, &target, &temporary, options, &mut source).await;
    unlock(operation);
    let outcome = match filled {
        Ok(()) => replace(data, operation, &temporary, &target).await,
        failed => failed,
    };
    unlock(operation);
    if outcome.is_err() {
        discard(data, operation, &temporary).await?;
    }
    outcome
}

fn temporary_name(invocation: &Invocation, target: &Target) -> Result<Namespace> {
    let mut random = [0; 16];
    invocation.node.env.random().fill(&mut random);
    let name = target.written.sibling(&format!("tmp.agg_out.{}", pando_base::Uuid::from_random(random)))?;
    Ok(if target.is_timeseries() { name.timeseries_buckets() } else { name })
}

/// Makes the temporary collection and writes the results to it.
async fn fill(
    data: &Data,
    operation: &mut Operation,
    target: &Target,
    temporary: &Namespace,
    options: InsertOptions,
    source: &mut Turns<'_>,
) -> Result<()> {
    let collection = create(data, operation, target, temporary).await?;
    unlock(operation);
    while let Some(documents) = source.next(operation).await? {
        let prepare = |document: Doc| -> Result<InsertDocument> {
            let mended = match target.is_timeseries() {
                true => data.query.prepare_insert_unfilled(operation, document.view())?,
                false => data.query.prepare_insert(operation, document.view())?,
            };
            Ok(InsertDocument { document: mended.unwrap_or(document), statement_ids: pando_oplog::StatementIds::None })
        };
        let documents: Vec<InsertDocument> = documents.into_iter().map(prepare).collect::<Result<_>>()?;
        lock_collection(operation, temporary, Mode::IX).await?;
        let outcomes = match target.is_timeseries() {
            true => data.query.insert_measurements(operation, &collection, &documents, true).await,
            false => data.query.insert(operation, &collection, &documents, true, options).await,
        };
        unlock(operation);
        outcomes.into_iter().collect::<Result<()>>()?;
    }
    Ok(())
}

async fn create(
    data: &Data,
    operation: &mut Operation,
    target: &Target,
    temporary: &Namespace,
) -> Result<Arc<Collection>> {
    let options = CollectionOptions { uuid: None, temp: true, ..target.options.clone() };
    lock_collection(operation, temporary, Mode::X).await?;
    write_conflict_retry(operation, "$out", temporary, |operation| {
        operation.in_unit_of_work(|operation| {
            let observers = &*data.observers;
            let mut made = data.catalog.create_collection(operation, observers, temporary, options.clone())?;
            for index in &target.indexes {
                // One with a version is another collection's, as it is stored.
                let prepared = match index.view().contains("v") {
                    true => data.catalog.prepare_stored_index(&made, index.clone())?,
                    false => data.catalog.prepare_index(&made, index.view())?,
                };
                if let PreparedIndex::New(specification) = prepared {
                    made = data.catalog.create_index_on_empty(operation, observers, &made, &specification)?;
                }
            }
            Ok(made)
        })
    })
    .await
}

/// The temporary collection takes the other's name; a time series that is new gets its view.
async fn replace(data: &Data, operation: &mut Operation, temporary: &Namespace, target: &Target) -> Result<()> {
    let written = &target.written;
    let system_views = Namespace::system_views(&written.database_name());
    let mut locked = vec![temporary, written];
    if let Some(view) = &target.view {
        locked.extend([&view.namespace, &system_views]);
    }
    lock_exclusively(data, operation, &locked).await?;
    check_unchanged(data, target)?;
    write_conflict_retry(operation, "$out", written, |operation| {
        operation.in_unit_of_work(|operation| {
            let options = RenameOptions { drop_target: true, stay_temp: false };
            data.catalog.rename_collection(operation, &*data.observers, temporary, written, options).map(|_| ())
        })
    })
    .await?;
    match &target.view {
        Some(view) if data.catalog.latest().view(&view.namespace)?.is_none() => {
            ensure_system_views(data, operation, &system_views).await?;
            let writer = ViewDocuments(data.write_path());
            write_conflict_retry(operation, "$out", &view.namespace, |operation| {
                operation.in_unit_of_work(|operation| {
                    data.catalog.create_view(operation, &*data.observers, &writer, view.clone())
                })
            })
            .await
        }
        _ => Ok(()),
    }
}

/// Refuses to replace what has come under the name meanwhile.
fn check_unchanged(data: &Data, target: &Target) -> Result<()> {
    let Some(view) = &target.view else { return refuse_view(data, &target.written) };
    let latest = data.catalog.latest();
    let is_free = latest.collection(&view.namespace).is_none();
    let is_same = latest.view(&view.namespace)?.is_none_or(|there| there.view_on == view.view_on);
    ensure!(
        is_free && is_same,
        ErrorCode::NamespaceExists,
        "The collection {} has changed while $out was writing",
        view.namespace
    );
    Ok(())
}

/// Drops what was written in vain. An operation that was told to stop still does this.
async fn discard(data: &Data, operation: &mut Operation, temporary: &Namespace) -> Result<()> {
    let _uninterrupted = operation.context.ignore_interrupts();
    lock_collection(operation, temporary, Mode::X).await?;
    let dropped = write_conflict_retry(operation, "drop", temporary, |operation| {
        if data.catalog.collection_for_write(operation, temporary)?.is_none() {
            return Ok(());
        }
        operation.in_unit_of_work(|operation| {
            data.catalog.drop_collection(operation, &*data.observers, temporary).map(|_| ())
        })
    });
    let outcome: std::result::Result<(), Error> = dropped.await;
    unlock(operation);
    outcome
}
