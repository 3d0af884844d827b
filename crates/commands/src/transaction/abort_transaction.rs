//! `abortTransaction`.

use super::{ENDING, HANG_BEFORE_ABORTING, check_may_end_prepared};
use crate::{CommandRow, Invocation, run_boxed};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_doc::DocRef;
use pando_repl::ReplGate;
use pando_session::TransactionState;

pub(super) const ROW: CommandRow = CommandRow {
    name: "abortTransaction",
    help: "Aborts a transaction",
    run: |invocation, _| run_boxed(run(invocation)),
    ..ENDING
};

crate::arguments! {
    struct Arguments<'a> of "abortTransaction" {
        _recovery_token: Option<DocRef<'a>> = "recoveryToken",
    }
}

async fn run(invocation: &Invocation) -> Result<()> {
    Arguments::parse(&invocation.request)?;
    let statement = invocation
        .transaction()
        .ok_or_else(|| Error::new(ErrorCode::CommandFailed, "abortTransaction must be run within a transaction"))?;
    check_may_end_prepared(invocation, statement.state())?;
    HANG_BEFORE_ABORTING.rest(&invocation.context).await?;
    // What it has read a majority may not have yet.
    invocation.set_has_written();
    let TransactionState::Prepared(prepared) = statement.state() else {
        statement.abort();
        return Ok(());
    };
    let data = invocation.data()?;
    let mut operation = invocation.operation()?;
    data.replication.check_can_write(Namespace::admin_command())?;
    let entry = data.oplog_writer().abort_prepared(&mut operation, statement.of(), prepared)?;
    statement.prepared_aborted(entry);
    Ok(())
}
