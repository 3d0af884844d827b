//! How often locks were taken, how often that took waiting, and how long.
//!
//! Kept twice: for each operation in its locker ([`LockStats`], plain numbers), and for the server in each partition of the
//! manager ([`SharedLockStats`], relaxed atomics), so that counting disturbs no other processor. The sections are those of
//! `serverStatus.locks`: one for each global resource, one for each other type, and one for the oplog's collection.

use crate::mode::{MODE_COUNT, Mode};
use crate::resource::{GLOBAL_COUNT, GlobalResource, ResourceId, ResourceType};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The sections of a report, in its order.
const SECTION_NAMES: [&str; SECTION_COUNT] = [
    GlobalResource::ALL[0].name(),
    GlobalResource::ALL[1].name(),
    GlobalResource::ALL[2].name(),
    GlobalResource::ALL[3].name(),
    "Tenant",
    "Database",
    "Collection",
    "Mutex",
    "oplog",
];
const SECTION_COUNT: usize = GLOBAL_COUNT + 5;

/// The counters of one section and one mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModeStats {
    /// How often the lock was asked for.
    pub acquire_count: u64,
    /// How often that meant waiting.
    pub acquire_wait_count: u64,
    /// How long the waits were together.
    pub time_acquiring_micros: u64,
    /// How often two operations could not both get what they asked for, ever.
    pub deadlock_count: u64,
}

/// The counters of one section, by mode.
pub type SectionStats = [ModeStats; MODE_COUNT];

/// Where something is counted.
#[derive(Clone, Copy)]
pub(crate) struct StatsCell {
    section: usize,
    mode: usize,
}

impl StatsCell {
    pub(crate) fn of(resource: ResourceId, mode: Mode) -> StatsCell {
        StatsCell { section: section(resource), mode: mode.index() }
    }
}

/// What an operation had to do with flow control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowStats {
    /// How often it had to wait for a ticket.
    pub acquire_wait_count: u64,
    /// How long, together.
    pub time_acquiring_micros: u64,
}

/// The counters of an operation, or a sum of such.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockStats {
    sections: [SectionStats; SECTION_COUNT],
    /// Of flow control.
    pub flow: FlowStats,
}

impl LockStats {
    /// The counters of a resource in a mode: those of its section.
    pub fn of(&self, resource: ResourceId, mode: Mode) -> ModeStats {
        let StatsCell { section, mode } = StatsCell::of(resource, mode);
        self.sections[section][mode]
    }

    /// The sections in which anything was counted, with their names in reports. Modes are in the order of [`Mode::ALL`].
    pub fn sections(&self) -> impl Iterator<Item = (&'static str, &SectionStats)> {
        let counted = |stats: &&SectionStats| **stats != SectionStats::default();
        SECTION_NAMES.into_iter().zip(&self.sections).filter(move |(_, stats)| counted(stats))
    }

    /// Adds all of the other's counters.
    pub fn add(&mut self, other: &LockStats) {
        self.combine(other, u64::wrapping_add);
    }

    /// Takes away what was counted when a part of an operation began.
    pub fn subtract(&mut self, base: &LockStats) {
        self.combine(base, u64::saturating_sub);
    }

    fn combine(&mut self, other: &LockStats, combined: fn(u64, u64) -> u64) {
        let pairs = self.sections.as_flattened_mut().iter_mut().zip(other.sections.as_flattened());
        for (mine, theirs) in pairs {
            mine.acquire_count = combined(mine.acquire_count, theirs.acquire_count);
            mine.acquire_wait_count = combined(mine.acquire_wait_count, theirs.acquire_wait_count);
            mine.time_acquiring_micros = combined(mine.time_acquiring_micros, theirs.time_acquiring_micros);
            mine.deadlock_count = combined(mine.deadlock_count, theirs.deadlock_count);
        }
        self.flow = FlowStats {
            acquire_wait_count: combined(self.flow.acquire_wait_count, other.flow.acquire_wait_count),
            time_acquiring_micros: combined(self.flow.time_acquiring_micros, other.flow.time_acquiring_micros),
        };
    }

    pub(crate) fn at(&mut self, cell: StatsCell) -> &mut ModeStats {
        &mut self.sections[cell.section][cell.mode]
    }
}

/// The counters of one section and one mode, counted by many.
#[derive(Default)]
pub(crate) struct SharedModeStats {
    pub acquire_count: AtomicU64,
    pub acquire_wait_count: AtomicU64,
    pub time_acquiring_micros: AtomicU64,
    pub deadlock_count: AtomicU64,
}

/// The server's counters in one partition.
#[derive(Default)]
pub(crate) struct SharedLockStats {
    sections: [[SharedModeStats; MODE_COUNT]; SECTION_COUNT],
}

impl SharedLockStats {
    pub(crate) fn at(&self, cell: StatsCell) -> &SharedModeStats {
        &self.sections[cell.section][cell.mode]
    }

    pub(crate) fn add_to(&self, sum: &mut LockStats) {
        let pairs = self.sections.as_flattened().iter().zip(sum.sections.as_flattened_mut());
        for (shared, plain) in pairs {
            plain.acquire_count += shared.acquire_count.load(Ordering::Relaxed);
            plain.acquire_wait_count += shared.acquire_wait_count.load(Ordering::Relaxed);
            plain.time_acquiring_micros += shared.time_acquiring_micros.load(Ordering::Relaxed);
            plain.deadlock_count += shared.deadlock_count.load(Ordering::Relaxed);
        }
    }
}

/// The collection whose locks are counted apart.
fn oplog() -> ResourceId {
    static OPLOG: OnceLock<ResourceId> = OnceLock::new();
    *OPLOG.get_or_init(|| ResourceId::collection(None, b"local.oplog.rs"))
}

fn section(resource: ResourceId) -> usize {
    match resource.resource_type() {
        ResourceType::Global => (resource.hash() as usize).min(GLOBAL_COUNT - 1),
        ResourceType::Tenant => GLOBAL_COUNT,
        ResourceType::Database => GLOBAL_COUNT + 1,
        ResourceType::Collection if resource == oplog() => GLOBAL_COUNT + 4,
        ResourceType::Collection => GLOBAL_COUNT + 2,
        ResourceType::Mutex => GLOBAL_COUNT + 3,
    }
}

/// The name of the section that a resource belongs to in currentOp; there the oplog is a collection like others.
pub(crate) fn type_name(resource: ResourceId) -> &'static str {
    resource.as_global().map_or_else(|| resource.resource_type().name(), GlobalResource::name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x9_stats_have_the_sections_of_server_status() {
        let mut stats = LockStats::default();
        stats.at(StatsCell::of(ResourceId::REPLICATION_STATE_TRANSITION, Mode::IX)).acquire_count = 3;
        stats.at(StatsCell::of(ResourceId::collection(None, b"local.oplog.rs"), Mode::IX)).acquire_count = 1;
        stats.at(StatsCell::of(ResourceId::collection(None, b"test.a"), Mode::X)).acquire_wait_count = 2;
        let names: Vec<_> = stats.sections().map(|(name, _)| name).collect();
        assert_eq!(names, ["ReplicationStateTransition", "Collection", "oplog"]);
    }

    #[test]
    fn x9_stats_of_a_part_of_an_operation() {
        let database = ResourceId::database(None, b"test");
        let mut stats = LockStats::default();
        stats.at(StatsCell::of(database, Mode::IX)).acquire_count = 3;
        let base = stats.clone();
        stats.at(StatsCell::of(database, Mode::IX)).acquire_count += 2;
        stats.at(StatsCell::of(database, Mode::IX)).time_acquiring_micros += 7;
        stats.subtract(&base);
        assert_eq!(stats.of(database, Mode::IX).acquire_count, 2);
        stats.add(&base);
        assert_eq!(
            (stats.of(database, Mode::IX).acquire_count, stats.of(database, Mode::IX).time_acquiring_micros),
            (5, 7)
        );
    }
}
