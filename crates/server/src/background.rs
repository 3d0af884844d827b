//! What a node does by itself while it serves: flushing what nobody waits for, reaping dropped tables, standing for
//! election, finding the right number of tickets.
//!
//! Every task ends when it is told to, before the engine closes: one that is in the middle of its work finishes that piece
//! first, since pieces do not wait.

use crate::{compatibility, data};
use pando_base::{Component, Log, LogValue, Namespace, Result, Severity, Timestamp, log};
use pando_commands::Data;
use pando_commands::diagnostic::LongWaits;
use pando_commands::session::{reap_sessions, refresh_sessions};
use pando_env::{Env, Machine, Place};
use pando_locks::{Mode, ResourceId};
use pando_query::cursor::{CURSOR_INTERVAL_SECONDS, CURSOR_TIMEOUT_MS};
use pando_repl::flow_control::FlowControlParameters;
use pando_repl::{ReplGate, ReplicationNode};
use pando_session::{DISABLE_LOGICAL_SESSION_CACHE_REFRESH, LOGICAL_SESSION_REFRESH_MILLIS};
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How often dropped tables are looked at.
const REAP_INTERVAL: Duration = Duration::from_secs(1);
/// How often the node looks whether it may stand for election.
const TICK_INTERVAL: Duration = Duration::from_millis(500);

/// How often those are looked for who have waited too long.
const WAITS_INTERVAL: Duration = Duration::from_secs(2);

/// How often transactions that last too long are looked for.
const TRANSACTION_INTERVAL: Duration = Duration::from_secs(1);

/// The period of flow control's tickets.
const FLOW_INTERVAL: Duration = Duration::from_secs(1);

/// How often freed memory is given back.
const MEMORY_INTERVAL: Duration = Duration::from_secs(5);

/// The tasks of a node.
pub(crate) struct Background {
    stop: watch::Sender<bool>,
    /// Each task has one end of it; when all are gone, so are the tasks.
    running: mpsc::Sender<()>,
    ended: mpsc::Receiver<()>,
}

impl Background {
    /// Starts them.
    pub(crate) fn start(env: &Env, data: &Arc<Data>, log: &Log) -> Result<Background> {
        let (running, ended) = mpsc::channel(1);
        let background = Background { stop: watch::Sender::new(false), running, ended };
        background.spawn(env, ReplicationNode::keep_flushing(Arc::downgrade(&data.replication)))?;
        background.spawn_at(env, Place::Lanes, repeat(env, data, log, REAP_INTERVAL, reap))?;
        background.spawn(env, keep_closing_cursors(env.clone(), Arc::downgrade(data)))?;
        background.spawn(env, repeat(env, data, log, TRANSACTION_INTERVAL, abort_expired_transactions))?;
        background.spawn(env, repeat(env, data, log, WAITS_INTERVAL, tell_long_waits()))?;
        if data.replication.is_replicated() {
            tell_oplog(data, log);
            let tick = repeat(env, data, log, TICK_INTERVAL, |data| data.replication_parts.tick());
            background.spawn_at(env, Place::Control, tick)?;
            background.spawn_at(env, Place::Control, repeat(env, data, log, FLOW_INTERVAL, refresh_flow_tickets))?;
            let checks = pando_commands::db_check::keep_checking(Arc::downgrade(data), log.clone());
            background.spawn_at(env, Place::Lanes, checks)?;
            background.spawn(env, compatibility::write_when_primary(env.clone(), Arc::downgrade(data), log.clone()))?;
            background.spawn(env, data::take_up_builds_when_primary(env.clone(), Arc::downgrade(data), log.clone()))?;
        }
        if !data.services.parameters.get(&DISABLE_LOGICAL_SESSION_CACHE_REFRESH) {
            background.spawn_at(env, Place::Lanes, keep_sessions(env, data, log))?;
        }
        if let Some(tickets) = data.services.locks.tickets() {
            background.spawn(env, Arc::clone(tickets).run_adjustments())?;
        }
        Ok(background)
    }

    /// Starts another task, which ends with the others.
    pub(crate) fn spawn(&self, env: &Env, task: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        self.spawn_at(env, Place::Requests, task)
    }

    /// The same at a place: with long work what takes its time, with what has to be answered at once what the set depends on.
    pub(crate) fn spawn_at(
        &self,
        env: &Env,
        place: Place,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Result<()> {
        let mut stop = self.stop.subscribe();
        let running = self.running.clone();
        let until_stopped = async move {
            let _running = running;
            tokio::select! {
                biased;
                // The sender's end means the same.
                _ = stop.wait_for(|is_stopped| *is_stopped) => {}
                () = task => {}
            }
        };
        let spawned = env.tasks().spawn_at(place, Box::pin(until_stopped));
        spawned.map_err(|error| pando_base::Error::internal(error.to_string()))
    }

    /// Tells them to end, and waits until they have.
    pub(crate) async fn stop(self) {
        let Background { stop, running, mut ended } = self;
        stop.send_replace(true);
        drop(running);
        // Nothing is ever sent: this ends with the last task.
        let _ = ended.recv().await;
    }
}

/// Gives memory that was freed back to the system, also while the node is at rest and nobody else would.
pub(crate) fn keep_giving_memory_back(
    env: &Env,
    machine: &Arc<dyn Machine>,
) -> impl Future<Output = ()> + Send + 'static {
    let (env, machine) = (env.clone(), Arc::clone(machine));
    async move {
        loop {
            env.clock().sleep(MEMORY_INTERVAL).await;
            env.tasks().blocking(&mut || machine.give_back_memory());
        }
    }
}

/// Does something again and again, until the data is gone.
fn repeat(
    env: &Env,
    data: &Arc<Data>,
    log: &Log,
    interval: Duration,
    step: impl Fn(&Data) -> Result<()> + Send + 'static,
) -> impl Future<Output = ()> + Send + 'static {
    let (env, data, log): (Env, Weak<Data>, Log) = (env.clone(), Arc::downgrade(data), log.clone());
    async move {
        loop {
            env.clock().sleep(interval).await;
            let Some(data) = data.upgrade() else { return };
            let mut outcome = Ok(());
            env.tasks().blocking(&mut || outcome = step(&data));
            if let Err(error) = outcome {
                log!(log, Severity::Warning, Component::Control, 22225, "A task failed", "error" = &error);
            }
        }
    }
}

/// Reckons how many writes the next second may have.
fn refresh_flow_tickets(data: &Data) -> Result<()> {
    let locks = &data.services.locks;
    let Some(tickets) = locks.tickets() else { return Ok(()) };
    let lock_count = locks.stats().of(ResourceId::GLOBAL, Mode::IX).acquire_count;
    let parameters = FlowControlParameters::of(&data.services.parameters);
    let decision = data.replication.step_flow_control(lock_count, &parameters);
    tickets.flow().refresh(decision.tickets);
    if decision.is_stuck {
        let message = "Flow control is engaged and the sustainer point is not moving. Please check the health of all secondaries.";
        log!(data.services.log, Severity::Warning, Component::Replication, 22223, message);
    }
    Ok(())
}

/// Aborts transactions that have lasted too long.
fn abort_expired_transactions(data: &Data) -> Result<()> {
    let (log, message) = (
        &data.services.log,
        "Aborting transaction because it has been running for longer than 'transactionLifetimeLimitSeconds'",
    );
    for session in data.sessions.abort_expired(data.services.env.clock().monotonic_ns()) {
        let id = LogValue::Json(format!(r#"{{"id":{{"$uuid":"{}"}}}}"#, session.id));
        log!(log, Severity::Info, Component::Transaction, 20707, message, "sessionId" = id);
    }
    Ok(())
}

/// Tells of those who have waited too long.
fn tell_long_waits() -> impl Fn(&Data) -> Result<()> + Send + 'static {
    let waits = LongWaits::default();
    move |data| {
        waits.tell(data);
        Ok(())
    }
}

/// Writes sessions down and reaps what old ones have left, now and then. Not where the node may not write.
fn keep_sessions(env: &Env, data: &Arc<Data>, log: &Log) -> impl Future<Output = ()> + Send + 'static {
    let (env, data, log): (Env, Weak<Data>, Log) = (env.clone(), Arc::downgrade(data), log.clone());
    async move {
        loop {
            let Some(interval_ms) =
                data.upgrade().map(|data| i64::from(data.services.parameters.get(&LOGICAL_SESSION_REFRESH_MILLIS)))
            else {
                return;
            };
            env.clock().sleep(Duration::from_millis(interval_ms.unsigned_abs())).await;
            let Some(data) =
                data.upgrade().filter(|data| data.replication.check_can_write(Namespace::sessions()).is_ok())
            else {
                continue;
            };
            if let Err(error) = refresh_sessions(&data, &data.services.operations).await {
                let message = "Failed to refresh session cache, will try again at the next refresh interval";
                log!(log, Severity::Info, Component::Control, 20710, message, "error" = &error);
            }
            if let Err(error) = reap_sessions(&data).await {
                log!(
                    log,
                    Severity::Info,
                    Component::Control,
                    20711,
                    "Failed to reap transaction table",
                    "error" = &error
                );
            }
        }
    }
}

/// The oplog is cut off at its old end from now on, at the ends of the log's segments.
fn tell_oplog(data: &Data, log: &Log) {
    let Some(oplog) = data.services.engine.oplog() else { return };
    let count = oplog.markers().len();
    let (severity, component) = (Severity::Debug(1), Component::Storage);
    log!(log, severity, component, 5295000, "Oplog cap maintainer started");
    log!(log, severity, component, 22382, "Oplog truncate markers calculated", "markerCount" = count);
}

/// Drops what nobody needs any more, unless the files are to stay as they are.
pub(crate) fn reap(data: &Data) -> Result<()> {
    if data.backups.lock_count() > 0 {
        return Ok(());
    }
    let (log, message) = (&data.services.log, "Completing drop for ident");
    let tell = &mut |ident: &str, dropped_at: Timestamp| {
        let time = LogValue::Json(format!(
            r#"{{"$timestamp":{{"t":{},"i":{}}}}}"#,
            dropped_at.seconds(),
            dropped_at.increment()
        ));
        log!(log, Severity::Info, Component::Storage, 22237, message, "ident" = ident, "dropTimestamp" = time);
    };
    data.catalog.reap_telling(tell).map(|_| ())
}

/// Closes cursors that nobody has used for long.
async fn keep_closing_cursors(env: Env, data: Weak<Data>) {
    while let Some(seconds) = data.upgrade().map(|data| data.services.parameters.get(&CURSOR_INTERVAL_SECONDS)) {
        env.clock().sleep(Duration::from_secs(u64::from(seconds.unsigned_abs()))).await;
        let Some(data) = data.upgrade() else { return };
        let timeout_ms = data.services.parameters.get(&CURSOR_TIMEOUT_MS);
        env.tasks().blocking(&mut || {
            data.cursors.time_out(timeout_ms);
        });
    }
}
