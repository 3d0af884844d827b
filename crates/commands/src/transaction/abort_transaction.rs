//! `abortTransaction`.

use crate::{Access, CommandRow, Invocation, SecondaryOk, run_boxed};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::DocRef;

pub(super) const ROW: CommandRow = CommandRow {
    name: "abortTransaction",
    help: "Aborts a transaction",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    is_admin_only: true,
    secondary_ok: SecondaryOk::Never,
    is_allowed_in_transaction: true,
    is_in_api_version_1: true,
    takes_write_concern: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

crate::arguments! {
    struct Arguments<'a> of "abortTransaction" {
        _recovery_token: Option<DocRef<'a>> = "recoveryToken",
    }
}

fn run(invocation: &Invocation) -> Result<()> {
    Arguments::parse(&invocation.request)?;
    let statement = invocation
        .transaction()
        .ok_or_else(|| Error::new(ErrorCode::CommandFailed, "abortTransaction must be run within a transaction"))?;
    statement.abort();
    Ok(())
}
