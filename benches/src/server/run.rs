//! Everything that is done with one server: it is started, filled, and goes through all workloads.
//!
//! What fails is told and leaves what was measured: a workload that a server cannot do yet costs its own row only.

use super::data::Collection;
use super::dialects::{Chore, Dialect};
use super::hosts::Host;
use super::link::Link;
use super::operation::Operation;
use super::options::ServerOptions;
use super::phase::{self, Measured, Service, Times};
use super::processes::Usage;
use super::skew::Zipfian;
use super::workloads::{BATCH_DOCUMENTS, Shared, Workload};
use crate::Error;
use crate::measure::{per_second, timed};
use crate::report::Figures;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const START_PATIENCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// A server is at rest so long after its first insert.
const REST: Duration = Duration::from_secs(1);
const LOADING_CONNECTIONS: usize = 4;
/// Figures of a workload with a greater share of errors are not shown.
const ERROR_SHARE_MAX: f64 = 0.01;

/// With so many connections something is asked of some workloads.
const JUDGED_CONNECTIONS: usize = 16;

/// One system's run.
pub struct Run<'a> {
    /// Its name in the report.
    pub name: &'static str,
    /// How often the system was measured before.
    pub round: usize,
    /// The server.
    pub service: Service<'a>,
    /// What to do.
    pub options: &'a ServerOptions,
    /// Where figures go.
    pub figures: &'a mut Figures,
    /// What went wrong.
    pub failures: &'a mut Vec<String>,
}

impl Run<'_> {
    /// Waits for the first insert, and looks at the memory a little later.
    pub fn greet(&mut self, host: &mut Host) -> Result<(), Error> {
        let first_insert = Operation::Insert { collection: Collection::Inserts, number: 0 };
        loop {
            host.check_alive()?;
            let attempt = self.service.link().and_then(|mut link| {
                let first_words = link.dialect().first_words();
                link.run(first_words)?;
                link.operate(&first_insert)
            });
            match attempt {
                Ok(()) => break,
                Err(error) if host.started.elapsed() > START_PATIENCE => {
                    return Err(format!("no insert within {} s: {error}", START_PATIENCE.as_secs()).into());
                }
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
        self.record("start", host.started.elapsed().as_secs_f64(), "s");
        std::thread::sleep(REST);
        if let Some(processes) = self.service.processes {
            self.record("rest_memory", processes.memory_bytes()? as f64, "bytes");
        }
        Ok(())
    }

    /// Fills the server and runs every workload.
    pub fn measure(&mut self) {
        let connections_max = self.options.connections.iter().copied().max().unwrap_or(1);
        let shared = Arc::new(Shared::new(self.options.documents(), connections_max));
        if let Err(error) = self.load(&shared) {
            self.fail("load", &error.to_string());
        }
        let latest = Zipfian::new(self.options.documents());
        let times = self.options.times();
        for (workload, connections) in self.phases() {
            let name = format!("{}_{connections}", workload.name());
            match self.phase(workload, connections, times, &latest, &shared) {
                Ok(measured) => self.report(&name, workload, &measured),
                Err(error) => self.fail(&name, &error.to_string()),
            }
        }
    }

    /// All workloads belong to the first round, to the others what something is asked of.
    fn phases(&self) -> Vec<(Workload, usize)> {
        let with_connections =
            |workload| self.options.connections.iter().map(move |&connections| (workload, connections));
        let belongs = |&(workload, connections): &(Workload, usize)| {
            self.round == 0 || (workload.is_judged() && connections == JUDGED_CONNECTIONS)
        };
        self.options.workloads().into_iter().flat_map(with_connections).filter(belongs).collect()
    }

    fn phase(
        &mut self,
        workload: Workload,
        connections: usize,
        times: Times,
        latest: &Zipfian,
        shared: &Arc<Shared>,
    ) -> Result<Measured, Error> {
        if workload.fills_inserts() {
            self.chores(|dialect| dialect.reset(Collection::Inserts))?;
        }
        phase::run(&self.service, workload, connections, times, latest, shared)
    }

    /// Fills the server.
    pub fn load(&mut self, shared: &Shared) -> Result<(), Error> {
        for collection in [Collection::Inserts, Collection::Users, Collection::Orders] {
            self.chores(|dialect| dialect.reset(collection))?;
        }
        let before = self.usage()?;
        let mut sent_bytes = 0;
        let ((), duration) = timed(|| {
            for (collection, documents) in
                [(Collection::Users, self.options.documents()), (Collection::Orders, shared.orders)]
            {
                sent_bytes += self.fill(collection, documents)?;
            }
            Ok(())
        })?;
        let documents = self.options.documents() + shared.orders;
        let loaded = self.usage()? - before;
        self.chores(|dialect| dialect.settle())?;
        let settled = self.usage()? - before;
        self.record("load_throughput", per_second(documents, duration), "documents/s");
        if let Some(processes) = self.service.processes {
            self.record("load_cpu", loaded.cpu_seconds * 1e6 / documents as f64, "us");
            self.record("load_written", settled.written_bytes as f64 / sent_bytes as f64, "ratio");
            self.record("load_dirtied", settled.dirtied_bytes as f64 / sent_bytes as f64, "ratio");
            self.record("loaded_memory", processes.memory_bytes()? as f64, "bytes");
        }
        Ok(())
    }

    /// Bulk inserts on several connections; how many bytes were sent.
    fn fill(&self, collection: Collection, documents: u64) -> Result<u64, Error> {
        let next = AtomicU64::new(0);
        let links = (0..LOADING_CONNECTIONS).map(|_| self.service.prepared_link());
        let links = links.collect::<Result<Vec<_>, Error>>()?;
        std::thread::scope(|scope| {
            let spawn = |mut link: Link| {
                let next = &next;
                scope.spawn(move || -> Result<u64, Error> {
                    loop {
                        let from = next.fetch_add(BATCH_DOCUMENTS, Ordering::Relaxed);
                        if from >= documents {
                            return Ok(link.sent_bytes);
                        }
                        let count = BATCH_DOCUMENTS.min(documents - from);
                        link.operate(&Operation::Load { collection, from, count })?;
                    }
                })
            };
            let handles: Vec<_> = links.into_iter().map(spawn).collect();
            let join = |handle: std::thread::ScopedJoinHandle<'_, Result<u64, Error>>| {
                handle.join().map_err(|_| "a loading thread panicked")?
            };
            handles.into_iter().map(join).sum()
        })
    }

    fn chores(&self, choose: impl FnOnce(&mut dyn Dialect) -> Vec<Chore>) -> Result<(), Error> {
        let mut link = self.service.link()?;
        let chores = choose(link.dialect());
        link.run(chores)
    }

    fn usage(&self) -> Result<Usage, Error> {
        self.service.processes.map_or(Ok(Usage::default()), |processes| processes.usage())
    }

    fn report(&mut self, name: &str, workload: Workload, measured: &Measured) {
        let tally = &measured.tally;
        let asked = (tally.turns + tally.errors).max(1);
        if let Some(error) = &tally.first_error {
            self.record(&format!("{name}_errors"), tally.errors as f64, "errors");
            self.fail(
                name,
                &format!("{} errors, {} good answers; the first error: {error}", tally.errors, tally.turns),
            );
            if tally.errors as f64 / asked as f64 > ERROR_SHARE_MAX {
                return;
            }
        }
        if tally.turns == 0 {
            return self.fail(name, "nothing ended within the phase; use --seconds");
        }
        let units = (tally.turns * workload.units_per_operation()) as f64;
        let usage = &measured.usage;
        self.record(&format!("{name}_throughput"), units / measured.duration.as_secs_f64(), "operations/s");
        self.record(&format!("{name}_p50"), tally.latencies.percentile_us(0.5), "us");
        self.record(&format!("{name}_p99"), tally.latencies.percentile_us(0.99), "us");
        if self.service.processes.is_some() {
            self.record(&format!("{name}_cpu"), usage.cpu_seconds * 1e6 / units, "us/operation");
            self.record(&format!("{name}_written"), usage.written_bytes as f64 / units, "bytes/operation");
            self.record(&format!("{name}_dirtied"), usage.dirtied_bytes as f64 / units, "bytes/operation");
        }
        if let Some(memory_bytes) = measured.memory_bytes {
            self.record(&format!("{name}_memory"), memory_bytes as f64, "bytes");
        }
        self.show_progress(name);
    }

    fn show_progress(&self, name: &str) {
        let value = |measure: &str| self.figures.of(self.name, &format!("{name}_{measure}")).unwrap_or_default();
        eprintln!(
            "  {name:20} {:>9.0} /s   p50 {:>7.0} us   p99 {:>8.0} us   server {:>6.1} us/op",
            value("throughput"),
            value("p50"),
            value("p99"),
            value("cpu"),
        );
    }

    /// Notes a figure.
    pub fn record(&mut self, metric: &str, value: f64, unit: &str) {
        self.figures.add(self.name, metric, value, unit);
    }

    /// Notes a failure.
    pub fn fail(&mut self, what: &str, error: &str) {
        let message = format!("{}, {what}: {error}", self.name);
        eprintln!("  FAILED {message}");
        self.failures.push(message);
    }
}
