//! Entries of multi-document transactions: their writes are gathered while they go on, and written down when they commit.
//!
//! One `applyOps` has them all, or several do, none larger than a document may be, each pointing back at the one before. All writes
//! have the time of the last: nobody sees a part of a transaction, and recovery applies the whole chain when it meets its end.

use super::OplogWriter;
use super::batch::Batch;
use pando_base::{Error, Namespace, Result};
use pando_doc::{Doc, USER_SIZE_BYTES_MAX};
use pando_operation::Operation;
use pando_oplog::build::{ApplyOpsPart, apply_ops_object};
use pando_oplog::{OpTime, Operation as OplogOperation, OplogEntry, SessionInfo};
use pando_session::{ActiveSession, DurableState, SessionRecord};

impl OplogWriter {
    /// A transaction begins: from now on its writes are gathered.
    pub fn begin_transaction(&self, operation: &mut Operation) {
        operation.extensions.insert(Batch::default());
    }

    /// Writes what a transaction has gathered, and its session's record, in its unit of work, which is about to commit. Gives the
    /// last entry; none if it has written nothing.
    pub fn commit_transaction(
        &self,
        operation: &mut Operation,
        session: &ActiveSession,
        txn_number: i64,
    ) -> Result<Option<OpTime>> {
        let Batch(gathered) = operation.extensions.remove::<Batch>().unwrap_or_default();
        if gathered.is_empty() {
            return Ok(None);
        }
        let count =
            i64::try_from(gathered.len()).map_err(|_| Error::bad_value("too many writes in one transaction"))?;
        let parts = parts(&gathered);
        let slots = self.reserve(operation, parts.len())?;
        self.time_unit(operation, slots.last())?;
        let wall_ms = self.wall_ms();
        let mut previous = OpTime::NULL;
        let last_place = parts.len() - 1;
        for (place, (part, slot)) in parts.into_iter().zip(slots.iter()).enumerate() {
            let kind = match place {
                0 if last_place == 0 => ApplyOpsPart::Whole,
                place if place == last_place => ApplyOpsPart::Last(count),
                _ => ApplyOpsPart::Partial,
            };
            let operations: Vec<OplogOperation<'_>> =
                part.iter().map(|document| OplogOperation::parse(document.view())).collect::<Result<_>>()?;
            let object = apply_ops_object(&operations, kind);
            let ns = Namespace::admin_command();
            let what = OplogOperation::command(ns.as_str().into(), None, object.view());
            let mut entry = OplogEntry::new(what, slot, wall_ms);
            entry.session = SessionInfo {
                session_id: Some(session.document.view()),
                txn_number: Some(txn_number),
                txn_retry_counter: None,
            };
            entry.previous_op_time = Some(previous);
            self.append(operation, &entry)?;
            previous = slot;
        }
        let record = SessionRecord {
            session: session.session,
            txn_number,
            last_write: previous,
            last_write_ms: wall_ms,
            state: Some(DurableState::Committed),
        };
        self.table.store(operation, &record)?;
        self.tell_progress(operation, previous, wall_ms)?;
        Ok(Some(previous))
    }
}

/// The writes in the groups that become entries.
fn parts(gathered: &[Doc]) -> Vec<&[Doc]> {
    let mut parts = Vec::new();
    let (mut start, mut size_bytes) = (0, 0);
    for (place, document) in gathered.iter().enumerate() {
        if place > start && size_bytes + document.size_bytes() > USER_SIZE_BYTES_MAX {
            parts.push(&gathered[start..place]);
            (start, size_bytes) = (place, 0);
        }
        size_bytes += document.size_bytes();
    }
    parts.push(&gathered[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn r9_large_transactions_become_several_entries() {
        let small = || doc! { "a": 1 };
        assert_eq!(parts(&[small(), small()]).len(), 1);
        let large = || doc! { "a": ("x".repeat(9 << 20).as_str()) };
        let sizes = |gathered: &[Doc]| parts(gathered).iter().map(|part| part.len()).collect::<Vec<_>>();
        assert_eq!(sizes(&[small(), large(), large(), small(), large()]), [2, 2, 1]);
    }
}
