//! A batch of statements: how many there may be, what became of them, and the reply that says so.

use crate::labels::is_transient_in_transaction;
use crate::transaction::TransactionStatement;
use crate::{Data, Invocation};
use pando_base::{Category, Error, ErrorCode, Result, ensure};
use pando_doc::{DocBuilder, DocRef, OwnedValue};
use pando_query::write::UpdateResult;
use pando_repl::ReplGate;
use pando_repl::write_concern::WriteConcern;

/// The most statements of one command.
pub(super) const STATEMENT_COUNT_MAX: usize = 100_000;
/// When the messages of errors have so many bytes, further ones are empty: the reply has to fit.
const MESSAGES_BYTES_MAX: usize = 1024 * 1024;

/// Refuses an empty batch and one that is too large.
pub(super) fn check_count(count: usize) -> Result<()> {
    let is_fit = (1..=STATEMENT_COUNT_MAX).contains(&count);
    ensure!(
        is_fit,
        ErrorCode::InvalidLength,
        "Write batch sizes must be between 1 and {STATEMENT_COUNT_MAX}. Got {count} operations."
    );
    Ok(())
}

/// What became of a batch.
#[derive(Default)]
pub(super) struct BatchResult<'a> {
    /// An error ends the batch, and this transaction.
    transaction: Option<&'a TransactionStatement>,
    /// `n`.
    pub(super) n: u64,
    /// `nModified`; only of updates.
    modified: u64,
    upserted: Vec<(usize, OwnedValue)>,
    errors: Vec<(usize, Error)>,
    retried: Vec<i32>,
}

impl<'a> BatchResult<'a> {
    /// Nothing has become of it yet.
    pub(super) fn new(invocation: &'a Invocation) -> BatchResult<'a> {
        BatchResult { transaction: invocation.transaction(), ..BatchResult::default() }
    }

    /// What became of a statement. True if the batch goes on, as for one that has failed.
    pub(super) fn take(&mut self, index: usize, outcome: Result<UpdateResult>, is_ordered: bool) -> Result<bool> {
        let written = match outcome {
            Ok(written) => written,
            Err(error) => return self.failed(index, error, is_ordered),
        };
        self.n += written.n;
        self.modified += written.modified;
        if let Some(id) = written.upserted {
            self.upserted.push((index, id));
        }
        Ok(true)
    }

    /// A statement has failed. True if the batch goes on; an error that ends the whole command is passed on.
    pub(super) fn failed(&mut self, index: usize, error: Error, is_ordered: bool) -> Result<bool> {
        // What stops the operation or the node stops the command, whatever else it would do.
        let ends_command = error.is(Category::Interruption)
            || error.is(Category::ShutdownError)
            || error.is(Category::NotPrimaryError);
        match self.transaction {
            None if ends_command && self.is_untouched() => return Err(error),
            None => {}
            // The client is to try the whole transaction again.
            Some(_) if ends_command || is_transient_in_transaction(error.code(), false) => return Err(error),
            Some(statement) => statement.abort(),
        }
        self.errors.push((index, error));
        Ok(!is_ordered && !ends_command && self.transaction.is_none())
    }

    fn is_untouched(&self) -> bool {
        self.n == 0 && self.errors.is_empty() && self.retried.is_empty()
    }

    /// A statement was carried out before.
    pub(super) fn retried(&mut self, statement: i32) {
        self.retried.push(statement);
    }

    /// Writes the reply.
    pub(super) fn append_to(self, invocation: &Invocation, data: &Data, is_update: bool, reply: &mut DocBuilder) {
        // The replies to writes without a write concern say nothing; drivers do not even wait for them.
        let is_silent = invocation.given_write_concern().ok().flatten().is_some_and(WriteConcern::wants_no_outcome);
        if is_silent {
            reply.append("n", 0);
            if is_update {
                reply.append("nModified", 0);
            }
            return;
        }
        reply.append("n", as_int(self.n));
        if data.replication.is_replicated() {
            append_replication(data, reply);
        }
        if is_update {
            if !self.upserted.is_empty() {
                append_upserted(&self.upserted, reply);
            }
            reply.append("nModified", as_int(self.modified));
        }
        if !self.errors.is_empty() {
            invocation.node.counters.asserts.user.add(self.errors.len() as u64);
            append_errors(self.errors, reply);
        }
        if !self.retried.is_empty() {
            reply.array("retriedStmtIds", |ids| self.retried.iter().for_each(|id| ids.push(*id)));
        }
    }
}

pub(super) fn as_int(count: u64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Where the write stands in the oplog, and who was primary.
fn append_replication(data: &Data, reply: &mut DocBuilder) {
    reply.append("electionId", data.replication.election_id());
    data.replication.points().applied.0.append_as("opTime", reply);
}

fn append_upserted(upserted: &[(usize, OwnedValue)], reply: &mut DocBuilder) {
    reply.array("upserted", |array| {
        for (index, id) in upserted {
            array.document(|document| {
                document.append("index", as_int(*index as u64));
                document.append("_id", id);
            });
        }
    });
}

fn append_errors(errors: Vec<(usize, Error)>, reply: &mut DocBuilder) {
    let mut messages_bytes = 0;
    reply.array("writeErrors", |array| {
        for (index, error) in errors {
            array.document(|document| {
                document.append("index", as_int(index as u64));
                document.append("code", error.code().number());
                if let Some(details) = error.details() {
                    document.append_all(DocRef::trusted(details));
                }
                let is_told = messages_bytes < MESSAGES_BYTES_MAX;
                document.append("errmsg", if is_told { error.reason() } else { "" });
                messages_bytes += error.reason().len();
            });
        }
    });
}
