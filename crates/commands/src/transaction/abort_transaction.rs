//! `abortTransaction`.

use super::ENDING;
use crate::{CommandRow, Invocation, run_boxed};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::DocRef;

pub(super) const ROW: CommandRow = CommandRow {
    name: "abortTransaction",
    help: "Aborts a transaction",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    ..ENDING
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
