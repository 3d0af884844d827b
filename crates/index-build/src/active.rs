//! A build that is under way, as others see it: who waits for it, who ends it.

use crate::Builder;
use crate::quorum::CommitQuorum;
use pando_base::{Error, ErrorCode, Namespace, OperationContext, Result, Uuid};
use pando_storage::LogPosition;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, watch};

/// What a build that has succeeded leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Where its commit lies in the log.
    pub last_commit: Option<LogPosition>,
    /// The collection's indexes afterwards.
    pub index_count: usize,
}

/// A build that is under way.
pub struct ActiveBuild {
    /// The build.
    pub build_uuid: Uuid,
    /// Its collection's name, which cannot change meanwhile.
    pub namespace: Namespace,
    /// Its collection.
    pub collection_uuid: Uuid,
    /// The names of its indexes.
    pub index_names: Vec<String>,
    /// The oplog tells of it, and it goes on after a restart.
    pub is_two_phase: bool,
    /// The operation that builds.
    pub(crate) context: OperationContext,
    pub(crate) quorum: Mutex<CommitQuorum>,
    pub(crate) quorum_changed: Notify,
    /// Told when the node is going to be no primary any more.
    state_changes: Notify,
    /// Told to stop, in order to go on later.
    is_interrupted: AtomicBool,
    abort_reason: Mutex<Option<Error>>,
    outcome: watch::Sender<Option<Result<Finished>>>,
}

impl ActiveBuild {
    pub(crate) fn new(
        builder: &Builder,
        is_two_phase: bool,
        context: OperationContext,
        quorum: CommitQuorum,
    ) -> ActiveBuild {
        ActiveBuild {
            build_uuid: builder.build_uuid,
            namespace: builder.namespace.clone(),
            collection_uuid: builder.collection_uuid,
            index_names: builder.indexes.iter().map(|building| building.index.name().to_owned()).collect(),
            is_two_phase,
            context,
            quorum: Mutex::new(quorum),
            quorum_changed: Notify::new(),
            state_changes: Notify::new(),
            is_interrupted: AtomicBool::new(false),
            abort_reason: Mutex::default(),
            outcome: watch::Sender::new(None),
        }
    }

    /// The operation that builds.
    pub fn operation_id(&self) -> u32 {
        self.context.id()
    }

    /// Waits for its end.
    pub async fn wait(&self) -> Result<Finished> {
        let mut outcome = self.outcome.subscribe();
        let ended = outcome.wait_for(Option::is_some).await.map(|outcome| outcome.clone());
        ended.ok().flatten().unwrap_or_else(|| Err(Error::new(ErrorCode::InternalError, "an index build was lost")))
    }

    /// Tells it to end for this reason; the first reason counts. It may still succeed, if it is at its commit.
    pub fn abort(&self, reason: Error) {
        self.abort_reason.lock().get_or_insert(reason);
        self.context.kill(ErrorCode::IndexBuildAborted);
    }

    /// Has it stop where it is, to be taken up again. Who waits for it is told that the node's state changes.
    pub(crate) fn interrupt(&self) {
        self.is_interrupted.store(true, Ordering::Release);
        self.context.kill(ErrorCode::InterruptedDueToReplStateChange);
    }

    /// Has it stopped in order to go on later? Then what it has done so far stays.
    pub(crate) fn is_to_go_on(&self, error: &Error) -> bool {
        match error.code() {
            ErrorCode::InterruptedAtShutdown => true,
            ErrorCode::InterruptedDueToReplStateChange => self.is_interrupted.load(Ordering::Acquire),
            _ => false,
        }
    }

    /// Has it let go of what a step down needs: it waits without locks until somebody is primary again.
    pub fn make_way(&self) {
        self.state_changes.notify_waiters();
    }

    /// Ends when it is told to make way.
    pub(crate) fn told_to_make_way(&self) -> Notified<'_> {
        self.state_changes.notified()
    }

    /// Why it has to end: what somebody said, or what happened to it.
    pub(crate) fn cause(&self, error: Error) -> Error {
        self.abort_reason.lock().clone().unwrap_or(error)
    }

    pub(crate) fn end(&self, outcome: Result<Finished>) {
        self.outcome.send_replace(Some(outcome));
    }
}
