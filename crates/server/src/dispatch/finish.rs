//! The end of a request: its reply's last fields, what is counted, what is logged.

use super::EMPTY_BYTES;
use pando_base::{Category, Component, Error, LogValue, Result, Severity};
use pando_commands::{Invocation, Node, SLOW_MS, error_labels, reply as replies};
use pando_doc::{DocBuilder, DocRef, JsonFormat, doc_to_json};

/// Says what the operation is, for currentOp.
pub(super) fn describe(invocation: &Invocation) {
    let mut session = invocation.generic.session.as_ref().map(|session| session.document.shared_bytes().clone());
    invocation.context.describe(|description| {
        description.kind = invocation.row.kind;
        description.namespace = Some(invocation.namespace.clone());
        description.command_name = invocation.row.name;
        description.command = Some(invocation.shown_body().into_bytes());
        description.session = session.take();
        description.transaction_number = invocation.generic.transaction_number;
    });
}

/// Completes the body of a command that ran or was refused. What stages have to say is put beside its error.
pub(super) fn complete(invocation: &Invocation, outcome: &Result<()>, beside: DocRef<'_>, reply: &mut DocBuilder) {
    let node = &invocation.node;
    match outcome {
        Ok(()) => replies::append_ok(reply),
        Err(error) => {
            if let Some(entry) = node.table.find(invocation.row.name.as_bytes()) {
                entry.counters.failed.increment();
            }
            reply.truncate(EMPTY_BYTES);
            let labels = error_labels(error, invocation.row, &invocation.generic);
            append_failure(node, error, &labels, Some(invocation), reply);
            reply.append_all(beside);
        }
    }
    node.replication.append_times(reply);
    note_duration(invocation, outcome, reply.size_bytes());
}

/// Writes the body of a request that did not get as far as a command.
pub(super) fn fail_early(node: &Node, error: &Error, reply: &mut DocBuilder) {
    append_failure(node, error, error.labels(), None, reply);
    node.replication.append_times(reply);
}

fn append_failure(
    node: &Node,
    error: &Error,
    labels: &[&'static str],
    invocation: Option<&Invocation>,
    reply: &mut DocBuilder,
) {
    node.counters.asserts.user.increment();
    replies::append_error(error, labels, invocation.and_then(Invocation::labels_in_place), reply);
    let replication = &node.replication;
    let is_of_topology = (error.is(Category::NotPrimaryError) && replication.is_replica_set())
        || (error.is(Category::ShutdownError) && replication.is_in_quiesce_mode());
    if is_of_topology {
        replication.topology_version().append_to(reply);
    }
}

/// Counts how long an operation took, and logs it if that was long. Hello waits on purpose.
fn note_duration(invocation: &Invocation, outcome: &Result<()>, reply_bytes: usize) {
    let (node, row) = (&invocation.node, invocation.row);
    let elapsed_ns = invocation.context.elapsed_ns();
    let elapsed_ms = elapsed_ns / 1_000_000;
    let waits = matches!(row.name, "hello" | "isMaster");
    if !waits {
        node.counters.latencies.of(row.class).record(elapsed_ns / 1_000);
    }
    let slow_ms = node.parameters.get(&SLOW_MS);
    let is_slow = i64::try_from(elapsed_ms).unwrap_or(i64::MAX) >= i64::from(slow_ms) && slow_ms >= 0 && !waits;
    let is_wanted = node.log.is_enabled(Component::Command, Severity::Debug(1));
    if is_slow || is_wanted {
        log_operation(invocation, outcome, reply_bytes, elapsed_ms);
    }
}

#[cold]
fn log_operation(invocation: &Invocation, outcome: &Result<()>, reply_bytes: usize, elapsed_ms: u64) {
    let client = &invocation.connection.client;
    let command = doc_to_json(invocation.shown_body().view(), JsonFormat::Relaxed);
    let mut attributes: Vec<(&'static str, LogValue)> =
        vec![("type", LogValue::fixed("command")), ("ns", (&invocation.namespace).into())];
    if !client.application().is_empty() {
        attributes.push(("appName", client.application().into()));
    }
    attributes.push(("command", LogValue::Json(command)));
    attributes.extend(invocation.context.statistics().counted().map(|(name, count)| (name, count.into())));
    if let Err(error) = outcome {
        attributes.push(("ok", 0.into()));
        attributes.push(("errMsg", error.reason().into()));
        attributes.push(("errName", LogValue::Text(error.code().name())));
        attributes.push(("errCode", error.code().number().into()));
    }
    attributes.push(("reslen", reply_bytes.into()));
    attributes.push(("remote", client.remote().into()));
    attributes.push(("protocol", LogValue::fixed("op_msg")));
    attributes.push(("durationMillis", elapsed_ms.into()));
    let log = invocation.node.log.with_context(client.description());
    log.write(Severity::Info, Component::Command, 51803, "Slow query", attributes);
}
