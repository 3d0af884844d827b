//! Writing `system.profile`.
//!
//! It is a capped collection of the profiled database, and no part of replication. An operation of its own writes, so that
//! what stopped the profiled one does not keep it from being told. What fails here is logged and nothing else.

use crate::locking::{lock_collection, unlock};
use crate::{Data, Invocation};
use pando_base::{Component, DatabaseName, Error, ErrorCode, Namespace, Result, Severity, ensure, log};
use pando_catalog::CollectionOptions;
use pando_collection::{InsertOptions, InsertStatement};
use pando_doc::Doc;
use pando_locks::Mode;
use pando_operation::{Operation, write_conflict_retry};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How large the collection is made.
const SIZE_BYTES: i64 = 1024 * 1024;

/// Writes what is told of an operation into its database's `system.profile`. One whose database is gone is not told.
pub async fn write_profile(invocation: &Invocation, database: &DatabaseName, document: Doc) {
    let (Some(data), log) = (&invocation.node.data, &invocation.node.log) else { return };
    let mut operation = data.services.internal_operation("profiling");
    // The client waits for this: it is not worth to wait for room, as tasks without a client do.
    operation.retry_policy.internal = false;
    operation.retry_policy.temporarily_unavailable_retries_max = 0;
    if invocation.generic.is_in_transaction() {
        // Who waits for locks may wait for those of this very transaction, which cannot end meanwhile.
        operation.lock_wait_max = Some(Duration::ZERO);
    }
    data.profiler.active_writers.fetch_add(1, Ordering::Relaxed);
    let outcome = write(data, &mut operation, database, &document).await;
    unlock(&operation);
    data.profiler.active_writers.fetch_sub(1, Ordering::Relaxed);
    match outcome {
        Ok(true) => {
            data.profiler.writes.fetch_add(1, Ordering::Relaxed);
        }
        Ok(false) => {
            let message = "note: not profiling because db went away for namespace";
            log!(log, Severity::Info, Component::Default, 20700, message, "namespace" = &invocation.namespace);
        }
        Err(error) => {
            let message = "Caught Assertion while trying to profile operation";
            log!(
                log,
                Severity::Warning,
                Component::Default,
                20703,
                message,
                "namespace" = &invocation.namespace,
                "assertion" = &error
            );
        }
    }
}

async fn write(data: &Data, operation: &mut Operation, database: &DatabaseName, document: &Doc) -> Result<bool> {
    let namespace = Namespace::system_profile(database);
    if !data.catalog.latest().has_database(database) {
        return Ok(false);
    }
    ensure_profile_collection(data, operation, database).await?;
    lock_collection(operation, &namespace, Mode::IX).await?;
    write_conflict_retry(operation, "profile", &namespace, |operation| {
        let Some(collection) = data.catalog.collection_for_write(operation, &namespace)? else {
            return Err(Error::new(ErrorCode::NamespaceNotFound, format!("{namespace} is gone")));
        };
        operation.in_unit_of_work(|operation| {
            let statement = InsertStatement::new(document.view());
            let options = InsertOptions::default();
            data.write_path().insert_documents(operation, &collection, &[statement], options).map(|_| ())
        })
    })
    .await?;
    Ok(true)
}

/// Makes the collection unless it is there. One that is not capped cannot be used.
pub(crate) async fn ensure_profile_collection(
    data: &Data,
    operation: &mut Operation,
    database: &DatabaseName,
) -> Result<()> {
    let namespace = Namespace::system_profile(database);
    if let Some(collection) = data.catalog.latest().collection(&namespace) {
        ensure!(collection.is_capped(), ErrorCode::NamespaceExists, "{namespace} exists but isn't capped");
        return Ok(());
    }
    lock_collection(operation, &namespace, Mode::X).await?;
    let made = write_conflict_retry(operation, "createProfileCollection", &namespace, |operation| {
        if data.catalog.latest().collection(&namespace).is_some() {
            return Ok(());
        }
        let options = CollectionOptions { capped: true, capped_size_bytes: SIZE_BYTES, ..CollectionOptions::default() };
        operation.in_unit_of_work(|operation| {
            data.catalog.create_collection(operation, &*data.observers, &namespace, options.clone()).map(|_| ())
        })
    })
    .await;
    unlock(operation);
    made
}
