//! A session's document in `config.transactions`: its newest transaction or retryable write, and where its history ends.
//!
//! It is written in the unit of work of the write that it tells of. Secondaries and recovery make it from the oplog, so
//! writing it has no entry of its own.

use crate::fields::{Fields, date, document, long, text};
use crate::id::LogicalSessionId;
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_oplog::OpTime;

/// What a transaction has come to. Retryable writes have no such state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurableState {
    /// It waits for the coordinator's decision.
    Prepared,
    /// It is done.
    Committed,
    /// It is undone.
    Aborted,
    /// A part of it is in the oplog, more follows.
    InProgress,
}

impl DurableState {
    /// The text in the field `state`.
    pub const fn as_str(self) -> &'static str {
        match self {
            DurableState::Prepared => "prepared",
            DurableState::Committed => "committed",
            DurableState::Aborted => "aborted",
            DurableState::InProgress => "inProgress",
        }
    }

    fn parse(name: &str) -> Result<DurableState> {
        let all = [DurableState::Prepared, DurableState::Committed, DurableState::Aborted, DurableState::InProgress];
        all.into_iter().find(|state| state.as_str() == name).ok_or_else(|| {
            Error::bad_value(format!(
                "Enumeration value '{name}' for field 'sessionTxnRecord.state' is not a valid value."
            ))
        })
    }
}

/// A document of `config.transactions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// `_id`: the session.
    pub session: LogicalSessionId,
    /// `txnNum`: the newest number.
    pub txn_number: i64,
    /// `lastWriteOpTime`: the newest entry of its history.
    pub last_write: OpTime,
    /// `lastWriteDate`, in milliseconds since 1970.
    pub last_write_ms: i64,
    /// `state`: only of transactions.
    pub state: Option<DurableState>,
}

impl SessionRecord {
    /// Reads a document of the table.
    pub fn parse(record: DocRef<'_>) -> Result<SessionRecord> {
        let fields = Fields::of("sessionTxnRecord", record);
        Ok(SessionRecord {
            session: LogicalSessionId::parse(fields.required("_id", document)?)?,
            txn_number: fields.required("txnNum", long)?,
            last_write: OpTime::parse(fields.required("lastWriteOpTime", document)?)?,
            last_write_ms: fields.required("lastWriteDate", date)?,
            state: fields.optional("state", text)?.map(DurableState::parse).transpose()?,
        })
    }

    /// The document for the table.
    pub fn to_doc(&self) -> Doc {
        /// Without the state, and beside its text: so there is mostly room for all of it and none is left over.
        const BASE_BYTES: usize = 166;
        const STATE_BYTES: usize = 12;
        const CHILD_BYTES: usize = 160;
        let state_bytes = self.state.map_or(0, |state| STATE_BYTES + state.as_str().len());
        let child_bytes = if self.session.is_child() { CHILD_BYTES } else { 0 };
        let mut builder = DocBuilder::with_capacity(BASE_BYTES + state_bytes + child_bytes);
        let id = builder.begin_document("_id");
        self.session.append_to(&mut builder);
        builder.end(id);
        builder.append("txnNum", self.txn_number);
        self.last_write.append_as("lastWriteOpTime", &mut builder);
        builder.append("lastWriteDate", Value::DateTime(self.last_write_ms));
        builder.append_some("state", self.state.map(DurableState::as_str));
        // The table's index on children is partial: only they have a parent's id.
        builder.append_some("parentLsid", self.session.is_child().then(|| self.session.parent().to_doc()));
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::NO_USER;
    use pando_base::{Timestamp, Uuid};

    #[test]
    fn s16_records_round_trip_in_the_order_of_their_fields() {
        let session = LogicalSessionId::new(Uuid::from_random([1; 16]), NO_USER);
        let child = LogicalSessionId { txn_uuid: Some(Uuid::from_random([2; 16])), ..session };
        for (session, state) in [(session, None), (child, Some(DurableState::Committed))] {
            let last_write = OpTime::new(Timestamp::new(9, 1), 2);
            let record = SessionRecord { session, txn_number: 3, last_write, last_write_ms: 77, state };
            assert_eq!(SessionRecord::parse(record.to_doc().view()), Ok(record));
        }
        let record =
            SessionRecord { session, txn_number: 3, last_write: OpTime::NULL, last_write_ms: 77, state: None }.to_doc();
        let names: Vec<String> = record.elements().map(|element| element.name.to_string()).collect();
        assert_eq!(names, ["_id", "txnNum", "lastWriteOpTime", "lastWriteDate"]);
    }
}
