//! A session's history in the oplog: each entry of a retryable write points back at the one before by `prevOpTime`.
//!
//! The oplog is read past holes: what a session has written is committed, whatever others have in flight.

use pando_base::{Error, ErrorCode, Result};
use pando_doc::{Doc, DocRef, Value};
use pando_oplog::{OpKind, OpTime, OplogCommand, OplogEntry};
use pando_storage::Engine;
use std::collections::HashMap;
use std::sync::Arc;

/// The statement id of an entry that stands for history which was cut away.
pub const INCOMPLETE_HISTORY_STATEMENT: i32 = -1;

/// Reads entries of the oplog by their time.
#[derive(Clone)]
pub struct History {
    engine: Arc<dyn Engine>,
}

/// What the chain of a session's newest transaction says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statements {
    /// The statements that were carried out, and the entries that say so.
    pub executed: HashMap<i32, OpTime>,
    /// Entries at the old end are missing: a statement that is not found may have been carried out all the same.
    pub is_incomplete: bool,
    /// The chain belongs to a multi-document transaction.
    pub is_transaction: bool,
}

impl History {
    /// The history in this engine's oplog.
    pub fn new(engine: Arc<dyn Engine>) -> History {
        History { engine }
    }

    /// The entry of this time.
    pub fn entry(&self, op_time: OpTime) -> Result<Doc> {
        let lost = || {
            let reason = format!(
                "oplog no longer contains the complete write history of this transaction, log with opTime {op_time:?} cannot be found"
            );
            Error::new(ErrorCode::IncompleteTransactionHistory, reason)
        };
        let oplog = self.engine.oplog().ok_or_else(lost)?;
        let found = oplog.backward()?.seek(op_time.timestamp)?;
        let found = found.filter(|entry| entry.timestamp == op_time.timestamp).ok_or_else(lost)?;
        Doc::parse(found.entry)
    }

    /// The entry of a statement. One that was carried out in a transaction gets the form of an entry of its own.
    pub fn statement_entry(&self, op_time: OpTime, statement: i32) -> Result<Doc> {
        let document = self.entry(op_time)?;
        let entry = OplogEntry::parse(document.view())?;
        let Some(OplogCommand::ApplyOps(group)) = entry.command()? else { return Ok(document) };
        for inner in group.iter() {
            let inner = inner?;
            if inner.statement_ids.as_slice().contains(&statement) {
                return Doc::parse(OplogEntry::new(inner, entry.op_time, entry.wall_ms).to_bytes());
            }
        }
        Ok(document)
    }

    /// Walks the chain from its newest entry and gathers its statements.
    pub fn statements(&self, newest: OpTime) -> Result<Statements> {
        let mut statements = Statements::default();
        let mut next = newest;
        while !next.is_null() {
            let entry = match self.entry(next) {
                Err(error) if error.code() == ErrorCode::IncompleteTransactionHistory => {
                    statements.is_incomplete = true;
                    break;
                }
                found => found?,
            };
            next = statements.take(OplogEntry::parse(entry.view())?)?;
        }
        Ok(statements)
    }
}

impl Statements {
    /// Takes an entry of the chain and tells which is before it.
    fn take(&mut self, entry: OplogEntry<'_>) -> Result<OpTime> {
        let previous = entry.previous_op_time.unwrap_or(OpTime::NULL);
        // A chain only goes back; damage must not make us walk in circles.
        if previous.timestamp >= entry.op_time.timestamp {
            let reason = format!("the entry at {} points forward to {}", entry.op_time.timestamp, previous.timestamp);
            return Err(Error::new(ErrorCode::DataCorruptionDetected, reason));
        }
        self.is_transaction |= entry.operation.kind == OpKind::Command;
        // A transaction may carry out a retryable write.
        if let Some(OplogCommand::ApplyOps(group)) = entry.command()? {
            for inner in group.iter() {
                let ids = inner?.statement_ids;
                self.executed.extend(ids.as_slice().iter().map(|statement| (*statement, entry.op_time)));
            }
        }
        for statement in entry.operation.statement_ids.as_slice() {
            match *statement {
                INCOMPLETE_HISTORY_STATEMENT => self.is_incomplete = true,
                statement => {
                    self.executed.insert(statement, entry.op_time);
                }
            }
        }
        if is_dead_end(entry.operation.object2) {
            self.is_incomplete = true;
        }
        Ok(previous)
    }
}

/// Chunk migrations leave this mark where history was not carried along.
fn is_dead_end(object2: Option<DocRef<'_>>) -> bool {
    object2.is_some_and(|object| {
        object.field_count() == 1
            && matches!(object.get("$incompleteOplogHistory"), Some(Value::Int32(1) | Value::Int64(1)))
    })
}
