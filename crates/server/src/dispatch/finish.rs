//! The end of a request: its reply's last fields.

use super::EMPTY_BYTES;
use pando_base::{Category, Error, Result};
use pando_commands::{Invocation, Node, error_labels, reply as replies};
use pando_doc::DocBuilder;
use pando_security::{Action, Target};

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
pub(super) fn complete(
    invocation: &Invocation,
    outcome: &Result<()>,
    beside: Option<DocBuilder>,
    reply: &mut DocBuilder,
) {
    let node = &invocation.node;
    match outcome {
        Ok(()) => invocation.append_ok(reply),
        Err(error) => {
            if let Some(entry) = node.table.find(invocation.row.name.as_bytes()) {
                entry.counters.failed.increment();
            }
            reply.truncate(EMPTY_BYTES);
            let labels = error_labels(error, invocation);
            append_failure(node, error, &labels, Some(invocation), reply);
            if let Some(beside) = beside {
                reply.append_all(beside.finish().view());
            }
        }
    }
    let moves_clock = invocation.may(Target::Cluster, Action::AdvanceClusterTime);
    node.replication.append_times(reply, (!moves_clock).then_some(&node.security.times));
}

/// Writes the body of a request that did not get as far as a command.
pub(super) fn fail_early(node: &Node, error: &Error, reply: &mut DocBuilder) {
    append_failure(node, error, error.labels(), None, reply);
    node.replication.append_times(reply, node.security.is_enabled.then_some(&node.security.times));
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
