//! What a client must be allowed to do, to run a command: one entry in each row of the table, and the checks that depend on
//! a command's arguments.
//!
//! Dispatch asks [`AccessRequest::is_allowed`] before a command runs, if the node has authentication. A check says only yes
//! or no: what a client is told does not depend on why it was refused. Rows that say nothing ([`Access::Unsaid`]) are refused
//! when the table is made, so that no command is forgotten.
//!
//! Some commands allow part of what they do: they are let pass here and ask [`Invocation::may`] themselves (the names that
//! listDatabases shows, cursors and operations of other users).

mod apply;
mod catalog;
mod crud;
mod diagnosis;
mod operations;
mod pipeline;
mod users;

pub(crate) use apply::may_apply;
pub(crate) use catalog::{may_change, may_clone, may_create, may_list_collections, may_list_indexes, may_rename};
pub(crate) use crud::{may_explain, may_insert, may_map_reduce, may_modify, may_read, may_update};
pub(crate) use diagnosis::{may_profile, may_validate_metadata};
pub(crate) use operations::{may_kill, may_look};
pub(crate) use pipeline::may_aggregate;
pub(crate) use users::{
    may_create_role, may_create_user, may_grant_privileges, may_grant_roles, may_merge_users_and_roles,
    may_revoke_privileges, may_revoke_roles, may_show_roles, may_show_users, may_update_role, may_update_user,
};

use crate::{CommandRow, Invocation};
use pando_base::{DatabaseName, Namespace, Result};
use pando_doc::{DocRef, Value};
use pando_security::{Action, ActionSet, Target};

/// Whether a request may run, by its arguments.
pub type Check = fn(&AccessRequest<'_>) -> Result<bool>;

/// What a client must be allowed to do.
#[derive(Clone, Copy)]
pub enum Access {
    /// Nobody has said yet; no row may have it.
    Unsaid,
    /// Nothing in particular.
    Nothing,
    /// These actions on the deployment.
    Cluster(&'static [Action]),
    /// These actions on the request's database.
    Database(&'static [Action]),
    /// These actions on the request's collection.
    Collection(&'static [Action]),
    /// It depends on the arguments.
    Checked(Check),
}

/// A request whose right to run is in question: one that was sent, or one inside of an explain.
pub struct AccessRequest<'a> {
    /// Whose it is.
    pub invocation: &'a Invocation,
    /// The command.
    pub row: &'static CommandRow,
    /// The command document.
    pub body: DocRef<'a>,
    /// The database it is for.
    pub database: &'a DatabaseName,
    /// The collection it is about, or the database.
    pub namespace: Namespace,
    /// Is it the request that was sent? Only then it can have document sequences.
    is_outer: bool,
}

impl<'a> AccessRequest<'a> {
    /// The request that was sent.
    pub fn of(invocation: &'a Invocation) -> AccessRequest<'a> {
        AccessRequest {
            invocation,
            row: invocation.row,
            body: invocation.body(),
            database: &invocation.database,
            namespace: invocation.namespace.clone(),
            is_outer: true,
        }
    }

    /// May it run?
    pub fn is_allowed(&self) -> Result<bool> {
        Ok(match self.row.privileges {
            Access::Unsaid => false,
            Access::Nothing => true,
            Access::Cluster(actions) => self.may(Target::Cluster, ActionSet::of(actions)),
            Access::Database(actions) => self.may(Target::Database(self.database.as_str()), ActionSet::of(actions)),
            Access::Collection(actions) => self.may(Target::of(&self.namespace), ActionSet::of(actions)),
            Access::Checked(check) => check(self)?,
        })
    }

    /// May its client do this?
    pub(crate) fn may(&self, target: Target<'_>, actions: impl Into<ActionSet>) -> bool {
        self.invocation.may(target, actions)
    }

    /// Is a switch on?
    fn is_on(&self, field: &str) -> bool {
        self.body.get(field).is_some_and(|value| value.is_true())
    }

    /// The statements of a write, in the document or beside it. Anything else in their place is the command's to refuse.
    fn statements(&self, field: &'static str) -> Vec<DocRef<'a>> {
        let mut statements = Vec::new();
        if let Some(Value::Array(array)) = self.body.get(field) {
            statements.extend(array.values().filter_map(|value| value.as_document()));
        }
        if self.is_outer {
            let sequences = self.invocation.request.sequences().filter(|(name, _)| *name == field);
            statements.extend(sequences.flat_map(|(_, documents)| documents.iter()));
        }
        statements
    }
}
