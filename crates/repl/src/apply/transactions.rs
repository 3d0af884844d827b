//! Transactions in the oplog: their operations lie in one or several `applyOps` entries, each pointing back at the one
//! before; the last of them, or a later `commitTransaction`, says that they happened.
//!
//! A prepared transaction without an end is told to the caller, and made anew by `prepared`.

use super::{Applied, Applier, ApplyMode, Step, text};
use crate::oplog_writer::TransactionSize;
use pando_base::{Error, ErrorCode, Result, Timestamp, Uuid};
use pando_doc::Doc;
use pando_operation::Operation;
use pando_oplog::{ApplyOps, OpTime, OplogCommand, OplogEntry};
use pando_session::DurableState;
use std::collections::BTreeSet;

impl Applier {
    pub(super) fn apply_transaction(
        &self,
        operation: &mut Operation,
        step: &Step<'_, '_>,
        last: ApplyOps<'_>,
    ) -> Result<Applied> {
        if last.partial_txn {
            self.record_state(operation, step, DurableState::InProgress)?;
            return Ok(Applied::Plain);
        }
        if last.prepare {
            self.record_state(operation, step, DurableState::Prepared)?;
            return Ok(Applied::Prepared(step.entry.op_time));
        }
        operation.in_unit_of_work(|operation| {
            self.apply_chain(operation, step, step.entry.previous_op_time)?;
            self.apply_all(operation, step, last, step.entry.op_time.timestamp)?;
            let is_retryable = !step.what.statement_ids.as_slice().is_empty();
            self.write_record(operation, step.entry, (!is_retryable).then_some(DurableState::Committed))
        })?;
        Ok(Applied::Plain)
    }

    /// The operations of a prepared transaction happen at the commit's own timestamp.
    pub(super) fn commit_prepared(
        &self,
        operation: &mut Operation,
        step: &Step<'_, '_>,
        commit_timestamp: Option<Timestamp>,
    ) -> Result<Applied> {
        let prepare = self.prepare_of(step)?;
        debug_assert!(commit_timestamp.is_none_or(|time| time <= step.entry.op_time.timestamp));
        // The unit stands at the commit entry's time: recovery begins at a checkpoint before it, where the effect is the
        // same. A reader at a time in between could tell; there are none yet.
        operation.in_unit_of_work(|operation| {
            self.apply_chain(operation, step, Some(prepare))?;
            self.write_record(operation, step.entry, Some(DurableState::Committed))
        })?;
        Ok(Applied::PreparedEnded(prepare))
    }

    pub(super) fn abort_transaction(&self, operation: &mut Operation, step: &Step<'_, '_>) -> Result<Applied> {
        self.record_state(operation, step, DurableState::Aborted)?;
        Ok(match step.entry.previous_op_time.filter(|previous| !previous.is_null()) {
            Some(prepare) => Applied::PreparedEnded(prepare),
            None => Applied::Plain,
        })
    }

    fn record_state(&self, operation: &mut Operation, step: &Step<'_, '_>, state: DurableState) -> Result<()> {
        operation.in_unit_of_work(|operation| self.write_record(operation, step.entry, Some(state)))
    }

    fn prepare_of(&self, step: &Step<'_, '_>) -> Result<OpTime> {
        step.entry.previous_op_time.filter(|previous| !previous.is_null()).ok_or_else(|| {
            let reason = format!("a commit without a prepared transaction: {}", text(step.what));
            Error::new(ErrorCode::NoSuchTransaction, reason)
        })
    }

    /// The entries of a transaction from this one back, oldest first.
    pub(crate) fn transaction_chain(&self, newest: OpTime) -> Result<Vec<Doc>> {
        self.chain(Some(newest))
    }

    /// The collections that a transaction's entries write to.
    pub(crate) fn collections_of(chain: &[Doc]) -> Result<BTreeSet<Uuid>> {
        let mut found = BTreeSet::new();
        for document in chain {
            let entry = OplogEntry::parse(document.view())?;
            let Some(OplogCommand::ApplyOps(operations)) = entry.command()? else { continue };
            for inner in operations.iter() {
                found.extend(inner?.uuid);
            }
        }
        Ok(found)
    }

    /// Writes what a prepared transaction's entries tell again, in the unit of work in progress; how much that is.
    pub(crate) fn apply_prepared(&self, operation: &mut Operation, chain: &[Doc]) -> Result<TransactionSize> {
        let mut size = TransactionSize::default();
        for document in chain {
            // Its session's record is written when it ends.
            let entry = OplogEntry { session: Default::default(), ..OplogEntry::parse(document.view())? };
            let time = entry.op_time.timestamp;
            let step =
                Step { what: &entry.operation, entry: &entry, mode: ApplyMode::Recovery, image_place: (time, 0) };
            let Some(OplogCommand::ApplyOps(operations)) = entry.command()? else { continue };
            self.apply_all(operation, &step, operations, time)?;
            size.operation_count += operations.operations.len() as u64;
            size.operation_bytes += document.size_bytes() as u64;
        }
        Ok(size)
    }

    fn apply_chain(&self, operation: &mut Operation, step: &Step<'_, '_>, newest: Option<OpTime>) -> Result<()> {
        for document in &self.chain(newest)? {
            let entry = OplogEntry::parse(document.view())?;
            let Some(OplogCommand::ApplyOps(operations)) = entry.command()? else { continue };
            self.apply_all(operation, step, operations, entry.op_time.timestamp)?;
        }
        Ok(())
    }

    fn chain(&self, newest: Option<OpTime>) -> Result<Vec<Doc>> {
        let mut entries: Vec<Doc> = Vec::new();
        let mut next = newest.filter(|op_time| !op_time.is_null());
        while let Some(op_time) = next {
            let document = self.history.entry(op_time)?;
            let previous = OplogEntry::parse(document.view())?.previous_op_time;
            next = previous.filter(|previous| !previous.is_null() && previous.timestamp < op_time.timestamp);
            entries.push(document);
        }
        entries.reverse();
        Ok(entries)
    }
}
