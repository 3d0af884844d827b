//! `getMore`.
//!
//! A cursor whose query fails is gone. A tailable one stays at its end, and with awaitData the reply waits for new
//! documents; `maxTimeMS` is then how long, and otherwise not allowed: the time that the first request has left counts.
//!
//! A client that takes a stream of replies (exhaust) gets batch after batch until the query is over.

use super::reading::{append_snapshot_time, begin_read_with, note_cursor};
use super::tailing::News;
use crate::arguments::{Place, SafeLong};
use crate::stable_api::check_same;
use crate::table::run_boxed;
use crate::{
    Access, Class, CommandRow, Data, Invocation, NamespaceOf, NextInvocation, OpCounter, SecondaryOk, arguments,
};
use pando_base::{Error, ErrorCode, FailPoint, Namespace, OperationKind, Result, ensure};
use pando_doc::{DocBuilder, DocRef, Value};
use pando_operation::Operation;
use pando_query::cursor::PinnedCursor;
use pando_query::executor::{BatchLimits, BatchSink, drive};
use std::time::Duration;

/// How long an awaiting cursor waits unless the client says otherwise.
const AWAIT_MS_DEFAULT: u64 = 1000;

/// Fails a getMore that has its cursor.
pub(crate) static FAIL_AFTER_CHECKOUT: FailPoint<Failing> =
    FailPoint::with_data("failGetMoreAfterCursorCheckout", Failing::parse);

/// What its data says.
pub(crate) struct Failing(ErrorCode);

impl Failing {
    fn parse(bytes: &[u8]) -> Result<Failing> {
        let data = if bytes.is_empty() { DocRef::EMPTY } else { DocRef::parse(bytes)? };
        let code = data.get("errorCode").and_then(|code| code.to_i64_exact());
        let code = code.and_then(|code| i32::try_from(code).ok()).map(ErrorCode::location);
        Ok(Failing(code.filter(|code| *code != ErrorCode::OK).unwrap_or(ErrorCode::InternalError)))
    }
}

pub(super) const ROW: CommandRow = CommandRow {
    name: "getMore",
    help: "retrieve more results from an existing cursor",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Read,
    secondary_ok: SecondaryOk::Always,
    is_allowed_in_transaction: true,
    is_in_api_version_1: true,
    // Taken and not heeded: the cursor keeps the one it was made with.
    takes_read_concern: true,
    is_stopped_when_abandoned: true,
    kind: OperationKind::GetMore,
    op_counter: OpCounter::GetMore,
    namespace: NamespaceOf::Field("collection"),
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

arguments! {
    struct GetMoreArguments<'a> of "getMore" {
        collection: &'a str = "collection",
        batch_size: Option<SafeLong> = "batchSize",
        term: Option<i64> = "term",
        last_known_committed: Option<DocRef<'a>> = "lastKnownCommittedOpTime",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    if invocation.target().is_nullish() {
        return Err(Place::of_command("getMore").missing("getMore"));
    }
    let Value::Int64(id) = invocation.target() else {
        let found = invocation.target().value_type().name();
        let reason = format!("BSON field 'getMore.getMore' is the wrong type '{found}', expected type 'long'");
        return Err(Error::type_mismatch(reason));
    };
    let arguments = GetMoreArguments::parse(&invocation.request)?;
    let batch_size = arguments.batch_size.map(|size| crate::arguments::at_least("batchSize", size.0, 0)).transpose()?;
    let namespace = Namespace::new(&invocation.database, arguments.collection)?;
    ensure!(namespace.is_valid(), ErrorCode::InvalidNamespace, "Invalid namespace specified '{namespace}'");
    let session = invocation.generic.session.as_ref().map(|session| &session.document);
    // Nobody goes on with what somebody else has asked for.
    if let Some(options) = data.cursors.options_of(id).filter(|_| invocation.node.security.is_enabled) {
        ensure!(
            invocation.is_own(options.user.as_deref()),
            ErrorCode::Unauthorized,
            "cursor id {id} was not created by the authenticated user"
        );
    }
    let transaction = invocation.generic.transaction_number.filter(|_| invocation.generic.is_in_transaction());
    let mut cursor = data.cursors.pin(id, &invocation.context, &namespace, session, transaction)?;
    if let Err(error) = check_same(invocation.row, &invocation.generic.api, &cursor.options.originating_command) {
        cursor.keep();
        return Err(error);
    }
    let max_time_ms = invocation.generic.max_time_ms;
    let has_max_time = invocation.body().get("maxTimeMS").is_some_and(|given| !given.is_nullish());
    if has_max_time && !cursor.options.await_data {
        cursor.keep();
        return Err(Error::bad_value("cannot set maxTimeMS on getMore command for a non-awaitData cursor"));
    }
    if let Some(left_ns) = cursor.time_left_ns.filter(|_| !cursor.options.await_data) {
        invocation.context.set_deadline_after(left_ns);
        invocation.context.check()?;
    }
    let comment = DocRef::trusted(cursor.options.originating_command.bytes()).get("comment");
    let own = invocation.shown_body();
    // A cursor's comment is that of what goes on with it, unless that has one.
    let commented = comment.filter(|_| own.get("comment").is_none()).map(|comment| {
        let mut commented = DocBuilder::with_capacity(own.size_bytes() + 64);
        commented.append_all(own.view());
        commented.append("comment", comment);
        commented.finish()
    });
    invocation.context.describe(|description| {
        if let Some(commented) = commented {
            description.command = Some(commented.into_bytes());
        }
        description.originating_command = Some(cursor.options.originating_command.shared_bytes().clone());
        description.cursor = Some(cursor.facts());
        description.plan_summary = cursor.source.plan_summary().to_owned().into();
    });
    if let Some(failing) = FAIL_AFTER_CHECKOUT.hit() {
        return Err(Error::new(failing.0, "Hit the 'failGetMoreAfterCursorCheckout' failpoint"));
    }
    let mut operation = invocation.operation()?;
    // Listening begins before the look, so that nothing falls between.
    let news = News::of(data, &cursor.options).filter(|_| cursor.options.await_data);
    begin_read_with(data, &mut operation, Some(&cursor.options.read_concern)).await?;
    cursor.source.restore(&mut operation, data.collections())?;
    let wait_ms = match cursor.options.tailable && cursor.options.await_data {
        true => Some(if max_time_ms > 0 { max_time_ms } else { AWAIT_MS_DEFAULT }),
        false => None,
    };
    let document = reply.begin_document("cursor");
    let sink = BatchSink::begin(reply, "nextBatch", BatchLimits::further(batch_size));
    let sink = sink.measured_by(invocation.context.meter());
    let more = More { invocation, data, wait_ms };
    let (is_over, count) = more.fill(&mut operation, &mut cursor, sink, news).await?;
    invocation.context.statistics().documents_returned.add(u64::from(count));
    cursor.returned += u64::from(count);
    cursor.batches += 1;
    let resume_token = cursor.source.resume_token();
    let is_invalidated = cursor.source.is_invalidated();
    let left = match is_over {
        true => {
            cursor.close();
            0
        }
        false => {
            cursor.time_left_ns = invocation.context.remaining_ns();
            cursor.keep()
        }
    };
    note_cursor(invocation, Some(id), is_over);
    reply.append("id", left);
    reply.append("ns", namespace.as_str());
    reply.append_some("postBatchResumeToken", resume_token);
    reply.append_some("invalidated", is_invalidated.then_some(true));
    append_snapshot_time(&operation, reply);
    reply.end(document);
    if left != 0 && invocation.is_exhaust() {
        invocation.set_next(NextInvocation::Again(invocation.body().to_doc()));
    }
    Ok(())
}

/// A batch being filled.
struct More<'a> {
    invocation: &'a Invocation,
    data: &'a Data,
    /// How long to wait for documents.
    wait_ms: Option<u64>,
}

impl More<'_> {
    /// Fills a batch. Tells whether the query is over, and how many documents there are.
    async fn fill(
        &self,
        operation: &mut Operation,
        cursor: &mut PinnedCursor,
        mut sink: BatchSink<'_>,
        mut news: Option<News>,
    ) -> Result<(bool, u32)> {
        let is_tailable = cursor.options.tailable;
        let collections = self.data.collections();
        let Some(wait_ms) = self.wait_ms else {
            let is_exhausted = drive(&mut *cursor.source, operation, collections, &mut sink).await?;
            return Ok((is_exhausted && !is_tailable, sink.end()));
        };
        let clock = self.invocation.node.env.clock();
        let until_ns = clock.monotonic_ns().saturating_add(wait_ms.saturating_mul(1_000_000));
        loop {
            drive(&mut *cursor.source, operation, collections, &mut sink).await?;
            let left_ns = until_ns.saturating_sub(clock.monotonic_ns());
            let is_over = sink.count() > 0 || left_ns == 0 || cursor.source.is_invalidated();
            let Some(heard) = news.take().filter(|_| !is_over) else { break };
            cursor.source.save();
            operation.recovery_unit.abandon_snapshot()?;
            crate::locking::unlock(operation);
            let pause = clock.sleep(Duration::from_nanos(left_ns));
            let waiting = async {
                tokio::select! {
                    () = heard.heard() => {}
                    () = pause => {}
                }
            };
            self.invocation.context.interruptible(waiting).await?;
            news = News::of(self.data, &cursor.options);
            crate::locking::lock_for_read(operation).await?;
            cursor.source.restore(operation, collections)?;
        }
        Ok((cursor.source.is_invalidated(), sink.end()))
    }
}
