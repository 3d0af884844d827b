//! Operations work in slices: what the server does about those that keep a thread for long.
//!
//! A worker of requests may be kept for a moment; then whatever it would have done meanwhile goes on elsewhere, and the operation takes
//! turns with others like it. How that is done is the environment's affair (`env/src/real/places.rs`); how long it may last, and
//! what is counted of it, stands here.

use pando_base::operation::Slices;
use pando_base::{Counter, Gauge, MetricTree, OperationContext, Result};
use pando_env::{Env, Place};
use std::sync::Arc;

/// How long an operation may keep a worker of requests.
const REQUEST_SLICE_NS: u64 = 1_000_000;
/// How long one may keep a thread that has nothing but long work to do.
const LANE_SLICE_NS: u64 = 10_000_000;

/// What is counted of workers that are kept.
#[derive(Default)]
pub(crate) struct SliceCounters {
    /// The longest time that an operation has kept a worker of requests, in microseconds.
    longest_micros: Arc<Gauge>,
    /// How often one has kept a worker of requests for longer than a slice.
    overrun: Arc<Counter>,
    /// How often one was paused in the middle of its work.
    paused: Arc<Counter>,
}

impl SliceCounters {
    /// Shows them.
    pub(crate) fn add_metrics(&self, metrics: &mut MetricTree) -> Result<()> {
        metrics.add("workers.longestKeptMicros", Arc::clone(&self.longest_micros) as _)?;
        metrics.add("workers.keptTooLong", Arc::clone(&self.overrun) as _)?;
        metrics.add("workers.paused", Arc::clone(&self.paused) as _)
    }

    fn note(&self, kept_ns: u64) {
        if kept_ns > REQUEST_SLICE_NS {
            self.overrun.increment();
            self.longest_micros.raise(i64::try_from(kept_ns / 1000).unwrap_or(i64::MAX));
        }
    }
}

/// Sees to it, with the threads of this environment.
pub(crate) struct ServerSlices {
    env: Env,
    counters: Arc<SliceCounters>,
}

impl ServerSlices {
    pub(crate) fn new(env: &Env, counters: &Arc<SliceCounters>) -> ServerSlices {
        ServerSlices { env: env.clone(), counters: Arc::clone(counters) }
    }

    fn is_on_worker(&self) -> bool {
        matches!(self.env.tasks().place(), Some(Place::Requests | Place::Control))
    }
}

impl Slices for ServerSlices {
    fn length_ns(&self) -> Option<u64> {
        match self.env.tasks().place()? {
            Place::Requests | Place::Control => Some(REQUEST_SLICE_NS),
            Place::Lanes => Some(LANE_SLICE_NS),
        }
    }

    fn pause(&self, operation: &OperationContext, kept_ns: u64) {
        self.counters.paused.increment();
        if self.is_on_worker() {
            self.counters.note(kept_ns);
        }
        self.env.tasks().pause_long_work(&|| operation.check().is_err());
    }

    fn end(&self, kept_ns: Option<u64>) {
        match kept_ns {
            Some(kept_ns) if self.is_on_worker() => self.counters.note(kept_ns),
            Some(_) => {}
            None => self.env.tasks().end_long_work(),
        }
    }
}
