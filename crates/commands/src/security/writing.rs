//! Changing users and roles: one command at a time, and each change is a whole document. Whoever caches users hears of it
//! from the write path, when the change is committed.

use super::state::{roles, users};
use super::storage::read_roles;
use crate::stored::{StoredChange, change_together, delete, find, save};
use crate::{Class, CommandOperation, CommandRow, Data, Invocation, SecondaryOk};
use pando_base::{DatabaseName, Error, ErrorCode, Namespace, Result, ensure};
use pando_doc::{Doc, DocBuilder, Value, doc};
use pando_security::roles::{KnownRoles, RoleDocument, check_found, is_built_in, resolve};
use pando_security::{Restrictions, RoleName, UserDocument};
use std::sync::Arc;

/// What the commands that change users and roles have in common.
pub(super) const CHANGE: CommandRow = CommandRow {
    class: Class::Write,
    secondary_ok: SecondaryOk::Never,
    takes_write_concern: true,
    ..CommandRow::DEFAULT
};

/// A command that changes users or roles; the others wait while it lives.
pub(super) struct Change<'a> {
    data: &'a Arc<Data>,
    operation: CommandOperation<'a>,
    _alone: tokio::sync::MutexGuard<'a, ()>,
}

impl<'a> Change<'a> {
    /// Waits for its turn.
    pub(super) async fn begin(invocation: &'a Invocation) -> Result<Change<'a>> {
        let data = invocation.data()?;
        let alone = invocation.context.interruptible(invocation.node.security.changing.lock()).await?;
        let mut change = Change { data, operation: invocation.operation()?, _alone: alone };
        change.note_schema().await?;
        Ok(change)
    }

    /// Tools look at the version of the documents' form.
    async fn note_schema(&mut self) -> Result<()> {
        let schema = doc! { "_id": "authSchema", "currentVersion": 5 };
        let namespace = Namespace::server_configuration();
        let found = find(self.data, &mut self.operation, namespace, doc! { "_id": "authSchema" }).await?;
        match found.is_empty() {
            true => save(self.data, &mut self.operation, namespace, &schema).await,
            false => Ok(()),
        }
    }

    pub(super) async fn user(&mut self, name: &pando_security::UserName) -> Result<Option<UserDocument>> {
        let found = crate::stored::find_one(self.data, &mut self.operation, users(), &name.id()).await?;
        found.map(|document| UserDocument::read(document.view())).transpose()
    }

    pub(super) async fn users(&mut self, filter: Doc) -> Result<Vec<UserDocument>> {
        self.users_of(users(), filter).await
    }

    /// Documents of users in another collection than theirs.
    pub(super) async fn users_of(&mut self, namespace: &Namespace, filter: Doc) -> Result<Vec<UserDocument>> {
        let found = find(self.data, &mut self.operation, namespace, filter).await?;
        found.iter().map(|document| UserDocument::read(document.view())).collect()
    }

    pub(super) async fn save_user(&mut self, user: &UserDocument) -> Result<()> {
        save(self.data, &mut self.operation, users(), &user.to_doc()).await
    }

    pub(super) async fn delete_users(&mut self, filter: Doc) -> Result<u64> {
        delete(self.data, &mut self.operation, users(), filter).await
    }

    pub(super) async fn role(&mut self, name: &RoleName) -> Result<Option<RoleDocument>> {
        super::storage::read_role(self.data, &mut self.operation, name).await
    }

    pub(super) async fn roles(&mut self, filter: Doc) -> Result<Vec<RoleDocument>> {
        self.roles_of(roles(), filter).await
    }

    /// Documents of roles in another collection than theirs.
    pub(super) async fn roles_of(&mut self, namespace: &Namespace, filter: Doc) -> Result<Vec<RoleDocument>> {
        let found = find(self.data, &mut self.operation, namespace, filter).await?;
        found.iter().map(|document| RoleDocument::read(document.view())).collect()
    }

    pub(super) async fn save_role(&mut self, role: &RoleDocument) -> Result<()> {
        save(self.data, &mut self.operation, roles(), &role.to_doc()).await
    }

    pub(super) async fn delete_roles(&mut self, filter: Doc) -> Result<u64> {
        delete(self.data, &mut self.operation, roles(), filter).await
    }

    /// The roles with all that are part of them. Each has to be there.
    pub(super) async fn known_roles(&mut self, names: &[RoleName]) -> Result<KnownRoles> {
        let known = read_roles(self.data, &mut self.operation, names).await?;
        check_found(&resolve(names, &known))?;
        Ok(known)
    }

    /// Deletes roles, and takes them away from all users and roles that have them: all of it, or nothing. How many there were.
    pub(super) async fn drop_roles(
        &mut self,
        holders: Doc,
        dropped: Doc,
        is_meant: impl Fn(&RoleName) -> bool,
    ) -> Result<usize> {
        let gone = self.roles(dropped).await?;
        let mut changes: Vec<StoredChange> = Vec::new();
        for mut user in self.users(holders.clone()).await? {
            user.roles.retain(|role| !is_meant(role));
            changes.push(StoredChange::Replace(users(), user.to_doc()));
        }
        for mut role in self.roles(holders).await? {
            role.roles.retain(|other| !is_meant(other));
            // One that goes itself need not be changed first.
            if !gone.iter().any(|dropped| dropped.name == role.name) {
                changes.push(StoredChange::Replace(roles(), role.to_doc()));
            }
        }
        changes.extend(gone.iter().map(|role| StoredChange::Delete(roles(), role.name.id())));
        change_together(self.data, &mut self.operation, &changes).await?;
        Ok(gone.len())
    }
}

/// The restrictions that a command gives.
pub(super) fn restrictions(value: Option<Value<'_>>) -> Result<Restrictions> {
    value.map(Restrictions::read).transpose().map(Option::unwrap_or_default)
}

crate::arguments! {
    /// What the commands take that grant roles or revoke them.
    struct RoleArguments<'a> of "grantRolesToUser" {
        /// The roles.
        roles: Value<'a> = "roles",
    }
}

/// The roles that a command grants or revokes: some.
pub(super) fn roles_in_question(invocation: &Invocation) -> Result<Vec<RoleName>> {
    let command = invocation.row.name;
    let arguments = RoleArguments::parse_as(&invocation.request, command)?;
    let roles = RoleName::read_all(arguments.roles, invocation.database.as_str())?;
    ensure!(!roles.is_empty(), ErrorCode::BadValue, "{command} command requires a non-empty \"roles\" array");
    Ok(roles)
}

/// A built-in role is as it is.
pub(super) fn check_not_built_in(role: &RoleName) -> Result<()> {
    ensure!(!is_built_in(role), ErrorCode::BadValue, "{role} is a built-in role and cannot be modified");
    Ok(())
}

/// What is said of a role that is not there.
pub(super) fn role_not_found(role: &RoleName) -> Error {
    Error::new(ErrorCode::RoleNotFound, format!("Role {role} not found"))
}

/// Names whose database is this one.
pub(super) fn of_database(database: &DatabaseName) -> Doc {
    doc! { "db": (database.as_str()) }
}

/// Names of this database, or all.
pub(super) fn of_database_or_all(database: Option<&DatabaseName>) -> Doc {
    database.map_or_else(Doc::new, of_database)
}

/// Documents that have the role.
pub(super) fn with_role(role: &RoleName) -> Doc {
    let mut name = DocBuilder::new();
    role.append_to(&mut name);
    doc! { "roles": { "$elemMatch": (name.finish()) } }
}

/// The same roles, each of them once.
pub(super) fn each_once(roles: Vec<RoleName>) -> Vec<RoleName> {
    let mut once = Vec::with_capacity(roles.len());
    add_roles(&mut once, roles);
    once
}

/// Adds those that are not there yet.
pub(super) fn add_roles(roles: &mut Vec<RoleName>, added: Vec<RoleName>) {
    for role in added {
        if !roles.contains(&role) {
            roles.push(role);
        }
    }
}
