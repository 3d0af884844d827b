//! Multi-document transactions: what dispatch does around each statement, and the commands that end them.
//!
//! A request with `autocommit: false` is a statement. Before its command runs, its session is checked out and the transaction
//! taken up, or begun ([`TransactionStatement::begin`]); the command's operation then has the transaction's snapshot, writes and
//! locks. After it the transaction is left in its session, or is over: a statement that fails aborts it, and so does one with
//! write errors.

mod abort_transaction;
mod commit_transaction;
mod statement;

use crate::{Access, CommandRow, SecondaryOk};
pub use statement::TransactionStatement;

/// What the ends of transactions have in common.
const ENDING: CommandRow = CommandRow {
    is_admin_only: true,
    secondary_ok: SecondaryOk::Never,
    is_allowed_in_transaction: true,
    is_in_api_version_1: true,
    takes_write_concern: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

/// The commands of this area.
pub static ROWS: &[CommandRow] = &[abort_transaction::ROW, commit_transaction::ROW];
