//! The workload of `./bench engine`, phase by phase, as a child process runs it on one system.
//!
//! Order: bulk load, size, reads with everything cached, reads with a small cache, four checkpoints, the same sizes and
//! reads again, then the phases that leave other data behind (hot rows, small transactions, waiting committers). Every get
//! and scan is checked against what must be there, so a system cannot be fast by being wrong.

mod checkpoints;
mod commits;
mod growth;
mod load;
mod reads;

pub use growth::run_growth;

use crate::Error;
use crate::measure::{disk_use, machine_bytes, resident_bytes};
use crate::peers::{Peer, System};
use crate::report::Recorder;
use crate::workload::{Workload, raw_bytes};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much of everything.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Documents loaded.
    pub documents: u64,
    /// Random gets of a timed phase.
    pub gets: u64,
    /// Documents rewritten before each checkpoint.
    pub rewrites: u64,
    /// How many checkpoints.
    pub checkpoints: u64,
    /// How long the phases that count commits take.
    pub commit_time: Duration,
}

impl Plan {
    /// The plan for so many documents: a tenth of them is rewritten before each checkpoint.
    pub fn new(documents: u64, quick: bool) -> Plan {
        Plan {
            documents,
            gets: if quick { 200_000 } else { 1_000_000 },
            rewrites: (documents / 10).max(1),
            checkpoints: 4,
            commit_time: Duration::from_secs(if quick { 1 } else { 4 }),
        }
    }

    /// Half of the machine's memory, as a server would have: a limit that the data stays far below, and so does what is dirty.
    pub fn large_cache_bytes(&self) -> Result<u64, Error> {
        Ok((machine_bytes()?.saturating_sub(1 << 30) / 2).max(1 << 30))
    }

    /// 5 % of the data, and not below what every system can open with.
    pub fn small_cache_bytes(&self) -> u64 {
        (raw_bytes(self.documents) / 20).max(4 << 20)
    }
}

/// One system's store and the way to open it again with another cache.
struct Store<'a> {
    system: System,
    directory: PathBuf,
    plan: &'a Plan,
    peer: Box<dyn Peer>,
}

impl<'a> Store<'a> {
    fn create(system: System, directory: &Path, plan: &'a Plan) -> Result<Store<'a>, Error> {
        let peer = system.open(directory, plan.large_cache_bytes()?)?;
        Ok(Store { system, directory: directory.to_path_buf(), plan, peer })
    }

    fn reopen(self, cache_bytes: u64) -> Result<Store<'a>, Error> {
        self.peer.close()?;
        let peer = self.system.open(&self.directory, cache_bytes)?;
        Ok(Store { peer, ..self })
    }

    /// The store is closed and opened first: some systems delete what they no longer need only then.
    fn record_size(&self, recorder: &Recorder, suffix: &str) -> Result<(), Error> {
        self.peer.settle()?;
        let size = disk_use(&self.directory, &|path| self.peer.is_log_file(path))?;
        recorder.record(&format!("size{suffix}"), size.data_bytes as f64);
        recorder.record(&format!("size_log{suffix}"), size.log_bytes as f64);
        let raw = raw_bytes(self.plan.documents) as f64;
        recorder.record(&format!("size_of_raw{suffix}"), size.data_bytes as f64 / raw);
        Ok(())
    }

    /// Gets and scans with everything cached, then gets with a small cache; the store is open with the large one after it.
    fn measure_reads(self, recorder: &Recorder, suffix: &str) -> Result<Store<'a>, Error> {
        reads::warm(&*self.peer, self.plan)?;
        reads::cached(&*self.peer, self.plan, recorder, suffix)?;
        recorder.record(&format!("memory_cached{suffix}"), resident_bytes()? as f64);
        reads::scans(&*self.peer, self.plan, recorder, suffix)?;
        if !self.peer.has_cache() {
            return Ok(self);
        }
        let plan = self.plan;
        let store = self.reopen(plan.small_cache_bytes())?;
        reads::uncached(&*store.peer, plan, recorder, suffix)?;
        store.reopen(plan.large_cache_bytes()?)
    }
}

/// Everything that `./bench engine` measures on one system.
pub fn run_engine(system: System, directory: &Path, plan: &Plan, recorder: &Recorder) -> Result<(), Error> {
    let mut workload = Workload::new(plan.documents);
    let store = Store::create(system, directory, plan)?;
    load::run(&*store.peer, &workload, recorder)?;
    let store = store.reopen(plan.large_cache_bytes()?)?;
    store.record_size(recorder, "")?;
    let store = store.measure_reads(recorder, "")?;

    reads::warm(&*store.peer, plan)?;
    checkpoints::run(&*store.peer, &mut workload, plan, recorder)?;
    let store = store.reopen(plan.large_cache_bytes()?)?;
    store.record_size(recorder, LATER)?;
    let store = store.measure_reads(recorder, LATER)?;

    reads::warm(&*store.peer, plan)?;
    commits::hot_rows(&*store.peer, &mut workload, plan, recorder)?;
    commits::small_transactions(&*store.peer, plan, recorder)?;
    commits::waiting_committers(&*store.peer, plan, recorder)?;
    recorder.figures(store.peer.figures());
    store.peer.close()
}

/// What a metric's name ends with when it is measured after the checkpoints.
pub const LATER: &str = "_later";
