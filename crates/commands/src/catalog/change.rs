//! How a command changes the catalog: its locks, and units of work that are tried again.
//!
//! The pattern is always the same. The command takes its locks (global IX, database IX, collections X, or IX to make one;
//! `dropDatabase` the database in X), looks whether the node may still write, and then makes its changes, each in a unit of work of its own
//! that leaves its entries in the oplog. Locks are kept until the command's operation ends, so that nobody sees the state
//! between two units of one command; but reads, which take no locks, find what was committed.

use crate::Data;
use crate::locking::{lock_collection, lock_database, wait_of};
use pando_base::{DatabaseName, Error, ErrorCode, Namespace, Result};
use pando_catalog::CollectionOptions;
use pando_locks::{LockRequest, Mode, ResourceId};
use pando_operation::{Operation, write_conflict_retry};
use pando_repl::ReplGate;

/// Runs a change in a unit of work, again if it conflicts with another.
pub(crate) async fn change<T>(
    operation: &mut Operation,
    what: &str,
    namespace: &Namespace,
    mut body: impl FnMut(&mut Operation) -> Result<T>,
) -> Result<T> {
    write_conflict_retry(operation, what, namespace, |operation| operation.in_unit_of_work(|unit| body(unit))).await
}

/// Locks collections in X, whatever order they come in, with their databases in IX, and sees to it that the node may write
/// there. All at once, because locks that are taken later could wait in a circle.
pub(crate) async fn lock_exclusively(data: &Data, operation: &mut Operation, namespaces: &[&Namespace]) -> Result<()> {
    let mut databases: Vec<DatabaseName> = namespaces.iter().map(|namespace| namespace.database_name()).collect();
    databases.sort_by_key(|database| ResourceId::from(database));
    databases.dedup();
    for database in &databases {
        lock_database(operation, database, Mode::IX).await?;
    }
    let mut collections: Vec<ResourceId> = namespaces.iter().map(|namespace| ResourceId::from(*namespace)).collect();
    collections.sort();
    collections.dedup();
    for collection in collections {
        operation.locker.lock(LockRequest::new(collection, Mode::X), &wait_of(operation)).await?;
    }
    namespaces.iter().try_for_each(|namespace| data.replication.check_can_write(namespace))
}

/// Locks the name of a collection that is to be made, and sees to it that the node may write there. Others may make one too, also
/// in transactions that have not ended: the first to commit has it.
pub(crate) async fn lock_to_create(data: &Data, operation: &mut Operation, namespace: &Namespace) -> Result<()> {
    lock_collection(operation, namespace, Mode::IX).await?;
    data.replication.check_can_write(namespace)
}

/// Makes sure that a database has its `system.views`, which the caller has locked: in a unit of its own, so that the
/// view's document comes later than the collection.
pub(crate) async fn ensure_system_views(
    data: &Data,
    operation: &mut Operation,
    system_views: &Namespace,
) -> Result<()> {
    if data.catalog.collection_for_write(operation, system_views)?.is_some() {
        return Ok(());
    }
    change(operation, "create", system_views, |operation| {
        let options = CollectionOptions::default();
        data.catalog.create_collection(operation, &*data.observers, system_views, options).map(|_| ())
    })
    .await
}

/// The error for a collection that has to be there.
pub(super) fn does_not_exist(namespace: &Namespace) -> Error {
    Error::new(ErrorCode::NamespaceNotFound, format!("ns does not exist: {namespace}"))
}

/// The error for a view where a collection is wanted.
pub(super) fn is_a_view(namespace: &Namespace) -> Error {
    let reason = format!("Namespace {namespace} is a view, not a collection");
    Error::new(ErrorCode::CommandNotSupportedOnView, reason)
}
