//! What all reads begin with, and how documents become a reply.

use super::stored_functions;
use crate::locking::{lock_collection, lock_for_read};
use crate::{Data, Invocation};
use pando_base::{ErrorCode, Namespace, Result, Timestamp, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value, doc};
use pando_locks::Mode;
use pando_operation::Operation;
use pando_query::cursor::CursorOptions;
use pando_query::executor::{BatchLimits, BatchSink, BatchSource, DocumentSink, drive};
use pando_query::request::Hint;
use pando_repl::read_concern::ReadConcern;
use pando_storage::ReadSource;

/// Waits until the operation may read as the client wants to, and lets it into the engine.
pub(super) async fn begin_read(invocation: &Invocation, data: &Data, operation: &mut Operation) -> Result<()> {
    if stored_functions::are_needed(invocation.body()) {
        Box::pin(stored_functions::load(invocation, data, operation)).await?;
    }
    check_snapshot_of_capped(invocation, data)?;
    check_time_of_transactions(invocation)?;
    if operation.in_multi_document_transaction() {
        return begin_statement(invocation, operation).await;
    }
    begin_read_with(data, operation, invocation.generic.read_concern.as_ref()).await
}

/// What is known of transactions is written together for several of them: at a time in between there is nothing that was ever so.
fn check_time_of_transactions(invocation: &Invocation) -> Result<()> {
    if invocation.transaction().is_some() || invocation.namespace.as_str() != "config.transactions" {
        return Ok(());
    }
    let concern = invocation.generic.read_concern.as_ref();
    let is_after = concern.is_some_and(|concern| concern.get("afterClusterTime").is_some());
    let is_at_time = match invocation.generic.read_concern_level() {
        Some("snapshot") => true,
        Some("majority") => is_after,
        _ => false,
    };
    ensure!(
        !is_at_time,
        ErrorCode::location(5_557_800),
        "Snapshot reads and causal consistent majority reads on config.transactions are not supported"
    );
    Ok(())
}

/// What falls out of a capped collection has no history: nobody reads one as it was.
fn check_snapshot_of_capped(invocation: &Invocation, data: &Data) -> Result<()> {
    let is_snapshot = match invocation.transaction() {
        Some(statement) => statement.wants_snapshot(),
        None => invocation.generic.read_concern_level() == Some("snapshot"),
    };
    if !is_snapshot {
        return Ok(());
    }
    let latest = data.catalog.peek();
    let is_capped = latest.collection(&invocation.namespace).is_some_and(|collection| collection.is_capped());
    ensure!(
        !is_capped,
        ErrorCode::SnapshotUnavailable,
        "Reading from capped collections with readConcern snapshot is not supported"
    );
    Ok(())
}

/// A statement of a transaction keeps the collection as it is until the transaction ends. What it reads was settled when that began.
async fn begin_statement(invocation: &Invocation, operation: &mut Operation) -> Result<()> {
    let namespace = &invocation.namespace;
    ensure!(!namespace.is_system_views(), ErrorCode::location(51071), "Cannot query system.views within a transaction");
    match namespace.has_collection() && !namespace.is_collectionless_aggregate() {
        true => lock_collection(operation, namespace, Mode::IX).await,
        false => lock_for_read(operation).await,
    }
}

/// The same for a read that looks at everything: what the oplog had when it began is waited for first.
pub(super) async fn begin_whole_read(invocation: &Invocation, data: &Data, operation: &mut Operation) -> Result<()> {
    await_oplog(invocation, data).await?;
    begin_read(invocation, data, operation).await
}

/// A scan of the oplog that is to end sees everything that was committed before it began, also what has holes before it now.
async fn await_oplog(invocation: &Invocation, data: &Data) -> Result<()> {
    let Some(oplog) = data.services.engine.oplog().filter(|_| invocation.namespace == *Namespace::oplog()) else {
        return Ok(());
    };
    let Some(last) = oplog.last().filter(|last| *last > oplog.visible()) else { return Ok(()) };
    Ok(invocation.context.interruptible(oplog.wait_visible(last.previous())).await??)
}

/// The same with a read concern that was given before.
pub(super) async fn begin_read_with(data: &Data, operation: &mut Operation, concern: Option<&Doc>) -> Result<()> {
    if operation.in_multi_document_transaction() {
        // What it reads was settled when it began.
        return lock_for_read(operation).await;
    }
    let concern = match concern.filter(|concern| !concern.is_empty()) {
        Some(concern) => ReadConcern::parse(concern.view())?,
        None => ReadConcern::default(),
    };
    data.replication.prepare_read(operation, &concern, Some(data.oplog_writer())).await?;
    lock_for_read(operation).await
}

/// The time at which a read with the concern "snapshot" reads.
pub(super) fn snapshot_time(operation: &Operation) -> Option<Timestamp> {
    match operation.recovery_unit.read_source() {
        ReadSource::Provided(time) => Some(time),
        _ => None,
    }
}

/// What a reply says of the time at which it was read, in the cursor or beside the values.
pub(super) fn append_snapshot_time(operation: &Operation, reply: &mut DocBuilder) {
    if let Some(time) = snapshot_time(operation) {
        reply.append("atClusterTime", time);
    }
}

/// A part of the request that outlives it.
pub(super) fn shared(invocation: &Invocation, part: DocRef<'_>) -> Doc {
    Doc::trusted(invocation.request.share(part.bytes()))
}

/// The same for a part that may be absent.
pub(super) fn shared_or_empty(invocation: &Invocation, part: Option<DocRef<'_>>) -> Doc {
    part.map_or_else(Doc::new, |part| shared(invocation, part))
}

/// The index that the client wants used.
pub(super) fn hint(value: Option<Value<'_>>) -> Result<Hint> {
    value.map_or(Ok(Hint::None), Hint::parse)
}

/// What a query is to a client that gets it batch by batch.
pub(super) struct FirstBatch {
    /// How large the first batch may be.
    pub(super) limits: BatchLimits,
    /// No cursor is kept.
    pub(super) is_single: bool,
    /// So many results end the query.
    pub(super) limit: Option<u64>,
    /// What the cursor remembers.
    pub(super) options: CursorOptions,
}

/// What a cursor remembers of the request that makes it.
pub(super) fn cursor_options(invocation: &Invocation, namespace: &pando_base::Namespace) -> CursorOptions {
    let generic = &invocation.generic;
    CursorOptions {
        session: generic.session.as_ref().map(|session| session.document.clone()),
        transaction_number: generic.transaction_number.filter(|_| generic.is_in_transaction()),
        user: invocation.client_user(),
        originating_command: Doc::trusted(invocation.request.body_bytes()),
        read_concern: generic.read_concern.clone().unwrap_or_default(),
        ..CursorOptions::new(namespace.clone())
    }
}

/// Writes the first batch of a query, and keeps its cursor if there is more.
pub(super) async fn reply_with_first_batch(
    invocation: &Invocation,
    data: &Data,
    operation: &mut Operation,
    mut source: Box<dyn BatchSource>,
    mut first: FirstBatch,
    reply: &mut DocBuilder,
) -> Result<()> {
    invocation.context.describe(|description| description.plan_summary = source.plan_summary().to_owned().into());
    let cursor = reply.begin_document("cursor");
    let mut sink = BatchSink::begin(reply, "firstBatch", first.limits).measured_by(invocation.context.meter());
    let is_exhausted = drive(&mut *source, operation, data.collections(), &mut sink).await?;
    let count = sink.end();
    invocation.context.statistics().documents_returned.add(u64::from(count));
    let resume_token = source.resume_token();
    let is_tailable = first.options.tailable;
    let is_over = (is_exhausted && (!is_tailable || source.is_dead() || source.is_invalidated()))
        || first.is_single
        || first.limit.is_some_and(|limit| u64::from(count) >= limit);
    let namespace = first.options.namespace.clone();
    let is_invalidated = is_exhausted && source.is_invalidated();
    let id = match is_over {
        true => 0,
        false => {
            if let Some(time) = snapshot_time(operation) {
                // What follows is read at the same time, also if the client did not choose it.
                first.options.read_concern = doc! { "level": "snapshot", "atClusterTime": time };
            }
            let mut kept = data.cursors.register(&invocation.context, first.options, source);
            (kept.returned, kept.batches) = (u64::from(count), 1);
            kept.time_left_ns = invocation.context.remaining_ns();
            kept.keep()
        }
    };
    note_cursor(invocation, (id != 0).then_some(id), id == 0);
    reply.append("id", id);
    reply.append("ns", namespace.as_str());
    reply.append_some("postBatchResumeToken", resume_token);
    reply.append_some("invalidated", is_invalidated.then_some(true));
    append_snapshot_time(operation, reply);
    reply.end(cursor);
    Ok(())
}

/// Says which cursor the operation has used or left, and whether it is over.
pub(super) fn note_cursor(invocation: &Invocation, cursor_id: Option<i64>, is_exhausted: bool) {
    invocation.context.describe(|description| {
        description.cursor_id = cursor_id;
        description.cursor_exhausted = is_exhausted;
    });
}

/// Writes the reply to a find by `_id`, which has one document or none and never leaves a cursor.
pub(super) fn reply_with_one(
    invocation: &Invocation,
    operation: &Operation,
    namespace: &pando_base::Namespace,
    found: Option<&Doc>,
    reply: &mut DocBuilder,
) {
    invocation.context.describe(|description| {
        description.plan_summary = "IDHACK".into();
        description.cursor_exhausted = true;
    });
    let cursor = reply.begin_document("cursor");
    let sink = BatchSink::begin(reply, "firstBatch", BatchLimits::first(None));
    let mut sink = sink.measured_by(invocation.context.meter());
    if let Some(document) = found {
        sink.offer(document);
        invocation.context.statistics().documents_returned.add(1);
    }
    sink.end();
    reply.append("id", 0_i64);
    reply.append("ns", namespace.as_str());
    append_snapshot_time(operation, reply);
    reply.end(cursor);
}
