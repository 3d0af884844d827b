//! The engine's threads: one flushes the log, one prepares its space, one takes checkpoints, one merges and reclaims, one asks for
//! large pages.
//!
//! Each does nothing but call what a caller without threads would call. They end when the engine is shut down.

use crate::core::Core;
use crate::failure::of_log;
use crate::memory::Advice;
use crate::watch::Watch;
use pando_env::{Alarm, ThreadHandle};
use pando_storage::{PAUSE_CHECKPOINT_THREAD, Result, StorageError, Work};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long the merge thread sleeps when nothing is due.
const MERGE_IDLE: Duration = Duration::from_secs(1);
/// How often the checkpoint thread looks at memory and log.
const CHECKPOINT_LOOK: Duration = Duration::from_millis(200);
/// When a checkpoint that failed is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// After so many looks at which nearly nothing was written, a checkpoint costs nobody anything,
const LULL_LOOKS: u32 = 3;
/// if there is so much to be written: this part of what would ask for one in any case. The next time that much is written it need not be done meanwhile.
const LULL_SHARE: u64 = 16;
/// From one look to the next, who says that the node is there writes no more than this.
const LULL_BYTES_MAX: u64 = 64 << 10;

/// How often somebody looks how much memory is in use.
const MEMORY_LOOK: Duration = Duration::from_millis(100);
/// How often while it grows: large pages must be asked for before the memory is touched.
const MEMORY_LOOK_GROWING: Duration = Duration::from_millis(5);
/// So much more memory in use since the last look is growth.
const GROWING_BYTES: u64 = 1 << 20;
/// Each time that so much more memory is in use, large pages are asked for it.
const LARGE_PAGES_STEP_BYTES: u64 = 16 << 20;
/// But not while less than this is in use.
const LARGE_PAGES_BYTES_MIN: u64 = 48 << 20;
/// After so many looks in which memory did not grow, what lies in small pages is moved into large ones: whoever reads meanwhile is slowed down,
const STEADY_LOOKS: u32 = 20;
/// if so much came since that was done.
const MADE_STEP_BYTES: u64 = 64 << 20;

/// The threads, to be joined.
#[derive(Default)]
pub struct Background {
    threads: Mutex<Vec<Box<dyn ThreadHandle>>>,
}

impl Background {
    /// Starts them.
    pub fn start(&self, core: &Arc<Core>) -> Result<()> {
        let mut threads = self.threads.lock();
        for (name, body) in [
            ("pando-flush", flush_loop as fn(&Core)),
            ("pando-fill", fill_loop),
            ("pando-checkpoint", checkpoint_loop),
            ("pando-merge", merge_loop),
            ("pando-pages", pages_loop),
        ] {
            let core = core.clone();
            let thread = core.env.clone().tasks().spawn_thread(name, Box::new(move || body(&core)));
            threads.push(thread.map_err(|error| StorageError::Io(format!("cannot start {name}: {error}")))?);
        }
        Ok(())
    }

    /// Ends them and waits.
    pub fn stop(&self, core: &Core) {
        core.stopping.store(true, Ordering::Release);
        core.haste.for_ever();
        core.runs.hurry();
        core.checkpoint_alarm.ring();
        core.merge_alarm.ring();
        core.pages_alarm.ring();
        core.log.wake_threads();
        for thread in self.threads.lock().drain(..) {
            if thread.join().is_err() {
                core.stop("a background thread of the engine panicked");
            }
        }
    }
}

fn going(core: &Core) -> bool {
    !core.stopping.load(Ordering::Acquire) && core.check_running().is_ok()
}

/// Waits for the alarm at most so long; false when it is time to end.
fn wait(core: &Core, alarm: &Alarm, at_most: Duration) -> bool {
    if going(core) {
        alarm.wait(at_most);
    }
    going(core)
}

fn flush_loop(core: &Core) {
    let served = core.log.serve_flushes(core.options.commit_interval, &|| going(core), &|| core.has_unflushed());
    core.worked(Work::Flush, &served.map_err(|error| core.noted(of_log(error))));
}

fn fill_loop(core: &Core) {
    let served = core.log.serve_fills(&|| going(core));
    core.worked(Work::LogSpace, &served.map_err(|error| core.noted(of_log(error))));
}

fn checkpoint_loop(core: &Core) {
    let mut since_ns = core.env.clock().monotonic_ns();
    // What no checkpoint can take, as what belongs to running transactions, is no reason for another.
    let (mut lull, mut left_bytes, mut watch) = (Lull::default(), 0, Watch::default());
    while wait(core, &core.checkpoint_alarm, CHECKPOINT_LOOK) {
        watch.look(core);
        let log_bytes = core.log_bytes_since_checkpoint();
        let is_lull = lull.look(log_bytes) && is_worth_a_lull(core, log_bytes, left_bytes);
        let now_ns = core.env.clock().monotonic_ns();
        let interval = interval(core);
        let due = !interval.is_zero() && u128::from(now_ns.saturating_sub(since_ns)) >= interval.as_nanos();
        if core.memory.advice() != Advice::Go {
            // A checkpoint tells itself how it ended; here remains what the error says of the disk.
            if let Err(error) = core.relieve() {
                core.noted(error);
            }
            since_ns = core.env.clock().monotonic_ns();
        } else if (due || log_bytes >= core.options.checkpoint_log_bytes || (is_lull && !interval.is_zero()))
            && !PAUSE_CHECKPOINT_THREAD.should_fail()
        {
            if let Err(error) = core.take_leisurely_checkpoint() {
                core.noted(error);
            }
            since_ns = core.env.clock().monotonic_ns();
            left_bytes = core.memory.dirty_bytes();
        }
    }
}

/// The time from one checkpoint to the next; one that failed is tried again sooner.
fn interval(core: &Core) -> Duration {
    let usual = core.options.checkpoint_interval;
    if core.health.failures_in_a_row(Work::Checkpoint) > 0 { usual.min(RETRY_INTERVAL) } else { usual }
}

/// Whether there is so much to be written that a pause should be used for it.
fn is_worth_a_lull(core: &Core, log_bytes: u64, left_bytes: u64) -> bool {
    let dirty_bytes = core.memory.dirty_bytes().saturating_sub(left_bytes);
    log_bytes >= core.options.checkpoint_log_bytes / LULL_SHARE
        || dirty_bytes >= core.memory.checkpoint_bytes() / LULL_SHARE
}

/// Tells when writing has paused.
#[derive(Default)]
struct Lull {
    seen_bytes: u64,
    looks: u32,
}

impl Lull {
    /// True if nearly nothing was written of late.
    fn look(&mut self, log_bytes: u64) -> bool {
        let is_still = log_bytes.abs_diff(self.seen_bytes) <= LULL_BYTES_MAX;
        self.looks = if is_still { self.looks.saturating_add(1) } else { 0 };
        self.seen_bytes = log_bytes;
        self.looks >= LULL_LOOKS
    }
}

/// Nobody else has the time: a checkpoint takes seconds, in which gigabytes can be touched.
fn pages_loop(core: &Core) {
    let (mut asked_bytes, mut seen_bytes, mut look) = (0, 0, MEMORY_LOOK);
    let (mut made_bytes, mut steady_looks) = (0, 0_u32);
    core.env.tasks().avoid_large_pages();
    while wait(core, &core.pages_alarm, look) {
        let used_bytes = memory_bytes_used(core);
        let grows = used_bytes > seen_bytes + GROWING_BYTES;
        look = if grows { MEMORY_LOOK_GROWING } else { MEMORY_LOOK };
        seen_bytes = used_bytes;
        // What takes the place of something that went may lie elsewhere.
        asked_bytes = asked_bytes.min(used_bytes);
        if used_bytes >= LARGE_PAGES_BYTES_MIN.max(asked_bytes + LARGE_PAGES_STEP_BYTES) {
            asked_bytes = used_bytes;
            core.env.tasks().prefer_large_pages();
        }
        if asked_bytes > 0 && used_bytes < LARGE_PAGES_BYTES_MIN / 2 {
            asked_bytes = 0;
            core.env.tasks().avoid_large_pages();
        }
        made_bytes = made_bytes.min(used_bytes);
        steady_looks = if grows { 0 } else { steady_looks.saturating_add(1) };
        if steady_looks == STEADY_LOOKS && used_bytes >= LARGE_PAGES_BYTES_MIN.max(made_bytes + MADE_STEP_BYTES) {
            // Whoever writes again would wait for pages that are being moved: they are left for the next quiet time.
            let is_quiet = || memory_bytes_used(core) <= used_bytes + GROWING_BYTES;
            core.env.tasks().make_large_pages(&|| going(core) && is_quiet());
            if is_quiet() {
                made_bytes = used_bytes;
            }
        }
    }
}

fn memory_bytes_used(core: &Core) -> u64 {
    core.memory.overlay_bytes() + core.runs.cache_bytes_used()
}

fn merge_loop(core: &Core) {
    let mut busy = false;
    while busy || wait(core, &core.merge_alarm, MERGE_IDLE) {
        let step = core.maintain_step();
        // Where there was nothing to do, what failed before was not done.
        if step != Ok(false) {
            core.worked(Work::Merge, &step);
        }
        busy = step.unwrap_or(false) && going(core);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_has_paused_when_nearly_nothing_came_for_a_while() {
        let mut lull = Lull::default();
        let looks = [1 << 30, (1 << 30) + 10, (1 << 30) + 20, (1 << 30) + 30].map(|bytes| lull.look(bytes));
        assert_eq!(looks, [false, false, false, true]);
        assert!(!lull.look(1 << 31), "it went on");
        // After a checkpoint the count begins anew.
        assert!(!lull.look(0));
    }
}
