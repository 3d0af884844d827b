//! Who gets the next ticket: normal operations in the order they came, then those of low priority. So that the latter are
//! not starved, one of them goes first after so many normal ones in a row have gone before it.

use super::Priority;
use crate::wait::Grant;
use std::collections::VecDeque;
use std::sync::Arc;

/// Those who wait for a ticket. Guarded by the pool's lock.
pub(crate) struct TicketQueue {
    normal: VecDeque<Arc<Grant>>,
    low: VecDeque<Arc<Grant>>,
    bypass_threshold: u32,
    length_max: Option<u32>,
    /// How many normal ones went in a row while a low one waited.
    bypasses_in_a_row: u32,
    bypassed: u64,
    expedited: u64,
}

impl TicketQueue {
    pub(crate) fn new(bypass_threshold: u32, length_max: Option<u32>) -> TicketQueue {
        TicketQueue {
            normal: VecDeque::new(),
            low: VecDeque::new(),
            bypass_threshold,
            length_max,
            bypasses_in_a_row: 0,
            bypassed: 0,
            expedited: 0,
        }
    }

    pub(crate) fn set_bypass_threshold(&mut self, threshold: u32) {
        self.bypass_threshold = threshold;
    }

    pub(crate) fn set_length_max(&mut self, length_max: Option<u32>) {
        self.length_max = length_max;
    }

    /// How many may wait.
    pub(crate) fn length_max(&self) -> u32 {
        self.length_max.unwrap_or(u32::MAX)
    }

    /// How often a low one went first, and how often a normal one went before a low one.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.expedited, self.bypassed)
    }

    pub(crate) fn push(&mut self, priority: Priority) -> Arc<Grant> {
        let grant = Grant::new();
        self.line(priority).push_back(grant.clone());
        grant
    }

    pub(crate) fn pop(&mut self) -> Option<Arc<Grant>> {
        if self.normal.is_empty() || self.low.is_empty() {
            self.bypasses_in_a_row = 0;
            return self.normal.pop_front().or_else(|| self.low.pop_front());
        }
        if self.bypass_threshold > 0 && self.bypasses_in_a_row >= self.bypass_threshold {
            self.bypasses_in_a_row = 0;
            self.expedited += 1;
            return self.low.pop_front();
        }
        self.bypasses_in_a_row = self.bypasses_in_a_row.saturating_add(1);
        self.bypassed += 1;
        self.normal.pop_front()
    }

    /// Takes a waiter out; false if it is not there any more.
    pub(crate) fn remove(&mut self, priority: Priority, grant: &Arc<Grant>) -> bool {
        let line = self.line(priority);
        let place = line.iter().position(|waiting| Arc::ptr_eq(waiting, grant));
        place.and_then(|place| line.remove(place)).is_some()
    }

    fn line(&mut self, priority: Priority) -> &mut VecDeque<Arc<Grant>> {
        if priority == Priority::Low { &mut self.low } else { &mut self.normal }
    }
}
