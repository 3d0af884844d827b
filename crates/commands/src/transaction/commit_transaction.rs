//! `commitTransaction`.
//!
//! A driver that never got the answer sends it again: of a transaction that has committed, the write concern is waited for once
//! more.

use super::ENDING;
use crate::{CommandRow, Invocation, run_boxed};
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, ensure};
use pando_doc::DocRef;
use pando_operation::UnitOfWork;
use pando_repl::ReplGate;

pub(super) const ROW: CommandRow = CommandRow {
    name: "commitTransaction",
    help: "Commits a transaction",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    ..ENDING
};

crate::arguments! {
    struct Arguments<'a> of "commitTransaction" {
        commit_timestamp: Option<Timestamp> = "commitTimestamp",
        _recovery_token: Option<DocRef<'a>> = "recoveryToken",
    }
}

fn run(invocation: &Invocation) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let data = invocation.data()?;
    let statement = invocation
        .transaction()
        .ok_or_else(|| Error::new(ErrorCode::CommandFailed, "commitTransaction must be run within a transaction"))?;
    ensure!(
        arguments.commit_timestamp.is_none(),
        ErrorCode::InvalidOptions,
        "commitTransaction cannot provide commitTimestamp to unprepared transaction."
    );
    // What others may have written since is waited for, too.
    invocation.set_has_written();
    if statement.is_committed() {
        return Ok(());
    }
    let mut operation = invocation.operation()?;
    data.replication.check_can_write(Namespace::admin_command())?;
    let (session, number) = (statement.session(), statement.number());
    let last = data.oplog_writer().commit_transaction(&mut operation, session, number)?;
    UnitOfWork::resume(&mut operation).commit()?;
    statement.committed(last);
    Ok(())
}
