//! What dispatch and commands count, for serverStatus.

use pando_base::{Counter, Gauge, ShardedCounter};

/// All of it.
#[derive(Debug, Default)]
pub struct Counters {
    /// Operations by kind.
    pub operations: OpCounters,
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
