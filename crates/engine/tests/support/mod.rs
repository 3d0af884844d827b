//! Stores on a simulated disk, for the tests of this crate.

#![allow(dead_code)]

use pando_engine::{DurableEngine, EngineOptions};
use pando_env::simulated::Simulation;
use pando_env::{Env, OpenMode};
use pando_storage::conformance::{EngineFactory, Mode};
use pando_storage::{BackupFile, Engine};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Where the store lies on the simulated disk.
pub const DIRECTORY: &str = "/data";

/// How many seeds a test plays: its default number, scaled by `PANDO_SEEDS` (500 is the usual number, 10,000 the long one).
pub fn seeds(default: u64) -> u64 {
    let chosen: Option<u64> = std::env::var("PANDO_SEEDS").ok().and_then(|text| text.parse().ok());
    let long = std::env::var("PANDO_TEST_LONG").is_ok().then_some(10_000);
    (default * chosen.or(long).unwrap_or(500)).div_ceil(500)
}

/// The engine's mode.
pub fn engine_mode(mode: Mode) -> pando_engine::Mode {
    match mode {
        Mode::StandAlone => pando_engine::Mode::StandAlone,
        Mode::ReplicaSet => pando_engine::Mode::ReplicaSet,
    }
}

/// A store that can lose power.
pub struct SimulatedStore {
    simulation: Arc<Mutex<Simulation>>,
    directory: PathBuf,
    mode: Mode,
}

impl SimulatedStore {
    /// A store on a fresh disk.
    pub fn new(mode: Mode) -> SimulatedStore {
        SimulatedStore::with_seed(mode, 1)
    }

    /// A store on a fresh disk whose losses depend on the seed.
    pub fn with_seed(mode: Mode, seed: u64) -> SimulatedStore {
        let simulation = Arc::new(Mutex::new(Simulation::new(seed)));
        SimulatedStore { simulation, directory: DIRECTORY.into(), mode }
    }

    /// The environment of this life.
    pub fn env(&self) -> Env {
        self.simulation.lock().expect("no panic").env()
    }

    /// The machine, to steer it.
    pub fn machine(&self) -> MutexGuard<'_, Simulation> {
        self.simulation.lock().expect("no panic")
    }

    /// Cuts the power after so many more changes of the disk.
    pub fn lose_power_after(&self, changes: u64) {
        self.simulation.lock().expect("no panic").disk().crash_after(changes);
    }

    fn open_with(&self, options: EngineOptions) -> Arc<dyn Engine> {
        DurableEngine::open(&self.env(), &self.directory, options).expect("the store opens")
    }
}

impl EngineFactory for SimulatedStore {
    fn open(&self) -> Arc<dyn Engine> {
        self.open_with(EngineOptions::stepped(engine_mode(self.mode)))
    }

    fn crash(&self) {
        self.simulation.lock().expect("no panic").crash();
    }

    fn name(&self) -> &str {
        "pando on a simulated disk"
    }

    fn mode(&self) -> Mode {
        self.mode
    }

    fn advance_clock(&self, by: Duration) -> bool {
        self.simulation.lock().expect("no panic").clock().advance(by);
        true
    }

    fn copy(&self, files: &[BackupFile]) -> Option<Box<dyn EngineFactory>> {
        let env = self.env();
        let directory = PathBuf::from(format!("/copy-{:016x}", env.random().next_u64()));
        for file in files {
            copy_file(&env, &file.path, &directory.join(&file.name), file.length);
        }
        let simulation = self.simulation.clone();
        Some(Box::new(SimulatedStore { simulation, directory, mode: self.mode }))
    }

    fn directory(&self) -> Option<PathBuf> {
        Some(self.directory.clone())
    }
}

fn copy_file(env: &Env, from: &Path, to: &Path, length: u64) {
    let disk = env.disk();
    disk.create_directory(to.parent().expect("a parent")).expect("a directory");
    let mut bytes = vec![0; length as usize];
    disk.open(from, OpenMode::Read).expect("a file").read_exact_at(&mut bytes, 0).expect("its bytes");
    let copy = disk.open(to, OpenMode::CreateNew).expect("a new file");
    copy.write_at(&bytes, 0).and_then(|()| copy.sync()).expect("a copy");
}
