//! What the checkpoint's thread looks at between checkpoints and tells of: stalls, room on the disk, failures of work that is done by
//! the way.

use crate::core::Core;
use crate::failure::of_disk;
use pando_storage::{EngineEvent, StorageError, Work};
use std::time::Duration;

/// Writers are stalled when at so many looks in a row some were made to wait, and no longer when at so many none was.
const STALL_LOOKS: u32 = 5;
/// The disk is asked this often.
const DISK_INTERVAL: Duration = Duration::from_secs(5);
/// The disk is nearly full when less than this is free,
const DISK_LOW_BYTES: u64 = 512 << 20;
/// and has room again from this on.
const DISK_ROOM_BYTES: u64 = 768 << 20;

/// What was seen at the last look.
#[derive(Default)]
pub struct Watch {
    stall: Stall,
    disk_asked_ns: Option<u64>,
    is_disk_low: bool,
    log_growth_failures: u64,
}

impl Watch {
    /// Looks, and tells what has changed.
    pub fn look(&mut self, core: &Core) {
        let now_ns = core.env.clock().monotonic_ns();
        match self.stall.look(core.counters.slowed.value(), now_ns) {
            Some(Change::Began) => {
                let (dirty_bytes, budget_bytes) = (core.memory.dirty_bytes(), core.memory.budget_bytes());
                core.counters.stalls.increment();
                core.tell(&EngineEvent::StallBegan { dirty_bytes, budget_bytes });
            }
            Some(Change::Ended { elapsed_ns, slowed }) => {
                core.tell(&EngineEvent::StallEnded { elapsed_ms: elapsed_ns / 1_000_000, slowed });
            }
            None => {}
        }
        self.look_at_log(core);
        let interval_ns = DISK_INTERVAL.as_nanos() as u64;
        if self.disk_asked_ns.is_none_or(|asked_ns| now_ns.saturating_sub(asked_ns) >= interval_ns) {
            self.disk_asked_ns = Some(now_ns);
            self.look_at_disk(core);
        }
    }

    /// The log reserves its next segment by the way; that it could not is no commit's error yet.
    fn look_at_log(&mut self, core: &Core) {
        let failures = core.log.statistics().failed_growths;
        if failures > self.log_growth_failures {
            let reason = "the next segment of the log cannot be reserved".to_owned();
            core.worked::<()>(Work::LogSpace, &Err(StorageError::OutOfDiskSpace(reason)));
        } else if core.health.failures_in_a_row(Work::LogSpace) > 0 && !core.log.wants_segment() {
            core.worked(Work::LogSpace, &Ok(()));
        }
        self.log_growth_failures = failures;
    }

    fn look_at_disk(&mut self, core: &Core) {
        let asked = core.env.disk().free_bytes(&core.directory).map_err(|error| of_disk(&core.directory, &error));
        core.worked(Work::Measure, &asked);
        let Ok(free_bytes) = asked else { return };
        if !self.is_disk_low && free_bytes < DISK_LOW_BYTES {
            self.is_disk_low = true;
            core.tell(&EngineEvent::DiskNearlyFull { free_bytes, limit_bytes: DISK_LOW_BYTES });
        } else if self.is_disk_low && free_bytes >= DISK_ROOM_BYTES {
            self.is_disk_low = false;
            core.tell(&EngineEvent::DiskHasRoom { free_bytes });
        }
    }
}

/// Whether writers are made to wait, not for a moment but for good.
#[derive(Default)]
struct Stall {
    seen: u64,
    looks: u32,
    /// Since when, and how many writers had waited before.
    since: Option<(u64, u64)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Change {
    Began,
    Ended { elapsed_ns: u64, slowed: u64 },
}

impl Stall {
    fn look(&mut self, slowed: u64, now_ns: u64) -> Option<Change> {
        let (waited, before) = (slowed > self.seen, self.seen);
        self.seen = slowed;
        // Looks that say the contrary of what is held, in a row.
        self.looks = if waited == self.since.is_none() { self.looks + 1 } else { 0 };
        if self.looks < STALL_LOOKS {
            return None;
        }
        self.looks = 0;
        match self.since.take() {
            None => {
                self.since = Some((now_ns, before));
                Some(Change::Began)
            }
            Some((since_ns, at_begin)) => {
                Some(Change::Ended { elapsed_ns: now_ns.saturating_sub(since_ns), slowed: slowed - at_begin })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_told_when_it_lasts_and_when_it_is_over() {
        let mut stall = Stall::default();
        // For a moment: nobody is told.
        assert_eq!([1, 2, 3, 3].map(|slowed| stall.look(slowed, 0)), [None, None, None, None]);
        let told: Vec<_> = (4..=8).map(|slowed| stall.look(slowed, slowed)).collect();
        assert_eq!((&told[..4], &told[4]), (&[None, None, None, None][..], &Some(Change::Began)));
        assert_eq!([9, 9, 9, 9, 10].map(|slowed| stall.look(slowed, 50)), [None, None, None, None, None]);
        let told: Vec<_> = (0..5).map(|_| stall.look(10, 108)).collect();
        assert_eq!(told[4], Some(Change::Ended { elapsed_ns: 100, slowed: 3 }));
        assert_eq!(stall.look(10, 200), None);
    }
}
