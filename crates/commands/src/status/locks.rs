//! The sections about locks and queues: `globalLock`, `locks` and `flowControl`.

use crate::Invocation;
use pando_doc::DocBuilder;
use pando_locks::{ClientState, LockStats, Mode, ModeStats, ResourceId, SectionStats};
use pando_repl::flow_control::FLOW_CONTROL_ENABLED;

/// The counters of a mode, by their names in reports.
type Counted = (&'static str, fn(&ModeStats) -> u64);

const COUNTED: [Counted; 4] = [
    ("acquireCount", |stats| stats.acquire_count),
    ("acquireWaitCount", |stats| stats.acquire_wait_count),
    ("timeAcquiringMicros", |stats| stats.time_acquiring_micros),
    ("deadlockCount", |stats| stats.deadlock_count),
];

/// `globalLock`: who waits for a ticket or a lock, and who is in. The same lockers are what `lockInfo` shows.
pub(super) fn global(invocation: &Invocation, section: &mut DocBuilder) {
    let Some(data) = &invocation.node.data else { return };
    let lockers = data.services.locks.lockers();
    let count = |state: ClientState| lockers.iter().filter(|locker| locker.state == state).count() as i32;
    let triple = |section: &mut DocBuilder, name: &str, readers: i32, writers: i32| {
        section.document(name, |counts| {
            counts.append("total", readers.saturating_add(writers));
            counts.append("readers", readers);
            counts.append("writers", writers);
        });
    };
    section.append("totalTime", (invocation.node.uptime_ms() as i64).saturating_mul(1000));
    let (readers, writers) = (count(ClientState::QueuedReader), count(ClientState::QueuedWriter));
    triple(section, "currentQueue", readers, writers);
    let (readers, writers) = (count(ClientState::ActiveReader), count(ClientState::ActiveWriter));
    triple(section, "activeClients", readers, writers);
}

/// `locks`: how often each kind of lock was taken in each mode, and what that took. Counters that are zero are left out.
pub(super) fn taken(invocation: &Invocation, section: &mut DocBuilder) {
    let Some(data) = &invocation.node.data else { return };
    for (name, stats) in data.services.locks.stats().sections() {
        section.document(name, |kind| append_lock_section(stats, kind));
    }
}

/// One kind of lock, as `locks` has it here and in what is told of an operation.
pub(crate) fn append_lock_section(stats: &SectionStats, kind: &mut DocBuilder) {
    for (name, count) in COUNTED {
        let modes =
            || Mode::ALL.iter().zip(stats).map(|(mode, stats)| (mode, count(stats))).filter(|(_, count)| *count > 0);
        if modes().next().is_none() {
            continue;
        }
        kind.document(name, |counts| modes().for_each(|(mode, count)| counts.append(mode.letter(), count as i64)));
    }
}

/// `flowControl`: whether and how much a primary slows writes down.
pub(super) fn flow_control(invocation: &Invocation, section: &mut DocBuilder) {
    let Some(data) = &invocation.node.data else { return };
    let status = data.replication.flow_status();
    let waited_micros = data.services.locks.tickets().map_or(0, |tickets| tickets.flow().waited_micros());
    section.append("enabled", data.services.parameters.get(&FLOW_CONTROL_ENABLED));
    section.append("targetRateLimit", status.target_rate_limit as i32);
    section.append("timeAcquiringMicros", waited_micros as i64);
    section.append("locksPerKiloOp", status.locks_per_kilo_operation);
    section.append("sustainerRate", i32::try_from(status.sustainer_rate).unwrap_or(i32::MAX));
    section.append("isLagged", status.is_lagged);
    section.append("isLaggedCount", i32::try_from(status.lagged_count).unwrap_or(i32::MAX));
    section.append("isLaggedTimeMicros", status.lagged_micros as i64);
}

/// What an operation had to do with flow control: each global lock for writing passes it. Counters that are zero are left out.
pub(crate) fn append_flow_stats(stats: &LockStats, out: &mut DocBuilder) {
    let acquired = stats.of(ResourceId::GLOBAL, Mode::IX).acquire_count;
    for (name, count) in [
        ("acquireCount", acquired),
        ("acquireWaitCount", stats.flow.acquire_wait_count),
        ("timeAcquiringMicros", stats.flow.time_acquiring_micros),
    ] {
        if count > 0 {
            out.append(name, count as i64);
        }
    }
}
