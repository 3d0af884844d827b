//! `commitTransaction`.
//!
//! A driver that never got the answer sends it again: of a transaction that has committed, the write concern is waited for once
//! more. A prepared transaction commits at the time that it is told.

use super::{ENDING, HANG_BEFORE_COMMITTING, TransactionStatement, check_may_end_prepared};
use crate::{CommandRow, Data, Invocation, run_boxed};
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, ensure};
use pando_doc::{DocRef, doc};
use pando_operation::{Operation, UnitOfWork, end_of_transaction};
use pando_oplog::OpTime;
use pando_repl::{CommittedChain, OplogWriter, ReplGate, SKIP_PREPARE_MAJORITY, TransactionSize};
use pando_session::{CommittedTransaction, TransactionState};

pub(super) const ROW: CommandRow = CommandRow {
    name: "commitTransaction",
    help: "Commits a transaction",
    run: |invocation, _| run_boxed(run(invocation)),
    ..ENDING
};

crate::arguments! {
    struct Arguments<'a> of "commitTransaction" {
        commit_timestamp: Option<Timestamp> = "commitTimestamp",
        _recovery_token: Option<DocRef<'a>> = "recoveryToken",
    }
}

async fn run(invocation: &Invocation) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let data = invocation.data()?;
    let statement = invocation
        .transaction()
        .ok_or_else(|| Error::new(ErrorCode::CommandFailed, "commitTransaction must be run within a transaction"))?;
    // What others may have written since is waited for, too.
    invocation.set_has_written();
    if statement.is_committed() {
        return Ok(());
    }
    check_may_end_prepared(invocation, statement.state())?;
    HANG_BEFORE_COMMITTING.rest(&invocation.context).await?;
    let mut operation = invocation.operation()?;
    data.replication.check_can_write(Namespace::admin_command())?;
    let size = OplogWriter::transaction_size(&operation);
    let last = match (statement.state(), arguments.commit_timestamp) {
        (TransactionState::Prepared(prepared), Some(at)) => {
            let last = commit_prepared(data, &mut operation, statement, prepared, at)?;
            Some(CommittedChain { last, statements: Vec::new() })
        }
        (TransactionState::Prepared(_), None) => {
            return Err(invalid("commitTransaction must provide commitTimestamp to prepared transaction."));
        }
        (_, Some(_)) => {
            return Err(invalid("commitTransaction cannot provide commitTimestamp to unprepared transaction."));
        }
        (_, None) => commit(data, &mut operation, statement)?,
    };
    let has_written = last.is_some();
    statement.committed(last);
    note_committed(invocation, data, size);
    if !has_written {
        wait_for_what_was_read(invocation, data, &mut operation)?;
    }
    Ok(())
}

fn invalid(reason: &str) -> Error {
    Error::new(ErrorCode::InvalidOptions, reason)
}

fn commit(data: &Data, operation: &mut Operation, statement: &TransactionStatement) -> Result<Option<CommittedChain>> {
    let committed = data.oplog_writer().commit_transaction(operation, statement.of()).and_then(|last| {
        UnitOfWork::resume(operation).commit()?;
        Ok(last)
    });
    committed.map_err(|error| end_of_transaction(operation, error))
}

fn commit_prepared(
    data: &Data,
    operation: &mut Operation,
    statement: &TransactionStatement,
    prepared: OpTime,
    at: Timestamp,
) -> Result<OpTime> {
    ensure!(at.is_some(), ErrorCode::InvalidOptions, "'commitTimestamp' cannot be null");
    ensure!(
        at >= prepared.timestamp,
        ErrorCode::InvalidOptions,
        "'commitTimestamp' must be greater than or equal to 'prepareTimestamp'"
    );
    ensure!(
        data.replication.points().committed.0.timestamp >= prepared.timestamp || SKIP_PREPARE_MAJORITY.should_fail(),
        ErrorCode::InvalidOptions,
        "commitTransaction for a prepared transaction cannot be run before its prepare oplog entry has been majority \
         committed"
    );
    data.oplog_writer().commit_prepared(operation, statement.of(), prepared, at)
}

/// What the section of serverStatus tells of the transaction that committed last.
fn note_committed(invocation: &Invocation, data: &Data, size: TransactionSize) {
    // As it was given: who asks for it reads it.
    let write_concern = invocation.generic.write_concern.clone().unwrap_or_default();
    let TransactionSize { operation_count, operation_bytes } = size;
    let committed = CommittedTransaction { operation_count, operation_bytes, write_concern };
    *data.sessions.transactions().last_committed.lock() = Some(committed);
}

/// A transaction that has only read says that a majority has what it saw: an entry after everything that it can have seen is waited
/// for, if the client wants to wait.
fn wait_for_what_was_read(invocation: &Invocation, data: &Data, operation: &mut Operation) -> Result<()> {
    let Some(concern) = invocation.given_write_concern()? else { return Ok(()) };
    let message = doc! { "msg": (format!("read-only transaction with writeConcern {}", concern.to_doc()).as_str()) };
    let mut beside = operation.beside();
    beside.in_unit_of_work(|beside| data.oplog_writer().append_noop(beside, message.view()))?;
    operation.last_commit = beside.last_commit;
    Ok(())
}
