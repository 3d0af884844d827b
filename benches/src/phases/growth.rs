//! What an operation costs at one size of the data: run at two sizes, it shows how the cost grows.

use super::{Plan, Store, checkpoints, load, reads};
use crate::Error;
use crate::measure::timed;
use crate::peers::{Direction, System};
use crate::report::Recorder;
use crate::workload::{Random, Workload};
use std::path::Path;
use std::time::Duration;

/// Loads, then times gets, a scan and updates with their checkpoint, everything cached.
pub fn run_growth(
    system: System,
    directory: &Path,
    plan: &Plan,
    updates: u64,
    recorder: &Recorder,
) -> Result<(), Error> {
    let mut workload = Workload::new(plan.documents);
    let store = Store::create(system, directory, plan)?;
    let peer = &*store.peer;
    load::run(peer, &workload, recorder)?;
    reads::warm(peer, plan)?;

    let mut random = Random::stream(0x640_0000, plan.documents);
    let duration = reads::timed_gets(peer, plan.gets, 1, || random.below(plan.documents))?;
    recorder.record("cost_get", nanoseconds_each(duration, plan.gets));
    let duration = reads::scan_time(peer, plan.documents, Direction::Forward, 3)?;
    recorder.record("cost_scan", nanoseconds_each(duration, plan.documents));

    let rewrites = workload.rewrites(updates);
    let ((), duration) = timed(|| checkpoints::write(peer, &rewrites))?;
    recorder.record("cost_update", nanoseconds_each(duration, updates));
    let (_, duration) = timed(|| {
        peer.checkpoint()?;
        peer.settle()
    })?;
    recorder.record("cost_checkpoint", nanoseconds_each(duration, updates));
    store.peer.close()
}

fn nanoseconds_each(duration: Duration, operations: u64) -> f64 {
    duration.as_nanos() as f64 / operations.max(1) as f64
}
