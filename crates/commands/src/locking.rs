//! Locks for commands: taken without guards, because the operation that has them is changed meanwhile, and given back by
//! [`unlock`] or by the end of the command's operation.
//!
//! Reads take the global lock in IS alone, and with it a ticket: they find collections without locks. Writes take the
//! collection in IX, DDL in X.

use crate::data::LockNames;
use pando_base::{DatabaseName, Namespace, Result};
use pando_locks::{Deadline, GlobalLockOptions, Mode, Wait};
use pando_operation::Operation;

/// Lets a read into the engine.
pub async fn lock_for_read(operation: &mut Operation) -> Result<()> {
    let options =
        GlobalLockOptions { skip_batch_barrier: true, skip_replication_state: true, ..GlobalLockOptions::default() };
    operation.locker.hold_global(Mode::IS, options, &wait_of(operation)).await
}

/// Lets a write into the engine that belongs to no collection.
pub async fn lock_for_note(operation: &mut Operation) -> Result<()> {
    operation.locker.hold_global(Mode::IX, GlobalLockOptions::default(), &wait_of(operation)).await
}

/// Locks a collection, and what lies above it with the intent that belongs to the mode.
pub async fn lock_collection(operation: &mut Operation, namespace: &Namespace, mode: Mode) -> Result<()> {
    let names = LockNames::of(namespace);
    if operation.in_multi_document_transaction() {
        let wait = Wait::of(&operation.context);
        if operation.locker.hold_collection_again(names.tenant, names.database, names.collection, mode, &wait)? {
            return Ok(());
        }
    }
    let wait = wait_of(operation);
    operation.locker.hold_collection(names.tenant, names.database, names.collection, mode, &wait).await
}

/// Locks a database, and what lies above it with the intent that belongs to the mode.
pub async fn lock_database(operation: &mut Operation, database: &DatabaseName, mode: Mode) -> Result<()> {
    let names = LockNames::of(&Namespace::from(database.clone()));
    operation.locker.hold_database(names.tenant, names.database, mode, &wait_of(operation)).await
}

/// How long the operation waits: as long as it may go on, or as long as its transaction may wait for a lock.
pub(crate) fn wait_of(operation: &Operation) -> Wait<'_> {
    let wait = Wait::of(&operation.context);
    match operation.lock_wait_max {
        Some(longest) => wait.with_deadline(Some(Deadline::after(operation.env.clock(), longest))),
        None => wait,
    }
}

/// Gives back everything; a transaction keeps its locks to its end.
pub fn unlock(operation: &Operation) {
    if !operation.in_multi_document_transaction() {
        operation.locker.unlock_everything();
    }
}
