//! Flow control: how many writes a primary lets in, so that a majority of its set keeps up with it.
//!
//! Once a second the primary looks how far the majority is behind. Below a part of the lag that is aimed at, it lets in more than
//! in the second before. Above, it lets in what the *sustainer*, the member on which the majority's point depends, has applied in
//! the last second, less the further behind it is. What is let in is counted in global locks for writing, of which an
//! operation takes one or several.
//!
//! [`FlowControl`] is a state machine without I/O: it is told how things stand and says how many tickets the next second has.
//! `locks` hands them out. A set of one member is never behind itself.

mod parameters;
mod samples;
#[cfg(test)]
mod tests;

pub use parameters::{FLOW_CONTROL_ENABLED, FlowControlParameters, PARAMETERS};
pub(crate) use samples::Samples;

use crate::progress::Dated;
use pando_base::Timestamp;
use pando_locks::FLOW_TICKETS_UNLIMITED;

/// How things stand.
#[derive(Clone, Copy, Debug)]
pub struct FlowInput {
    /// The node takes writes of a set.
    pub is_primary: bool,
    /// The monotonic clock.
    pub now_ns: u64,
    /// The newest entry of this node.
    pub applied: Dated,
    /// The newest entry of a majority.
    pub committed: Dated,
    /// The newest entry that the sustainer has applied.
    pub sustained: Timestamp,
    /// How many entries the sustainer has applied since the last time; none if that is not known.
    pub sustained_count: Option<u64>,
    /// Entries that this node has written, ever.
    pub entry_count: u64,
    /// Global locks for writing, ever.
    pub lock_count: u64,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowDecision {
    /// Tickets of the next second.
    pub tickets: i64,
    /// The sustainer has not moved for so long that somebody should look after it.
    pub is_stuck: bool,
}

/// What serverStatus shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowStatus {
    /// Tickets of the present second.
    pub target_rate_limit: i64,
    /// Global locks for writing to a thousand operations.
    pub locks_per_kilo_operation: f64,
    /// Entries that the sustainer has applied in the last second.
    pub sustainer_rate: u64,
    /// The majority is too far behind.
    pub is_lagged: bool,
    /// How often it has been.
    pub lagged_count: u64,
    /// How long it has been, together.
    pub lagged_micros: u64,
}

/// The state between two seconds.
#[derive(Debug)]
pub struct FlowControl {
    status: FlowStatus,
    entry_count: u64,
    lock_count: u64,
    stepped_ns: u64,
    sustained: Timestamp,
    /// When the sustainer moved last, or somebody was told that it does not.
    moved_ns: u64,
}

impl FlowControl {
    /// Of a node that has just started.
    pub fn new(now_ns: u64) -> FlowControl {
        FlowControl {
            status: FlowStatus { target_rate_limit: FLOW_TICKETS_UNLIMITED, ..FlowStatus::default() },
            entry_count: 0,
            lock_count: 0,
            stepped_ns: now_ns,
            sustained: Timestamp::NONE,
            moved_ns: now_ns,
        }
    }

    /// What it has done.
    pub fn status(&self) -> FlowStatus {
        self.status
    }

    /// How far the sustainer was when it was looked at last.
    pub(crate) fn sustained(&self) -> Timestamp {
        self.sustained
    }

    /// A second is over.
    pub fn step(&mut self, input: &FlowInput, parameters: &FlowControlParameters) -> FlowDecision {
        let locks_per_operation = self.locks_per_operation(input);
        self.status.locks_per_kilo_operation = locks_per_operation * 1000.0;
        self.status.sustainer_rate = input.sustained_count.unwrap_or(0);
        let lag_ms = lag_ms(input);
        let threshold_ms = parameters.threshold_ms();
        let is_acting = parameters.is_enabled && input.is_primary;
        self.note_lag(is_acting && lag_ms >= threshold_ms, input.now_ns);
        self.status.target_rate_limit = match (is_acting, self.status.is_lagged, input.sustained_count) {
            (false, ..) => FLOW_TICKETS_UNLIMITED,
            (true, false, _) => grown(self.status.target_rate_limit, parameters),
            // Somebody else has become the sustainer: there is nothing to go by.
            (true, true, None) => self.status.target_rate_limit.max(parameters.tickets_min),
            (true, true, Some(count)) => {
                let beyond = (lag_ms - threshold_ms) / threshold_ms;
                let operations = count as f64 * parameters.decay.powf(beyond) * parameters.fudge;
                whole(operations * locks_per_operation).max(parameters.tickets_min)
            }
        };
        let is_stuck = self.is_stuck(input, parameters);
        (self.entry_count, self.lock_count, self.stepped_ns) = (input.entry_count, input.lock_count, input.now_ns);
        FlowDecision { tickets: self.status.target_rate_limit, is_stuck }
    }

    /// In the last second; one, where nothing was written.
    fn locks_per_operation(&self, input: &FlowInput) -> f64 {
        let entries = input.entry_count.saturating_sub(self.entry_count);
        let locks = input.lock_count.saturating_sub(self.lock_count);
        if entries == 0 || locks == 0 { 1.0 } else { locks as f64 / entries as f64 }
    }

    fn note_lag(&mut self, is_lagged: bool, now_ns: u64) {
        let status = &mut self.status;
        if status.is_lagged {
            status.lagged_micros += now_ns.saturating_sub(self.stepped_ns) / 1000;
        }
        status.lagged_count += u64::from(is_lagged && !status.is_lagged);
        status.is_lagged = is_lagged;
    }

    /// As long as the sustainer does not move, somebody is told again and again.
    fn is_stuck(&mut self, input: &FlowInput, parameters: &FlowControlParameters) -> bool {
        let has_moved = std::mem::replace(&mut self.sustained, input.sustained) != input.sustained;
        if has_moved || !self.status.is_lagged {
            self.moved_ns = input.now_ns;
            return false;
        }
        let is_told = parameters.warn_ns.is_some_and(|warn_ns| input.now_ns.saturating_sub(self.moved_ns) >= warn_ns);
        if is_told {
            self.moved_ns = input.now_ns;
        }
        is_told
    }
}

/// How far the majority is behind. Before anything was committed nobody can say.
fn lag_ms(input: &FlowInput) -> f64 {
    if input.committed.0.timestamp == Timestamp::NONE || input.committed.0 >= input.applied.0 {
        return 0.0;
    }
    input.applied.1.saturating_sub(input.committed.1).max(0) as f64
}

/// More than before.
fn grown(tickets: i64, parameters: &FlowControlParameters) -> i64 {
    whole(parameters.multiplier * (tickets.saturating_add(parameters.adder) as f64))
}

/// A number of tickets; a product that is out of bounds or none at all becomes one within them.
fn whole(tickets: f64) -> i64 {
    (tickets as i64).clamp(0, FLOW_TICKETS_UNLIMITED)
}
