//! Replication as commands and dispatch see it.

use pando_base::{Result, Timestamp};
use pando_commands::{
    CommandRow, ConnectionState, ReplicationView, SecondaryOk, TopologyVersion, append_cluster_time, check_as_secondary,
};
use pando_doc::DocBuilder;
use pando_env::BoxedFuture;
use pando_repl::config::HostAndPort;
use pando_repl::{MAX_DRIFT_SECONDS, MemberState, ReplGate, ReplicationNode};
use pando_security::TimeSigner;
use std::sync::Arc;

/// A node's part in its set.
pub(crate) struct NodeInSet {
    node: Arc<ReplicationNode>,
    is_replicated: bool,
    drift_seconds_max: i64,
}

impl NodeInSet {
    pub(crate) fn new(node: &Arc<ReplicationNode>, parameters: &pando_base::ParameterSet) -> NodeInSet {
        let drift_seconds_max = parameters.get(&MAX_DRIFT_SECONDS);
        NodeInSet { node: Arc::clone(node), is_replicated: node.is_replicated(), drift_seconds_max }
    }
}

impl ReplicationView for NodeInSet {
    fn is_replica_set(&self) -> bool {
        self.is_replicated
    }

    fn topology_version(&self) -> TopologyVersion {
        self.node.with_topology(|topology| TopologyVersion {
            process_id: topology.process_id(),
            counter: topology.counter(),
        })
    }

    fn topology_changed(&self, counter: i64) -> BoxedFuture<'_, ()> {
        Box::pin(self.node.topology_changed(counter))
    }

    fn append_hello(&self, connection: &ConnectionState, _: i64, is_legacy: bool, reply: &mut DocBuilder) {
        let reached = connection.local.internet();
        let reached = reached.map(|local| HostAndPort::new(local.ip().to_canonical().to_string(), local.port()));
        self.node.append_hello(reply, reached.as_ref(), is_legacy);
    }

    fn check_can_run(&self, row: &CommandRow, connection: &ConnectionState, secondary_ok: bool) -> Result<()> {
        if !self.is_replicated || row.secondary_ok == SecondaryOk::Always || self.node.is_writable_primary() {
            return Ok(());
        }
        check_as_secondary(row, connection, secondary_ok)?;
        let is_secondary = self.node.with_topology(|topology| topology.state() == MemberState::Secondary);
        if is_secondary { Ok(()) } else { self.node.check_can_read(true) }
    }

    fn append_times(&self, reply: &mut DocBuilder, signer: Option<&TimeSigner>) {
        let cluster_time = self.node.clock().now();
        if !self.is_replicated || cluster_time.is_none() {
            return;
        }
        append_cluster_time(reply, cluster_time, signer);
        let applied = self.node.points().applied.0.timestamp;
        if applied.is_some() {
            reply.append("operationTime", applied);
        }
    }

    fn cluster_time(&self) -> Option<Timestamp> {
        Some(self.node.clock().now()).filter(|time| self.is_replicated && time.is_some())
    }

    fn advance_cluster_time(&self, cluster_time: Timestamp) -> Result<()> {
        if !self.is_replicated {
            return Ok(());
        }
        let clock = self.node.clock();
        if cluster_time > clock.now() {
            clock.check(cluster_time, self.drift_seconds_max)?;
            clock.advance(cluster_time);
        }
        Ok(())
    }
}
