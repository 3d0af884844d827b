//! What a node does by itself while it serves: flushing what nobody waits for, reaping dropped tables, standing for
//! election, finding the right number of tickets.
//!
//! Every task ends when it is told to, before the engine closes: one that is in the middle of its work finishes that piece
//! first, since pieces do not wait.

use crate::compatibility;
use pando_base::{Component, Log, Result, Severity, log};
use pando_commands::Data;
use pando_env::Env;
use pando_query::cursor::CURSOR_TIMEOUT_MS;
use pando_repl::ReplicationNode;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// How often dropped tables are looked at.
const REAP_INTERVAL: Duration = Duration::from_secs(1);
/// How often the node looks whether it may stand for election.
const TICK_INTERVAL: Duration = Duration::from_millis(500);

/// How often idle cursors are looked at.
const CURSOR_INTERVAL: Duration = Duration::from_secs(4);

/// The tasks of a node.
pub(crate) struct Background {
    stop: watch::Sender<bool>,
}

impl Background {
    /// Starts them.
    pub(crate) fn start(env: &Env, data: &Arc<Data>, log: &Log) -> Result<Background> {
        let background = Background { stop: watch::Sender::new(false) };
        background.spawn(env, ReplicationNode::keep_flushing(Arc::downgrade(&data.replication)))?;
        background.spawn(env, repeat(env, data, log, REAP_INTERVAL, |data| data.catalog.reap().map(|_| ())))?;
        background.spawn(env, repeat(env, data, log, CURSOR_INTERVAL, time_out_cursors))?;
        if pando_repl::ReplGate::is_replicated(&*data.replication) {
            background.spawn(env, repeat(env, data, log, TICK_INTERVAL, |data| data.replication_parts.tick()))?;
            background.spawn(env, compatibility::write_when_primary(env.clone(), Arc::downgrade(data)))?;
        }
        if let Some(tickets) = data.services.locks.tickets() {
            background.spawn(env, Arc::clone(tickets).run_adjustments())?;
        }
        Ok(background)
    }

    fn spawn(&self, env: &Env, task: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        let mut stop = self.stop.subscribe();
        let until_stopped = async move {
            tokio::select! {
                biased;
                // The sender's end means the same.
                _ = stop.wait_for(|is_stopped| *is_stopped) => {}
                () = task => {}
            }
        };
        let spawned = env.tasks().spawn(Box::pin(until_stopped));
        spawned.map_err(|error| pando_base::Error::internal(error.to_string()))
    }

    /// Tells them to end.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
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

fn time_out_cursors(data: &Data) -> Result<()> {
    data.cursors.time_out(data.services.parameters.get(&CURSOR_TIMEOUT_MS));
    Ok(())
}
