//! One batch: documents in the order of their `_id`, as of one moment, and the hash of their bytes.

use super::job::Range;
use crate::Data;
use crate::catalog::hex;
use crate::locking::{lock_for_read, unlock};
use md5::{Digest, Md5};
use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_doc::{Doc, DocBuilder, OwnedValue, Value, compare, doc};
use pando_operation::Operation;
use pando_query::FindPlan;
use pando_query::executor::{DocumentSink, drive};
use pando_query::request::{FindRequest, Hint};
use pando_storage::ReadSource;
use std::cmp::Ordering;

/// What a batch came to.
pub(super) struct Batch {
    pub(super) documents: i64,
    pub(super) bytes: i64,
    pub(super) hash: String,
    /// The last key that it is about.
    pub(super) last: OwnedValue,
    pub(super) read_at: Timestamp,
}

/// Takes documents until the batch is full.
struct Hasher<'a> {
    digest: Md5,
    range: &'a Range,
    /// Behind this one it begins.
    start: &'a OwnedValue,
    documents: i64,
    bytes: i64,
    last: Option<OwnedValue>,
    clock: &'a dyn pando_env::Clock,
    deadline_ns: u64,
    is_over: bool,
    is_full: bool,
}

impl DocumentSink for Hasher<'_> {
    fn offer(&mut self, document: &Doc) -> bool {
        let key = document.get("_id").unwrap_or(Value::Null);
        if compare(key, self.start.view()) != Ordering::Greater {
            return true;
        }
        if compare(key, self.range.max.view()) == Ordering::Greater {
            (self.is_over, self.is_full) = (true, true);
            return true;
        }
        let limits = &self.range.limits;
        self.digest.update(document.bytes());
        self.documents += 1;
        self.bytes += document.bytes().len() as i64;
        self.last = Some(key.to_owned());
        self.is_full = self.documents >= limits.batch_documents.min(limits.documents)
            || self.bytes >= limits.batch_bytes.min(limits.bytes)
            || self.clock.monotonic_ns() >= self.deadline_ns;
        true
    }

    fn is_full(&self) -> bool {
        self.is_full
    }
}

/// The batch behind a key.
pub(super) async fn read(data: &Data, operation: &mut Operation, range: &Range, start: &OwnedValue) -> Result<Batch> {
    let outcome = hash(data, operation, range, start).await;
    let abandoned = operation.recovery_unit.abandon_snapshot();
    let reset = operation.recovery_unit.set_read_source(ReadSource::NoTimestamp);
    unlock(operation);
    let batch = outcome?;
    abandoned?;
    reset?;
    Ok(batch)
}

async fn hash(data: &Data, operation: &mut Operation, range: &Range, start: &OwnedValue) -> Result<Batch> {
    lock_for_read(operation).await?;
    let read_at = operation.recovery_unit.engine().timestamps().all_durable;
    operation.recovery_unit.set_read_source(ReadSource::Provided(read_at))?;
    let gone = || Error::new(ErrorCode::NamespaceNotFound, "Collection under dbCheck no longer exists");
    let Some(collection) = data.collections().open(operation, &range.namespace)? else { return Err(gone()) };
    if collection.uuid != range.uuid {
        return Err(gone());
    }
    let has_id_index =
        collection.is_clustered() || collection.indexes.iter().any(|index| index.descriptor.is_id_index());
    if !has_id_index {
        return Err(Error::new(ErrorCode::IndexNotFound, "dbCheck needs _id index"));
    }
    let mut min = DocBuilder::new();
    min.append("_id", start.view());
    let request = FindRequest {
        min: min.finish(),
        hint: Hint::KeyPattern(doc! { "_id": 1_i32 }),
        ..FindRequest::new(range.namespace.clone())
    };
    let FindPlan::Executor(mut executor) = data.query.find(operation, &request)? else { return Err(gone()) };
    let clock = operation.env.clone();
    let limit_ns = u64::try_from(range.limits.batch_ms).unwrap_or(0) * 1_000_000;
    let mut hasher = Hasher {
        digest: Md5::new(),
        range,
        start,
        documents: 0,
        bytes: 0,
        last: None,
        clock: clock.clock(),
        deadline_ns: clock.clock().monotonic_ns().saturating_add(limit_ns),
        is_over: false,
        is_full: false,
    };
    let mut is_at_end = false;
    while !is_at_end && !hasher.is_full() {
        is_at_end = drive(&mut *executor, operation, data.collections(), &mut hasher).await?;
    }
    let is_over = hasher.is_over || (is_at_end && !hasher.is_full);
    let last = match hasher.last {
        Some(last) if !is_over => last,
        // There is nothing more up to the end.
        _ => range.max.clone(),
    };
    Ok(Batch { documents: hasher.documents, bytes: hasher.bytes, hash: hex(hasher.digest), last, read_at })
}
