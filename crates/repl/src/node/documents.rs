//! What commands tell of the set.

use super::ReplicationNode;
use crate::config::HostAndPort;
use crate::topology::{HelloContext, StatusContext, append_hello, status};
use pando_base::Result;
use pando_doc::{Doc, DocBuilder};
use pando_oplog::OpTime;

impl ReplicationNode {
    /// The id of this node's election, which replies to writes have.
    pub fn election_id(&self) -> pando_doc::ObjectId {
        crate::topology::election_id(self.with_topology(crate::topology::Topology::term))
    }

    /// Appends what hello says of the set.
    pub fn append_hello(&self, builder: &mut DocBuilder, reached: Option<&HostAndPort>, is_legacy: bool) {
        let points = self.points();
        let context = HelloContext {
            is_legacy,
            reached,
            last_write: points.applied,
            majority_write: points.committed,
            is_shutting_down: false,
        };
        self.with_topology(|topology| append_hello(topology, &context, builder));
    }

    /// Appends the reply of replSetGetStatus.
    pub fn append_status(&self, builder: &mut DocBuilder) -> Result<()> {
        let points = self.points();
        let uptime_ns = self.env.clock().monotonic_ns().saturating_sub(self.start_ns);
        let context = StatusContext {
            now_ms: self.wall_ms(),
            uptime_seconds: i64::try_from(uptime_ns / 1_000_000_000).unwrap_or(i64::MAX),
            applied: points.applied,
            durable: points.durable,
            committed: points.committed,
            majority_snapshot: OpTime::new(self.majority_snapshot(), points.committed.0.term),
            last_stable_recovery: self.engine.timestamps().checkpoint,
        };
        self.with_topology(|topology| status(topology, &context, builder))
    }

    /// The configuration, for replSetGetConfig.
    pub fn config_document(&self) -> Result<Doc> {
        self.with_topology(|topology| topology.require_config().map(|config| config.to_doc()))
    }
}
