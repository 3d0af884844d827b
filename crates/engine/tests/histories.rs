//! Random histories on the durable engine beside the oracle: a failing seed replays.

mod support;

use pando_engine_model::histories::{Config, Subject, run_seeds};
use pando_storage::Engine;
use pando_storage::conformance::{EngineFactory, Mode};
use std::sync::Arc;
use support::{SimulatedStore, seeds};

struct Simulated {
    store: SimulatedStore,
    engine: Option<Arc<dyn Engine>>,
}

impl Simulated {
    fn new(seed: u64) -> Simulated {
        let mode = match Config::of_seed(seed).mode {
            pando_engine_model::Mode::StandAlone => Mode::StandAlone,
            pando_engine_model::Mode::ReplicaSet => Mode::ReplicaSet,
        };
        let store = SimulatedStore::with_seed(mode, seed);
        let engine = Some(store.open());
        Simulated { store, engine }
    }
}

impl Subject for Simulated {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone().expect("an open engine")
    }

    fn restart_clean(&mut self) {
        if let Some(engine) = self.engine.take() {
            engine.shut_down().expect("a clean shutdown");
        }
        self.engine = Some(self.store.open());
    }

    fn crash(&mut self) {
        self.engine = None;
        self.store.crash();
        self.engine = Some(self.store.open());
    }

    fn lose_power_after(&mut self, changes: u64) -> bool {
        self.store.lose_power_after(changes);
        true
    }
}

#[test]
fn x4_x17_x18_x20_r20_random_histories_equal_the_oracle() {
    let played = run_seeds(0..seeds(500), &Config::of_seed, &mut |seed, _| Box::new(Simulated::new(seed)));
    if let Err(failure) = played {
        panic!("{failure}");
    }
}
