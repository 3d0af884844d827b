//! What dispatch and commands count, for serverStatus.

use crate::Class;
use crate::status::{ApiVersions, ReadConcernCounters};
use crate::ttl::TtlCounters;
use crate::watch::ResourceTotals;
use pando_base::{Counter, Gauge, LatencyHistogram, Metric, MetricTree, OperationStatistics, Result, ShardedCounter};
use pando_doc::DocBuilder;
use std::sync::Arc;

/// All of it.
#[derive(Debug, Default)]
pub struct Counters {
    /// Operations by kind.
    pub operations: OpCounters,
    /// How long operations took.
    pub latencies: OpLatencies,
    /// Errors by kind.
    pub asserts: AssertCounters,
    /// Hellos that wait or stream.
    pub hello: HelloCounters,
    /// What became of documents.
    pub documents: DocumentCounters,
    /// Waiting for write concerns.
    pub write_concerns: WriteConcernCounters,
    /// With which read concerns reads come.
    pub read_concerns: ReadConcernCounters,
    /// What operations took of storage and processor.
    pub resources: ResourceTotals,
    /// Which versions of the API applications ask for.
    pub api_versions: ApiVersions,
    /// What the TTL monitor has done.
    pub ttl: TtlCounters,
    /// How the statements of `update` say what to change.
    pub updates: UpdateCounters,
    /// And those of `findAndModify`.
    pub find_and_modify: UpdateCounters,
}

impl Counters {
    /// Adds those that serverStatus shows below `metrics`.
    pub fn add_metrics(&self, tree: &mut MetricTree) -> Result<()> {
        let (documents, concerns) = (&self.documents, &self.write_concerns);
        for (path, counter) in [
            ("metrics.document.deleted", &documents.deleted),
            ("metrics.document.inserted", &documents.inserted),
            ("metrics.document.returned", &documents.returned),
            ("metrics.document.updated", &documents.updated),
            ("metrics.commands.findAndModify.arrayFilters", &self.find_and_modify.array_filters),
            ("metrics.commands.findAndModify.pipeline", &self.find_and_modify.pipeline),
            ("metrics.commands.update.arrayFilters", &self.updates.array_filters),
            ("metrics.commands.update.pipeline", &self.updates.pipeline),
            ("metrics.getLastError.wtime.num", &concerns.waits),
            ("metrics.getLastError.wtime.totalMillis", &concerns.waited_ms),
            ("metrics.getLastError.wtimeouts", &concerns.timeouts),
        ] {
            tree.add(path, Arc::clone(counter) as Arc<dyn Metric>)?;
        }
        self.ttl.add_metrics(tree)
    }
}

/// How updates say what to change.
#[derive(Debug, Default)]
pub struct UpdateCounters {
    pipeline: Arc<ShardedCounter>,
    array_filters: Arc<ShardedCounter>,
}

impl UpdateCounters {
    /// Counts a statement.
    pub fn count(&self, is_pipeline: bool, has_array_filters: bool) {
        if is_pipeline {
            self.pipeline.increment();
        }
        if has_array_filters {
            self.array_filters.increment();
        }
    }
}

/// What became of documents.
#[derive(Debug, Default)]
pub struct DocumentCounters {
    deleted: Arc<ShardedCounter>,
    inserted: Arc<ShardedCounter>,
    returned: Arc<ShardedCounter>,
    updated: Arc<ShardedCounter>,
}

impl DocumentCounters {
    /// Adds what an operation has done.
    pub fn count(&self, done: &OperationStatistics) {
        for (counter, count) in [
            (&self.deleted, done.deleted.get()),
            (&self.inserted, done.inserted.get()),
            (&self.returned, done.documents_returned.get()),
            (&self.updated, done.matched.get()),
        ] {
            if count > 0 {
                counter.add(count);
            }
        }
    }
}

/// Waiting until writes are acknowledged by other members.
#[derive(Debug, Default)]
pub struct WriteConcernCounters {
    waits: Arc<ShardedCounter>,
    waited_ms: Arc<ShardedCounter>,
    timeouts: Arc<ShardedCounter>,
}

impl WriteConcernCounters {
    /// Counts a wait that is over.
    pub fn waited(&self, waited_ms: u64, timed_out: bool) {
        self.waits.add(1);
        if waited_ms > 0 {
            self.waited_ms.add(waited_ms);
        }
        if timed_out {
            self.timeouts.add(1);
        }
    }
}

/// Operations by kind.
#[derive(Debug, Default)]
pub struct OpCounters {
    /// Documents inserted.
    pub insert: ShardedCounter,
    /// Queries.
    pub query: ShardedCounter,
    /// Update statements.
    pub update: ShardedCounter,
    /// Delete statements.
    pub delete: ShardedCounter,
    /// Further batches.
    pub get_more: ShardedCounter,
    /// Everything else.
    pub command: ShardedCounter,
}

/// The latencies of all operations by what they do to data.
#[derive(Debug, Default)]
pub struct OpLatencies {
    /// Of reads.
    pub reads: LatencyHistogram,
    /// Of writes.
    pub writes: LatencyHistogram,
    /// Of everything else.
    pub commands: LatencyHistogram,
}

impl OpLatencies {
    /// The latencies of a class.
    pub fn of(&self, class: Class) -> &LatencyHistogram {
        match class {
            Class::Read => &self.reads,
            Class::Write => &self.writes,
            // As MongoDB has it: writes are writes of documents.
            Class::Catalog | Class::Command => &self.commands,
        }
    }
}

impl OpLatencies {
    /// Appends all kinds, with their buckets if those are wanted.
    pub fn append_to(&self, transactions: Option<&LatencyHistogram>, with_buckets: bool, out: &mut DocBuilder) {
        append_histogram("reads", &self.reads, with_buckets, out);
        append_histogram("writes", &self.writes, with_buckets, out);
        append_histogram("commands", &self.commands, with_buckets, out);
        let none = LatencyHistogram::default();
        append_histogram("transactions", transactions.unwrap_or(&none), with_buckets, out);
    }
}

fn append_histogram(name: &str, histogram: &LatencyHistogram, with_buckets: bool, out: &mut DocBuilder) {
    let found = histogram.snapshot();
    out.document(name, |document| {
        if with_buckets {
            document.array("histogram", |array| {
                for (micros, count) in &found.buckets {
                    array.document(|bucket| {
                        bucket.append("micros", *micros as i64);
                        bucket.append("count", *count as i64);
                    });
                }
            });
        }
        document.append("latency", found.sum_micros as i64);
        document.append("ops", found.count as i64);
    });
}

/// Errors by kind.
#[derive(Debug, Default)]
pub struct AssertCounters {
    /// Something of ours that should not be.
    pub regular: Counter,
    /// Warnings.
    pub warning: Counter,
    /// Messages.
    pub message: Counter,
    /// Errors told to clients.
    pub user: Counter,
    /// Defects that the server survived.
    pub tripwire: Counter,
    /// How often a counter began anew.
    pub rollovers: Counter,
}

/// Hellos that wait or stream.
#[derive(Debug, Default)]
pub struct HelloCounters {
    /// Waiting for the topology to change.
    pub awaiting_topology_changes: Gauge,
    /// Streams under the name hello.
    pub exhaust_hello: Gauge,
    /// Streams under the name isMaster.
    pub exhaust_is_master: Gauge,
}
