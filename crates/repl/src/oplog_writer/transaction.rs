//! Entries of multi-document transactions: their writes are gathered while they go on, and written down when they commit or are
//! prepared.
//!
//! One `applyOps` has them all, or several do, none larger than a document may be, each pointing back at the one before. All writes
//! have the time of the last: nobody sees a part of a transaction, and recovery applies the whole chain when it meets its end.
//!
//! The entries of an unprepared transaction are written in its own unit of work. A prepared one has entries before it has an end:
//! they are written beside it, in a unit of work of their own, whose place in the oplog is reserved before the transaction changes
//! its state and is filled after; so nothing that follows from the change can get a place before it. What can fail is done before
//! the transaction changes; only a commit to an engine that is broken fails after.

use super::OplogWriter;
use super::batch::Batch;
use super::gathered_images::{GatheredImages, GatheredRetryImage};
use pando_base::{Error, FailPoint, Namespace, Parameter, Result, Timestamp, Uuid};
use pando_doc::{Doc, DocRef, USER_SIZE_BYTES_MAX};
use pando_operation::{Operation, UnitOfWork};
use pando_oplog::build::{
    ApplyOpsPart, abort_transaction_object, apply_ops_object_of_documents, commit_transaction_object,
};
use pando_oplog::{OpTime, Operation as OplogOperation, OplogEntry, SessionInfo};
use pando_session::{ActiveSession, DurableState, SessionRecord};
use pando_storage::Urgency;
use std::collections::BTreeSet;

/// As many writes of a transaction are in one entry.
pub static TRANSACTION_OPERATIONS_IN_ENTRY_MAX: Parameter<i32> = Parameter::new(
    "maxNumberOfTransactionOperationsInSingleOplogEntry",
    i32::MAX,
    "How many operations of a multi-document transaction one oplog entry holds.",
)
.at_least(1);

/// A transaction that is being prepared has its place in the oplog, and nothing there yet.
pub(crate) static AFTER_RESERVING_PREPARE: FailPoint = FailPoint::new("hangAfterReservingPrepareTimestamp");

/// A prepared transaction may commit before a majority knows that it is prepared.
pub static SKIP_PREPARE_MAJORITY: FailPoint = FailPoint::new("skipCommitTxnCheckPrepareMajorityCommitted");

/// Whose transaction is written down.
#[derive(Clone, Copy)]
pub struct TransactionOf<'a> {
    /// The session.
    pub session: &'a ActiveSession,
    /// The transaction's number.
    pub number: i64,
    /// So many writes fit into one entry.
    pub operations_in_entry_max: usize,
}

/// What a transaction that has committed has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedChain {
    /// Its last entry.
    pub last: OpTime,
    /// The statements of a retryable write that it has carried out, and the entries that say so.
    pub statements: Vec<(i32, OpTime)>,
}

/// How much a transaction has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionSize {
    /// Writes.
    pub operation_count: u64,
    /// Their bytes in the oplog.
    pub operation_bytes: u64,
}

impl OplogWriter {
    /// A transaction begins: from now on its writes are gathered.
    pub fn begin_transaction(&self, operation: &mut Operation) {
        operation.extensions.insert(Batch::default());
    }

    /// What the transaction has written so far, or had when it was prepared.
    pub fn transaction_size(operation: &Operation) -> TransactionSize {
        match operation.extensions.get::<Batch>() {
            Some(batch) => size_of(&batch.operations),
            None => operation.extensions.get::<TransactionSize>().copied().unwrap_or_default(),
        }
    }

    /// The collections that the transaction has written to.
    pub fn transaction_collections(operation: &Operation) -> Result<BTreeSet<Uuid>> {
        let Some(batch) = operation.extensions.get::<Batch>() else { return Ok(BTreeSet::new()) };
        let mut found = BTreeSet::new();
        for document in &batch.operations {
            found.extend(OplogOperation::parse(document.view())?.uuid);
        }
        Ok(found)
    }

    /// Writes what a transaction has gathered, and its session's record, in its unit of work, which is about to commit. Gives the
    /// entries; none if it has written nothing.
    pub fn commit_transaction(
        &self,
        operation: &mut Operation,
        of: TransactionOf<'_>,
    ) -> Result<Option<CommittedChain>> {
        let gathered = operation.extensions.remove::<Batch>().unwrap_or_default();
        if gathered.operations.is_empty() {
            return Ok(None);
        }
        let images = GatheredImages::take(operation);
        let chain = Chain::of(&gathered, of.operations_in_entry_max, false)?.with(images);
        let slots = self.reserve(operation, chain.parts.len())?;
        self.time_unit(operation, slots.last())?;
        let wall_ms = self.wall_ms();
        let committed = self.append_chain(operation, of, &chain, slots.iter(), wall_ms)?;
        let last = committed.last;
        self.store_state(operation, of, last, wall_ms, DurableState::Committed)?;
        self.tell_progress(operation, last, wall_ms)?;
        Ok(Some(committed))
    }

    /// Prepares a transaction: writes what it has gathered beside it, and has it wait for its end. Gives the entry that says so. On
    /// an error the transaction is to be rolled back.
    pub async fn prepare_transaction(&self, operation: &mut Operation, of: TransactionOf<'_>) -> Result<OpTime> {
        let gathered = operation.extensions.remove::<Batch>().unwrap_or_default();
        operation.extensions.insert(size_of(&gathered.operations));
        let images = GatheredImages::take(operation);
        let chain = Chain::of(&gathered, of.operations_in_entry_max, true)?.with(images);
        let retry_image = operation.extensions.remove::<GatheredRetryImage>();
        let mut beside = beside(operation)?;
        let mut unit = beside.unit_of_work();
        if let Some(image) = retry_image {
            unit.extensions.insert(image);
        }
        let slots = self.reserve(&mut unit, chain.parts.len())?;
        let kept = self.prepared_entries.keep(slots.first().timestamp)?;
        AFTER_RESERVING_PREPARE.pause_while_on().await;
        self.time_unit(&mut unit, slots.last())?;
        let wall_ms = self.wall_ms();
        let last = self.append_chain(&mut unit, of, &chain, slots.iter(), wall_ms)?.last;
        self.store_state(&mut unit, of, last, wall_ms, DurableState::Prepared)?;
        self.tell_progress(&mut unit, last, wall_ms)?;
        UnitOfWork::resume(operation).prepare(last.timestamp)?;
        unit.commit()?;
        self.prepared_entries.prepared(last.timestamp, kept);
        operation.last_commit = beside.last_commit;
        Ok(last)
    }

    /// Commits a prepared transaction at a time that was agreed on, at or after that of its preparation. Gives the entry.
    pub fn commit_prepared(
        &self,
        operation: &mut Operation,
        of: TransactionOf<'_>,
        prepared: OpTime,
        commit_timestamp: Timestamp,
    ) -> Result<OpTime> {
        // What follows from the commit has a place after it.
        self.slots.clock().advance(commit_timestamp);
        let object = commit_transaction_object(commit_timestamp);
        self.end_prepared(operation, of, prepared, object.view(), DurableState::Committed, |operation, slot| {
            operation.recovery_unit.set_commit_timestamp(commit_timestamp)?;
            operation.recovery_unit.set_durable_timestamp(slot.timestamp)?;
            UnitOfWork::resume(operation).commit().map(|_| ())
        })
    }

    /// Aborts a prepared transaction. Gives the entry.
    pub fn abort_prepared(&self, operation: &mut Operation, of: TransactionOf<'_>, prepared: OpTime) -> Result<OpTime> {
        let object = abort_transaction_object();
        self.end_prepared(operation, of, prepared, object.view(), DurableState::Aborted, |operation, _| {
            drop(UnitOfWork::resume(operation));
            Ok(())
        })
    }

    /// Ends a prepared transaction between the writing of its entry and that entry's commit.
    fn end_prepared(
        &self,
        operation: &mut Operation,
        of: TransactionOf<'_>,
        prepared: OpTime,
        object: DocRef<'_>,
        state: DurableState,
        end: impl FnOnce(&mut Operation, OpTime) -> Result<()>,
    ) -> Result<OpTime> {
        let mut beside = beside(operation)?;
        let mut unit = beside.unit_of_work();
        let slot = self.reserve(&mut unit, 1)?.last();
        self.time_unit(&mut unit, slot)?;
        let wall_ms = self.wall_ms();
        self.append_entry(&mut unit, of, object, prepared, slot, wall_ms)?;
        self.store_state(&mut unit, of, slot, wall_ms, state)?;
        self.tell_progress(&mut unit, slot, wall_ms)?;
        end(operation, slot)?;
        unit.commit()?;
        self.prepared_entries.ended(prepared.timestamp, slot.timestamp);
        operation.last_commit = beside.last_commit;
        Ok(slot)
    }

    fn append_chain(
        &self,
        operation: &mut Operation,
        of: TransactionOf<'_>,
        chain: &Chain<'_>,
        slots: impl Iterator<Item = OpTime>,
        wall_ms: i64,
    ) -> Result<CommittedChain> {
        let (mut previous, mut first, mut statements) = (OpTime::NULL, 0, Vec::new());
        for (place, (part, slot)) in chain.parts.iter().zip(slots).enumerate() {
            let object = apply_ops_object_of_documents(part, chain.kind(place));
            self.append_entry(operation, of, object.view(), previous, slot, wall_ms)?;
            let own = first..first + part.len();
            let carried_out = chain.statements.iter().filter(|(operation, _)| own.contains(operation));
            statements.extend(carried_out.map(|(_, statement)| (*statement, slot)));
            first = own.end;
            self.keep_gathered(operation, &chain.images, own, slot, wall_ms)?;
            previous = slot;
        }
        self.keep_retry_image(operation, of, &statements)?;
        Ok(CommittedChain { last: previous, statements })
    }

    fn append_entry(
        &self,
        operation: &mut Operation,
        of: TransactionOf<'_>,
        object: DocRef<'_>,
        previous: OpTime,
        slot: OpTime,
        wall_ms: i64,
    ) -> Result<()> {
        let ns = Namespace::admin_command();
        let what = OplogOperation::command(ns.as_str().into(), None, object);
        let mut entry = OplogEntry::new(what, slot, wall_ms);
        entry.session = SessionInfo {
            session_id: Some(of.session.document.view()),
            txn_number: Some(of.number),
            txn_retry_counter: None,
        };
        entry.previous_op_time = Some(previous);
        self.append(operation, &entry)
    }

    fn store_state(
        &self,
        operation: &mut Operation,
        of: TransactionOf<'_>,
        last_write: OpTime,
        last_write_ms: i64,
        state: DurableState,
    ) -> Result<()> {
        let (session, txn_number) = (of.session.session, of.number);
        let record = SessionRecord { session, txn_number, last_write, last_write_ms, state: Some(state) };
        self.store_record(operation, &record, of.session)
    }
}

/// An operation for what is written beside a prepared transaction. Nobody may keep the end of one waiting.
fn beside(operation: &Operation) -> Result<Operation> {
    let mut beside = operation.beside();
    beside.recovery_unit.set_urgency(Urgency::Exempt)?;
    Ok(beside)
}

fn size_of(gathered: &[Doc]) -> TransactionSize {
    let operation_bytes = gathered.iter().map(|document| document.size_bytes() as u64).sum();
    TransactionSize { operation_count: gathered.len() as u64, operation_bytes }
}

/// The writes of a transaction in the groups that become entries.
struct Chain<'a> {
    parts: Vec<&'a [Doc]>,
    /// What they carry out of a retryable write.
    statements: &'a [(usize, i32)],
    /// Of all groups.
    count: i64,
    is_prepared: bool,
    /// Documents before the changes.
    images: GatheredImages,
}

impl Chain<'_> {
    fn of(gathered: &Batch, operations_max: usize, is_prepared: bool) -> Result<Chain<'_>> {
        let Batch { operations, statements } = gathered;
        let count =
            i64::try_from(operations.len()).map_err(|_| Error::bad_value("too many writes in one transaction"))?;
        let images = GatheredImages::default();
        Ok(Chain { parts: parts(operations, operations_max), statements, count, is_prepared, images })
    }

    fn with(self, images: GatheredImages) -> Self {
        Chain { images, ..self }
    }

    fn kind(&self, place: usize) -> ApplyOpsPart {
        let (is_only, is_last) = (self.parts.len() == 1, place + 1 == self.parts.len());
        match (is_only, is_last, self.is_prepared) {
            (true, _, false) => ApplyOpsPart::Whole,
            (true, _, true) => ApplyOpsPart::Prepare,
            (false, true, false) => ApplyOpsPart::Last(self.count),
            (false, true, true) => ApplyOpsPart::PrepareLast(self.count),
            (false, false, _) => ApplyOpsPart::Partial,
        }
    }
}

/// The writes in the groups that become entries; at least one group.
pub(super) fn parts(gathered: &[Doc], operations_max: usize) -> Vec<&[Doc]> {
    let mut parts = Vec::new();
    let (mut start, mut size_bytes) = (0, 0);
    for (place, document) in gathered.iter().enumerate() {
        let element_bytes = element_overhead_bytes(place - start) + document.size_bytes();
        let is_full = size_bytes + element_bytes > USER_SIZE_BYTES_MAX || place - start >= operations_max;
        if place > start && is_full {
            parts.push(&gathered[start..place]);
            (start, size_bytes) = (place, 0);
        }
        size_bytes += element_bytes;
    }
    parts.push(&gathered[start..]);
    parts
}

/// What an element of an array costs beside its value: its type, its place as a name, the name's end.
fn element_overhead_bytes(place: usize) -> usize {
    3 + place.checked_ilog10().unwrap_or(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn r9_large_transactions_become_several_entries() {
        let small = || doc! { "a": 1 };
        let large = || doc! { "a": ("x".repeat(9 << 20).as_str()) };
        let sizes = |gathered: &[Doc], operations_max| {
            parts(gathered, operations_max).iter().map(|part| part.len()).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&[small(), small()], usize::MAX), [2]);
        assert_eq!(sizes(&[], 1), [0], "an empty transaction has an entry when it is prepared");
        assert_eq!(sizes(&[small(), large(), large(), small(), large()], usize::MAX), [2, 2, 1]);
        assert_eq!(sizes(&[small(), small(), small()], 2), [2, 1]);
        assert_eq!(sizes(&[small(), large(), large()], 1), [1, 1, 1]);
    }

    #[test]
    fn r9_many_small_writes_fill_entries_that_are_not_too_large() {
        let gathered = vec![doc! { "a": 1 }; 1 << 20];
        for part in parts(&gathered, usize::MAX) {
            let object = apply_ops_object_of_documents(part, ApplyOpsPart::Partial);
            assert!(object.size_bytes() < USER_SIZE_BYTES_MAX + 1024, "{} bytes", object.size_bytes());
        }
    }

    #[test]
    fn r10_the_last_entry_says_what_the_chain_is() {
        let operations = vec![doc! { "a": 1 }, doc! { "a": 2 }, doc! { "a": 3 }];
        let gathered = Batch { operations, ..Batch::default() };
        let kinds = |operations_max, is_prepared| {
            let chain = Chain::of(&gathered, operations_max, is_prepared).unwrap();
            (0..chain.parts.len()).map(|place| chain.kind(place)).collect::<Vec<_>>()
        };
        assert_eq!(kinds(9, false), [ApplyOpsPart::Whole]);
        assert_eq!(kinds(9, true), [ApplyOpsPart::Prepare]);
        assert_eq!(kinds(2, false), [ApplyOpsPart::Partial, ApplyOpsPart::Last(3)]);
        assert_eq!(kinds(2, true), [ApplyOpsPart::Partial, ApplyOpsPart::PrepareLast(3)]);
    }
}
