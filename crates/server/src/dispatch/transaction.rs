//! Statements of multi-document transactions: the session is checked out and the transaction taken up before the command, and
//! left or ended after it. A command that fails aborts its transaction.

use super::stage::{Entered, Stage};
use pando_base::{Error, Result};
use pando_commands::Invocation;
use pando_commands::transaction::{PREPARE_LOGGED, TransactionStatement};
use pando_doc::DocBuilder;
use pando_env::BoxedFuture;
use pando_session::TransactionState;

/// Takes transactions up and leaves them.
pub(crate) struct Transactions;

impl Stage for Transactions {
    fn name(&self) -> &'static str {
        "transactions"
    }

    fn enter<'a>(&'a self, invocation: &'a Invocation) -> Entered<'a> {
        if !invocation.generic.is_in_transaction() {
            return Entered::Pass;
        }
        match TransactionStatement::begin_at_once(invocation) {
            Ok(Some(statement)) => {
                invocation.set_transaction(statement);
                return Entered::Pass;
            }
            Ok(None) => {}
            Err(error) => return Entered::Refuse(error),
        }
        Entered::Wait(Box::pin(async move {
            let statement = TransactionStatement::begin(invocation).await?;
            invocation.set_transaction(statement);
            Ok(None)
        }))
    }

    fn fail<'a>(
        &'a self,
        invocation: &'a Invocation,
        _: &'a Error,
        _: &'a mut DocBuilder,
    ) -> Option<BoxedFuture<'a, ()>> {
        if let Some(statement) = invocation.transaction() {
            statement.fail();
        }
        None
    }

    fn leave<'a>(&'a self, invocation: &'a Invocation, _: &'a mut DocBuilder) -> Option<BoxedFuture<'a, Result<()>>> {
        if let Some(statement) = invocation.transaction() {
            statement.park();
            if matches!(statement.state(), TransactionState::Prepared(_)) {
                // It only counts.
                let _ = PREPARE_LOGGED.should_fail();
            }
        }
        None
    }
}
