//! The end of an operation, or of one statement of a batch: counted, logged if it was slow, profiled if its database is.

use super::filter::ProfileFilter;
use super::record::write_profile;
use super::report::Report;
use super::resources;
use super::top::{Ended, LockKind, Scan};
use crate::{Admission, Class, Invocation, NamespaceOf, SLOW_MS, SLOW_OP_SAMPLE_RATE};
use pando_base::{Component, Error, LogValue, Namespace, OperationKind, OperationStatistics, Severity, log};
use pando_doc::{Doc, DocBuilder, JsonFormat, doc_to_json};
use pando_locks::LockStats;
use pando_operation::Operation;
use std::sync::Arc;

const NS_PER_MS: u64 = 1_000_000;

/// What is told of an operation.
pub(super) struct Told<'a> {
    /// The statement, if it is one of a batch.
    pub(super) statement: Option<Doc>,
    pub(super) statistics: OperationStatistics,
    pub(super) locks: LockStats,
    pub(super) has_used_storage: bool,
    pub(super) error: Option<&'a Error>,
    pub(super) reply_bytes: Option<usize>,
    pub(super) elapsed_ns: u64,
}

/// An operation begins: from when on are details wanted of it?
pub fn begin(invocation: &Invocation) {
    let (node, context) = (&invocation.node, &invocation.context);
    resources::begin(invocation);
    tell_of_beginning(invocation);
    node.counters.api_versions.note(invocation);
    let settings = node.data.as_ref().and_then(|data| data.profiler.settings_if_any(&invocation.database));
    if settings.is_some() || node.log.is_enabled(Component::Command, Severity::Debug(1)) {
        context.want_details_after(0);
        return;
    }
    // A threshold below zero means every operation.
    let slow_ms = u64::try_from(node.parameters.get(&SLOW_MS)).unwrap_or(0);
    context.want_details_after(slow_ms.saturating_mul(NS_PER_MS));
}

/// Whoever wants to see what is asked for before it is done.
fn tell_of_beginning(invocation: &Invocation) {
    let (node, client) = (&invocation.node, &invocation.connection.client);
    if node.log.is_enabled(Component::Command, Severity::Debug(2)) {
        let log = node.log.with_context(client.description());
        let command = LogValue::Json(doc_to_json(invocation.shown_body().view(), JsonFormat::Relaxed));
        log!(
            log,
            Severity::Debug(2),
            Component::Command,
            21965,
            "About to run the command",
            "db" = invocation.database.as_str(),
            "client" = client.remote(),
            "commandArgs" = command
        );
    }
}

/// An operation is over. `has_run` tells that it was not refused before. The document, if there is one, is to be written to
/// the database's `system.profile`.
pub fn end(invocation: &Invocation, error: Option<&Error>, has_run: bool, reply_bytes: usize) -> Option<Doc> {
    let (node, row) = (&invocation.node, invocation.row);
    let now_ns = invocation.context.now_ns();
    let elapsed_ns = now_ns.saturating_sub(invocation.context.start_ns());
    // Hello waits on purpose.
    if matches!(row.name, "hello" | "isMaster") {
        return None;
    }
    node.counters.latencies.of(row.class).record(elapsed_ns / 1000);
    node.counters.documents.count(invocation.context.statistics());
    resources::end(invocation);
    if has_run && row.counts_in_top && !is_batch(row.kind) {
        count(invocation, row.kind, elapsed_ns);
    }
    if !invocation.context.wants_details_at(now_ns) {
        return None;
    }
    let (locks, has_used_storage) = invocation.take_lock_stats();
    let statistics = invocation.context.statistics().snapshot();
    let reply_bytes = Some(reply_bytes);
    let told = Told { statement: None, statistics, locks, has_used_storage, error, reply_bytes, elapsed_ns };
    let is_profiled = has_run && row.namespace != NamespaceOf::Database && !is_batch(row.kind);
    let is_profiled = is_profiled && invocation.namespace.has_collection() && !is_listing(&invocation.namespace);
    tell(invocation, &told, is_profiled)
}

/// Updates and deletes are counted and profiled by statement.
fn is_batch(kind: OperationKind) -> bool {
    matches!(kind, OperationKind::Update | OperationKind::Remove)
}

/// The names of cursors that belong to no collection.
fn is_listing(namespace: &Namespace) -> bool {
    namespace.collection().starts_with("$cmd.")
}

/// Counts an operation in its collection's books.
fn count(invocation: &Invocation, kind: OperationKind, elapsed_ns: u64) {
    let Some(data) = &invocation.node.data else { return };
    let namespace = &invocation.namespace;
    if !namespace.has_collection() || is_listing(namespace) {
        return;
    }
    let lock = match invocation.row.admission {
        _ if invocation.has_written() => LockKind::Write,
        Admission::Write => LockKind::Write,
        Admission::Read => LockKind::Read,
        Admission::Free if invocation.row.class == Class::Read => LockKind::Read,
        Admission::Free => LockKind::None,
    };
    let exists = |namespace: &Namespace| {
        let latest = data.catalog.latest();
        latest.collection(namespace).is_some() || latest.view(namespace).is_ok_and(|view| view.is_some())
    };
    let (class, scan, micros) = (invocation.row.class, scan_of(invocation, kind), elapsed_ns / 1000);
    data.top.record(namespace, Ended { kind, lock, class, scan, micros }, exists);
}

/// Did it look at all of its collection? A cursor's further batches belong to the scan that its first began.
fn scan_of(invocation: &Invocation, kind: OperationKind) -> Scan {
    let mut is_scan = false;
    invocation.context.describe(|description| is_scan = description.plan_summary == "COLLSCAN");
    match is_scan && kind != OperationKind::GetMore {
        false => Scan::None,
        true if invocation.body().get("tailable").is_some_and(|tailable| tailable.is_true()) => Scan::Tailing,
        true => Scan::Whole,
    }
}

/// Logs an operation if that is wanted; gives the document if it is to be profiled.
#[cold]
fn tell(invocation: &Invocation, told: &Told<'_>, is_profiled: bool) -> Option<Doc> {
    let node = &invocation.node;
    let settings = node.data.as_ref().map(|data| data.profiler.settings(&invocation.database)).unwrap_or_default();
    let report = Report::new(invocation, told);
    let mut document: Option<Doc> = None;
    let is_wanted = match &settings.filter {
        Some(filter) => wants(filter, document.get_or_insert_with(|| report.document())),
        None => is_slow(invocation, told.elapsed_ns),
    };
    let is_verbose = node.log.is_enabled(Component::Command, Severity::Debug(1));
    if is_wanted || is_verbose {
        let component = component(told);
        let log = node.log.with_context(invocation.connection.client.description());
        log.write(Severity::Info, component, 51803, "Slow query", report.attributes());
    }
    let is_profiled = is_profiled && (settings.level >= 2 || (settings.level == 1 && is_wanted));
    is_profiled.then(|| document.unwrap_or_else(|| report.document()))
}

fn wants(filter: &Arc<ProfileFilter>, document: &Doc) -> bool {
    filter.matches(document.view())
}

fn is_slow(invocation: &Invocation, elapsed_ns: u64) -> bool {
    let parameters = &invocation.node.parameters;
    let elapsed_ms = i64::try_from(elapsed_ns / NS_PER_MS).unwrap_or(i64::MAX);
    if elapsed_ms < i64::from(parameters.get(&SLOW_MS)) {
        return false;
    }
    let rate = parameters.get(&SLOW_OP_SAMPLE_RATE);
    rate >= 1.0 || (invocation.node.env.random().next_u64() as f64 / u64::MAX as f64) < rate
}

/// Which part of the server a line is about.
fn component(told: &Told<'_>) -> Component {
    if told.statement.is_some() { Component::Write } else { Component::Command }
}

/// One statement of a batch, watched while it runs.
pub(crate) struct Statement {
    start_ns: u64,
    /// What the batch had counted before; none for its first statement.
    before: Option<Box<OperationStatistics>>,
}

impl Statement {
    /// The statement at this place of the batch begins.
    pub(crate) fn begin(invocation: &Invocation, place: usize) -> Statement {
        let context = &invocation.context;
        let before = (place > 0).then(|| Box::new(context.statistics().snapshot()));
        Statement { start_ns: context.now_ns(), before }
    }

    /// The statement is over; its document is made if somebody wants it, and it is profiled if its database is. (The
    /// operation is exclusive so that the future may change threads.)
    pub(crate) async fn end(
        self,
        invocation: &Invocation,
        operation: &mut Operation,
        error: Option<&Error>,
        statement: impl FnOnce(&mut DocBuilder),
    ) {
        if let Some(document) = self.told(invocation, operation, error, statement) {
            // Rare, and large: what all statements carry stays small.
            Box::pin(write_profile(invocation, &invocation.database, document)).await;
        }
    }

    fn told(
        self,
        invocation: &Invocation,
        operation: &Operation,
        error: Option<&Error>,
        statement: impl FnOnce(&mut DocBuilder),
    ) -> Option<Doc> {
        let context = &invocation.context;
        let now_ns = context.now_ns();
        let elapsed_ns = now_ns.saturating_sub(self.start_ns);
        if invocation.row.counts_in_top {
            count(invocation, invocation.row.kind, elapsed_ns);
        }
        if !context.wants_details_at(now_ns) {
            return None;
        }
        let statistics = match &self.before {
            Some(before) => context.statistics().since(before),
            None => context.statistics().snapshot(),
        };
        let mut document = DocBuilder::new();
        statement(&mut document);
        document.append_some("comment", invocation.generic.comment.as_ref());
        let locks = operation.locker.stats();
        let (statement, reply_bytes) = (Some(document.finish()), None);
        let told = Told { statement, statistics, locks, has_used_storage: true, error, reply_bytes, elapsed_ns };
        let document = tell(invocation, &told, true);
        context.describe(|description| {
            description.plan = None;
            description.plan_summary = "".into();
        });
        document
    }
}
