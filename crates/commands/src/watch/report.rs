//! Everything that is told of one operation: as a line of the log of slow operations, and as a document of `system.profile`.
//! The names and their order are MongoDB's.

use super::ending::Told;
use super::resources;
use crate::status::{append_flow_stats, append_lock_section};
use crate::{Invocation, REDACT_CLIENT_LOG_DATA};
use pando_base::{LogValue, OperationKind, OperationStatistics};
use pando_doc::{Doc, DocBuilder, DocRef, JsonFormat, Value, doc, doc_to_json};
use pando_locks::LockStats;

/// A larger command is cut.
const COMMAND_BYTES_MAX: usize = 50 * 1024;

/// A longer text in a command that is cut is cut to so many bytes.
const TEXT_BYTES_MAX: usize = 160;
const TEXT_BYTES_LEFT: usize = 150;

/// What is told of an operation, put together when it is known that somebody wants it.
pub(super) struct Report<'a> {
    pub(super) invocation: &'a Invocation,
    pub(super) told: &'a Told<'a>,
    pub(super) namespace: String,
    pub(super) command: Doc,
    pub(super) description: pando_base::OperationDescription,
}

impl<'a> Report<'a> {
    pub(super) fn new(invocation: &'a Invocation, told: &'a Told<'a>) -> Report<'a> {
        let description = invocation.context.description();
        let namespace = match (&told.statement, invocation.namespace.has_collection()) {
            // The batch as a whole is about the database; each statement is about the collection.
            (None, true) if !matches!(invocation.row.kind, OperationKind::Update | OperationKind::Remove) => {
                invocation.namespace.as_str().to_owned()
            }
            (Some(_), true) => invocation.namespace.as_str().to_owned(),
            _ => format!("{}.$cmd", invocation.database),
        };
        let command = match (&told.statement, &description.command) {
            (Some(statement), _) => statement.clone(),
            // What goes on with a cursor has the comment of what made it.
            (None, Some(command)) if description.originating_command.is_some() => Doc::trusted(command.to_vec()),
            (None, _) => invocation.shown_body(),
        };
        Report { invocation, told, namespace, command, description }
    }

    /// What the operation is called.
    fn operation(&self) -> &'static str {
        match (self.told.statement.is_some(), self.invocation.row.kind) {
            (false, OperationKind::Update | OperationKind::Remove) => OperationKind::Command.name(),
            (_, kind) => kind.name(),
        }
    }

    /// True if documents were looked for, so that numbers that are zero say something.
    fn has_plan(&self) -> bool {
        !self.description.plan_summary.is_empty()
    }

    /// The counters that are told, also if they are zero.
    fn counts(&self) -> Vec<(&'static str, u64)> {
        let (counted, row) = (&self.told.statistics, self.invocation.row);
        let is_statement = self.told.statement.is_some();
        let kind = if row.name == "findAndModify" { self.modifies() } else { row.kind };
        // What failed does not say that it changed nothing.
        let is_told = (is_statement || row.name == "findAndModify") && self.told.error.is_none();
        let of_updates = kind == OperationKind::Update && is_told;
        let of_deletes = kind == OperationKind::Remove && is_told;
        [
            ("keysExamined", counted.keys_examined.get(), self.has_plan()),
            ("docsExamined", counted.documents_examined.get(), self.has_plan()),
            ("nMatched", counted.matched.get(), of_updates),
            ("nModified", counted.modified.get(), of_updates),
            ("ninserted", counted.inserted.get(), kind == OperationKind::Insert),
            ("ndeleted", counted.deleted.get(), of_deletes),
            ("nUpserted", counted.upserted.get(), of_updates),
        ]
        .into_iter()
        .filter(|(name, count, is_told)| *is_told || (*count > 0 && *name != "ninserted"))
        .map(|(name, count, _)| (name, count))
        .collect()
    }

    /// What a findAndModify does.
    fn modifies(&self) -> OperationKind {
        let removes = self.invocation.body().get("remove").is_some_and(|value| value.is_true());
        if removes { OperationKind::Remove } else { OperationKind::Update }
    }

    /// The counters that are told only if there is something to tell.
    fn rare_counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counted = &self.told.statistics;
        [
            ("keysInserted", counted.keys_inserted.get()),
            ("keysDeleted", counted.keys_deleted.get()),
            ("prepareReadConflicts", counted.prepare_conflicts.get()),
            ("writeConflicts", counted.write_conflicts.get()),
            ("temporarilyUnavailableErrors", counted.temporarily_unavailable.get()),
            ("transactionTooLargeForCacheErrors", counted.transaction_too_large.get()),
        ]
        .into_iter()
        .filter(|(_, count)| *count > 0)
    }

    /// The facts of the plan that are told only if they are so.
    fn plan_truths(&self) -> impl Iterator<Item = &'static str> {
        let plan = self.description.plan.as_deref();
        let is = |truth: fn(&pando_base::PlanFacts) -> bool| plan.is_some_and(truth);
        [
            ("hasSortStage", is(|plan| plan.has_sort_stage)),
            ("usedDisk", is(|plan| plan.used_disk)),
            ("fromMultiPlanner", is(|plan| plan.from_multi_planner)),
            ("fromPlanCache", is(|plan| plan.from_plan_cache)),
            ("replanned", is(|plan| plan.replan_reason.is_some())),
        ]
        .into_iter()
        .filter_map(|(name, holds)| holds.then_some(name))
    }

    /// How many documents went to the client, for those that send any.
    fn returned(&self) -> Option<u64> {
        let row = self.invocation.row;
        let returns = matches!(row.kind, OperationKind::Query | OperationKind::GetMore)
            || matches!(row.name, "aggregate" | "listIndexes" | "listCollections");
        let count = self.told.statistics.documents_returned.get();
        (returns || count > 0).then_some(count)
    }

    fn elapsed_ms(&self) -> u64 {
        self.told.elapsed_ns / 1_000_000
    }

    fn hashes(&self) -> Option<(&str, &str)> {
        let plan = self.description.plan.as_deref().filter(|plan| !plan.query_hash.is_empty())?;
        Some((&plan.query_hash, &plan.plan_cache_key))
    }

    /// The document for `system.profile`.
    pub(super) fn document(&self) -> Doc {
        let mut out = DocBuilder::with_capacity(1024);
        self.append_request(&mut out);
        self.append_work(&mut out);
        self.append_surroundings(&mut out);
        self.append_client(&mut out);
        out.finish()
    }

    fn append_request(&self, out: &mut DocBuilder) {
        out.append("op", self.operation());
        out.append("ns", &self.namespace);
        append_command("command", self.command.view(), out);
        if let Some(bytes) = &self.description.originating_command {
            append_command("originatingCommand", DocRef::trusted(bytes), out);
        }
        out.append_some("cursorid", self.description.cursor_id);
        if self.invocation.is_exhaust() {
            out.append("exhaust", true);
        }
    }

    fn append_work(&self, out: &mut DocBuilder) {
        let (counts, plan) = (self.counts(), self.description.plan.as_deref());
        let (looked, done) = counts.split_at(counts.iter().take_while(|(name, _)| name.ends_with("Examined")).count());
        looked.iter().for_each(|(name, count)| out.append(name, narrow(*count)));
        self.plan_truths().for_each(|name| out.append(name, true));
        out.append_some("replanReason", plan.and_then(|plan| plan.replan_reason.as_deref()));
        done.iter().for_each(|(name, count)| out.append(name, narrow(*count)));
        if self.description.cursor_exhausted {
            out.append("cursorExhausted", true);
        }
        self.rare_counts().for_each(|(name, count)| out.append(name, narrow(count)));
        out.append("numYield", narrow(self.told.statistics.yields.get()));
        out.append_some("nreturned", self.returned().map(narrow));
        if let Some((query_hash, plan_cache_key)) = self.hashes() {
            out.append("queryHash", query_hash);
            out.append("planCacheKey", plan_cache_key);
        }
        if plan.is_some() {
            out.append("queryFramework", "classic");
        }
    }

    fn append_surroundings(&self, out: &mut DocBuilder) {
        let generic = &self.invocation.generic;
        out.document("locks", |locks| append_locks(&self.told.locks, locks));
        out.document("flowControl", |stats| append_flow_stats(&self.told.locks, stats));
        if let Some(concern) = &generic.read_concern {
            out.append("readConcern", concern);
        }
        out.append_some("writeConcern", generic.write_concern.as_ref());
        if self.told.has_used_storage {
            out.document("storage", |storage| append_storage(&self.told.statistics, storage));
        }
        out.append_some("operationMetrics", resources::of_operation(self.invocation, true));
        if let Some(error) = self.told.error {
            out.append("ok", 0.0);
            out.append("errMsg", error.reason());
            out.append("errName", &*error.code().name());
            out.append("errCode", error.code().number());
        }
        out.append_some("responseLength", self.told.reply_bytes.map(|bytes| narrow(bytes as u64)));
        if self.told.statement.is_none() {
            out.append("protocol", "op_msg");
        }
        if self.invocation.context.is_watched() {
            out.append("cpuNanos", self.told.statistics.processor_ns.get() as i64);
        }
        out.append("millis", narrow(self.elapsed_ms()));
        if self.has_plan() {
            out.append("planSummary", &*self.description.plan_summary);
        }
        let planning_micros = self.told.statistics.planning_micros.get();
        if planning_micros > 0 {
            out.append("planningTimeMicros", narrow(planning_micros));
        }
        let slot_micros = self.told.statistics.oplog_slot_micros.get();
        if slot_micros > 0 {
            out.append("totalOplogSlotDurationMicros", slot_micros as i64);
        }
        let execution = self.description.plan.as_deref().and_then(|plan| plan.execution.as_ref());
        out.append_some("execStats", execution.map(|bytes| DocRef::trusted(bytes)));
    }

    fn append_client(&self, out: &mut DocBuilder) {
        let (node, client) = (&self.invocation.node, &self.invocation.connection.client);
        out.append("ts", Value::DateTime(node.now_ms()));
        out.append("client", host_of(client.remote()));
        if !client.application().is_empty() {
            out.append("appName", client.application());
        }
        let user = client.user();
        out.array("allUsers", |users| {
            if let Some(user) = &user {
                users.document(|out| {
                    out.append("user", &user.user);
                    out.append("db", &user.database);
                });
            }
        });
        out.append("user", user.map(|user| format!("{}@{}", user.user, user.database)).unwrap_or_default());
    }

    /// The attributes of the line in the log.
    pub(super) fn attributes(&self) -> Vec<(&'static str, LogValue)> {
        let mut line: Vec<(&'static str, LogValue)> = Vec::with_capacity(32);
        self.request_attributes(&mut line);
        self.work_attributes(&mut line);
        self.end_attributes(&mut line);
        line
    }

    fn request_attributes(&self, line: &mut Vec<(&'static str, LogValue)>) {
        let (client, statistics) = (&self.invocation.connection.client, &self.told.statistics);
        let kind = if self.told.statement.is_some() { self.operation() } else { "command" };
        line.push(("type", LogValue::fixed(kind)));
        line.push(("ns", self.namespace.as_str().into()));
        if !client.application().is_empty() {
            line.push(("appName", client.application().into()));
        }
        line.push(("command", self.json(self.command.view())));
        if let Some(bytes) = &self.description.originating_command {
            line.push(("originatingCommand", self.json(DocRef::trusted(bytes))));
        }
        if self.has_plan() {
            line.push(("planSummary", (&*self.description.plan_summary).into()));
        }
        if statistics.planning_micros.get() > 0 {
            line.push(("planningTimeMicros", statistics.planning_micros.get().into()));
        }
        if let Some(id) = self.description.cursor_id {
            line.push(("cursorid", id.into()));
        }
    }

    fn work_attributes(&self, line: &mut Vec<(&'static str, LogValue)>) {
        let (counts, plan) = (self.counts(), self.description.plan.as_deref());
        let (looked, done) = counts.split_at(counts.iter().take_while(|(name, _)| name.ends_with("Examined")).count());
        line.extend(looked.iter().map(|(name, count)| (*name, (*count).into())));
        line.extend(self.plan_truths().map(|name| (name, true.into())));
        if let Some(reason) = plan.and_then(|plan| plan.replan_reason.as_deref()) {
            line.push(("replanReason", self.shown(reason)));
        }
        line.extend(done.iter().map(|(name, count)| (*name, (*count).into())));
        if self.description.cursor_exhausted {
            line.push(("cursorExhausted", true.into()));
        }
        line.extend(self.rare_counts().map(|(name, count)| (name, count.into())));
        line.push(("numYields", self.told.statistics.yields.get().into()));
        if let Some(returned) = self.returned() {
            line.push(("nreturned", returned.into()));
        }
        if let Some((query_hash, plan_cache_key)) = self.hashes() {
            line.push(("queryHash", query_hash.into()));
            line.push(("planCacheKey", plan_cache_key.into()));
        }
        if plan.is_some() {
            line.push(("queryFramework", LogValue::fixed("classic")));
        }
    }

    fn end_attributes(&self, line: &mut Vec<(&'static str, LogValue)>) {
        let (generic, statistics) = (&self.invocation.generic, &self.told.statistics);
        if let Some(error) = self.told.error {
            line.push(("ok", 0.into()));
            line.push(("errMsg", self.shown(error.reason())));
            line.push(("errName", LogValue::Text(error.code().name())));
            line.push(("errCode", error.code().number().into()));
        }
        if let Some(bytes) = self.told.reply_bytes {
            line.push(("reslen", bytes.into()));
        }
        let mut locks = DocBuilder::new();
        append_locks(&self.told.locks, &mut locks);
        line.push(("locks", json(locks.finish().view())));
        let mut flow_control = DocBuilder::new();
        append_flow_stats(&self.told.locks, &mut flow_control);
        let flow_control = flow_control.finish();
        if !flow_control.is_empty() {
            line.push(("flowControl", json(flow_control.view())));
        }
        if let Some(concern) = &generic.read_concern {
            line.push(("readConcern", json(concern.view())));
        }
        if let Some(concern) = &generic.write_concern {
            line.push(("writeConcern", json(concern.view())));
        }
        let waited_ms = statistics.write_concern_wait_micros.get() / 1000;
        if waited_ms > 0 {
            line.push(("waitForWriteConcernDurationMillis", waited_ms.into()));
        }
        if statistics.oplog_slot_micros.get() > 0 {
            line.push(("totalOplogSlotDurationMicros", statistics.oplog_slot_micros.get().into()));
        }
        if self.told.has_used_storage {
            let mut storage = DocBuilder::new();
            append_storage(statistics, &mut storage);
            line.push(("storage", json(storage.finish().view())));
        }
        if let Some(used) = resources::of_operation(self.invocation, false) {
            line.push(("operationMetrics", json(used.view())));
        }
        if self.invocation.context.is_watched() {
            line.push(("cpuNanos", statistics.processor_ns.get().into()));
        }
        line.push(("remote", self.invocation.connection.client.remote().into()));
        if self.told.statement.is_none() {
            line.push(("protocol", LogValue::fixed("op_msg")));
        }
        line.push(("durationMillis", self.elapsed_ms().into()));
    }

    fn is_redacted(&self) -> bool {
        self.invocation.node.parameters.get(&REDACT_CLIENT_LOG_DATA)
    }

    /// A document of the client's.
    fn json(&self, document: DocRef<'_>) -> LogValue {
        match self.is_redacted() {
            true => json(redacted(document).view()),
            false => json(document),
        }
    }

    /// Text that may have values of the client's in it.
    fn shown(&self, text: &str) -> LogValue {
        if self.is_redacted() { LogValue::fixed("###") } else { text.into() }
    }
}

fn json(document: DocRef<'_>) -> LogValue {
    LogValue::Json(doc_to_json(document, JsonFormat::Relaxed))
}

fn append_locks(stats: &LockStats, out: &mut DocBuilder) {
    for (name, section) in stats.sections() {
        out.document(name, |kind| append_lock_section(section, kind));
    }
}

/// What was read from files.
fn append_storage(statistics: &OperationStatistics, out: &mut DocBuilder) {
    let read = [("bytesRead", statistics.bytes_read.get()), ("timeReadingMicros", statistics.read_micros.get())];
    if read.iter().any(|(_, count)| *count > 0) {
        out.document("data", |data| {
            let told = read.iter().filter(|(_, count)| *count > 0);
            told.for_each(|(name, count)| data.append(name, *count as i64));
        });
    }
}

/// The document with "###" in place of every value.
pub(super) fn redacted(document: DocRef<'_>) -> Doc {
    let mut out = DocBuilder::with_capacity(document.size_bytes());
    for element in document.elements() {
        let name = element.name;
        match element.value {
            Value::Document(inner) => out.append(name, redacted(inner)),
            Value::Array(array) => out.array(name, |items| {
                for item in array.values() {
                    match item {
                        Value::Document(inner) => items.push(redacted(inner)),
                        _ => items.push("###"),
                    }
                }
            }),
            _ => out.append(name, "###"),
        }
    }
    out.finish()
}

/// A command, or the beginning of one that is large, with its comment.
fn append_command(name: &str, command: DocRef<'_>, out: &mut DocBuilder) {
    if command.size_bytes() <= COMMAND_BYTES_MAX {
        out.append(name, command);
        return;
    }
    let text = with_short_texts(command).to_string();
    // Room for the three dots.
    let text = match text.len() > COMMAND_BYTES_MAX {
        true => format!("{}...", beginning(&text, COMMAND_BYTES_MAX - 3)),
        false => text,
    };
    let mut truncated = doc! { "$truncated": text };
    if let Some(comment) = command.get("comment") {
        let mut with_comment = DocBuilder::new();
        with_comment.append_all(truncated.view());
        with_comment.append("comment", comment);
        truncated = with_comment.finish();
    }
    out.append(name, &truncated);
}

/// The document with long texts cut, as it is told in few words.
fn with_short_texts(document: DocRef<'_>) -> Doc {
    let mut out = DocBuilder::new();
    for element in document.elements() {
        match element.value {
            Value::Document(inner) => out.append(element.name, with_short_texts(inner)),
            Value::Array(array) => out.array(element.name, |items| {
                for item in array.values() {
                    match item {
                        Value::Document(inner) => items.push(with_short_texts(inner)),
                        Value::String(text) if text.len() > TEXT_BYTES_MAX => items.push(shortened(text)),
                        other => items.push(other),
                    }
                }
            }),
            Value::String(text) if text.len() > TEXT_BYTES_MAX => out.append(element.name, shortened(text)),
            _ => out.append_element(element),
        }
    }
    out.finish()
}

fn shortened(text: &[u8]) -> String {
    format!("{}...", beginning(&String::from_utf8_lossy(text), TEXT_BYTES_LEFT))
}

/// So many bytes of a text, or a few less: characters stay whole.
fn beginning(text: &str, size_bytes: usize) -> &str {
    let end = (0..=size_bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// An address without its port.
fn host_of(remote: &str) -> &str {
    let host = remote.rsplit_once(':').map_or(remote, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// A number in the smallest type that holds it.
fn narrow(number: u64) -> Value<'static> {
    match i32::try_from(number) {
        Ok(number) => Value::Int32(number),
        Err(_) => Value::Int64(i64::try_from(number).unwrap_or(i64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u15_redaction_leaves_names_only() {
        let document = doc! { "find": "c", "filter": { "a": [1, { "b": "x" }], "c": null } };
        let expected = doc! { "find": "###", "filter": { "a": ["###", { "b": "###" }], "c": "###" } };
        assert_eq!(redacted(document.view()), expected);
    }

    #[test]
    fn u15_large_commands_are_cut_and_keep_their_comment() {
        let texts: Vec<String> = (0..1000).map(|_| "\u{e9}".repeat(100)).collect();
        let mut filter = DocBuilder::new();
        texts.iter().enumerate().for_each(|(place, text)| filter.append(place.to_string(), text));
        let large = doc! { "find": "c", "filter": filter.finish(), "comment": "mine" };
        let mut out = DocBuilder::new();
        append_command("command", large.view(), &mut out);
        let told = out.finish();
        let command = told.get("command").unwrap().as_document().unwrap();
        assert!(command.get("$truncated").unwrap().as_str().unwrap().ends_with("..."));
        assert_eq!(command.get("comment").unwrap().as_str(), Some("mine"));
        assert!(told.size_bytes() < COMMAND_BYTES_MAX + 100);
        let one = doc! { "q": { "a": "x".repeat(COMMAND_BYTES_MAX) }, "multi": false };
        let mut out = DocBuilder::new();
        append_command("command", one.view(), &mut out);
        let told = out.finish();
        let command = told.get("command").unwrap().as_document().unwrap();
        let text = command.get("$truncated").unwrap().as_str().unwrap();
        assert!(text.starts_with("{ q: { a: \"xxx") && text.ends_with("x...\" }, multi: false }"), "{text}");
    }

    #[test]
    fn u15_clients_are_told_by_host() {
        assert_eq!(host_of("10.0.0.1:4711"), "10.0.0.1");
        assert_eq!(host_of("[::1]:4711"), "::1");
        assert_eq!(host_of("anonymous unix socket"), "anonymous unix socket");
    }
}
