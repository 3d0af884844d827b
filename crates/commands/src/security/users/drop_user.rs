//! `dropUser` and `dropAllUsersFromDatabase`.

use super::target;
use crate::security::writing::{CHANGE, Change, of_database};
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::{ErrorCode, Result, ensure};
use pando_doc::{DocBuilder, doc};

pub(in crate::security) const ROW: CommandRow = CommandRow {
    name: "dropUser",
    help: "Drops a single user.",
    run: |invocation, _| run_boxed(run(invocation)),
    privileges: Access::Database(&[Action::DropUser]),
    ..CHANGE
};

pub(in crate::security) const ALL: CommandRow = CommandRow {
    name: "dropAllUsersFromDatabase",
    help: "Drops all users for a single database.",
    run: |invocation, reply| run_boxed(run_all(invocation, reply)),
    privileges: Access::Database(&[Action::DropUser]),
    ..CHANGE
};

crate::arguments! {
    /// Nothing.
    struct Arguments<'a> of "dropUser" {}
}

async fn run(invocation: &Invocation) -> Result<()> {
    Arguments::parse(&invocation.request)?;
    let name = target(invocation)?;
    let mut change = Change::begin(invocation).await?;
    let count = change.delete_users(doc! { "_id": (name.id()) }).await?;
    ensure!(count > 0, ErrorCode::UserNotFound, "User '{name}' not found");
    Ok(())
}

async fn run_all(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    Arguments::parse(&invocation.request)?;
    let mut change = Change::begin(invocation).await?;
    let count = change.delete_users(of_database(&invocation.database)).await?;
    reply.append("n", i32::try_from(count).unwrap_or(i32::MAX));
    Ok(())
}
