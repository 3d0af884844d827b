//! What dispatch and commands count, for serverStatus.

use crate::Class;
use pando_base::{Counter, Gauge, LatencyHistogram, ShardedCounter};
use pando_doc::DocBuilder;

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
    /// Of whole transactions.
    pub transactions: LatencyHistogram,
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
    pub fn append_to(&self, with_buckets: bool, out: &mut DocBuilder) {
        append_histogram("reads", &self.reads, with_buckets, out);
        append_histogram("writes", &self.writes, with_buckets, out);
        append_histogram("commands", &self.commands, with_buckets, out);
        append_histogram("transactions", &self.transactions, with_buckets, out);
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
