//! Flow control's tickets: how many operations may begin to write in each period, so that those who copy the writes keep up.
//!
//! There is no pool that tickets come back to. Somebody reckons once a period how many there are ([`FlowTickets::refresh`]); each
//! global lock for writing uses one up, and who finds none waits for the next period. How many there should be is not known
//! here. As long as it is any number, nothing is counted and nothing is shared: writers only look at a flag.

use crate::sync::Mutex;
use crate::wait::{Ended, Grant, Wait, Wakers};
use pando_base::{Error, ErrorCode, Result};
use pando_env::Env;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// As many tickets as nobody can use up.
pub const FLOW_TICKETS_UNLIMITED: i64 = 1_000_000_000;

/// The tickets of the present period.
pub struct FlowTickets {
    env: Env,
    is_limited: AtomicBool,
    state: Mutex<State>,
    waited_micros: AtomicU64,
}

struct State {
    available: i64,
    /// Who waits for the next period, in order. If somebody does, nothing is available.
    waiting: VecDeque<Arc<Grant>>,
}

impl FlowTickets {
    pub(crate) fn new(env: &Env) -> FlowTickets {
        FlowTickets {
            env: env.clone(),
            is_limited: AtomicBool::new(false),
            state: Mutex::new(State { available: FLOW_TICKETS_UNLIMITED, waiting: VecDeque::new() }),
            waited_micros: AtomicU64::new(0),
        }
    }

    /// A new period with so many tickets; those who wait come first.
    pub fn refresh(&self, count: i64) {
        let mut wakers = Wakers::default();
        let mut state = self.state.lock();
        state.available = count.max(0);
        self.is_limited.store(count < FLOW_TICKETS_UNLIMITED, Relaxed);
        while state.available > 0
            && let Some(grant) = state.waiting.pop_front()
        {
            state.available -= 1;
            wakers.add(grant.give());
        }
        drop(state);
        wakers.wake();
    }

    /// How long operations have waited for tickets, together.
    pub fn waited_micros(&self) -> u64 {
        self.waited_micros.load(Relaxed)
    }

    /// How many operations wait.
    pub fn waiting_count(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// False if there are more than anybody can use up.
    pub(crate) fn is_limited(&self) -> bool {
        self.is_limited.load(Relaxed)
    }

    /// Uses a ticket up; waits for the next period if there is none. How long that took, if it did.
    pub(crate) async fn take(&self, wait: &Wait<'_>) -> Result<Option<u64>> {
        let Some(grant) = self.take_or_enqueue() else { return Ok(None) };
        let pending = Pending { tickets: self, grant, start_ns: self.env.clock().monotonic_ns() };
        match pending.grant.wait(&self.env, wait).await {
            Ok(()) => Ok(Some(pending.waited_micros())),
            Err(Ended::Interrupted(error)) => Err(error),
            Err(Ended::TimedOut(patience)) => {
                let reason =
                    format!("Unable to acquire flow control ticket within '{}' milliseconds.", patience.as_millis());
                Err(Error::new(ErrorCode::LockTimeout, reason))
            }
        }
    }

    fn take_or_enqueue(&self) -> Option<Arc<Grant>> {
        if !self.is_limited() {
            return None;
        }
        let mut state = self.state.lock();
        if state.available > 0 {
            state.available -= 1;
            return None;
        }
        let grant = Grant::new();
        state.waiting.push_back(Arc::clone(&grant));
        Some(grant)
    }
}

/// An operation that waits. Leaves the queue when dropped; a ticket that came too late is used up.
struct Pending<'a> {
    tickets: &'a FlowTickets,
    grant: Arc<Grant>,
    start_ns: u64,
}

impl Pending<'_> {
    fn waited_micros(&self) -> u64 {
        self.tickets.env.clock().monotonic_ns().saturating_sub(self.start_ns) / 1_000
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.tickets.waited_micros.fetch_add(self.waited_micros(), Relaxed);
        self.tickets.state.lock().waiting.retain(|grant| !Arc::ptr_eq(grant, &self.grant));
    }
}
