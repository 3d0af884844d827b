//! The list of sections, and those that are a few lines.

use super::{StatusSection, indexes, latencies, locks, memory, read_concerns, storage, transactions};
use crate::Invocation;
use crate::counters::OpCounters;
use pando_base::Counter;
use pando_doc::{DocBuilder, Value};
use pando_repl::ReplGate;
use std::sync::atomic::Ordering;

/// Fills a section in.
type Fill = fn(&Invocation, &mut DocBuilder);

/// A section that is one function.
struct Plain {
    name: &'static str,
    fill: Fill,
}

impl StatusSection for Plain {
    fn name(&self) -> &'static str {
        self.name
    }

    fn fill(&self, invocation: &Invocation, _: Option<Value<'_>>, section: &mut DocBuilder) {
        (self.fill)(invocation, section);
    }
}

/// The sections of this crate. The server sorts all by name.
pub fn sections() -> Vec<Box<dyn StatusSection>> {
    let plain: [(&'static str, Fill); 25] = [
        ("asserts", asserts),
        ("bucketCatalog", buckets),
        ("catalogStats", storage::catalog),
        ("defaultRWConcern", default_concerns),
        ("extra_info", extra_info),
        ("featureCompatibilityVersion", crate::settings::append_version_numbers),
        ("flowControl", locks::flow_control),
        ("globalLock", locks::global),
        ("indexBuilds", indexes::builds),
        ("indexBulkBuilder", indexes::sorting),
        ("indexStats", indexes::statistics),
        ("locks", locks::taken),
        ("logicalSessionRecordCache", logical_sessions),
        ("mem", memory::compatible),
        ("memory", memory::by_owner),
        ("opcounters", operations),
        ("opcountersRepl", replicated_operations),
        ("oplogTruncation", storage::oplog),
        ("pando", storage::own),
        ("profiler", profiler),
        ("repl", replication),
        ("resourceConsumption", resources),
        ("security", security),
        ("storageEngine", storage::storage_engine),
        ("wiredTiger", storage::compatible),
    ];
    let boxed = |(name, fill)| Box::new(Plain { name, fill }) as Box<dyn StatusSection>;
    let mut sections: Vec<_> = plain.into_iter().map(boxed).collect();
    sections.push(Box::new(latencies::Latencies));
    sections.push(Box::new(MirroredReads));
    sections.push(Box::new(read_concerns::ReadConcerns));
    sections.push(Box::new(transactions::Transactions));
    sections
}

/// `mirroredReads`: reads that other members could be sent as well, so that they keep at hand what the primary does.
struct MirroredReads;

impl StatusSection for MirroredReads {
    fn name(&self) -> &'static str {
        "mirroredReads"
    }

    fn is_included_by_default(&self) -> bool {
        false
    }

    fn fill(&self, invocation: &Invocation, _: Option<Value<'_>>, section: &mut DocBuilder) {
        const MIRRORED: [&str; 5] = ["count", "distinct", "find", "findAndModify", "update"];
        let table = &invocation.node.table;
        let count = |name: &&str| table.find(name.as_bytes()).map_or(0, |entry| entry.counters.total.get());
        section.append("seen", MIRRORED.iter().map(count).sum::<u64>() as i64);
        // There is nobody to send them to.
        section.append("sent", 0_i64);
    }
}

/// The concerns of commands that give none; without a set there are none.
fn default_concerns(invocation: &Invocation, section: &mut DocBuilder) {
    if let Some(data) = invocation.node.data.as_ref().filter(|data| data.replication.is_replicated()) {
        crate::settings::append_defaults(data, false, section);
    }
}

/// The buckets that measurements go into.
fn buckets(invocation: &Invocation, section: &mut DocBuilder) {
    if let Some(data) = &invocation.node.data {
        data.query.buckets.append_status(section);
    }
}

/// What was written to `system.profile`.
fn profiler(invocation: &Invocation, section: &mut DocBuilder) {
    let Some(data) = &invocation.node.data else { return };
    section.append("totalWrites", data.profiler.writes.load(Ordering::Relaxed));
    section.append("activeWriters", data.profiler.active_writers.load(Ordering::Relaxed));
}

fn asserts(invocation: &Invocation, section: &mut DocBuilder) {
    let asserts = &invocation.node.counters.asserts;
    section.append("regular", asserts.regular.get() as i32);
    section.append("warning", asserts.warning.get() as i32);
    section.append("msg", asserts.message.get() as i32);
    section.append("user", asserts.user.get() as i32);
    section.append("tripwire", asserts.tripwire.get() as i32);
    section.append("rollovers", asserts.rollovers.get() as i32);
}

fn extra_info(invocation: &Invocation, section: &mut DocBuilder) {
    let usage = invocation.node.machine.usage();
    section.append("note", "fields vary by platform");
    section.append("user_time_us", usage.user_micros as i64);
    section.append("system_time_us", usage.system_micros as i64);
    section.append("page_faults", usage.page_faults as i64);
    section.append("threads", usage.threads as i32);
}

fn logical_sessions(invocation: &Invocation, section: &mut DocBuilder) {
    let Some(data) = &invocation.node.data else { return };
    let small = |number: i64| i32::try_from(number).unwrap_or(i32::MAX);
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let done = data.session_cache.statistics();
    section.append("activeSessionsCount", count(data.session_cache.count()));
    section.append("sessionsCollectionJobCount", small(done.refresh_count));
    section.append("lastSessionsCollectionJobDurationMillis", small(done.refresh_duration_ms));
    section.append("lastSessionsCollectionJobTimestamp", Value::DateTime(done.refresh_date_ms));
    section.append("lastSessionsCollectionJobEntriesRefreshed", small(done.refreshed));
    section.append("lastSessionsCollectionJobEntriesEnded", small(done.ended));
    section.append("lastSessionsCollectionJobCursorsClosed", small(done.cursors_closed));
    section.append("transactionReaperJobCount", small(done.reap_count));
    section.append("lastTransactionReaperJobDurationMillis", small(done.reap_duration_ms));
    section.append("lastTransactionReaperJobTimestamp", Value::DateTime(done.reap_date_ms));
    section.append("lastTransactionReaperJobEntriesCleanedUp", small(done.reaped));
    section.append("sessionCatalogSize", count(data.sessions.list().len()));
}

fn operations(invocation: &Invocation, section: &mut DocBuilder) {
    append_operations(&invocation.node.counters.operations, section);
}

/// Nothing is applied from another member yet.
fn replicated_operations(invocation: &Invocation, section: &mut DocBuilder) {
    if invocation.node.replication.is_replica_set() {
        append_operations(&OpCounters::default(), section);
    }
}

fn append_operations(operations: &OpCounters, section: &mut DocBuilder) {
    section.append("insert", operations.insert.get() as i64);
    section.append("query", operations.query.get() as i64);
    section.append("update", operations.update.get() as i64);
    section.append("delete", operations.delete.get() as i64);
    section.append("getmore", operations.get_more.get() as i64);
    section.append("command", operations.command.get() as i64);
}

fn replication(invocation: &Invocation, section: &mut DocBuilder) {
    let (node, connection) = (&invocation.node, &invocation.connection);
    if node.replication.is_replica_set() {
        node.replication.append_hello(connection, node.now_ms(), false, section);
        let rollback_id = node.data.as_ref().and_then(|data| data.replication_parts.rollback_id().ok());
        section.append_some("rbid", rollback_id);
    }
}

/// Only where sums are kept.
fn resources(invocation: &Invocation, section: &mut DocBuilder) {
    if crate::watch::are_summed(&invocation.node.parameters) {
        invocation.node.counters.resources.append_section(section);
    }
}

fn security(invocation: &Invocation, section: &mut DocBuilder) {
    fn pair(section: &mut DocBuilder, name: &str, received: &Counter, successful: &Counter) {
        section.document(name, |section| {
            section.append("received", i64::try_from(received.get()).unwrap_or(i64::MAX));
            section.append("successful", i64::try_from(successful.get()).unwrap_or(i64::MAX));
        });
    }
    if let Some(shown) = invocation.node.control.certificate() {
        section.append("SSLServerSubjectName", shown.subject.as_str());
        section.append("SSLServerHasCertificateAuthority", shown.has_authorities);
        section.append("SSLServerCertificateExpirationDate", Value::DateTime(shown.expires_ms));
    }
    section.document("authentication", |authentication| {
        let known = &invocation.node.security;
        let number = |counter: &Counter| i64::try_from(counter.get()).unwrap_or(i64::MAX);
        authentication.append("saslSupportedMechsReceived", number(&known.mechanisms_asked));
        authentication.append("totalAuthenticationTimeMicros", number(&known.authentication_micros));
        authentication.document("mechanisms", |mechanisms| {
            for (name, counters) in invocation.node.security.counters() {
                mechanisms.document(name, |section| {
                    let (received, successful) = (&counters.speculative_received, &counters.speculative_successful);
                    pair(section, "speculativeAuthenticate", received, successful);
                    pair(section, "clusterAuthenticate", &counters.cluster_received, &counters.cluster_successful);
                    pair(section, "authenticate", &counters.received, &counters.successful);
                });
            }
        });
    });
}
