//! Waiting for write concerns, and learning what is on disk.
//!
//! Nothing is held meanwhile. In a set of one a majority has a write once it is on this node's disk. The flush is asked
//! for by those who wait, not by the clock; whoever waits takes everybody's writes along.

use super::ReplicationNode;
use super::waiting::Waited;
use crate::topology::Topology;
use crate::write_concern::{Acknowledgement, Provenance, WriteConcern, check_satisfiable, write_concern_error};
use pando_base::{Error, ErrorCode, OperationContext, Result, Timestamp};
use pando_doc::Doc;
use pando_oplog::OpTime;
use pando_storage::LogPosition;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a write may stay in memory only, if nobody waits for it.
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);

/// What waiting for a write concern came to: nothing to tell, or what the reply says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteConcernOutcome {
    /// It is satisfied.
    Satisfied,
    /// The write is done, but not as asked.
    Failed {
        /// Why.
        error: Error,
        /// Because the time was over?
        timed_out: bool,
    },
}

impl WriteConcernOutcome {
    /// The sub-document `writeConcernError`, if there is one to tell.
    pub fn error_document(&self, concern: &WriteConcern) -> Option<Doc> {
        match self {
            WriteConcernOutcome::Satisfied => None,
            WriteConcernOutcome::Failed { error, timed_out } => Some(write_concern_error(error, concern, *timed_out)),
        }
    }

    fn failed(error: Error) -> WriteConcernOutcome {
        WriteConcernOutcome::Failed { error, timed_out: false }
    }
}

impl ReplicationNode {
    /// The write concern of a command that gives none: a majority, in a set that has no arbiters in the way.
    pub fn default_write_concern(&self) -> WriteConcern {
        let is_majority = self.with_topology(|topology| match topology.config() {
            Some(config) => config.implicit_default_is_majority(),
            None => false,
        });
        match is_majority {
            true => WriteConcern::majority(Provenance::ImplicitDefault),
            false => WriteConcern::one(Provenance::ImplicitDefault),
        }
    }

    /// Checks a write concern as a command is parsed, on a node without a set; in a set it is checked when it is waited for.
    pub fn check_write_concern(&self, concern: &WriteConcern) -> Result<()> {
        match self.with_topology(|topology| topology.mode().is_replicated()) {
            true => Ok(()),
            false => check_satisfiable(concern, None),
        }
    }

    /// Waits until what the operation has written is acknowledged as asked: everything up to its last commit. One that wrote
    /// nothing has found things as others left them, and waits for all that was written before.
    pub async fn wait_for_write_concern(
        &self,
        context: &OperationContext,
        concern: &WriteConcern,
        last_commit: Option<LogPosition>,
    ) -> WriteConcernOutcome {
        let (config, is_replicated) =
            self.with_topology(|topology: &Topology| (topology.config().cloned(), topology.mode().is_replicated()));
        if is_replicated && let Err(error) = check_satisfiable(concern, config.as_deref()) {
            return WriteConcernOutcome::failed(error);
        }
        let majority_means_journal = config.as_ref().is_none_or(|config| config.majority_means_journal);
        let is_majority = concern.acknowledgement == Acknowledgement::Majority;
        let needs_disk = concern.needs_journal(majority_means_journal) || (is_majority && majority_means_journal);
        if !needs_disk {
            return match is_majority {
                true => self.wait_for_majority(context, concern, last_commit).await,
                false => WriteConcernOutcome::Satisfied,
            };
        }
        let timeout_ms = u64::try_from(concern.timeout_ms).ok().filter(|timeout_ms| *timeout_ms > 0);
        let position = last_commit.unwrap_or_else(|| self.engine.log_end());
        outcome(self.wait_bounded(context, timeout_ms, self.flush_to(position)).await)
    }

    /// Where a majority does not mean journals, it is satisfied once there are no holes before the write.
    async fn wait_for_majority(
        &self,
        context: &OperationContext,
        concern: &WriteConcern,
        last_commit: Option<LogPosition>,
    ) -> WriteConcernOutcome {
        let newest = self.points().applied.0;
        let applied = match last_commit {
            Some(position) => OpTime::new(position.oplog, newest.term),
            None => newest,
        };
        let timeout_ms = u64::try_from(concern.timeout_ms).ok().filter(|timeout_ms| *timeout_ms > 0);
        let visible = async {
            if let Some(oplog) = self.engine.oplog() {
                oplog.wait_visible(applied.timestamp.previous()).await?;
            }
            self.commit_if_alone(applied);
            Ok(())
        };
        outcome(self.wait_bounded(context, timeout_ms, visible).await)
    }

    /// Has everything that is committed now written to disk, and learns of it.
    pub async fn flush(&self) -> Result<()> {
        self.flush_to(self.engine.log_end()).await
    }

    async fn flush_to(&self, position: LogPosition) -> Result<()> {
        self.engine.wait_durable(position).await?;
        self.learn_flushed(position);
        Ok(())
    }

    /// The same for callers that may block their thread.
    pub fn flush_blocking(&self) -> Result<()> {
        let position = self.engine.log_end();
        self.engine.wait_durable(position).block()?;
        self.learn_flushed(position);
        Ok(())
    }

    fn learn_flushed(&self, position: LogPosition) {
        self.learn_durable(position.oplog);
    }

    /// Everything up to here is on disk. In a set of one a majority has it then; not before the new term's first entry is
    /// among it, since until then another could have won.
    pub(crate) fn learn_durable(&self, timestamp: Timestamp) {
        // Of those who waited for one flush the first has told.
        if timestamp.is_none() || timestamp <= self.points().committed.0.timestamp {
            return;
        }
        self.progress.durable(timestamp);
        self.commit_if_alone(self.progress.points().durable.0);
    }

    fn commit_if_alone(&self, reached: OpTime) {
        let commits = self.with_topology(|topology| {
            let alone = topology.config().is_some_and(|config| config.write_majority_count() == 1);
            alone && topology.term_start().is_some_and(|start| reached.timestamp >= start)
        });
        if commits {
            self.majority_has(reached);
        }
    }

    fn majority_has(&self, committed: OpTime) {
        let wall_ms = self.wall_ms();
        let window_seconds = self.history_window_seconds.load(Ordering::Relaxed);
        // Before the waiters are told: what they were promised to be able to read must be readable.
        let moved = self.stable.advance(committed.timestamp, window_seconds);
        debug_assert!(moved.is_ok(), "{moved:?}");
        if self.progress.committed(committed) {
            self.topology.lock().majority_has(committed.timestamp, wall_ms);
        }
    }

    /// Flushes what was written and nobody waits for; nothing if there is nothing.
    pub async fn flush_unwaited(&self) -> Result<()> {
        let points = self.points();
        match points.applied.0.timestamp > points.durable.0.timestamp {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    /// Does that a moment after each write, until the node is gone or its engine has stopped. A task for real clocks: a
    /// simulated one would run away with it.
    pub async fn keep_flushing(node: std::sync::Weak<ReplicationNode>) {
        while let Some(pause) = node.upgrade().map(|node| node.env.clock().sleep(FLUSH_INTERVAL)) {
            pause.await;
            let Some(node) = node.upgrade() else { return };
            if node.flush_unwaited().await.is_err() {
                return;
            }
        }
    }
}

fn outcome(waited: Result<Waited<Result<()>>>) -> WriteConcernOutcome {
    match waited {
        Ok(Waited::Done(Ok(()))) => WriteConcernOutcome::Satisfied,
        Ok(Waited::Done(Err(error))) | Err(error) => WriteConcernOutcome::failed(error),
        Ok(Waited::TimedOut) => WriteConcernOutcome::Failed {
            error: Error::new(ErrorCode::WriteConcernFailed, "waiting for replication timed out"),
            timed_out: true,
        },
    }
}
