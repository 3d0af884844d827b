//! The outside world behind one handle: clock, randomness, disk, network and tasks.
//!
//! Everything above this crate reaches time, threads, randomness, files and sockets through an [`Env`] only; `clippy.toml`
//! bans the raw calls elsewhere. The real one is [`Env::real`]; [`simulated`] has a disk that loses, tears and reorders
//! what was not synced, fills up, fails and rots, all from a seed, so that any failure replays.
//!
//! Invariants: no part of this crate knows about databases; a simulated environment never touches the real world.

mod clock;
mod disk;
mod machine;
mod network;
mod random;
pub mod real;
mod signals;
pub mod simulated;
mod tasks;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use clock::Clock;
pub use disk::{BLOCK_BYTES, Block, DirectoryLock, Disk, File, LOCK_FILE_NAME, OpenMode};
pub use machine::{Machine, MachineFacts, ProcessUsage};
pub use network::{Address, Connection, Listener, Network};
pub use random::Random;
pub use signals::{Signal, Signals};
pub use tasks::{Alarm, Place, Tasks, ThreadHandle};

/// An asynchronous call of a trait object.
pub type BoxedFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The handle that every component is given. Cloning is cheap.
#[derive(Clone)]
pub struct Env {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    disk: Arc<dyn Disk>,
    network: Arc<dyn Network>,
    tasks: Arc<dyn Tasks>,
}

impl Env {
    /// An environment from its parts.
    pub fn new(
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        disk: Arc<dyn Disk>,
        network: Arc<dyn Network>,
        tasks: Arc<dyn Tasks>,
    ) -> Env {
        Env { clock, random, disk, network, tasks }
    }

    /// The real world.
    pub fn real() -> Env {
        real::environment()
    }

    /// Time.
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Randomness.
    pub fn random(&self) -> &dyn Random {
        &*self.random
    }

    /// Files.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Sockets.
    pub fn network(&self) -> &dyn Network {
        &*self.network
    }

    /// Threads and tasks.
    pub fn tasks(&self) -> &dyn Tasks {
        &*self.tasks
    }

    /// The same world with other threads and tasks.
    pub fn with_tasks(&self, tasks: Arc<dyn Tasks>) -> Env {
        Env { tasks, ..self.clone() }
    }

    /// The same world with another disk.
    pub fn with_disk(&self, disk: Arc<dyn Disk>) -> Env {
        Env { disk, ..self.clone() }
    }
}
