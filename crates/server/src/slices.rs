//! Operations work in slices: what the server does about those that keep a thread for long.
//!
//! A worker of requests may be kept for a moment; then whatever it would have done meanwhile goes
//! on elsewhere, and the operation takes turns with others like it. It keeps its locks, as it would
//! if it ran, but others have its ticket meanwhile: there are few of those, and whoever looks a
//! document up would wait for one. How that is done is the environment's affair
//! (`env/src/real/places.rs`); how long it may last, and what is counted of it, stands here.

use pando_base::operation::Slices;
use pando_base::{Counter, Gauge, MetricTree, OperationContext, OperationKind, Result};
use pando_env::{Env, Place};
use pando_locks::{TicketPool, Tickets};
use std::cell::Cell;
use std::sync::{Arc, OnceLock};

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

/// Which tickets an operation has lent.
#[derive(Clone, Copy, Default)]
struct Lent {
    is_read: bool,
    is_write: bool,
}

impl Lent {
    /// Those that an operation of this kind may have. One more than it has lets one more in, for as
    /// long as it lasts.
    fn of(kind: OperationKind) -> Lent {
        match kind {
            OperationKind::Query | OperationKind::GetMore => Lent { is_read: true, is_write: false },
            OperationKind::Insert | OperationKind::Update | OperationKind::Remove => {
                Lent { is_read: false, is_write: true }
            }
            OperationKind::Command | OperationKind::None => Lent { is_read: true, is_write: true },
        }
    }

    fn each(self, tickets: &Tickets, change: impl Fn(&TicketPool)) {
        if self.is_read {
            change(tickets.read());
        }
        if self.is_write {
            change(tickets.write());
        }
    }
}

thread_local! {
    static LENT: Cell<Lent> = const { Cell::new(Lent { is_read: false, is_write: false }) };
}

impl SliceCounters {
    /// Shows them.
    pub(crate) fn add_metrics(&self, metrics: &mut MetricTree) -> Result<()> {
        metrics.add("metrics.workers.longestKeptMicros", Arc::clone(&self.longest_micros) as _)?;
        metrics.add("metrics.workers.keptTooLong", Arc::clone(&self.overrun) as _)?;
        metrics.add("metrics.workers.paused", Arc::clone(&self.paused) as _)
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
    shared: Arc<SharedSlices>,
}

/// What the node knows of it, too.
#[derive(Default)]
pub(crate) struct SharedSlices {
    /// What is counted.
    pub(crate) counters: SliceCounters,
    /// The node's tickets, once there is an engine that wants some.
    pub(crate) tickets: OnceLock<Arc<Tickets>>,
}

impl ServerSlices {
    pub(crate) fn new(env: &Env, shared: &Arc<SharedSlices>) -> ServerSlices {
        ServerSlices { env: env.clone(), shared: Arc::clone(shared) }
    }

    /// Lends the ticket that the operation has.
    fn lend(&self, operation: &OperationContext) {
        let Some(tickets) = self.shared.tickets.get() else { return };
        let mut kind = OperationKind::None;
        operation.describe(|description| kind = description.kind);
        let lent = Lent::of(kind);
        lent.each(tickets, TicketPool::lend);
        LENT.set(lent);
    }

    fn take_back(&self) {
        let lent = LENT.take();
        if let Some(tickets) = self.shared.tickets.get() {
            lent.each(tickets, TicketPool::take_lent_back);
        }
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

    fn pause(&self, operation: &OperationContext, kept_ns: Option<u64>) {
        self.shared.counters.paused.increment();
        if let Some(kept_ns) = kept_ns {
            if self.is_on_worker() {
                self.shared.counters.note(kept_ns);
            }
            self.lend(operation);
        }
        self.env.tasks().pause_long_work(&|| operation.check().is_err());
    }

    fn end(&self, kept_ns: Option<u64>) {
        match kept_ns {
            Some(kept_ns) if self.is_on_worker() => self.shared.counters.note(kept_ns),
            Some(_) => {}
            None => {
                self.take_back();
                self.env.tasks().end_long_work();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_env::simulated::Simulation;
    use pando_locks::{Mode, Priority, TicketParameters, Wait};

    #[test]
    fn a_pause_lends_the_ticket_until_the_poll_is_over() {
        let env = Simulation::new(1).env();
        let shared = Arc::new(SharedSlices::default());
        let tickets = Tickets::new(&env, &TicketParameters::default()).unwrap();
        assert!(shared.tickets.set(Arc::clone(&tickets)).is_ok());
        let slices = ServerSlices::new(&env, &shared);
        let out = || (tickets.read().out(), tickets.write().out());
        for (kind, lent) in
            [(OperationKind::Query, (-1, 0)), (OperationKind::Update, (0, -1)), (OperationKind::Command, (-1, -1))]
        {
            let operation = OperationContext::detached();
            operation.describe(|description| description.kind = kind);
            slices.pause(&operation, Some(2 * REQUEST_SLICE_NS));
            slices.pause(&operation, None);
            assert_eq!(out(), lent, "{kind:?} lends once");
            slices.end(None);
            assert_eq!(out(), (0, 0));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ticket = tickets.acquire(Mode::IS, Priority::Normal, &Wait::FOREVER);
        let ticket = runtime.block_on(ticket).unwrap();
        slices.pause(&OperationContext::detached(), Some(1));
        assert_eq!(out().0, 0, "others have it");
        slices.end(None);
        assert_eq!(out().0, 1);
        drop(ticket);
        assert_eq!(shared.counters.paused.get(), 7);
    }
}
