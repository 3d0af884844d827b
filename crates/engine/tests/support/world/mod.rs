//! A small world for the tests of faults: a store on a simulated disk, what it was told, and what it must remember.
//!
//! `model` keeps what the log and the checkpoints promise, `life` plays a random workload on an engine until the power goes,
//! `check` opens the store again and compares. None of it shares code with the engine or with the oracle of `engine-model`.

#![allow(dead_code)]

pub mod check;
pub mod each;
pub mod life;
pub mod model;
pub mod observe;
pub mod steps;

use pando_engine::{DurableEngine, EngineOptions, Mode};
use pando_env::simulated::{Loss, Simulation};
use std::path::Path;
use std::sync::Arc;

/// Where the store lies on the simulated disk.
pub const DIRECTORY: &str = "/data";

/// Numbers from a seed.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5EED)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Below the bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// Options that make everything happen often: spills, rolls, rotations.
pub fn small_options(mode: Mode, memory_bytes: u64) -> EngineOptions {
    EngineOptions {
        memory_bytes,
        log_segment_bytes: 16 << 10,
        oplog_bytes_max: 48 << 10,
        ..EngineOptions::stepped(mode)
    }
}

/// Opens the store of this life.
pub fn open(simulation: &Simulation, options: &EngineOptions) -> pando_storage::Result<Arc<DurableEngine>> {
    DurableEngine::open(&simulation.env(), Path::new(DIRECTORY), options.clone())
}

/// A power loss with one of its outcomes; mostly by chance.
pub fn lose_power(simulation: &Simulation, chance: &mut Chance) {
    let loss = match chance.below(10) {
        0 => Loss::Everything,
        1 => Loss::Nothing,
        _ => Loss::Random,
    };
    simulation.crash_with(loss);
}
