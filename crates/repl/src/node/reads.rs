//! Read concerns: waiting for what must be there, and choosing the time to read at.

use super::ReplicationNode;
use super::waiting::Waited;
use crate::gate::not_primary;
use crate::oplog_writer::OplogWriter;
use crate::read_concern::{Level, ReadConcern};
use pando_base::{Error, ErrorCode, OperationContext, Result, Timestamp};
use pando_doc::doc;
use pando_operation::Operation;
use pando_storage::{PrepareBehaviour, ReadSource};
use std::time::Duration;

/// How long to wait before looking again for what majority reads see.
const MAJORITY_PAUSE: Duration = Duration::from_millis(5);

impl ReplicationNode {
    /// Waits until the operation may read as it wants to, and has it read at the right time. Before its first read.
    pub async fn prepare_read(
        &self,
        operation: &mut Operation,
        concern: &ReadConcern,
        writer: Option<&OplogWriter>,
    ) -> Result<()> {
        if !self.with_topology(|topology| topology.mode().is_replicated()) {
            return check_alone(concern);
        }
        if concern.level == Level::Linearizable && !self.is_writable_primary() {
            return Err(not_primary().context("cannot satisfy linearizable read concern on non-primary node"));
        }
        let after = concern.after_cluster_time.or(concern.after_op_time.map(|op_time| op_time.timestamp));
        if let Some(after) = after.into_iter().chain(concern.at_cluster_time).max() {
            self.reach(operation, after, writer)?;
        }
        if let Some(from) = after.or(concern.at_cluster_time) {
            self.wait_without_holes(&operation.context, from).await?;
        }
        let source = match concern.level {
            // What that is depends on the node's state, which may change at any yield.
            Level::Local | Level::Available | Level::Linearizable => ReadSource::LastApplied,
            Level::Majority => {
                self.wait_majority(&operation.context, after.unwrap_or(Timestamp(1))).await?;
                ReadSource::MajorityCommitted
            }
            Level::Snapshot => {
                let at = concern.at_cluster_time;
                self.wait_majority(&operation.context, at.or(after).unwrap_or(Timestamp(1))).await?;
                ReadSource::Provided(at.unwrap_or_else(|| self.majority_snapshot()))
            }
        };
        operation.recovery_unit.set_prepare_behaviour(prepare_behaviour(concern))?;
        Ok(operation.recovery_unit.set_read_source(source)?)
    }

    /// The same for a transaction, before anything in it: what it reads is of one moment, and what the majority does not have yet
    /// it waits for when it commits.
    pub async fn prepare_transaction_read(
        &self,
        operation: &mut Operation,
        concern: &ReadConcern,
        writer: &OplogWriter,
    ) -> Result<()> {
        let after = concern.after_cluster_time.or(concern.after_op_time.map(|op_time| op_time.timestamp));
        if let Some(after) = after.into_iter().chain(concern.at_cluster_time).max() {
            self.reach(operation, after, Some(writer))?;
        }
        // Below a time that is read at nothing may be in flight: it would be seen by a later look at the same time.
        if let Some(from) = after.or(concern.at_cluster_time) {
            self.wait_without_holes(&operation.context, from).await?;
        }
        let source = match (concern.level, concern.at_cluster_time) {
            (_, Some(at)) => ReadSource::Provided(at),
            (Level::Snapshot, None) => ReadSource::AllDurable,
            _ => ReadSource::NoTimestamp,
        };
        Ok(operation.recovery_unit.set_read_source(source)?)
    }

    /// After a linearizable read: nobody else was primary while it ran.
    pub async fn finish_linearizable_read(&self, operation: &mut Operation, writer: &OplogWriter) -> Result<()> {
        let mut beside = operation.beside();
        let message = doc! { "msg": "linearizable read" };
        let noop = beside.in_unit_of_work(|beside| writer.append_noop(beside, message.view()))?;
        self.wait_majority(&operation.context, noop.timestamp).await
    }

    /// Sees to it that this node has an entry at or after a time that clients know of.
    fn reach(&self, operation: &mut Operation, time: Timestamp, writer: Option<&OplogWriter>) -> Result<()> {
        let now = self.clock().now();
        if time > now {
            let reason = format!(
                "readConcern afterClusterTime value must not be greater than the current clusterTime. Requested \
                 clusterTime: {time}; current clusterTime: {now}"
            );
            return Err(Error::new(ErrorCode::InvalidOptions, reason));
        }
        if time <= self.points().applied.0.timestamp {
            return Ok(());
        }
        let writer = writer.filter(|_| self.is_writable_primary()).ok_or_else(not_primary)?;
        let mut beside = operation.beside();
        let message = doc! { "append noop write": 1 };
        beside.in_unit_of_work(|beside| writer.append_noop(beside, message.view())).map(|_| ())
    }

    /// Waits until everything up to this time is in the oplog: what lies behind a hole may be lost with it, and who reads after a
    /// time must not see that.
    async fn wait_without_holes(&self, context: &OperationContext, time: Timestamp) -> Result<()> {
        match self.engine.oplog().filter(|oplog| oplog.visible() < time) {
            Some(oplog) => Ok(context.interruptible(oplog.wait_visible(time.previous())).await??),
            None => Ok(()),
        }
    }

    /// Waits until a majority has the entry of this time. The flush is asked for at once.
    pub async fn wait_majority(&self, context: &OperationContext, timestamp: Timestamp) -> Result<()> {
        let reached = async {
            if self.majority_snapshot() < timestamp {
                self.flush().await?;
                self.progress().wait_committed(timestamp).await;
            }
            Ok(())
        };
        match self.wait_bounded(context, None, reached).await? {
            Waited::Done(outcome) => outcome,
            Waited::TimedOut => Ok(()),
        }
    }

    /// Ends when majority reads see more than they did at a time. What is written by then is asked to be flushed: nobody else may.
    pub async fn wait_majority_beyond(&self, seen: Timestamp) -> Result<()> {
        while self.majority_snapshot() <= seen {
            if let Some(oplog) = self.engine.oplog() {
                oplog.wait_visible(seen).await?;
            }
            self.flush().await?;
            if self.majority_snapshot() > seen {
                break;
            }
            // There is a hole, or the majority is somebody else's to know of.
            self.env.clock().sleep(MAJORITY_PAUSE).await;
        }
        Ok(())
    }

    /// The `operationTime` of a reply: of what was read, at least, and of what was written.
    pub fn operation_time(&self, concern: &ReadConcern) -> Timestamp {
        match concern.level {
            Level::Majority | Level::Snapshot => self.majority_snapshot(),
            _ => self.points().applied.0.timestamp,
        }
    }
}

/// Who wants to see what is certain at a time waits for what is prepared: it may turn out to have happened before that time. Others
/// see what was there before it. They may write all the same, elsewhere: what an aggregation gives out.
fn prepare_behaviour(concern: &ReadConcern) -> PrepareBehaviour {
    let is_timed = concern.after_cluster_time.is_some() || concern.at_cluster_time.is_some();
    match concern.level {
        Level::Local | Level::Available | Level::Majority if !is_timed => PrepareBehaviour::IgnoreAndWrite,
        _ => PrepareBehaviour::Enforce,
    }
}

/// Without a set there is one copy of the data: it is everybody's newest.
fn check_alone(concern: &ReadConcern) -> Result<()> {
    if matches!(concern.level, Level::Linearizable | Level::Snapshot) {
        let reason = "node needs to be a replica set member to use read concern";
        return Err(Error::new(ErrorCode::NotAReplicaSet, reason));
    }
    if concern.after_cluster_time.is_some() || concern.after_op_time.is_some() {
        let reason = "Cannot specify afterClusterTime or afterOpTime readConcern without replication enabled";
        return Err(Error::new(ErrorCode::IllegalOperation, reason));
    }
    Ok(())
}
