//! What a node keeps of one session's newest retryable write or transaction: its number, its statements, the end of its chain.
//!
//! The state is only touched by whoever has the session checked out. It follows from `config.transactions` and the oplog:
//! after a rollback, or when the table is dropped, it is made invalid and read again. What a unit of work writes enters the
//! state only when the unit has committed.
//!
//! A number is a retryable write's or a transaction's, never both: the other is refused.

use crate::history::{History, Statements};
use crate::id::LogicalSessionId;
use crate::record::{DurableState, SessionRecord};
use crate::transaction::TransactionState;
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
    /// What a unit of work in progress has added to the chain.
    uncommitted_write: Option<OpTime>,
    /// The newest entry of the number before.
    previous_write: OpTime,
    executed: HashMap<i32, OpTime>,
    is_incomplete: bool,
    transaction: TransactionState,
    /// When a transaction in progress is aborted, on the monotonic clock.
    expires_ns: u64,
}

/// What a statement of a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It begins one.
    Start,
    /// It reads or writes in one.
    Continue,
    /// It prepares one, perhaps again.
    Prepare,
    /// It commits one, perhaps again.
    Commit,
    /// It aborts one.
    Abort,
}

impl Participant {
    /// A session of which nothing is known yet.
    pub fn new(session: LogicalSessionId) -> Participant {
        Participant {
            session,
            is_valid: false,
            txn_number: NO_TXN_NUMBER,
            last_write: OpTime::NULL,
            uncommitted_write: None,
            previous_write: OpTime::NULL,
            executed: HashMap::new(),
            is_incomplete: false,
            transaction: TransactionState::None,
            expires_ns: u64::MAX,
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
            fresh.transaction = match record.state {
                Some(DurableState::Committed) => TransactionState::Committed,
                Some(DurableState::Prepared) => return Err(self.not_rebuilt(record.txn_number)),
                // What had not committed is gone with the memory that it was in.
                Some(_) => TransactionState::Aborted,
                None if is_transaction => TransactionState::Committed,
                None => TransactionState::None,
            };
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

    /// The end of the chain with what the unit of work in progress has added to it.
    pub fn chain_end(&self) -> OpTime {
        self.uncommitted_write.unwrap_or(self.last_write)
    }

    /// A unit of work has added this; nothing once it has ended.
    pub fn set_uncommitted_write(&mut self, op_time: Option<OpTime>) {
        self.uncommitted_write = op_time;
    }

    /// The newest entry of the number before a transaction's: its commit replaces the record that tells of it.
    pub fn previous_write(&self) -> OpTime {
        self.previous_write
    }

    /// Begins a retryable write, or goes on with the one of this number.
    pub fn begin_or_continue(&mut self, txn_number: i64) -> Result<()> {
        debug_assert!(self.is_valid, "the state must be read before it is used");
        if txn_number < self.txn_number {
            let reason = format!(
                "Retryable write with txnNumber {txn_number} is prohibited on session {} because a newer {} with \
                 txnNumber {} has already started on this session.",
                self.session,
                self.kind(),
                self.txn_number
            );
            return Err(Error::new(ErrorCode::TransactionTooOld, reason));
        }
        if txn_number == self.txn_number && self.transaction != TransactionState::None {
            if matches!(self.transaction, TransactionState::Prepared(_)) {
                let reason = "Retryable write that has been converted to a transaction is in prepare";
                return Err(Error::new(ErrorCode::PreparedTransactionInProgress, reason));
            }
            let reason = "Cannot retry a retryable write that has been converted into a transaction";
            return Err(Error::new(ErrorCode::IncompleteTransactionHistory, reason));
        }
        self.check_number_can_change(txn_number)?;
        if txn_number > self.txn_number {
            *self = Participant { is_valid: true, txn_number, ..Participant::new(self.session) };
        }
        Ok(())
    }

    /// What is prepared is not left behind by a newer number.
    fn check_number_can_change(&self, txn_number: i64) -> Result<()> {
        match self.transaction {
            TransactionState::Prepared(_) if txn_number != self.txn_number => {
                let reason = "Cannot change transaction number while the session has a prepared transaction";
                Err(Error::new(ErrorCode::PreparedTransactionInProgress, reason))
            }
            _ => Ok(()),
        }
    }

    /// Must a request with this number wait for the end of a prepared transaction? Statements of the transaction itself need not,
    /// nor those of one that was never begun: they fail. Retryable writes have no purpose.
    pub fn waits_for_prepared(&self, txn_number: i64, purpose: Option<Purpose>) -> bool {
        let waits = match purpose {
            None => txn_number >= self.txn_number,
            Some(Purpose::Start) => txn_number > self.txn_number,
            Some(_) => false,
        };
        waits && matches!(self.transaction, TransactionState::Prepared(_))
    }

    fn not_rebuilt(&self, txn_number: i64) -> Error {
        let reason = format!("the prepared transaction {txn_number} of session {} was not made anew", self.session);
        Error::new(ErrorCode::PreparedTransactionInProgress, reason)
    }

    fn kind(&self) -> &'static str {
        if self.transaction == TransactionState::None { "retryable write" } else { "transaction" }
    }

    /// Begins a transaction, goes on with it, or ends it: may that be, as things stand? What an older number has in progress is
    /// the caller's to drop.
    pub fn begin_or_continue_transaction(&mut self, txn_number: i64, purpose: Purpose) -> Result<()> {
        debug_assert!(self.is_valid, "the state must be read before it is used");
        if txn_number < self.txn_number {
            let reason = format!(
                "Cannot start transaction with {{ txnNumber: {txn_number} }} on session {} because a newer {} with \
                 txnNumber {} has already started on this session.",
                self.session,
                self.kind(),
                self.txn_number
            );
            return Err(Error::new(ErrorCode::TransactionTooOld, reason));
        }
        if purpose == Purpose::Start {
            return self.begin_transaction(txn_number);
        }
        let told = |code, what: &str| {
            Err(Error::new(code, format!("Transaction with {{ txnNumber: {txn_number} }} has been {what}.")))
        };
        match self.transaction {
            TransactionState::None => Err(self.no_such_transaction(txn_number)),
            _ if txn_number != self.txn_number => Err(self.no_such_transaction(txn_number)),
            TransactionState::InProgress => Ok(()),
            TransactionState::Prepared(_) if purpose == Purpose::Continue => {
                let reason = "Cannot call any operation other than abort, prepare or commit on a prepared transaction";
                Err(Error::new(ErrorCode::PreparedTransactionInProgress, reason))
            }
            TransactionState::Prepared(_) => Ok(()),
            TransactionState::Committed if purpose == Purpose::Commit => Ok(()),
            TransactionState::Committed => told(ErrorCode::TransactionCommitted, "committed"),
            TransactionState::Aborted => told(ErrorCode::NoSuchTransaction, "aborted"),
        }
    }

    fn begin_transaction(&mut self, txn_number: i64) -> Result<()> {
        if txn_number == self.txn_number {
            let reason =
                "Only servers in a sharded cluster can start a new transaction at the active transaction number";
            return Err(Error::new(ErrorCode::ConflictingOperationInProgress, reason));
        }
        self.check_number_can_change(txn_number)?;
        let transaction = TransactionState::InProgress;
        let previous_write = self.last_write;
        *self =
            Participant { is_valid: true, txn_number, transaction, previous_write, ..Participant::new(self.session) };
        Ok(())
    }

    fn no_such_transaction(&self, txn_number: i64) -> Error {
        let reason = format!(
            "Given transaction number {txn_number} does not match any in-progress transactions. The active transaction \
             number is {}",
            self.txn_number
        );
        Error::new(ErrorCode::NoSuchTransaction, reason)
    }

    /// How far the newest transaction has come.
    pub fn transaction(&self) -> TransactionState {
        self.transaction
    }

    /// The transaction of this number is prepared, by this entry.
    pub fn transaction_prepared(&mut self, txn_number: i64, entry: OpTime) {
        if self.is_valid && txn_number == self.txn_number && self.transaction == TransactionState::InProgress {
            self.transaction = TransactionState::Prepared(entry);
            self.last_write = entry;
        }
    }

    /// A prepared transaction was made anew after a restart.
    pub fn rebuilt(&mut self, txn_number: i64, entry: OpTime) {
        let transaction = TransactionState::Prepared(entry);
        let fresh = Participant::new(self.session);
        *self = Participant { is_valid: true, txn_number, transaction, last_write: entry, ..fresh };
    }

    /// The transaction of this number has ended; `last_write` is its entry, if it has one.
    pub fn transaction_ended(&mut self, txn_number: i64, state: TransactionState, last_write: Option<OpTime>) {
        if self.is_valid && txn_number == self.txn_number && self.transaction.is_open() {
            self.transaction = state;
            self.last_write = last_write.unwrap_or(self.last_write);
        }
    }

    /// A transaction in progress is aborted at this time.
    pub fn set_expiry(&mut self, expires_ns: u64) {
        self.expires_ns = expires_ns;
    }

    /// Has its transaction been in progress for too long?
    pub fn has_expired(&self, now_ns: u64) -> bool {
        self.transaction == TransactionState::InProgress && self.expires_ns <= now_ns
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
        self.uncommitted_write = None;
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
