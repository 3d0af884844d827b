//! Tells the cache of users when users or roles have changed, whoever changed them: a command for it, or a plain write.

use pando_base::{DatabaseName, Namespace, Result};
use pando_operation::Operation;
use pando_oplog::OpObserver;
use pando_oplog::observer::{Delete, DropCollection, Inserts, RenameCollection, Update};
use pando_security::UserCache;
use std::sync::Arc;

/// Watches `admin.system.users` and `admin.system.roles`.
pub(crate) struct UserObserver {
    users: Arc<UserCache>,
}

impl UserObserver {
    pub(crate) fn new(users: &Arc<UserCache>) -> UserObserver {
        UserObserver { users: Arc::clone(users) }
    }

    fn note(&self, operation: &mut Operation, is_about_users: bool) -> Result<()> {
        if is_about_users {
            let users = Arc::clone(&self.users);
            // Not before: what is read in between is of the old state.
            operation.recovery_unit.on_commit(move |_| users.invalidate())?;
        }
        Ok(())
    }

    fn note_at(&self, operation: &mut Operation, namespace: &Namespace) -> Result<()> {
        self.note(operation, namespace.is_privilege_collection())
    }
}

impl OpObserver<Operation> for UserObserver {
    fn on_inserts(&self, operation: &mut Operation, inserts: &Inserts<'_>) -> Result<()> {
        self.note_at(operation, inserts.collection.namespace)
    }

    fn on_update(&self, operation: &mut Operation, update: &Update<'_>) -> Result<()> {
        self.note_at(operation, update.collection.namespace)
    }

    fn on_delete(&self, operation: &mut Operation, delete: &Delete<'_>) -> Result<()> {
        self.note_at(operation, delete.collection.namespace)
    }

    fn on_drop_collection(&self, operation: &mut Operation, drop: &DropCollection<'_>) -> Result<()> {
        self.note_at(operation, drop.collection.namespace)
    }

    fn on_rename_collection(&self, operation: &mut Operation, rename: &RenameCollection<'_>) -> Result<()> {
        let is_about_users = rename.from.is_privilege_collection() || rename.to.is_privilege_collection();
        self.note(operation, is_about_users)
    }

    fn on_drop_database(&self, operation: &mut Operation, database: &DatabaseName) -> Result<()> {
        self.note(operation, database.is_admin())
    }
}
