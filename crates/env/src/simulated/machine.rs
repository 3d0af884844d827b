//! A machine of which everything is made up.

use crate::{Machine, MachineFacts, ProcessUsage};

/// A machine with one processor and a gigabyte.
pub struct SimulatedMachine {
    facts: MachineFacts,
}

impl SimulatedMachine {
    /// A machine of this name.
    pub fn new(hostname: &str) -> SimulatedMachine {
        let facts = MachineFacts {
            hostname: hostname.to_owned(),
            process_id: 1,
            system_type: "Linux".into(),
            system_name: "simulated".into(),
            system_version: "Kernel 0".into(),
            architecture: "x86_64".into(),
            memory_bytes: 1 << 30,
            memory_limit_bytes: 1 << 30,
            processors: 1,
            cores: 1,
            sockets: 1,
            memory_nodes: 1,
            processor_name: "simulated".into(),
            processor_mhz: "1000.000".into(),
            processor_features: String::new(),
            kernel_text: "simulated".into(),
            page_bytes: 4096,
            pages: (1 << 30) / 4096,
            open_files_max: 65_536,
        };
        SimulatedMachine { facts }
    }
}

impl Machine for SimulatedMachine {
    fn facts(&self) -> &MachineFacts {
        &self.facts
    }

    fn end_abruptly(&self, _code: i32) {}

    fn usage(&self) -> ProcessUsage {
        ProcessUsage {
            resident_bytes: 32 << 20,
            anonymous_bytes: 24 << 20,
            heap_bytes: 24 << 20,
            virtual_bytes: 64 << 20,
            threads: 1,
            ..ProcessUsage::default()
        }
    }
}
