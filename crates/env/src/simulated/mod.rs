//! A world made from a seed: the same seed and the same calls always give the same run.
//!
//! A [`Simulation`] hands out the [`Env`] that the program under test lives in and keeps the handles that steer it: the disk
//! that crashes, fails, fills and rots, the clock that stands still until told, the network that can be cut. A program dies
//! by [`Simulation::crash`] (power loss) or [`Simulation::kill`]; both give the environment of its next incarnation.
//!
//! Nothing here touches the real world, and nothing runs on a thread of its own.

mod clock;
mod disk;
mod machine;
mod network;
mod random;
mod signals;
mod tasks;

use crate::Env;
use random::Sequence;
use std::sync::Arc;

pub use clock::{START_WALL_MS, SimulatedClock};
pub use disk::{Fault, FaultKind, Loss, PowerLost, SimulatedDisk, Statistics};
pub use machine::SimulatedMachine;
pub use network::SimulatedNetwork;
pub use random::SimulatedRandom;
pub use signals::{SignalSender, SimulatedSignals};
pub use tasks::SimulatedTasks;

/// One simulated machine.
pub struct Simulation {
    clock: SimulatedClock,
    random: Arc<SimulatedRandom>,
    disk: SimulatedDisk,
    network: SimulatedNetwork,
}

impl Simulation {
    /// A machine with an empty disk.
    pub fn new(seed: u64) -> Simulation {
        let mut seeds = Sequence::new(seed);
        let random = Arc::new(SimulatedRandom::new(seeds.next_u64()));
        let disk = SimulatedDisk::new(seeds.next_u64());
        Simulation { clock: SimulatedClock::new(), random, disk, network: SimulatedNetwork::new() }
    }

    /// The environment of the present incarnation.
    pub fn env(&self) -> Env {
        Env::new(
            Arc::new(self.clock.clone()),
            self.random.clone(),
            self.disk.handle(),
            Arc::new(self.network.clone()),
            Arc::new(SimulatedTasks),
        )
    }

    /// Power loss with its chances, then the environment of the next incarnation.
    pub fn crash(&self) -> Env {
        self.crash_with(Loss::Random)
    }

    /// Power loss with a given outcome, then the environment of the next incarnation.
    pub fn crash_with(&self, loss: Loss) -> Env {
        self.disk.crash(loss);
        self.env()
    }

    /// The program is killed (nothing it wrote is lost), then the environment of the next incarnation.
    pub fn kill(&self) -> Env {
        self.disk.kill();
        self.env()
    }

    /// A second machine with a copy of the disk, at the same time of day, with its own chances from now on.
    pub fn fork(&self, seed: u64) -> Simulation {
        let mut seeds = Sequence::new(seed);
        let random = Arc::new(SimulatedRandom::new(seeds.next_u64()));
        let disk = self.disk.copy(seeds.next_u64());
        Simulation { clock: self.clock.copy(), random, disk, network: SimulatedNetwork::new() }
    }

    /// The disk, to steer it.
    pub fn disk(&self) -> &SimulatedDisk {
        &self.disk
    }

    /// The clock, to steer it.
    pub fn clock(&self) -> &SimulatedClock {
        &self.clock
    }

    /// The network, to steer it.
    pub fn network(&self) -> &SimulatedNetwork {
        &self.network
    }
}
