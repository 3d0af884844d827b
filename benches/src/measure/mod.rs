//! What is measured besides time: latencies, bytes written, calls that wait for the disk, space and memory.
//!
//! Figures are about this process alone, which is why every system runs in a process of its own. What a machine must be like before something is measured
//! is here as well: at rest ([`wait_for_rest`]), with memory at hand ([`Reserve`]).

mod counted_disk;
mod disk;
mod latency;
mod process;
mod reserve;
mod rest;
mod syncs;

pub use counted_disk::CountedDisk;
pub use disk::disk_use;
pub use latency::Latencies;
pub use process::{WrittenBytes, machine_bytes, quiet_disk, resident_bytes, written_bytes};
pub use reserve::{LOOK_EVERY, Reserve, touch_memory};
pub use rest::wait_for_rest;
pub use syncs::sync_count;

use std::time::{Duration, Instant};

/// How long a call takes.
pub fn timed<T>(call: impl FnOnce() -> Result<T, crate::Error>) -> Result<(T, Duration), crate::Error> {
    let start = Instant::now();
    let value = call()?;
    Ok((value, start.elapsed()))
}

/// The middle one of several durations.
pub fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort_unstable();
    durations.get(durations.len() / 2).copied().unwrap_or_default()
}

/// The middle one of several figures.
pub fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Operations a second.
pub fn per_second(operations: u64, duration: Duration) -> f64 {
    operations as f64 / duration.as_secs_f64().max(1e-9)
}
