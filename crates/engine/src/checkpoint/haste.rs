//! When a checkpoint stands back, and from when on it hurries.
//!
//! Sorting is done by then; what takes time is compression, and it takes whatever the processors give. A checkpoint that only the clock or the length
//! of the log asked for has time: its threads take what others leave ([`Tasks::spawn_thread_aside`](pando_env::Tasks::spawn_thread_aside)), so that those who
//! read and write do not feel it. It hurries from the moment that somebody waits for it, that memory runs short, or that it has
//! taken so long, or so much log came since its cut, that the next one is due.

use super::CheckpointState;
use super::cut::Cut;
use crate::core::Core;
use crate::memory::Advice;
use pando_engine_log::LogPosition;
use pando_engine_runs::IsHurried;
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How a checkpoint that is asked for is to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as it can: somebody waits for it.
    Full,
    /// Standing back while it may.
    Leisurely,
}

/// Who waits for a checkpoint.
#[derive(Default)]
pub struct Haste {
    waiting: AtomicUsize,
}

impl Haste {
    /// Has the checkpoint under way hurry while this goes on.
    pub fn during<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waited_for = wait();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        waited_for
    }

    /// Has all checkpoints hurry from now on.
    pub fn for_ever(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

impl Core {
    /// The checkpoint's lock. Whoever has it works faster while somebody waits for it.
    pub fn lock_checkpoint(&self) -> MutexGuard<'_, CheckpointState> {
        self.checkpoint.try_lock().unwrap_or_else(|| self.haste.during(|| self.checkpoint.lock()))
    }

    /// What says whether the checkpoint at this cut has to hurry; none if it does from the beginning.
    pub(super) fn is_hurried(&self, cut: &Cut, pace: Pace) -> Option<IsHurried> {
        let (haste, memory, log, env) = (self.haste.clone(), self.memory.clone(), self.log.clone(), self.env.clone());
        let (cut_at, log_bytes_max) = (cut.position, self.options.checkpoint_log_bytes);
        let segment_bytes = self.options.log_segment_bytes;
        let place_bytes = move |place: LogPosition| {
            u64::from(place.segment).saturating_mul(segment_bytes).saturating_add(u64::from(place.offset))
        };
        // Zero is for never.
        let interval_ns = u64::try_from(self.options.checkpoint_interval.as_nanos()).unwrap_or(u64::MAX);
        let limit_ns = if interval_ns == 0 { u64::MAX } else { interval_ns };
        let started_ns = env.clock().monotonic_ns();
        let is_hurried = move || {
            haste.is_wanted()
                || memory.advice() != Advice::Go
                || place_bytes(log.position()).saturating_sub(place_bytes(cut_at)) >= log_bytes_max
                || env.clock().monotonic_ns().saturating_sub(started_ns) >= limit_ns
        };
        (pace == Pace::Leisurely).then(|| Arc::new(is_hurried) as IsHurried)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Target;
    use super::*;
    use crate::{DurableEngine, EngineOptions, Mode};
    use pando_env::Env;
    use pando_env::simulated::Simulation;
    use pando_storage::{BeginOptions, Engine, TableOptions};
    use std::path::Path;
    use std::time::Duration;

    const INTERVAL: Duration = Duration::from_secs(60);

    fn options() -> EngineOptions {
        EngineOptions {
            checkpoint_interval: INTERVAL,
            checkpoint_log_bytes: 256 << 10,
            memory_bytes: 4 << 20,
            ..EngineOptions::stepped(Mode::StandAlone)
        }
    }

    /// Shows a world and the question of a checkpoint that began in it.
    fn with_question(show: impl FnOnce(&Simulation, &DurableEngine, &IsHurried)) {
        let simulation = Simulation::new(1);
        let engine = DurableEngine::open(&simulation.env(), Path::new("/data"), options()).unwrap();
        let cut = engine.core.take_cut(Target::Full, false);
        assert!(engine.core.is_hurried(&cut, Pace::Full).is_none(), "it never stands back");
        let is_hurried = engine.core.is_hurried(&cut, Pace::Leisurely).unwrap();
        assert!(!is_hurried());
        show(&simulation, &engine, &is_hurried);
        assert!(is_hurried());
    }

    fn put(engine: &dyn Engine, ident: &str, bytes: usize) {
        let table = engine.create_table(ident, &TableOptions::default()).unwrap();
        for number in 0..bytes / 1024 {
            let mut writer = engine.begin(BeginOptions::default()).unwrap();
            writer.put(&table, &number.to_be_bytes(), &[7; 1024]).unwrap();
            writer.commit().unwrap();
        }
    }

    #[test]
    fn a_checkpoint_hurries_when_somebody_waits_for_it() {
        with_question(|_, engine, is_hurried| {
            assert!(engine.core.haste.during(is_hurried.as_ref()));
            assert!(!is_hurried(), "nobody waits any longer");
            engine.core.haste.for_ever();
        });
    }

    #[test]
    fn a_checkpoint_hurries_when_the_next_is_due_by_the_clock() {
        with_question(|simulation, _, is_hurried| {
            simulation.clock().advance(INTERVAL - Duration::from_millis(1));
            assert!(!is_hurried());
            simulation.clock().advance(Duration::from_millis(1));
        });
    }

    #[test]
    fn a_checkpoint_hurries_when_the_next_is_due_by_the_log() {
        with_question(|_, engine, is_hurried| {
            put(engine, "first", 128 << 10);
            assert!(!is_hurried());
            put(engine, "second", 160 << 10);
            assert_eq!(engine.core.memory.advice(), Advice::Go);
        });
    }

    #[test]
    fn a_checkpoint_hurries_when_memory_runs_short() {
        with_question(|_, engine, _| engine.core.memory.add(1 << 20));
    }

    #[test]
    fn whoever_wants_the_lock_has_its_holder_hurry() {
        with_question(|_, engine, is_hurried| {
            let held = engine.core.lock_checkpoint();
            assert!(!is_hurried(), "it was free");
            let core = engine.core.clone();
            let env = Env::real();
            let body = Box::new(move || drop(core.lock_checkpoint()));
            let waiter = env.tasks().spawn_thread("waiter", body).unwrap();
            while !is_hurried() {
                env.clock().pause(Duration::from_millis(1));
            }
            drop(held);
            waiter.join().unwrap();
            assert!(!is_hurried(), "nobody waits any longer");
            engine.core.haste.for_ever();
        });
    }
}
