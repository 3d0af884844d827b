//! The storage conformance suite on the durable engine, over a simulated disk.

mod support;

use pando_storage::conformance::{EngineFactory, Mode};
use support::SimulatedStore;

fn make(mode: Mode) -> Box<dyn EngineFactory> {
    Box::new(SimulatedStore::new(mode))
}

pando_storage::conformance_tests!(make);
