//! `currentOp`: the operations in progress. Every field that is no option is part of a filter, as for a find.

use crate::status::append_lock_section;
use crate::{Access, CommandRow, Invocation, Node, run_boxed};
use pando_base::{OperationContext, Result};
use pando_doc::{Doc, DocBuilder, DocRef, iso_8601};
use pando_expr::{MatchExpression, ParseContext};
use pando_locks::{LockerInfo, LockerReport};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

pub(super) const ROW: CommandRow = CommandRow {
    name: "currentOp",
    help: "get currently running operations",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    privileges: Access::Checked(crate::access::may_look),
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let mut filter = DocBuilder::new();
    let mut is_own_only = false;
    for element in invocation.body().elements().skip(1) {
        match &**element.name {
            b"$ownOps" => is_own_only = element.value.is_true(),
            b"$all" | b"$truncateOps" => {}
            _ if crate::arguments::is_generic(element.name) => {}
            _ => filter.append_element(element),
        }
    }
    let filter = MatchExpression::parse(filter.finish().view(), &ParseContext::new(invocation.node.now_ms()))?;
    let is_ours = |context: &OperationContext| !is_own_only || invocation.is_own_client(context.client());
    let observer = Observer::of(&invocation.node);
    reply.array("inprog", |array| {
        for context in invocation.node.operations.list().iter().filter(|context| is_ours(context)) {
            let described = observer.describe(context);
            if filter.matches(described.view()) {
                array.push(&described);
            }
        }
    });
    if invocation.node.data.as_ref().is_some_and(|data| data.backups.lock_count() > 0) {
        reply.append("fsyncLock", true);
        reply.append("info", "use db.fsyncUnlock() to terminate the fsync write/snapshot lock");
    }
    Ok(())
}

/// Looks at operations in progress, as currentOp and `$currentOp` show them.
pub(crate) struct Observer<'a> {
    node: &'a Node,
    /// The locks, by operation.
    locks: HashMap<u32, LockerInfo>,
}

impl<'a> Observer<'a> {
    /// Looks at the locks first.
    pub(crate) fn of(node: &'a Node) -> Observer<'a> {
        let mut locks: HashMap<u32, LockerInfo> = HashMap::new();
        let reports = node.data.as_ref().map(|data| data.services.locks.lockers()).unwrap_or_default();
        for LockerReport { operation, info, .. } in reports {
            match locks.entry(operation) {
                Entry::Vacant(place) => drop(place.insert(info)),
                // Work that an operation does beside its own has a locker of its own.
                Entry::Occupied(mut place) => place.get_mut().absorb(info),
            }
        }
        Observer { node, locks }
    }

    fn append_locks(&self, context: &OperationContext, out: &mut DocBuilder) {
        let none = LockerInfo::default();
        let info = self.locks.get(&context.id()).unwrap_or(&none);
        out.document("locks", |locks| {
            info.letters_by_type().into_iter().for_each(|(name, letter)| locks.append(name, letter));
        });
        out.append("waitingForLock", info.waiting.is_some());
        out.document("lockStats", |stats| {
            for (name, section) in info.stats.sections() {
                stats.document(name, |kind| append_lock_section(section, kind));
            }
        });
        out.append("waitingForFlowControl", false);
        out.document("flowControlStats", |_| {});
    }

    /// One operation.
    pub(crate) fn describe(&self, context: &OperationContext) -> Doc {
        let mut operation = describe(self.node, context);
        self.append_locks(context, &mut operation);
        operation.finish()
    }
}

fn describe(node: &Node, context: &OperationContext) -> DocBuilder {
    let (client, description) = (context.client(), context.description());
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
    if let Some(user) = client.user() {
        operation.array("effectiveUsers", |users| {
            users.document(|shown| {
                shown.append("user", &user.user);
                shown.append("db", &user.database);
            });
        });
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
        operation.append("planSummary", &*description.plan_summary);
    }
    if let Some((what, done, total)) = &description.progress {
        let percent = done.saturating_mul(100).checked_div(*total).unwrap_or(100);
        operation.append("msg", format!("{what} {what}: {done}/{total} {percent}%"));
        operation.document("progress", |progress| {
            progress.append("done", *done as i64);
            progress.append("total", *total as i64);
        });
    }
    if context.killed_with().is_some() {
        operation.append("killPending", true);
    }
    operation.append("numYields", context.statistics().yields.get() as i32);
    operation
}
