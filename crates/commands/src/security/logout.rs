//! `logout`: the connection is nobody's again.

use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::Result;

pub(super) const ROW: CommandRow = CommandRow {
    name: "logout",
    help: "de-authenticate",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    is_allowed_before_authentication: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation) -> Result<()> {
    let connection = &invocation.connection;
    let is_of_database = |database: &str| database == invocation.database.as_str();
    if connection.identity().is_some_and(|identity| is_of_database(&identity.user.name().database)) {
        connection.set_identity(None);
    }
    connection.take_conversation();
    Ok(())
}
