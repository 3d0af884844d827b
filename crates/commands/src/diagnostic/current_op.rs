//! `currentOp`: the operations in progress. Every field that is no option is part of a filter, as for a find.

use crate::session::session_of;
use crate::status::{append_flow_stats, append_lock_section};
use crate::{Access, CommandRow, Invocation, Node, run_boxed};
use pando_base::{Client, CursorFacts, OperationContext, Result};
use pando_doc::{Doc, DocBuilder, DocRef, Value, iso_8601};
use pando_env::Place;
use pando_expr::{MatchExpression, ParseContext};
use pando_locks::{LockerInfo, LockerReport};
use pando_session::TransactionAccount;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub(super) const ROW: CommandRow = CommandRow {
    name: "currentOp",
    help: "get currently running operations",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    privileges: Access::Checked(crate::access::may_look),
    place: Place::Control,
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let mut filter = DocBuilder::new();
    let (mut is_own_only, mut with_idle, mut truncates) = (false, false, true);
    for element in invocation.body().elements().skip(1) {
        match &**element.name {
            b"$ownOps" => is_own_only = element.value.is_true(),
            b"$all" => with_idle = element.value.is_true(),
            // One reply holds all operations, so none may be large; tests may want them whole.
            b"$truncateOps" => truncates = !invocation.node.options.test_commands_enabled || element.value.is_true(),
            _ if crate::arguments::is_generic(element.name) => {}
            _ => filter.append_element(element),
        }
    }
    let filter = MatchExpression::parse(filter.finish().view(), &ParseContext::new(invocation.node.now_ms()))?;
    let is_ours = |context: &OperationContext| !is_own_only || invocation.is_own_client(context.client());
    let observer = Observer::of(&invocation.node, truncates);
    reply.array("inprog", |array| {
        let operations = invocation.node.operations.list();
        for context in operations.iter().filter(|context| is_ours(context)) {
            let described = observer.describe(context);
            if filter.matches(described.view()) {
                array.push(&described);
            }
        }
        let is_ours = |client: &Client| !is_own_only || invocation.is_own_client(client);
        if with_idle {
            for described in observer.idle_connections(&operations, &is_ours) {
                if filter.matches(described.view()) {
                    array.push(&described);
                }
            }
        }
        for described in observer.idle_transactions(&is_ours) {
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
    /// Large commands are shown in part.
    truncates: bool,
}

/// Commands of more bytes are shown in part, as so many.
const COMMAND_BYTES_MAX: usize = 1000;

impl<'a> Observer<'a> {
    /// Looks at the locks first.
    pub(crate) fn of(node: &'a Node, truncates: bool) -> Observer<'a> {
        let mut locks: HashMap<u32, LockerInfo> = HashMap::new();
        let reports = node.data.as_ref().map(|data| data.services.locks.lockers()).unwrap_or_default();
        for LockerReport { operation, info, .. } in reports {
            match locks.entry(operation) {
                Entry::Vacant(place) => drop(place.insert(info)),
                // Work that an operation does beside its own has a locker of its own.
                Entry::Occupied(mut place) => place.get_mut().absorb(info),
            }
        }
        Observer { node, locks, truncates }
    }

    fn append_locks(&self, operation_id: u32, out: &mut DocBuilder) {
        let none = LockerInfo::default();
        let info = self.locks.get(&operation_id).unwrap_or(&none);
        out.document("locks", |locks| {
            info.letters_by_type().into_iter().for_each(|(name, letter)| locks.append(name, letter));
        });
        out.append("waitingForLock", info.waiting.is_some());
        out.document("lockStats", |stats| {
            for (name, section) in info.stats.sections() {
                stats.document(name, |kind| append_lock_section(section, kind));
            }
        });
        out.append("waitingForFlowControl", info.is_in_flow_control);
        out.document("flowControlStats", |stats| append_flow_stats(&info.stats, stats));
    }

    /// One operation.
    pub(crate) fn describe(&self, context: &OperationContext) -> Doc {
        let mut operation = describe(self.node, context, self.truncates);
        let account = self.append_transaction(context, &mut operation);
        self.append_locks(account.map_or(context.id(), |account| account.operation_id), &mut operation);
        operation.finish()
    }

    /// What is told of the transaction that the operation is a statement of, if it is one.
    fn append_transaction(&self, context: &OperationContext, out: &mut DocBuilder) -> Option<TransactionAccount> {
        let data = self.node.data.as_ref()?;
        let description = context.description();
        let number = description.transaction_number?;
        let session = session_of(DocRef::trusted(description.session.as_ref()?))?;
        let account = data.sessions.find(session).and_then(|active| active.account().clone());
        let account = account.filter(|account| account.number == number);
        out.document("transaction", |out| match &account {
            Some(account) => append_account(self.node, account, out),
            None => out.document("parameters", |out| out.append("txnNumber", number)),
        });
        account
    }

    /// The connections on which nothing goes on.
    pub(crate) fn idle_connections(
        &self,
        operations: &[OperationContext],
        is_shown: &dyn Fn(&Client) -> bool,
    ) -> Vec<Doc> {
        let busy: HashSet<i64> = operations.iter().map(|context| context.client().connection_id()).collect();
        let clients = self.node.operations.connections();
        let is_idle = |client: &&Arc<Client>| !busy.contains(&client.connection_id()) && is_shown(client);
        let described = clients.iter().filter(is_idle).map(|client| {
            let mut out = DocBuilder::new();
            append_client(self.node, client, false, &mut out);
            out.finish()
        });
        described.collect()
    }

    /// The transactions that wait for their clients.
    pub(crate) fn idle_transactions(&self, is_shown: &dyn Fn(&Client) -> bool) -> Vec<Doc> {
        let sessions = self.node.data.as_ref().map(|data| data.sessions.idle_transactions()).unwrap_or_default();
        let mut found = Vec::new();
        for session in sessions {
            let Some(account) = session.account().clone() else { continue };
            let client = &account.client;
            if !is_shown(client) {
                continue;
            }
            let mut out = DocBuilder::new();
            out.append("type", "idleSession");
            out.append("host", &self.node.options.host);
            out.append("desc", "inactive transaction");
            out.append("client", client.remote());
            out.append("connectionId", client.connection_id());
            out.append("appName", client.application());
            match client.metadata() {
                Some(bytes) => out.append("clientMetadata", DocRef::trusted(bytes)),
                None => out.append("clientMetadata", Doc::new()),
            }
            out.append("lsid", &session.document);
            out.document("transaction", |out| append_account(self.node, &account, out));
            out.append("active", false);
            self.append_locks(account.operation_id, &mut out);
            found.push(out.finish());
        }
        found
    }
}

fn append_account(node: &Node, account: &TransactionAccount, out: &mut DocBuilder) {
    let times = account.times(node.env.clock().monotonic_ns());
    let long = |micros: u64| i64::try_from(micros).unwrap_or(i64::MAX);
    out.document("parameters", |out| {
        out.append("txnNumber", account.number);
        out.append("txnRetryCounter", 0);
        out.append("autocommit", false);
        if !account.read_concern.is_empty() {
            out.append("readConcern", &account.read_concern);
        }
    });
    out.append("readTimestamp", account.read_timestamp);
    out.append("startWallClockTime", iso_8601(account.started_ms));
    out.append("timeOpenMicros", long(times.open_micros));
    out.append("timeActiveMicros", long(times.active_micros));
    out.append("timeInactiveMicros", long(times.open_micros.saturating_sub(times.active_micros)));
    out.append_some("timePreparedMicros", times.prepared_micros.map(long));
    if account.expires_ms != i64::MAX {
        out.append("expiryTime", iso_8601(account.expires_ms));
    }
}

/// What is told of a cursor, of one in use and of an idle one.
pub(crate) fn append_cursor(
    node: &Node,
    cursor: &CursorFacts,
    originating: Option<DocRef<'_>>,
    truncates: bool,
    out: &mut DocBuilder,
) {
    let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let (now_ms, forward_ms) = (node.now_ms(), node.env.clock().monotonic_ns() / 1_000_000);
    let date = |at_ms: u64| Value::DateTime(now_ms.saturating_sub(count(forward_ms.saturating_sub(at_ms))));
    out.append("cursorId", cursor.id);
    out.append("createdDate", date(cursor.created_ms));
    out.append("lastAccessDate", date(cursor.last_used_ms));
    out.append("nDocsReturned", count(cursor.returned));
    out.append("nBatchesReturned", count(cursor.batches));
    out.append("noCursorTimeout", cursor.no_timeout);
    out.append("tailable", cursor.tailable);
    out.append("awaitData", cursor.await_data);
    if let Some(command) = originating {
        append_command("originatingCommand", command, truncates, out);
    }
}

/// Who it is, and whether something goes on.
fn append_client(node: &Node, client: &Client, is_active: bool, operation: &mut DocBuilder) {
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
    operation.append("active", is_active);
    operation.append("currentOpTime", iso_8601(node.now_ms()));
}

/// A command; one that is too large in part, beside its comment.
pub(crate) fn append_command(name: &str, command: DocRef<'_>, truncates: bool, out: &mut DocBuilder) {
    if !truncates || command.size_bytes() <= COMMAND_BYTES_MAX {
        out.append(name, command);
        return;
    }
    let comment = command.get("comment");
    let mut rest = DocBuilder::new();
    command.elements().filter(|field| field.name != "comment").for_each(|field| rest.append_element(field));
    let mut text = rest.finish().to_string();
    if text.len() > COMMAND_BYTES_MAX {
        let end = (0..=COMMAND_BYTES_MAX - 3).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    out.document(name, |out| {
        out.append("$truncated", text);
        out.append_some("comment", comment);
    });
}

fn describe(node: &Node, context: &OperationContext, truncates: bool) -> DocBuilder {
    let (client, description) = (context.client(), context.description());
    let elapsed_micros = (context.elapsed_ns() / 1000) as i64;
    let mut operation = DocBuilder::new();
    append_client(node, client, true, &mut operation);
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
    if let Some(command) = &description.command {
        append_command("command", DocRef::trusted(command), truncates, &mut operation);
    }
    if !description.plan_summary.is_empty() {
        operation.append("planSummary", &*description.plan_summary);
    }
    if let Some(cursor) = &description.cursor {
        let originating = description.originating_command.as_ref().map(|bytes| DocRef::trusted(bytes));
        operation.document("cursor", |out| {
            append_cursor(node, cursor, originating, truncates, out);
            out.append("operationUsingCursorId", i64::from(context.id()));
        });
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
    let statistics = context.statistics();
    operation.append("numYields", statistics.yields.get() as i32);
    for (name, count) in
        [("prepareReadConflicts", &statistics.prepare_conflicts), ("writeConflicts", &statistics.write_conflicts)]
    {
        if count.get() > 0 {
            operation.append(name, i64::try_from(count.get()).unwrap_or(i64::MAX));
        }
    }
    if !description.fail_point.is_empty() {
        operation.append("failpointMsg", description.fail_point);
    }
    operation
}
