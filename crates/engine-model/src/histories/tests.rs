//! The histories against themselves.

use super::*;
use crate::{ModelDisk, ModelEngine};

struct ModelSubject {
    disk: Arc<ModelDisk>,
    engine: Arc<ModelEngine>,
    mode: Mode,
    crashes: usize,
}

impl ModelSubject {
    fn new(mode: Mode) -> ModelSubject {
        let disk = ModelDisk::new();
        let engine = ModelEngine::open(&disk, mode).unwrap();
        ModelSubject { disk, engine, mode, crashes: 0 }
    }
}

impl Subject for ModelSubject {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    fn restart_clean(&mut self) {
        self.engine.shut_down().unwrap();
        self.engine = ModelEngine::open(&self.disk, self.mode).unwrap();
    }

    fn crash(&mut self) {
        // Keeps none, some or all of what was not flushed.
        self.crashes += 1;
        self.disk.crash_keeping(self.disk.unflushed_count() * (self.crashes % 4) / 3);
        self.engine = ModelEngine::open(&self.disk, self.mode).unwrap();
    }
}

#[test]
fn x4_x17_x18_x20_r20_the_model_equals_itself() {
    let outcome = run_seeds(0..300, &Config::of_seed, &mut |_, config| Box::new(ModelSubject::new(config.mode)));
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

#[test]
fn histories_reach_what_they_are_for() {
    let mut tally = Tally::new();
    for seed in 0..150 {
        let config = Config::of_seed(seed);
        run_tallied(seed, &mut ModelSubject::new(config.mode), config, &mut tally).unwrap();
    }
    for ((step, answer), count) in &tally {
        println!("{step} {answer} {count}");
    }
}
