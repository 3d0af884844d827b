//! `currentOp`: the operations in progress.
//!
//! Filters are taken as plain values at dotted paths. Operators wait for the query language; until then they are refused
//! rather than ignored.

use crate::{CommandRow, Invocation, run_boxed};
use pando_base::{ErrorCode, OperationContext, Result, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, FieldPath, Value, compare, get_path, iso_8601};

pub(super) const ROW: CommandRow = CommandRow {
    name: "currentOp",
    help: "get currently running operations",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    privileges: &["inprog"],
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let mut filters = Vec::new();
    let mut is_own_only = false;
    for element in invocation.body().elements().skip(1) {
        match &**element.name {
            b"$ownOps" => is_own_only = element.value.is_true(),
            b"$all" | b"$truncateOps" => {}
            _ if crate::arguments::is_generic(element.name) => {}
            _ => filters.push(checked(element)?),
        }
    }
    let is_ours = |context: &OperationContext| {
        !is_own_only || context.client().connection_id() == invocation.connection.client.connection_id()
    };
    reply.array("inprog", |array| {
        for context in invocation.node.operations.list().iter().filter(|context| is_ours(context)) {
            let described = described(invocation, context);
            if filters.iter().all(|(path, wanted)| matches(described.view(), path, *wanted)) {
                array.push(&described);
            }
        }
    });
    Ok(())
}

fn checked(element: pando_doc::Element<'_>) -> Result<(FieldPath, Value<'_>)> {
    let has_operator =
        element.value.as_document().and_then(DocRef::first).is_some_and(|first| first.name.starts_with(b"$"));
    ensure!(
        !has_operator && !element.name.starts_with(b"$"),
        ErrorCode::CommandNotSupported,
        "operators in the filter of currentOp are not supported yet: {}",
        element.name
    );
    Ok((FieldPath::parse(element.name)?, element.value))
}

fn matches(document: DocRef<'_>, path: &FieldPath, wanted: Value<'_>) -> bool {
    match get_path(document, path) {
        Some(found) => compare(found, wanted).is_eq(),
        None => wanted.is_nullish(),
    }
}

fn described(invocation: &Invocation, context: &OperationContext) -> Doc {
    let (node, client, description) = (&invocation.node, context.client(), context.description());
    let elapsed_micros = (context.elapsed_ns() / 1000) as i64;
    let mut operation = DocBuilder::new();
    operation.append("type", "op");
    operation.append("host", &node.options.host);
    operation.append("desc", client.description());
    if !client.is_internal() {
        operation.append("connectionId", client.connection_id() as i32);
        operation.append("client", client.remote());
        if !client.application().is_empty() {
            operation.append("appName", client.application());
        }
        operation.append_some("clientMetadata", client.metadata().map(|bytes| DocRef::trusted(bytes)));
    }
    operation.append("active", true);
    operation.append("currentOpTime", iso_8601(node.now_ms()));
    operation.append_some("lsid", description.session.as_ref().map(|bytes| DocRef::trusted(bytes)));
    operation.append("opid", context.id() as i32);
    operation.append("secs_running", elapsed_micros / 1_000_000);
    operation.append("microsecs_running", elapsed_micros);
    operation.append("op", description.kind.name());
    let namespace = description.namespace.as_ref().map(|namespace| match namespace.has_collection() {
        true => namespace.as_str().to_owned(),
        false => format!("{}.$cmd", namespace.as_str()),
    });
    operation.append("ns", namespace.unwrap_or_default());
    operation.append("redacted", false);
    operation.append_some("command", description.command.as_ref().map(|bytes| DocRef::trusted(bytes)));
    if !description.plan_summary.is_empty() {
        operation.append("planSummary", &description.plan_summary);
    }
    if context.killed_with().is_some() {
        operation.append("killPending", true);
    }
    operation.append("numYields", context.statistics().yields.get() as i32);
    operation.append("waitingForLock", description.waiting_for_lock);
    operation.finish()
}
