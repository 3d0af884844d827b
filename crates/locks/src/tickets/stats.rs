//! The numbers of a pool, as `serverStatus` shows them.
//!
//! Counting is spread over lanes with cache lines of their own; a report adds them up. The counters of a lane are read one
//! after the other, so a report under load may be off by what happened meanwhile.

use super::Priority;
use crate::sync::Padded;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many lanes counting is spread over.
const LANE_COUNT: usize = 8;

/// The numbers of one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// `out`: tickets in use.
    pub out: i32,
    /// `available`: tickets to be had.
    pub available: i32,
    /// `totalTickets`: the size of the pool.
    pub total_tickets: i32,
    /// `immediatePriorityAdmissionsCount`: operations that needed no ticket.
    pub immediate_priority_admissions_count: u64,
    /// `normalPriority`.
    pub normal_priority: QueueStats,
    /// `lowPriority`.
    pub low_priority: QueueStats,
}

/// The numbers of one priority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// `addedToQueue`.
    pub added_to_queue: u64,
    /// `removedFromQueue`: admitted or canceled.
    pub removed_from_queue: u64,
    /// `queueLength`.
    pub queue_length: u64,
    /// `startedProcessing`: tickets given.
    pub started_processing: u64,
    /// `processing`: tickets in use.
    pub processing: u64,
    /// `finishedProcessing`: tickets given back.
    pub finished_processing: u64,
    /// `totalTimeProcessingMicros`: how long tickets were held.
    pub total_time_processing_micros: u64,
    /// `canceled`: left the queue without a ticket.
    pub canceled: u64,
    /// `newAdmissions`: operations that got their first ticket.
    pub new_admissions: u64,
    /// `totalTimeQueuedMicros`: how long operations were queued.
    pub total_time_queued_micros: u64,
    /// `expedited` (low priority only): how often one went before normal ones.
    pub expedited: u64,
    /// `bypassed` (low priority only): how often a normal one went before one that waited.
    pub bypassed: u64,
}

#[derive(Default)]
struct Counters {
    added_to_queue: AtomicU64,
    removed_from_queue: AtomicU64,
    canceled: AtomicU64,
    time_queued_micros: AtomicU64,
    new_admissions: AtomicU64,
    started: AtomicU64,
    finished: AtomicU64,
    time_processing_micros: AtomicU64,
}

impl Counters {
    fn add_to(&self, stats: &mut QueueStats) {
        // What ends is read before what begins, so that differences are not negative.
        stats.finished_processing += self.finished.load(Relaxed);
        stats.removed_from_queue += self.removed_from_queue.load(Relaxed);
        stats.canceled += self.canceled.load(Relaxed);
        stats.started_processing += self.started.load(Relaxed);
        stats.added_to_queue += self.added_to_queue.load(Relaxed);
        stats.new_admissions += self.new_admissions.load(Relaxed);
        stats.total_time_queued_micros += self.time_queued_micros.load(Relaxed);
        stats.total_time_processing_micros += self.time_processing_micros.load(Relaxed);
        stats.queue_length = stats.added_to_queue.saturating_sub(stats.removed_from_queue);
        stats.processing = stats.started_processing.saturating_sub(stats.finished_processing);
    }
}

/// The counters of some operations.
#[derive(Default)]
pub(crate) struct Lane {
    immediate: AtomicU64,
    normal: Counters,
    low: Counters,
}

impl Lane {
    pub(crate) fn count_immediate(&self) {
        self.immediate.fetch_add(1, Relaxed);
    }

    pub(crate) fn enqueue(&self, priority: Priority) {
        self.of(priority).added_to_queue.fetch_add(1, Relaxed);
    }

    pub(crate) fn dequeue(&self, priority: Priority, queued_micros: u64, is_admitted: bool) {
        let counters = self.of(priority);
        counters.time_queued_micros.fetch_add(queued_micros, Relaxed);
        counters.canceled.fetch_add(u64::from(!is_admitted), Relaxed);
        counters.removed_from_queue.fetch_add(1, Relaxed);
    }

    pub(crate) fn start(&self, priority: Priority, is_new: bool) {
        let counters = self.of(priority);
        counters.started.fetch_add(1, Relaxed);
        if is_new {
            counters.new_admissions.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn finish(&self, priority: Priority, processing_micros: u64) {
        let counters = self.of(priority);
        counters.finished.fetch_add(1, Relaxed);
        counters.time_processing_micros.fetch_add(processing_micros, Relaxed);
    }

    fn of(&self, priority: Priority) -> &Counters {
        if priority == Priority::Low { &self.low } else { &self.normal }
    }
}

/// All counters of a pool.
#[derive(Default)]
pub(crate) struct StatsLanes {
    lanes: [Padded<Lane>; LANE_COUNT],
}

impl StatsLanes {
    pub(crate) fn lane(&self, number: usize) -> &Lane {
        &self.lanes[number % LANE_COUNT]
    }

    pub(crate) fn finished_count(&self) -> u64 {
        let finished = |lane: &Padded<Lane>| lane.normal.finished.load(Relaxed) + lane.low.finished.load(Relaxed);
        self.lanes.iter().map(finished).sum()
    }

    pub(crate) fn add_to(&self, stats: &mut PoolStats) {
        for lane in &self.lanes {
            stats.immediate_priority_admissions_count += lane.immediate.load(Relaxed);
            lane.normal.add_to(&mut stats.normal_priority);
            lane.low.add_to(&mut stats.low_priority);
        }
    }
}
