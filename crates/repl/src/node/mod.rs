//! A node's part in its set: the shell around the state machine.
//!
//! [`ReplicationNode`] is made before anything else that needs replication: it has no collections, only the engine and the
//! environment. It answers who may read and write ([`ReplGate`]), at which time ([`ReadTimestamps`]), waits for write and
//! read concerns, and keeps the engine's timestamps. Starting, initiating and reconfiguring need collections: they are in
//! [`crate::startup`].
//!
//! Lock order: flow control's lock; the topology's lock; the progress's locks, one at a time. Nothing is held over an await.

mod documents;
mod flow;
mod reads;
mod standing;
mod step_down;
mod waiting;
mod writes;

pub use step_down::StepDown;
pub use writes::WriteConcernOutcome;

use crate::clock::ClusterClock;
use crate::flow_control::FlowControl;
use crate::gate::{ReplGate, not_primary, not_readable, secondary_not_allowed};
use crate::member_state::MemberState;
use crate::oplog_writer::OplogWriter;
use crate::progress::{Points, Progress};
use crate::slots::OplogSlots;
use crate::stable::{HISTORY_WINDOW_SECONDS, StableKeeper};
use crate::topology::{Mode, Topology};
use pando_base::{Log, Namespace, ParameterSet, ParameterValue, Result, Timestamp};
use pando_doc::ObjectId;
use pando_env::Env;
use pando_session::{SessionCatalog, SessionTable};
use pando_storage::{Engine, ReadTimestamps};
use parking_lot::{Mutex, MutexGuard};
use standing::Standing;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// This node in its set.
pub struct ReplicationNode {
    env: Env,
    engine: Arc<dyn Engine>,
    topology: Mutex<Topology>,
    /// As the topology says: every read asks.
    is_primary: AtomicBool,
    /// The topology's counter: awaited hellos wait on it.
    changed: watch::Sender<i64>,
    slots: Arc<OplogSlots>,
    progress: Arc<Progress>,
    stable: StableKeeper,
    history_window_seconds: AtomicI64,
    flow: Mutex<FlowControl>,
    /// Taken by whoever changes the configuration: one at a time, and nobody waits for it.
    configuring: Mutex<()>,
    start_ns: u64,
    /// Set once, before anybody else has the node.
    log: OnceLock<Log>,
}

impl ReplicationNode {
    /// A node that was started in this mode and knows nothing yet.
    pub fn new(env: &Env, engine: &Arc<dyn Engine>, mode: Mode) -> Arc<ReplicationNode> {
        let mut id = [0; 12];
        env.random().fill(&mut id);
        let topology = Topology::new(mode, ObjectId::from_bytes(id));
        let clock = Arc::new(ClusterClock::new(env));
        Arc::new(ReplicationNode {
            env: env.clone(),
            engine: Arc::clone(engine),
            changed: watch::Sender::new(topology.counter()),
            is_primary: AtomicBool::new(topology.state() == MemberState::Primary),
            topology: Mutex::new(topology),
            slots: Arc::new(OplogSlots::new(clock, Arc::clone(engine))),
            progress: Arc::new(Progress::new()),
            stable: StableKeeper::new(Arc::clone(engine)),
            flow: Mutex::new(FlowControl::new(env.clock().monotonic_ns())),
            history_window_seconds: AtomicI64::new(HISTORY_WINDOW_SECONDS.default_value().into()),
            configuring: Mutex::new(()),
            start_ns: env.clock().monotonic_ns(),
            log: OnceLock::new(),
        })
    }

    /// Has what becomes of the node written down there. The first log stays.
    pub fn log_to(&self, log: &Log) {
        self.log.get_or_init(|| log.clone());
    }

    /// Follows the parameters, now and when they change.
    pub fn follow_parameters(self: &Arc<Self>, parameters: &ParameterSet) {
        self.history_window_seconds.store(parameters.get(&HISTORY_WINDOW_SECONDS).into(), Ordering::Relaxed);
        let node = Arc::downgrade(self);
        parameters.subscribe(&HISTORY_WINDOW_SECONDS, move |value| {
            if let (Some(node), ParameterValue::Int(seconds)) = (node.upgrade(), value) {
                node.history_window_seconds.store((*seconds).into(), Ordering::Relaxed);
            }
        });
    }

    /// The observer that writes this node's oplog.
    pub fn oplog_writer(&self, sessions: SessionCatalog, table: Arc<dyn SessionTable>) -> Arc<OplogWriter> {
        let (slots, progress) = (Arc::clone(&self.slots), Arc::clone(&self.progress));
        let prepared_entries = Arc::clone(self.stable.prepared_entries());
        Arc::new(OplogWriter::new(&self.env, slots, progress, sessions, table, prepared_entries))
    }

    /// The cluster's time.
    pub fn clock(&self) -> &Arc<ClusterClock> {
        self.slots.clock()
    }

    /// How far it has come.
    pub fn points(&self) -> Points {
        self.progress.points()
    }

    /// The newest time that majority reads see.
    pub fn majority_snapshot(&self) -> Timestamp {
        self.stable.majority_snapshot()
    }

    /// Looks at the state machine.
    pub fn with_topology<T>(&self, look: impl FnOnce(&Topology) -> T) -> T {
        look(&self.topology.lock())
    }

    /// Has the state machine take an input, and wakes whoever waits for a change.
    pub fn change_topology<T>(&self, input: impl FnOnce(&mut Topology) -> T) -> T {
        let mut topology = self.topology.lock();
        let before = Standing::of(&topology);
        let outcome = input(&mut topology);
        let (counter, now) = (topology.counter(), Standing::of(&topology));
        self.is_primary.store(topology.state() == MemberState::Primary, Ordering::Release);
        drop(topology);
        if let Some(log) = self.log.get().filter(|_| before != now) {
            now.tell(&before, log);
        }
        self.changed.send_if_modified(|seen| std::mem::replace(seen, counter) != counter);
        outcome
    }

    /// Ends when the topology's counter is past this one: what awaited hellos wait for, within their time.
    pub async fn topology_changed(&self, counter: i64) {
        let mut changed = self.changed.subscribe();
        // The sender lives as long as this.
        let _ = changed.wait_for(|seen| *seen > counter).await;
    }

    /// Is it primary, and takes writes?
    pub fn is_writable_primary(&self) -> bool {
        self.with_topology(|topology| topology.state() == MemberState::Primary && topology.accepts_writes())
    }

    /// Milliseconds on the monotonic clock, for the state machine.
    pub fn now_ms(&self) -> u64 {
        self.env.clock().monotonic_ns() / 1_000_000
    }

    pub(crate) fn wall_ms(&self) -> i64 {
        i64::try_from(self.env.clock().wall_ms()).unwrap_or(i64::MAX)
    }

    /// The turn of whoever changes the configuration; none if somebody else has it.
    pub(crate) fn try_configure(&self) -> Option<MutexGuard<'_, ()>> {
        self.configuring.try_lock()
    }

    pub(crate) fn slots(&self) -> &Arc<OplogSlots> {
        &self.slots
    }

    pub(crate) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    pub(crate) fn stable(&self) -> &StableKeeper {
        &self.stable
    }
}

impl ReadTimestamps for ReplicationNode {
    fn last_applied(&self) -> Timestamp {
        if self.is_primary.load(Ordering::Acquire) {
            return Timestamp::NONE;
        }
        self.progress.points().applied.0.timestamp
    }

    fn majority_committed(&self) -> Timestamp {
        self.stable.majority_snapshot()
    }
}

impl ReplGate for ReplicationNode {
    fn is_replicated(&self) -> bool {
        self.with_topology(|topology| topology.mode().is_replicated())
    }

    fn check_can_write(&self, namespace: &Namespace) -> Result<()> {
        if !namespace.is_replicated() || self.with_topology(Topology::accepts_writes) {
            return Ok(());
        }
        Err(not_primary())
    }

    fn check_can_read(&self, secondary_allowed: bool) -> Result<()> {
        let (mode, state) = self.with_topology(|topology| (topology.mode().clone(), topology.state()));
        match state {
            _ if mode == Mode::StandAlone => Ok(()),
            MemberState::Primary => Ok(()),
            MemberState::Secondary if secondary_allowed => Ok(()),
            MemberState::Secondary => Err(secondary_not_allowed()),
            _ if !secondary_allowed => Err(secondary_not_allowed()),
            _ => Err(not_readable()),
        }
    }
}
