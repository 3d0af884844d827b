//! The real world: the machine's clock, generator, file system, sockets and threads.
//!
//! This folder is the only place that may make the raw calls that `clippy.toml` bans. Each file is a thin adapter from one
//! trait to the operating system, with no policy of its own: no caching, no retries beyond interrupted calls, no limits. What workers do
//! when they have run out of work (`workers`, `giving_way`) is the exception: nobody above can see it.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod cached_read;
mod clock;
mod disk;
mod giving_way;
mod heap;
mod large_pages;
mod machine;
mod network;
mod outside;
mod past_cache;
mod places;
mod random;
mod rank;
mod signals;
mod stream;
mod tasks;
mod turns;
mod workers;

use crate::Env;
use std::sync::Arc;

pub use clock::RealClock;
pub use disk::RealDisk;
pub use heap::Allocator;
pub use machine::RealMachine;
pub use network::RealNetwork;
pub use outside::{answer_of, output_of};
pub use places::Runtimes;
pub use random::RealRandom;
pub use signals::RealSignals;
pub use tasks::RealTasks;
pub use workers::prepare_workers;

/// The machine that this process runs on.
pub fn environment() -> Env {
    Env::new(
        Arc::new(RealClock::new()),
        Arc::new(RealRandom),
        Arc::new(RealDisk),
        Arc::new(RealNetwork),
        Arc::new(RealTasks::default()),
    )
}
