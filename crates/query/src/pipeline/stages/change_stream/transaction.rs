//! Operations that happened at once, one after the other: transactions and groups of writes.
//!
//! A transaction may have several entries, each of which points back at the one before. They are followed back first, then read
//! forward, one at a time.

use super::event::{GroupPlace, Moment};
use pando_base::{ErrorCode, RecordId, Result, Timestamp, bail};
use pando_catalog::Collection;
use pando_doc::{Doc, DocRef, Value};
use pando_operation::Operation;
use pando_oplog::{OpTime, OplogCommand, OplogEntry};
use std::sync::Arc;

/// A group being unwound.
pub(super) struct Unwinding {
    oplog: Arc<Collection>,
    moment: Moment,
    /// Entries to come, the next one last.
    entries: Vec<Timestamp>,
    /// The operations of the present entry.
    operations: std::vec::IntoIter<Doc>,
    entry_time: Timestamp,
    apply_ops_index: i64,
    txn_op_index: i32,
}

impl Unwinding {
    /// The operations of the group that this entry ends, if it is one: an `applyOps` that is whole, or the commit of a prepared
    /// transaction.
    pub(super) fn of(
        operation: &mut Operation,
        oplog: &Arc<Collection>,
        document: &Doc,
        entry: &OplogEntry<'_>,
    ) -> Result<Option<Unwinding>> {
        let name = entry.operation.object.first().map(|first| first.name.to_vec()).unwrap_or_default();
        let is_group = name == b"applyOps" || name == b"commitTransaction";
        if !is_group {
            return Ok(None);
        }
        let own = match OplogCommand::parse(entry.operation.object)? {
            OplogCommand::ApplyOps(group) if group.prepare || group.partial_txn => return Ok(None),
            OplogCommand::ApplyOps(group) => Some(operations_of(document, group.operations.as_doc())),
            _ => None,
        };
        let mut unwinding = Unwinding {
            oplog: Arc::clone(oplog),
            moment: Moment {
                cluster_time: entry.op_time.timestamp,
                wall_ms: entry.wall_ms,
                place: None,
                session_id: entry.session.session_id.map(DocRef::to_doc),
                txn_number: entry.session.txn_number,
            },
            entries: Vec::new(),
            operations: Vec::new().into_iter(),
            entry_time: Timestamp::NONE,
            apply_ops_index: 0,
            txn_op_index: 0,
        };
        let is_whole = own.is_some();
        if is_whole {
            unwinding.entries.push(entry.op_time.timestamp);
        }
        unwinding.follow_back(operation, entry.previous_op_time)?;
        if unwinding.entries.len() == 1 && is_whole {
            unwinding.entries.clear();
            unwinding.entry_time = entry.op_time.timestamp;
            unwinding.operations = own.unwrap_or_default().into_iter();
        }
        Ok(Some(unwinding))
    }

    /// The next operation, and when it happened.
    pub(super) fn next(&mut self, operation: &mut Operation) -> Result<Option<(Doc, Moment)>> {
        loop {
            if let Some(document) = self.operations.next() {
                let place = GroupPlace {
                    txn_op_index: self.txn_op_index,
                    apply_ops_index: self.apply_ops_index,
                    apply_ops_time: self.entry_time,
                };
                self.txn_op_index = self.txn_op_index.saturating_add(1);
                self.apply_ops_index = self.apply_ops_index.saturating_add(1);
                return Ok(Some((document, Moment { place: Some(place), ..self.moment.clone() })));
            }
            let Some(time) = self.entries.pop() else { return Ok(None) };
            operation.context.check()?;
            let document = self.entry(operation, time)?;
            let group = document.get("o").and_then(|o| o.as_document()).and_then(|o| o.get("applyOps"));
            let Some(Value::Array(group)) = group else {
                bail!(ErrorCode::location(5543807), "Expected 'applyOps' in the entry of a transaction at {time}");
            };
            self.operations = operations_of(&document, group.as_doc()).into_iter();
            self.entry_time = time;
            self.apply_ops_index = 0;
        }
    }

    fn follow_back(&mut self, operation: &mut Operation, mut previous: Option<OpTime>) -> Result<()> {
        while let Some(time) = previous.filter(|time| *time != OpTime::NULL && time.timestamp.is_some()) {
            operation.context.check()?;
            if self.entries.last().is_some_and(|last| *last <= time.timestamp) {
                bail!(ErrorCode::IncompleteTransactionHistory, "the entries of a transaction do not point back");
            }
            let document = self.entry(operation, time.timestamp)?;
            self.entries.push(time.timestamp);
            previous = OplogEntry::parse(document.view())?.previous_op_time;
        }
        Ok(())
    }

    fn entry(&self, operation: &mut Operation, time: Timestamp) -> Result<Doc> {
        let id = RecordId::Long(i64::try_from(time.0).unwrap_or(i64::MAX));
        match self.oplog.records.get(&mut operation.recovery_unit, &id)? {
            Some(bytes) => Ok(Doc::trusted(bytes)),
            None => bail!(
                ErrorCode::IncompleteTransactionHistory,
                "oplog no longer contains the complete write history of this transaction, log with opTime {time} cannot \
                 be found"
            ),
        }
    }
}

/// The operations of an entry; they share its bytes.
fn operations_of(entry: &Doc, operations: DocRef<'_>) -> Vec<Doc> {
    let documents = operations.elements().filter_map(|element| element.value.as_document());
    documents.map(|operation| Doc::trusted(entry.share(operation.bytes()))).collect()
}
