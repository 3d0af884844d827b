//! The TTL monitor: deletes documents that have lived as long as their collection or one of its indexes says.
//!
//! It sleeps `ttlMonitorSleepSecs`, then makes a *pass*, which ends when nothing expired is left. A pass is made of *sub-passes*. Each
//! looks anew which indexes there are and visits them in turn; a visit deletes so many documents or takes so long, then the next index has its turn, and an
//! index with more to delete is visited again, until the sub-pass has lasted long enough. So none keeps the others waiting.
//!
//! Deletes have low priority; on a collection that stays behind for several sub-passes they get the usual one.
//!
//! - `correct`: what old versions have stored is put right.
//! - `parameters`: what can be set.
//! - `pass`: passes and sub-passes.
//! - `visit`: one visit to one index.
//!
//! What is deleted is written as any client's delete is, with oplog entries. Only a node that may write deletes. Time-series collections expire by their
//! buckets' ids, and wait until no measurement of a bucket can be younger.

mod correct;
mod parameters;
mod pass;
mod visit;

pub use correct::correct_expiries;
pub use parameters::PARAMETERS;
pub use pass::Pass;

use crate::{Counters, Data};
use correct::Correction;
use pando_base::{Component, Counter, FailPoint, Log, Metric, MetricTree, Result, Severity, log};
use pando_env::Env;
use parameters::{ENABLED, SLEEP_SECONDS};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often the monitor looks whether it has slept long enough: somebody may change how long that is.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Holds the monitor before a pass.
pub static HANG_BETWEEN_PASSES: FailPoint = FailPoint::new("hangTTLMonitorBetweenPasses");
/// Holds the monitor while it has a collection's lock.
pub static HANG_WITH_LOCK: FailPoint = FailPoint::new("hangTTLMonitorWithLock");

/// What the monitor has done.
#[derive(Debug, Default)]
pub struct TtlCounters {
    passes: Arc<Counter>,
    sub_passes: Arc<Counter>,
    deleted: Arc<Counter>,
    raised: Arc<Counter>,
    invalid: Arc<Counter>,
}

impl TtlCounters {
    /// Adds what serverStatus shows.
    pub(crate) fn add_metrics(&self, tree: &mut MetricTree) -> Result<()> {
        for (path, counter) in [
            ("metrics.ttl.collSubpassesIncreasedPriority", &self.raised),
            ("metrics.ttl.deletedDocuments", &self.deleted),
            ("metrics.ttl.invalidTTLIndexSkips", &self.invalid),
            ("metrics.ttl.passes", &self.passes),
            ("metrics.ttl.subPasses", &self.sub_passes),
        ] {
            tree.add(path, Arc::clone(counter) as Arc<dyn Metric>)?;
        }
        Ok(())
    }
}

/// Sleeps and makes passes, until the data is gone.
pub async fn keep_expiring(env: Env, data: Weak<Data>, counters: Arc<Counters>, log: Log) {
    if let Some(data) = data.upgrade() {
        correct::tell_unusable(&data, &log);
    }
    let mut correction = Correction::default();
    loop {
        if !sleep(&env, &data, &mut correction, &log).await {
            return;
        }
        let Some(data) = data.upgrade() else { return };
        if !data.services.parameters.get(&ENABLED) {
            continue;
        }
        HANG_BETWEEN_PASSES.pause_while_on().await;
        if let Err(error) = Pass::new(&data, &counters, &log).run().await {
            let message = "TTLMonitor was interrupted, waiting before doing another pass";
            log!(log, Severity::Warning, Component::Index, 22537, message, "interruption" = &error);
        }
    }
}

/// Sleeps as long as the parameter says, also if it is changed meanwhile; false if there is no data any more.
async fn sleep(env: &Env, data: &Weak<Data>, correction: &mut Correction, log: &Log) -> bool {
    let start_ns = env.clock().monotonic_ns();
    let mut before = None;
    loop {
        let Some(present) = data.upgrade() else { return false };
        correction.run_if_new_primary(&present, log).await;
        let seconds = present.services.parameters.get(&SLEEP_SECONDS);
        drop(present);
        if before.is_some_and(|before| before != seconds) {
            log!(log, Severity::Info, Component::Index, 7005501, "TTL sleep deadline has changed", "seconds" = seconds);
        }
        before = Some(seconds);
        let slept_ns = env.clock().monotonic_ns().saturating_sub(start_ns);
        let left_ns = (u64::from(seconds.unsigned_abs()) * 1_000_000_000).saturating_sub(slept_ns);
        if left_ns == 0 {
            return true;
        }
        env.clock().sleep(LOOK_INTERVAL.min(Duration::from_nanos(left_ns))).await;
    }
}
