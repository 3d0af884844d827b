//! `dropRole` and `dropAllRolesFromDatabase`: the roles are first taken away from whoever has them.

use super::target;
use crate::security::writing::{CHANGE, Change, check_not_built_in, of_database, role_not_found, with_role};
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::{DocBuilder, doc};
use pando_security::RoleName;

pub(in crate::security) const ROW: CommandRow = CommandRow {
    name: "dropRole",
    help: "Drops a single role.",
    run: |invocation, _| run_boxed(run(invocation)),
    privileges: Access::Database(&[Action::DropRole]),
    ..CHANGE
};

pub(in crate::security) const ALL: CommandRow = CommandRow {
    name: "dropAllRolesFromDatabase",
    help: "Drops all roles from the given database.",
    run: |invocation, reply| run_boxed(run_all(invocation, reply)),
    privileges: Access::Database(&[Action::DropRole]),
    ..CHANGE
};

crate::arguments! {
    /// Nothing.
    struct Arguments<'a> of "dropRole" {}
}

async fn run(invocation: &Invocation) -> Result<()> {
    Arguments::parse(&invocation.request)?;
    let name = target(invocation)?;
    check_not_built_in(&name)?;
    let mut change = Change::begin(invocation).await?;
    change.role(&name).await?.ok_or_else(|| role_not_found(&name))?;
    change.drop_roles(with_role(&name), doc! { "_id": (name.id()) }, |role| *role == name).await?;
    Ok(())
}

async fn run_all(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    Arguments::parse(&invocation.request)?;
    let database = &invocation.database;
    let mut change = Change::begin(invocation).await?;
    let with_any = doc! { "roles.db": (database.as_str()) };
    let is_meant = |role: &RoleName| role.database == database.as_str();
    let count = change.drop_roles(with_any, of_database(database), is_meant).await?;
    reply.append("n", i32::try_from(count).unwrap_or(i32::MAX));
    Ok(())
}
