//! A pool of tickets: so many operations at once, the others wait in line.
//!
//! One word holds how many tickets are available (negative after the pool shrank below what is out) and how many
//! operations are queued. Both change together, so nobody can miss the other:
//!
//! - taking is one exchange while tickets are available; giving back is one exchange while nobody is queued;
//! - `queued > 0` implies `available <= 0`: a ticket given back goes straight to the next in line, no newcomer takes it;
//! - `queued` changes under the queue's lock only.
//!
//! Whoever holds a ticket and has to wait for a processor's sake lends it to others ([`TicketPool::lend`]).
//!
//! Who is next: [`super::queue`]. Shrinking takes tickets away as they come back; holders keep theirs.

use super::Priority;
use super::queue::TicketQueue;
use super::stats::{PoolStats, StatsLanes};
use crate::sync::{AtomicU64, Mutex, Ordering, Padded};
use crate::wait::{Ended, Grant, Wait, Wakers};
use pando_base::{Error, ErrorCode, Result};
use pando_env::Env;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// What an operation brings to the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admission {
    pub priority: Priority,
    /// Whether it is the operation's first ticket.
    pub is_new: bool,
    /// Where its counters are kept; any number.
    pub lane: usize,
}

/// A ticket, or the right to do without one. To be given back to its pool.
#[must_use]
#[derive(Debug)]
pub(crate) struct HeldTicket {
    admission: Admission,
    started_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    available: i32,
    queued: u32,
}

impl State {
    fn from_word(word: u64) -> State {
        State { available: (word >> 32) as i32, queued: word as u32 }
    }

    fn word(self) -> u64 {
        u64::from(self.available as u32) << 32 | u64::from(self.queued)
    }
}

/// What came of asking under the queue's lock.
enum Asked {
    Taken,
    Queued(Arc<Grant>),
    Full(u32),
}

/// Tickets of one kind.
pub struct TicketPool {
    env: Env,
    name: &'static str,
    state: Padded<AtomicU64>,
    queue: Padded<Mutex<TicketQueue>>,
    /// How many tickets there should be. Changed under the queue's lock.
    total: AtomicI32,
    /// The most that were out since this was last asked.
    peak_out: AtomicI32,
    stats: StatsLanes,
}

impl TicketPool {
    pub(crate) fn new(env: &Env, name: &'static str, total: i32, queue: TicketQueue) -> TicketPool {
        TicketPool {
            env: env.clone(),
            name,
            state: Padded(AtomicU64::new(State { available: total, queued: 0 }.word())),
            queue: Padded(Mutex::new(queue)),
            total: AtomicI32::new(total),
            peak_out: AtomicI32::new(0),
            stats: StatsLanes::default(),
        }
    }

    /// Takes a ticket; waits for it if there is none.
    pub(crate) async fn acquire(&self, admission: Admission, wait: &Wait<'_>) -> Result<HeldTicket> {
        if let Some(ticket) = self.try_acquire(admission) {
            return Ok(ticket);
        }
        self.wait_for_ticket(admission, wait).await?;
        Ok(self.start(admission))
    }

    /// Takes a ticket if there is one, or if none is needed.
    pub(crate) fn try_acquire(&self, admission: Admission) -> Option<HeldTicket> {
        if admission.priority == Priority::Immediate {
            self.stats.lane(admission.lane).count_immediate();
            return Some(HeldTicket { admission, started_ns: 0 });
        }
        self.try_take().then(|| self.start(admission))
    }

    /// Gives a ticket back: to the next in line, or to the pool.
    pub(crate) fn release(&self, ticket: HeldTicket, wakers: &mut Wakers) {
        let HeldTicket { admission, started_ns } = ticket;
        if admission.priority == Priority::Immediate {
            return;
        }
        let elapsed_ns = self.env.clock().monotonic_ns().saturating_sub(started_ns);
        self.stats.lane(admission.lane).finish(admission.priority, elapsed_ns / 1_000);
        self.give_back(wakers);
    }

    /// Lets another operation in for one whose ticket is of no use to it for now: it keeps its place in the engine, but has to wait
    /// elsewhere. To be taken back with [`TicketPool::take_lent_back`].
    pub fn lend(&self) {
        let mut wakers = Wakers::default();
        self.give_back(&mut wakers);
        wakers.wake();
    }

    /// Ends a loan. The pool may have fewer tickets than none until somebody gives one back.
    pub fn take_lent_back(&self) {
        self.change(|state| Some((State { available: state.available.saturating_sub(1), ..state }, ())));
    }

    /// Changes how many tickets there are. Who holds one keeps it.
    pub fn resize(&self, total: i32) {
        let mut wakers = Wakers::default();
        let mut queue = self.queue.lock();
        let difference = total.saturating_sub(self.total.swap(total, Relaxed));
        let admitted = self.change(|state| {
            let available = state.available.saturating_add(difference);
            let admitted = state.queued.min(u32::try_from(available).unwrap_or(0));
            let after = State { available: available - admitted as i32, queued: state.queued - admitted };
            Some((after, admitted))
        });
        for _ in 0..admitted.unwrap_or(0) {
            wakers.add(self.admit_next(&mut queue));
        }
        drop(queue);
        wakers.wake();
    }

    /// After how many normal operations in a row one of low priority gets its turn; 0 for never.
    pub fn set_low_priority_bypass_threshold(&self, threshold: u32) {
        self.queue.lock().set_bypass_threshold(threshold);
    }

    /// How many operations may wait; none beyond that are let in.
    pub fn set_queue_length_max(&self, length_max: Option<u32>) {
        self.queue.lock().set_length_max(length_max);
    }

    /// How many tickets there should be.
    pub fn total(&self) -> i32 {
        self.total.load(Relaxed)
    }

    /// How many are out; more than there should be, after the pool shrank.
    pub fn out(&self) -> i32 {
        self.total().saturating_sub(self.load().available)
    }

    /// How many operations wait.
    pub fn queued(&self) -> u32 {
        self.load().queued
    }

    /// All the numbers.
    pub fn stats(&self) -> PoolStats {
        let state = self.load();
        let (expedited, bypassed) = self.queue.lock().counts();
        let total = self.total();
        let mut stats = PoolStats {
            out: total.saturating_sub(state.available),
            available: state.available.max(0),
            total_tickets: total,
            ..PoolStats::default()
        };
        stats.low_priority.expedited = expedited;
        stats.low_priority.bypassed = bypassed;
        self.stats.add_to(&mut stats);
        stats
    }

    pub(crate) fn finished_count(&self) -> u64 {
        self.stats.finished_count()
    }

    /// The most that were out since this was last called.
    pub(crate) fn take_peak_out(&self) -> i32 {
        let out = self.out();
        self.peak_out.swap(out, Relaxed).max(out)
    }

    fn start(&self, admission: Admission) -> HeldTicket {
        let out = self.out();
        if out > self.peak_out.load(Relaxed) {
            self.peak_out.fetch_max(out, Relaxed);
        }
        self.stats.lane(admission.lane).start(admission.priority, admission.is_new);
        HeldTicket { admission, started_ns: self.env.clock().monotonic_ns() }
    }

    async fn wait_for_ticket(&self, admission: Admission, wait: &Wait<'_>) -> Result<()> {
        let grant = match self.take_or_enqueue(admission.priority) {
            Asked::Taken => return Ok(()),
            Asked::Full(length_max) => return Err(self.queue_is_full(length_max)),
            Asked::Queued(grant) => grant,
        };
        let mut pending = Pending::new(self, admission, grant);
        match pending.grant.wait(&self.env, wait).await {
            Ok(()) => {
                pending.is_admitted = true;
                Ok(())
            }
            Err(Ended::Interrupted(error)) => Err(error),
            Err(Ended::TimedOut(patience)) => Err(self.timed_out(patience.as_millis())),
        }
    }

    fn take_or_enqueue(&self, priority: Priority) -> Asked {
        let mut queue = self.queue.lock();
        let length_max = queue.length_max();
        let outcome = self.change(|state| match state {
            State { available: 1.., .. } => Some((State { available: state.available - 1, ..state }, true)),
            State { queued, .. } if queued >= length_max => None,
            State { queued, .. } => Some((State { queued: queued + 1, ..state }, false)),
        });
        match outcome {
            Some(true) => Asked::Taken,
            Some(false) => Asked::Queued(queue.push(priority)),
            None => Asked::Full(length_max),
        }
    }

    fn cancel(&self, priority: Priority, grant: &Arc<Grant>) {
        let was_queued = {
            let mut queue = self.queue.lock();
            let was_queued = queue.remove(priority, grant);
            if was_queued {
                self.change(|state| Some((State { queued: state.queued - 1, ..state }, ())));
            }
            was_queued
        };
        if !was_queued {
            let mut wakers = Wakers::default();
            self.give_back(&mut wakers);
            wakers.wake();
        }
    }

    fn try_take(&self) -> bool {
        let taken =
            |state: State| (state.available > 0).then(|| (State { available: state.available - 1, ..state }, ()));
        self.change(taken).is_some()
    }

    fn give_back(&self, wakers: &mut Wakers) {
        if self.try_give_back() {
            return;
        }
        let mut queue = self.queue.lock();
        if self.try_give_back() {
            return;
        }
        self.change(|state| Some((State { queued: state.queued - 1, ..state }, ())));
        wakers.add(self.admit_next(&mut queue));
    }

    /// Gives it to the pool, unless somebody is entitled to it.
    fn try_give_back(&self) -> bool {
        let given = |state: State| {
            let is_free = state.queued == 0 || state.available < 0;
            is_free.then(|| (State { available: state.available + 1, ..state }, ()))
        };
        self.change(given).is_some()
    }

    fn admit_next(&self, queue: &mut TicketQueue) -> Option<std::task::Waker> {
        let next = queue.pop();
        debug_assert!(next.is_some(), "the word says that somebody is queued");
        next.and_then(|grant| grant.give())
    }

    /// Changes the word as told, unless told to leave it.
    fn change<T>(&self, changed: impl Fn(State) -> Option<(State, T)>) -> Option<T> {
        let mut word = self.state.load(Ordering::Relaxed);
        loop {
            let (after, outcome) = changed(State::from_word(word))?;
            debug_assert!(after.queued == 0 || after.available <= 0, "{after:?}");
            match self.state.compare_exchange_weak(word, after.word(), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Some(outcome),
                Err(now) => word = now,
            }
        }
    }

    fn load(&self) -> State {
        State::from_word(self.state.load(Ordering::Acquire))
    }

    fn timed_out(&self, patience_ms: u128) -> Error {
        let reason = format!(
            "Unable to acquire {} ticket within a max lock request timeout of '{patience_ms}' milliseconds.",
            self.name
        );
        Error::new(ErrorCode::LockTimeout, reason)
    }

    fn queue_is_full(&self, length_max: u32) -> Error {
        let reason = format!("{length_max} operations wait for a {} ticket already", self.name);
        Error::new(ErrorCode::TemporarilyUnavailable, reason)
    }
}

/// An operation in the queue. Leaves it when dropped, and gives back a ticket that came too late.
struct Pending<'a> {
    pool: &'a TicketPool,
    admission: Admission,
    grant: Arc<Grant>,
    queued_ns: u64,
    is_admitted: bool,
}

impl<'a> Pending<'a> {
    fn new(pool: &'a TicketPool, admission: Admission, grant: Arc<Grant>) -> Pending<'a> {
        pool.stats.lane(admission.lane).enqueue(admission.priority);
        let queued_ns = pool.env.clock().monotonic_ns();
        Pending { pool, admission, grant, queued_ns, is_admitted: false }
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let Pending { pool, admission, is_admitted, .. } = *self;
        let queued_ns = pool.env.clock().monotonic_ns().saturating_sub(self.queued_ns);
        pool.stats.lane(admission.lane).dequeue(admission.priority, queued_ns / 1_000, is_admitted);
        if !is_admitted {
            pool.cancel(admission.priority, &self.grant);
        }
    }
}
