//! The answers to statements that were carried out before, made from their oplog entries.

use pando_base::{Error, Result};
use pando_doc::{OwnedValue, Value};
use pando_oplog::{OpKind, Operation, OplogCommand, OplogEntry};

/// What a statement of insert, update or delete did.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementResult {
    /// `n`.
    pub n: i32,
    /// `nModified`, of updates.
    pub n_modified: i32,
    /// The `_id` of a document that an update inserted.
    pub upserted: Option<OwnedValue>,
}

/// What an entry says of an insert.
pub fn retried_insert(_entry: &OplogEntry<'_>) -> StatementResult {
    StatementResult { n: 1, n_modified: 0, upserted: None }
}

/// What an entry says of an update: an upsert leaves an insert.
pub fn retried_update(entry: &OplogEntry<'_>) -> Result<StatementResult> {
    let updated = StatementResult { n: 1, n_modified: 1, upserted: None };
    match entry.operation.kind {
        OpKind::Insert => {
            let upserted = entry.operation.object.get("_id").map(Value::to_owned);
            Ok(StatementResult { n: 1, n_modified: 0, upserted })
        }
        OpKind::Update => Ok(updated),
        // An update that moves a document to another shard or bucket deletes it here and inserts it there.
        OpKind::Delete => Ok(updated),
        // The mark that a migration leaves of an entry which it carried along.
        OpKind::Noop => match entry.operation.object2.map(Operation::parse).transpose()? {
            Some(inner) if inner.kind == OpKind::Insert => {
                let upserted = inner.object.get("_id").map(Value::to_owned);
                Ok(StatementResult { n: 1, n_modified: 0, upserted })
            }
            _ => Ok(updated),
        },
        OpKind::Command => match entry.command()? {
            Some(OplogCommand::ApplyOps(_)) => Ok(updated),
            _ => Err(unfit("update", entry)),
        },
        _ => Err(unfit("update", entry)),
    }
}

/// What an entry says of a delete.
pub fn retried_delete(entry: &OplogEntry<'_>) -> Result<StatementResult> {
    match entry.operation.kind {
        OpKind::Delete | OpKind::Command | OpKind::Noop => Ok(StatementResult { n: 1, n_modified: 0, upserted: None }),
        _ => Err(unfit("delete", entry)),
    }
}

fn unfit(what: &str, entry: &OplogEntry<'_>) -> Error {
    let kind = entry.operation.kind.as_str();
    Error::location(40414, format!("A retried {what} statement does not fit the oplog entry of type '{kind}'"))
}

/// What findAndModify was asked for, as far as a retry has to agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindAndModifyShape {
    /// `remove`.
    pub remove: bool,
    /// `new`: the document after the change is returned.
    pub returns_new: bool,
    /// `upsert`.
    pub upsert: bool,
}

/// The document that a retried findAndModify returns is not in its entry, except for what it inserted.
#[derive(Clone, Debug, PartialEq)]
pub struct FindAndModifyResult {
    /// `lastErrorObject.n`.
    pub n: i32,
    /// `lastErrorObject.updatedExisting`; none for removals.
    pub updated_existing: Option<bool>,
    /// `lastErrorObject.upserted`.
    pub upserted: Option<OwnedValue>,
    /// Where the value comes from.
    pub value: RetriedValue,
}

/// Where the value of a retried findAndModify comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum RetriedValue {
    /// There is none.
    Null,
    /// The document that was inserted.
    Inserted(pando_doc::Doc),
    /// The image that was kept: `config.image_collection` by the session's id, or an entry of the oplog.
    Image,
}

/// What an entry says of a findAndModify. The retry must ask for the same thing as the first attempt.
pub fn retried_find_and_modify(shape: FindAndModifyShape, entry: &OplogEntry<'_>) -> Result<FindAndModifyResult> {
    let mismatch = |number: i32, what: &str| {
        let reason = format!(
            "findAndModify retry request: {what} is not compatible with previous write in the transaction of type: {}, \
             oplogTs: {}",
            entry.operation.kind.as_str(),
            entry.op_time.timestamp
        );
        Err(Error::location(number, reason))
    };
    let keeps_image = entry.operation.needs_retry_image.is_some()
        || entry.operation.pre_image_op_time.is_some()
        || entry.operation.post_image_op_time.is_some();
    match entry.operation.kind {
        OpKind::Delete if !shape.remove => mismatch(40606, "update"),
        OpKind::Delete => {
            let value = if keeps_image { RetriedValue::Image } else { return mismatch(40607, "remove without image") };
            Ok(FindAndModifyResult { n: 1, updated_existing: None, upserted: None, value })
        }
        _ if shape.remove => mismatch(40608, "remove"),
        OpKind::Insert if !shape.upsert => mismatch(40609, "update without upsert"),
        OpKind::Insert => {
            let document = entry.operation.object;
            let value = if shape.returns_new { RetriedValue::Inserted(document.to_doc()) } else { RetriedValue::Null };
            let upserted = document.get("_id").map(Value::to_owned);
            Ok(FindAndModifyResult { n: 1, updated_existing: Some(false), upserted, value })
        }
        OpKind::Update if !keeps_image => mismatch(40611, "update without image"),
        OpKind::Update => {
            Ok(FindAndModifyResult { n: 1, updated_existing: Some(true), upserted: None, value: RetriedValue::Image })
        }
        _ => mismatch(40610, "update"),
    }
}
