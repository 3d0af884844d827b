//! `$out`: the results replace a collection.
//!
//! They are written to a temporary collection with the options and indexes of the one to be replaced, which then takes its
//! name in one step. Whatever fails before leaves the old collection as it was.

use super::Turns;
use crate::crud::collections::{check_can_write, refuse_view};
use crate::locking::{lock_collection, lock_database, unlock};
use crate::{Data, Invocation};
use pando_base::{Error, ErrorCode, Namespace, Result, ensure};
use pando_catalog::{Collection, CollectionOptions, PreparedIndex, RenameOptions};
use pando_collection::InsertOptions;
use pando_locks::{LockRequest, Mode, ResourceId, Wait};
use pando_operation::{Operation, write_conflict_retry};
use pando_query::request::AggregateRequest;
use pando_query::write::InsertDocument;
use std::sync::Arc;

pub(super) async fn run(
    invocation: &Invocation,
    data: &Data,
    operation: &mut Operation,
    request: &AggregateRequest,
    target: &Namespace,
    mut source: Turns<'_>,
) -> Result<()> {
    check_can_write(invocation, data, target, None)?;
    ensure!(
        !target.is_system(),
        ErrorCode::location(17385),
        "Can't $out to special collection: {}",
        target.collection()
    );
    refuse_view(data, target)?;
    let existing = data.catalog.latest().collection(target).cloned();
    let is_capped = existing.as_ref().is_some_and(|existing| existing.is_capped());
    ensure!(!is_capped, ErrorCode::location(17152), "namespace '{target}' is capped so it can't be used for $out");
    let temporary = temporary_name(invocation, target)?;
    let options = InsertOptions { bypass_validation: request.bypass_document_validation, ..InsertOptions::default() };
    let filled = fill(data, operation, existing.as_deref(), &temporary, options, &mut source).await;
    unlock(operation);
    let outcome = match filled {
        Ok(()) => replace(data, operation, &temporary, target).await,
        failed => failed,
    };
    unlock(operation);
    if outcome.is_err() {
        discard(data, operation, &temporary).await?;
    }
    outcome
}

fn temporary_name(invocation: &Invocation, target: &Namespace) -> Result<Namespace> {
    let mut random = [0; 16];
    invocation.node.env.random().fill(&mut random);
    target.sibling(&format!("tmp.agg_out.{}", pando_base::Uuid::from_random(random)))
}

/// Makes the temporary collection and writes the results to it.
async fn fill(
    data: &Data,
    operation: &mut Operation,
    existing: Option<&Collection>,
    temporary: &Namespace,
    options: InsertOptions,
    source: &mut Turns<'_>,
) -> Result<()> {
    let collection = create(data, operation, existing, temporary).await?;
    unlock(operation);
    while let Some(documents) = source.next(operation).await? {
        let prepare = |document: pando_doc::Doc| -> Result<InsertDocument> {
            let mended = data.query.prepare_insert(operation, document.view())?;
            Ok(InsertDocument { document: mended.unwrap_or(document), statement_ids: pando_oplog::StatementIds::None })
        };
        let documents: Vec<InsertDocument> = documents.into_iter().map(prepare).collect::<Result<_>>()?;
        lock_collection(operation, temporary, Mode::IX).await?;
        let outcomes = data.query.insert(operation, &collection, &documents, true, options).await;
        unlock(operation);
        outcomes.into_iter().collect::<Result<()>>()?;
    }
    Ok(())
}

async fn create(
    data: &Data,
    operation: &mut Operation,
    existing: Option<&Collection>,
    temporary: &Namespace,
) -> Result<Arc<Collection>> {
    let mut options = existing.map_or_else(CollectionOptions::default, |existing| (*existing.options).clone());
    (options.uuid, options.temp) = (None, true);
    lock_collection(operation, temporary, Mode::X).await?;
    write_conflict_retry(operation, "$out", temporary, |operation| {
        operation.in_unit_of_work(|operation| {
            let observers = &*data.observers;
            let mut made = data.catalog.create_collection(operation, observers, temporary, options.clone())?;
            let indexes = existing.map_or(&[][..], |existing| &existing.indexes);
            for index in indexes.iter().filter(|index| !index.descriptor.is_id_index()) {
                let specification = index.descriptor.specification.view();
                if let PreparedIndex::New(specification) = data.catalog.prepare_index(&made, specification)? {
                    made = data.catalog.create_index_on_empty(operation, observers, &made, &specification)?;
                }
            }
            Ok(made)
        })
    })
    .await
}

/// The temporary collection takes the other's name.
async fn replace(data: &Data, operation: &mut Operation, temporary: &Namespace, target: &Namespace) -> Result<()> {
    lock_database(operation, &target.database_name(), Mode::IX).await?;
    let mut locks = [ResourceId::from(temporary), ResourceId::from(target)];
    locks.sort();
    for lock in locks {
        operation.locker.lock(LockRequest::new(lock, Mode::X), &Wait::of(&operation.context)).await?;
    }
    refuse_view(data, target)?;
    write_conflict_retry(operation, "$out", target, |operation| {
        operation.in_unit_of_work(|operation| {
            let options = RenameOptions { drop_target: true, stay_temp: false };
            data.catalog.rename_collection(operation, &*data.observers, temporary, target, options).map(|_| ())
        })
    })
    .await
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
