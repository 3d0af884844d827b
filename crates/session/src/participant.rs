//! What a node keeps of one session's newest retryable write: its number, its statements, the end of its chain.
//!
//! The state is only touched by whoever has the session checked out. It follows from `config.transactions` and the oplog:
//! after a rollback, or when the table is dropped, it is made invalid and read again. What a unit of work writes enters the
//! state only when the unit has committed.
//!
//! Multi-document transactions will add their state machine beside this one; until then a session whose newest number is a
//! transaction's is known as such, and refuses a retryable write of the same number.

use crate::history::{History, Statements};
use crate::id::LogicalSessionId;
use crate::record::SessionRecord;
use pando_base::{Error, ErrorCode, Result};
use pando_oplog::OpTime;
use std::collections::HashMap;

/// The number before every other.
pub const NO_TXN_NUMBER: i64 = -1;

/// The state of one session.
#[derive(Clone, Debug)]
pub struct Participant {
    session: LogicalSessionId,
    is_valid: bool,
    txn_number: i64,
    last_write: OpTime,
    executed: HashMap<i32, OpTime>,
    is_incomplete: bool,
    is_transaction: bool,
}

impl Participant {
    /// A session of which nothing is known yet.
    pub fn new(session: LogicalSessionId) -> Participant {
        Participant {
            session,
            is_valid: false,
            txn_number: NO_TXN_NUMBER,
            last_write: OpTime::NULL,
            executed: HashMap::new(),
            is_incomplete: false,
            is_transaction: false,
        }
    }

    /// Must the state be read from storage first?
    pub fn is_valid(&self) -> bool {
        self.is_valid
    }

    /// Forgets everything: it is read again at the next check-out.
    pub fn invalidate(&mut self) {
        *self = Participant::new(self.session);
    }

    /// Takes what storage knows. A valid state stays as it is.
    pub fn refresh(&mut self, record: Option<SessionRecord>, history: &History) -> Result<()> {
        if self.is_valid {
            return Ok(());
        }
        let mut fresh = Participant { is_valid: true, ..Participant::new(self.session) };
        if let Some(record) = record {
            let Statements { executed, is_incomplete, is_transaction } = history.statements(record.last_write)?;
            fresh.txn_number = record.txn_number;
            fresh.last_write = record.last_write;
            (fresh.executed, fresh.is_incomplete) = (executed, is_incomplete);
            fresh.is_transaction = is_transaction || record.state.is_some();
        }
        *self = fresh;
        Ok(())
    }

    /// The newest number.
    pub fn txn_number(&self) -> i64 {
        self.txn_number
    }

    /// The newest entry of the chain; null before the first.
    pub fn last_write(&self) -> OpTime {
        self.last_write
    }

    /// Begins a retryable write, or goes on with the one of this number.
    pub fn begin_or_continue(&mut self, txn_number: i64) -> Result<()> {
        debug_assert!(self.is_valid, "the state must be read before it is used");
        if txn_number < self.txn_number {
            let kind = if self.is_transaction { "transaction" } else { "retryable write" };
            let reason = format!(
                "Retryable write with txnNumber {txn_number} is prohibited on session {} because a newer {kind} with \
                 txnNumber {} has already started on this session.",
                self.session, self.txn_number
            );
            return Err(Error::new(ErrorCode::TransactionTooOld, reason));
        }
        if txn_number == self.txn_number && self.is_transaction {
            let reason = "Must specify autocommit=false on all operations of a multi-statement transaction.";
            return Err(Error::new(ErrorCode::InvalidOptions, reason));
        }
        if txn_number > self.txn_number {
            *self = Participant { is_valid: true, txn_number, ..Participant::new(self.session) };
        }
        Ok(())
    }

    /// The entry of a statement that was carried out before.
    pub fn check_statement_executed(&self, statement: i32) -> Result<Option<OpTime>> {
        match self.executed.get(&statement) {
            Some(op_time) => Ok(Some(*op_time)),
            None if self.is_incomplete => {
                let reason = format!(
                    "Incomplete history detected for transaction {} on session {}",
                    self.txn_number, self.session
                );
                Err(Error::new(ErrorCode::IncompleteTransactionHistory, reason))
            }
            None => Ok(None),
        }
    }

    /// Statements have committed; the last of them is the new end of the chain. A newer number that has begun meanwhile
    /// leaves no place for them.
    pub fn statements_committed(&mut self, txn_number: i64, statements: &[(i32, OpTime)]) {
        if !self.is_valid || txn_number != self.txn_number {
            return;
        }
        for (statement, op_time) in statements {
            debug_assert!(*op_time >= self.last_write, "a chain only grows");
            self.executed.insert(*statement, *op_time);
            self.last_write = self.last_write.max(*op_time);
        }
    }
}
