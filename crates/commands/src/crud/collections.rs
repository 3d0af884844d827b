//! Finding the collection of a write, and creating it if it is not there.

use crate::catalog::create_fail_points;
use crate::locking::{lock_collection, unlock};
use crate::settings::check_user_write;
use crate::{Data, Invocation};
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid, ensure};
use pando_catalog::{Collection, CollectionOptions};
use pando_collection::capped_lock_resource;
use pando_doc::{DocBuilder, Value};
use pando_locks::{LockRequest, Mode, Wait};
use pando_operation::{Operation, write_conflict_retry};
use pando_repl::ReplGate;
use std::sync::Arc;

/// May a client write there, on this node, now? If it names the collection by its id too, to that one.
pub(super) fn check_can_write(
    invocation: &Invocation,
    data: &Data,
    namespace: &Namespace,
    uuid: Option<Uuid>,
) -> Result<()> {
    if invocation.transaction().is_some() {
        check_can_write_in_transaction(namespace)?;
    }
    namespace.validate_for_write(invocation.node.replication.is_replica_set())?;
    ensure!(
        !namespace.is_session_transactions()
            || invocation.generic.session.is_none()
            || !invocation.node.replication.is_replica_set(),
        ErrorCode::location(40528),
        "Direct writes against {namespace} cannot be performed using a transaction or on a session."
    );
    data.replication.check_can_write(namespace)?;
    check_user_write(invocation, namespace)?;
    check_uuid(data, namespace, uuid)
}

/// What the server itself lives by is not changed in transactions, but for users and roles.
fn check_can_write_in_transaction(namespace: &Namespace) -> Result<()> {
    let is_allowed = !namespace.is_system() || namespace.is_privilege_collection() || namespace.is_timeseries_buckets();
    ensure!(
        is_allowed,
        ErrorCode::location(50791),
        "Cannot write to system collection {namespace} within a transaction."
    );
    ensure!(
        namespace.is_replicated(),
        ErrorCode::location(50790),
        "Cannot write to unreplicated collection {namespace} within a transaction."
    );
    Ok(())
}

/// Locks a collection in IX and finds it.
pub(crate) async fn lock_for_write(
    data: &Data,
    operation: &mut Operation,
    namespace: &Namespace,
) -> Result<Option<Arc<Collection>>> {
    let collection = lock_for_delete(data, operation, namespace).await?;
    // What is written there waits for everybody else who writes there: not to the end of a transaction.
    let is_capped = collection.as_ref().is_some_and(|collection| collection.is_capped());
    ensure!(
        !is_capped || !operation.in_multi_document_transaction(),
        ErrorCode::OperationNotSupportedInTransaction,
        "Collection '{namespace}' is a capped collection. Writes in transactions are not allowed on capped collections."
    );
    Ok(collection)
}

/// The same for documents to leave it, which capped collections have their own words about.
pub(super) async fn lock_for_delete(
    data: &Data,
    operation: &mut Operation,
    namespace: &Namespace,
) -> Result<Option<Arc<Collection>>> {
    lock_collection(operation, namespace, Mode::IX).await?;
    // The state of the set is fixed by the lock.
    data.replication.check_can_write(namespace)?;
    let Some(collection) = data.catalog.collection_for_write(operation, namespace)? else {
        refuse_view(data, namespace)?;
        return Ok(None);
    };
    Ok(Some(collection))
}

/// Documents come into a capped collection, and leave it, one operation at a time.
pub(crate) async fn lock_if_capped(operation: &mut Operation, collection: &Collection) -> Result<()> {
    let Some(mutex) = capped_lock_resource(collection) else { return Ok(()) };
    operation.locker.lock(LockRequest::new(mutex, Mode::X), &Wait::of(&operation.context)).await
}

/// Writes go to collections.
pub(super) fn refuse_view(data: &Data, namespace: &Namespace) -> Result<()> {
    match data.catalog.latest().view(namespace)? {
        None => Ok(()),
        Some(_) => {
            let reason = format!("Namespace {namespace} is a view, not a collection");
            Err(Error::new(ErrorCode::CommandNotSupportedOnView, reason))
        }
    }
}

/// Locks the collection in IX, after it was created if it was not there.
pub async fn collection_for_insert(
    data: &Data,
    operation: &mut Operation,
    namespace: &Namespace,
) -> Result<Arc<Collection>> {
    loop {
        if let Some(collection) = lock_for_write(data, operation, namespace).await? {
            lock_if_capped(operation, &collection).await?;
            return Ok(collection);
        }
        unlock(operation);
        Box::pin(create(data, operation, namespace)).await?;
    }
}

/// Creates a collection with nothing special about it, unless somebody else has.
async fn create(data: &Data, operation: &mut Operation, namespace: &Namespace) -> Result<()> {
    namespace.validate_for_create()?;
    lock_collection(operation, namespace, Mode::IX).await?;
    create_fail_points::pass(data, operation, namespace).await?;
    let outcome = write_conflict_retry(operation, "create", namespace, |operation| {
        if data.catalog.collection_for_write(operation, namespace)?.is_some() {
            return Ok(());
        }
        data.replication.check_can_write(namespace)?;
        operation.in_unit_of_work(|operation| {
            let options = CollectionOptions::default();
            data.catalog.create_collection(operation, &*data.observers, namespace, options).map(|_| ())
        })
    });
    let outcome = outcome.await;
    unlock(operation);
    outcome
}

/// A client that names the collection by its id too means that one and no other.
pub(crate) fn check_uuid(data: &Data, namespace: &Namespace, uuid: Option<Uuid>) -> Result<()> {
    let Some(uuid) = uuid else { return Ok(()) };
    let latest = data.catalog.latest();
    if latest.collection(namespace).is_some_and(|collection| collection.uuid == uuid) {
        return Ok(());
    }
    let actual = latest.namespace_of(&uuid).filter(|actual| actual.database() == namespace.database());
    let mut details = DocBuilder::new();
    details.append("db", namespace.database());
    details.append("collectionUUID", Value::Binary { subtype: 4, bytes: uuid.as_bytes() });
    details.append("expectedCollection", namespace.collection());
    match actual {
        Some(actual) => details.append("actualCollection", actual.collection()),
        None => details.append("actualCollection", Value::Null),
    }
    let reason = "Collection UUID does not match that specified";
    let details = details.finish().into_bytes().to_vec();
    Err(Error::new(ErrorCode::CollectionUUIDMismatch, reason).with_details(details))
}
