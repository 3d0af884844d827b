//! The conformance suite on the oracle.

use pando_engine_model::{Mode, ModelDisk, ModelEngine};
use pando_storage::Engine;
use pando_storage::conformance::{self, EngineFactory};
use std::sync::Arc;

struct ModelStore {
    disk: Arc<ModelDisk>,
    mode: conformance::Mode,
}

impl EngineFactory for ModelStore {
    fn open(&self) -> Arc<dyn Engine> {
        let mode = match self.mode {
            conformance::Mode::StandAlone => Mode::StandAlone,
            conformance::Mode::ReplicaSet => Mode::ReplicaSet,
        };
        ModelEngine::open(&self.disk, mode).expect("the model opens")
    }

    fn crash(&self) {
        self.disk.crash();
    }

    fn name(&self) -> &str {
        "model"
    }

    fn mode(&self) -> conformance::Mode {
        self.mode
    }
}

fn store(mode: conformance::Mode) -> Box<dyn EngineFactory> {
    Box::new(ModelStore { disk: ModelDisk::new(), mode })
}

pando_storage::conformance_tests!(store);
