//! Multi-document transactions: what dispatch does around each statement, and the commands that end them.
//!
//! A request with `autocommit: false` is a statement. Before its command runs, its session is checked out and the transaction
//! taken up, or begun ([`TransactionStatement::begin`]); the command's operation then has the transaction's snapshot, writes and
//! locks. After it the transaction is left in its session, or is over: a statement that fails aborts it, and so does one with
//! write errors. One that is prepared only waits to be committed or aborted, whatever fails meanwhile.

mod abort_transaction;
mod commit_transaction;
mod prepare_transaction;
mod statement;

use crate::{Access, CommandRow, Invocation, SecondaryOk};
use pando_base::{ErrorCode, FailPoint, Result, ensure};
use pando_security::{Action, Target};
use pando_session::TransactionState;
pub use statement::TransactionStatement;

/// A transaction is about to be committed.
pub static HANG_BEFORE_COMMITTING: FailPoint = FailPoint::new("hangBeforeCommitingTxn");

/// A transaction was prepared, and the command is told as done.
pub static PREPARE_LOGGED: FailPoint = FailPoint::new("waitForPrepareTransactionCommandLogged");

/// A transaction is about to be aborted.
pub static HANG_BEFORE_ABORTING: FailPoint = FailPoint::new("hangBeforeAbortingTxn");

/// Ending what is prepared is the coordinator's business: servers among themselves.
fn check_may_end_prepared(invocation: &Invocation, state: TransactionState) -> Result<()> {
    let is_allowed =
        !matches!(state, TransactionState::Prepared(_)) || invocation.may(Target::Cluster, Action::Internal);
    ensure!(is_allowed, ErrorCode::Unauthorized, "Only internal clients may commit or abort prepared transactions");
    Ok(())
}

/// What the ends of transactions have in common.
const ENDING: CommandRow = CommandRow {
    is_admin_only: true,
    secondary_ok: SecondaryOk::Never,
    is_allowed_in_transaction: true,
    ends_transaction: true,
    is_in_api_version_1: true,
    takes_write_concern: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

/// The commands of this area.
pub static ROWS: &[CommandRow] = &[abort_transaction::ROW, commit_transaction::ROW, prepare_transaction::ROW];
