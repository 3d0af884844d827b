//! Admission: before the global lock an operation needs a ticket, so that only so many are in the engine at once.
//!
//! There is a pool for reads (IS, S) and one for writes (IX); X needs none, as it is alone anyhow. Operations of immediate
//! priority need none either and are only counted. How many tickets there are is fixed by parameter or found by
//! [`probing`] for the most throughput, in steps that somebody calls on time ([`Tickets::run_adjustments`]).
//!
//! Before that, writes of a set pass flow control, which is another mechanism: [`flow`].
//!
//! Tickets know nothing of locks, except which mode belongs to which pool.

mod flow;
#[cfg(test)]
mod flow_tests;
mod parameters;
mod pool;
mod probing;
mod queue;
mod stats;
#[cfg(test)]
mod tests;

use crate::mode::Mode;
use crate::wait::{Wait, Wakers};
use pando_base::{Error, ErrorCode, Result};
use pando_env::Env;
use parking_lot::Mutex;
use queue::TicketQueue;
use std::sync::Arc;
use std::time::Duration;

pub use flow::{FLOW_TICKETS_UNLIMITED, FlowTickets};
pub use parameters::{CONCURRENT_READ_TRANSACTIONS, CONCURRENT_WRITE_TRANSACTIONS, PARAMETERS};
pub use pool::TicketPool;
pub(crate) use pool::{Admission, HeldTicket};
pub use probing::{ProbingParameters, ProbingStats, Sample, Sizes, ThroughputProbing};
pub use stats::{PoolStats, QueueStats};

/// How urgent an operation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// Never waits: what availability or observation depends on, and what sets resources free.
    Immediate,
    /// Waits its turn.
    #[default]
    Normal,
    /// Waits until no normal operation does, with exceptions: work in the background that nobody waits for.
    Low,
}

/// `storageEngineConcurrencyAdjustmentAlgorithm`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// `fixedConcurrentTransactions`: as many tickets as the parameters say.
    Fixed,
    /// `throughputProbing`: as many as give the most throughput.
    #[default]
    ThroughputProbing,
}

impl Algorithm {
    /// By the value of the parameter.
    pub fn parse(name: &str) -> Result<Algorithm> {
        match name {
            "fixedConcurrentTransactions" => Ok(Algorithm::Fixed),
            "throughputProbing" => Ok(Algorithm::ThroughputProbing),
            _ => Err(Error::bad_value(format!(
                "Enumeration value '{name}' for field \
                'storageEngineConcurrencyAdjustmentAlgorithm' is not a valid value."
            ))),
        }
    }
}

/// The server parameters of admission.
#[derive(Clone, Debug, PartialEq)]
pub struct TicketParameters {
    /// `storageEngineConcurrencyAdjustmentAlgorithm`.
    pub algorithm: Algorithm,
    /// `storageEngineConcurrentReadTransactions`: read tickets if fixed; 0 for the default.
    pub concurrent_read_transactions: i32,
    /// `storageEngineConcurrentWriteTransactions`: write tickets if fixed; 0 for the default.
    pub concurrent_write_transactions: i32,
    /// `lowPriorityAdmissionBypassThreshold`: after how many normal operations in a row one of low priority gets its turn;
    /// 0 for never.
    pub low_priority_admission_bypass_threshold: u32,
    /// `storageEngineConcurrencyAdjustmentIntervalMillis`: time between two steps.
    pub adjustment_interval_ms: u64,
    /// How many operations may wait for each pool; without it, any number.
    pub queue_length_max: Option<u32>,
    /// The parameters of probing.
    pub probing: ProbingParameters,
}

impl Default for TicketParameters {
    fn default() -> TicketParameters {
        TicketParameters {
            algorithm: Algorithm::default(),
            concurrent_read_transactions: 0,
            concurrent_write_transactions: 0,
            low_priority_admission_bypass_threshold: 5000,
            adjustment_interval_ms: 100,
            queue_length_max: None,
            probing: ProbingParameters::default(),
        }
    }
}

/// Tickets in a pool that is fixed but not told how large.
const FIXED_TICKETS_DEFAULT: i32 = 128;
/// The least that a fixed pool may be told.
const FIXED_TICKETS_MIN: i32 = 5;

/// The two pools.
pub struct Tickets {
    env: Env,
    read: TicketPool,
    write: TicketPool,
    flow: FlowTickets,
    adjuster: Option<Mutex<Adjuster>>,
    adjustment_interval: Duration,
}

/// What lies between two steps of the probing.
struct Adjuster {
    probing: ThroughputProbing,
    finished_count: u64,
    stepped_ns: u64,
}

impl Tickets {
    /// Pools with these parameters.
    pub fn new(env: &Env, parameters: &TicketParameters) -> Result<Arc<Tickets>> {
        parameters.probing.validate()?;
        let fixed = fixed_sizes(parameters)?;
        let is_probing = parameters.algorithm == Algorithm::ThroughputProbing;
        let probing = || ThroughputProbing::new(parameters.probing.clone(), env.tasks().parallelism());
        let probing = is_probing.then(probing);
        let sizes = probing.as_ref().map_or(fixed, ThroughputProbing::sizes);
        let queue =
            || TicketQueue::new(parameters.low_priority_admission_bypass_threshold, parameters.queue_length_max);
        let stepped_ns = env.clock().monotonic_ns();
        Ok(Arc::new(Tickets {
            env: env.clone(),
            read: TicketPool::new(env, "read", sizes.read, queue()),
            write: TicketPool::new(env, "write", sizes.write, queue()),
            flow: FlowTickets::new(env),
            adjuster: probing.map(|probing| Mutex::new(Adjuster { probing, finished_count: 0, stepped_ns })),
            adjustment_interval: Duration::from_millis(parameters.adjustment_interval_ms.max(1)),
        }))
    }

    /// Tickets for reads.
    pub fn read(&self) -> &TicketPool {
        &self.read
    }

    /// Tickets for writes.
    pub fn write(&self) -> &TicketPool {
        &self.write
    }

    /// Tickets of flow control.
    pub fn flow(&self) -> &FlowTickets {
        &self.flow
    }

    /// The pool for a mode of the global lock.
    pub fn pool(&self, mode: Mode) -> Option<&TicketPool> {
        match mode {
            Mode::IS | Mode::S => Some(&self.read),
            Mode::IX => Some(&self.write),
            Mode::X => None,
        }
    }

    /// Takes a ticket of the pool without a locker.
    pub async fn acquire(&self, mode: Mode, priority: Priority, wait: &Wait<'_>) -> Result<Ticket<'_>> {
        let Some(pool) = self.pool(mode) else { return Ok(Ticket { held: None }) };
        let held = pool.acquire(Admission { priority, is_new: true, lane: 0 }, wait).await?;
        Ok(Ticket { held: Some((pool, held)) })
    }

    /// Changes the fixed number of read tickets.
    pub fn set_concurrent_read_transactions(&self, total: i32) -> Result<()> {
        self.set_fixed(&self.read, "read", total)
    }

    /// Changes the fixed number of write tickets.
    pub fn set_concurrent_write_transactions(&self, total: i32) -> Result<()> {
        self.set_fixed(&self.write, "write", total)
    }

    /// Changes after how many normal operations in a row one of low priority gets its turn.
    pub fn set_low_priority_bypass_threshold(&self, threshold: u32) {
        self.read.set_low_priority_bypass_threshold(threshold);
        self.write.set_low_priority_bypass_threshold(threshold);
    }

    /// Changes parameters of the probing, unless that makes no sense.
    pub fn change_probing(&self, change: impl FnOnce(&mut ProbingParameters)) -> Result<()> {
        match &self.adjuster {
            Some(adjuster) => adjuster.lock().probing.change_parameters(change),
            None => Ok(()),
        }
    }

    /// What the probing did; nothing if the numbers are fixed.
    pub fn probing_stats(&self) -> Option<ProbingStats> {
        self.adjuster.as_ref().map(|adjuster| adjuster.lock().probing.stats())
    }

    /// One step of the probing, if the numbers are not fixed.
    pub fn adjust(&self) {
        let Some(adjuster) = &self.adjuster else { return };
        let mut adjuster = adjuster.lock();
        let now_ns = self.env.clock().monotonic_ns();
        let elapsed_ns = now_ns.saturating_sub(adjuster.stepped_ns);
        if elapsed_ns == 0 {
            return;
        }
        let finished = self.finished_count().saturating_sub(adjuster.finished_count);
        let throughput = finished as f64 / elapsed_ns as f64;
        let peak = match adjuster.probing.is_stable() {
            true => Sizes { read: self.read.take_peak_out(), write: self.write.take_peak_out() },
            false => Sizes { read: 0, write: 0 },
        };
        let sizes = adjuster.probing.step(Sample { throughput, peak });
        self.read.resize(sizes.read);
        self.write.resize(sizes.write);
        adjuster.finished_count = self.finished_count();
        adjuster.stepped_ns = now_ns;
    }

    /// Steps for ever; to be spawned. Returns at once if the numbers are fixed.
    pub async fn run_adjustments(self: Arc<Self>) {
        while self.adjuster.is_some() {
            self.env.clock().sleep(self.adjustment_interval).await;
            self.adjust();
        }
    }

    fn finished_count(&self) -> u64 {
        self.read.finished_count() + self.write.finished_count()
    }

    fn set_fixed(&self, pool: &TicketPool, name: &str, total: i32) -> Result<()> {
        self.check_not_probing(name)?;
        pool.resize(fixed_size(total)?);
        Ok(())
    }

    /// Refuses to set a number by hand that is found by probing.
    fn check_not_probing(&self, name: &str) -> Result<()> {
        if self.adjuster.is_some() {
            let reason =
                format!("Cannot modify concurrent {name} transactions limit when it is being dynamically adjusted");
            return Err(Error::new(ErrorCode::IllegalOperation, reason));
        }
        Ok(())
    }
}

fn fixed_sizes(parameters: &TicketParameters) -> Result<Sizes> {
    let read = fixed_size(parameters.concurrent_read_transactions)?;
    Ok(Sizes { read, write: fixed_size(parameters.concurrent_write_transactions)? })
}

/// The size of a fixed pool by its parameter, where 0 is the default.
fn fixed_size(total: i32) -> Result<i32> {
    match total {
        0 => Ok(FIXED_TICKETS_DEFAULT),
        FIXED_TICKETS_MIN.. => Ok(total),
        _ => Err(Error::bad_value(format!("there must be at least {FIXED_TICKETS_MIN} tickets, not {total}"))),
    }
}

/// A ticket that goes back to its pool when dropped.
#[must_use]
pub struct Ticket<'a> {
    held: Option<(&'a TicketPool, HeldTicket)>,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if let Some((pool, held)) = self.held.take() {
            let mut wakers = Wakers::default();
            pool.release(held, &mut wakers);
            wakers.wake();
        }
    }
}
