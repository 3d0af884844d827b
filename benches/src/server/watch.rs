//! `./bench watch`: what it costs our server to be watched.
//!
//! The same load runs again and again on one server, in pairs: unwatched, with the server's own samples switched off, and
//! watched: the samples are on, and somebody asks serverStatus, top and currentOp every second, as monitoring does. Each pair
//! gives one share of throughput that watching took; the median of them is told, since machines have better and worse moments.

use super::data::orders_of;
use super::dialects::{Dialect, mongo::Mongo};
use super::hosts;
use super::link::Link;
use super::options::ServerOptions;
use super::phase::{self, Service, Times};
use super::processes::Processes;
use super::run::Run;
use super::skew::Zipfian;
use super::workloads::{Shared, Workload};
use crate::Error;
use crate::children::remove_folder;
use crate::measure::middle;
use crate::report::{Figures, WATCH_METRICS, WATCH_TARGETS, print_table, print_targets};
use clap::Args;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const JSON_PATH: &str = "target/bench/watch.json";
const WORKLOADS: [Workload; 2] = [Workload::YcsbC, Workload::YcsbA];
const ASK_EVERY: Duration = Duration::from_secs(1);
/// How soon the watcher sees that its phase is over.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// `./bench watch`.
#[derive(Args)]
pub struct WatchOptions {
    /// Few documents and short phases, to see that everything runs.
    #[arg(long)]
    pub quick: bool,
    /// How many pairs of phases.
    #[arg(long, default_value_t = 7)]
    pub pairs: usize,
    /// How long each phase is measured; 5 s unless told.
    #[arg(long)]
    pub seconds: Option<f64>,
    /// How many connections.
    #[arg(long, default_value_t = 16)]
    pub connections: usize,
    /// Where data lies meanwhile.
    #[arg(long, default_value = "target/bench/stores")]
    pub directory: PathBuf,
    /// Another binary than the one built beside this.
    #[arg(long)]
    pub binary: Option<PathBuf>,
}

impl WatchOptions {
    fn of_server(&self) -> ServerOptions {
        ServerOptions {
            rounds: Some(1),
            quick: self.quick,
            documents: None,
            seconds: self.seconds,
            systems: Vec::new(),
            workloads: WORKLOADS.to_vec(),
            connections: vec![self.connections],
            target: None,
            target_process: None,
            binary: self.binary.clone(),
            directory: self.directory.clone(),
        }
    }
}

/// Runs it, prints the table and writes the JSON.
pub fn run(options: &WatchOptions) -> Result<(), Error> {
    let of_server = options.of_server();
    let directory = options.directory.join("watch");
    let binary = options.binary.clone().map_or_else(hosts::pando::default_binary, Ok)?;
    let mut host = hosts::pando::start(&binary, &directory)?;
    let orders = orders_of(of_server.documents());
    let dialect = || -> Box<dyn Dialect> { Box::new(Mongo::new(orders)) };
    let service = Service { address: host.address, processes: Some(Processes::of(host.process())), dialect: &dialect };
    let (mut figures, mut failures) = (Figures::default(), Vec::new());
    let mut run =
        Run { name: "pando", round: 0, service, options: &of_server, figures: &mut figures, failures: &mut failures };
    run.greet(&mut host)?;
    let shared = Arc::new(Shared::new(of_server.documents(), options.connections));
    run.load(&shared)?;
    let watch = Watch {
        service: &run.service,
        connections: options.connections,
        times: of_server.times(),
        latest: Zipfian::new(of_server.documents()),
        shared,
    };
    let mut found = Vec::new();
    for workload in WORKLOADS {
        let pairs = (0..options.pairs.max(1)).map(|_| watch.pair(workload)).collect::<Result<Vec<_>, Error>>()?;
        found.push((workload, pairs));
    }
    for (workload, pairs) in found {
        let of = |pick: fn(&(f64, f64)) -> f64| middle(pairs.iter().map(pick).collect());
        run.record(&format!("{}_unwatched", workload.name()), of(|(unwatched, _)| *unwatched), "operations/s");
        run.record(&format!("{}_watched", workload.name()), of(|(_, watched)| *watched), "operations/s");
        let cost = of(|(unwatched, watched)| 1.0 - watched / unwatched);
        run.record(&format!("{}_cost", workload.name()), cost, "ratio");
    }
    host.check_alive()?;
    host.stop()?;
    remove_folder(&directory);
    print_table(&figures, WATCH_METRICS);
    print_targets(&figures, WATCH_TARGETS);
    figures.write_json(Path::new(JSON_PATH))?;
    println!("\nfigures: {JSON_PATH}");
    Ok(())
}

/// A load that is measured with and without a watcher.
struct Watch<'a> {
    service: &'a Service<'a>,
    connections: usize,
    times: Times,
    latest: Zipfian,
    shared: Arc<Shared>,
}

impl Watch<'_> {
    /// Operations per second, unwatched and watched.
    fn pair(&self, workload: Workload) -> Result<(f64, f64), Error> {
        let mut watcher = Watcher::open(self.service.address)?;
        watcher.set_samples(false)?;
        let unwatched = self.throughput(workload)?;
        watcher.set_samples(true)?;
        let is_over = AtomicBool::new(false);
        let watched = std::thread::scope(|scope| {
            let asking = scope.spawn(|| watcher.ask_until(&is_over));
            let watched = self.throughput(workload);
            is_over.store(true, Ordering::Relaxed);
            asking.join().map_err(|_| "the watcher panicked")??;
            watched
        })?;
        eprintln!("  {:10} {unwatched:>9.0} /s unwatched {watched:>9.0} /s watched", workload.name());
        Ok((unwatched, watched))
    }

    fn throughput(&self, workload: Workload) -> Result<f64, Error> {
        let (service, times) = (self.service, self.times);
        let measured = phase::run(service, workload, self.connections, times, &self.latest, &self.shared)?;
        match &measured.tally.first_error {
            Some(error) => Err(error.clone().into()),
            None => Ok(measured.tally.turns as f64 / measured.duration.as_secs_f64()),
        }
    }
}

/// Somebody who asks the server how it is.
struct Watcher {
    link: Link,
    speaker: Mongo,
}

impl Watcher {
    fn open(address: SocketAddr) -> Result<Watcher, Error> {
        Ok(Watcher { link: Link::open(address, Box::new(Mongo::new(0)))?, speaker: Mongo::new(0) })
    }

    /// Switches the server's own samples on or off.
    fn set_samples(&mut self, on: bool) -> Result<(), Error> {
        let request = self.speaker.command("admin", |body| {
            body.append("setParameter", 1);
            body.append("diagnosticDataCollectionEnabled", on);
        });
        self.link.exchange(&request)??;
        Ok(())
    }

    fn ask_until(&mut self, is_over: &AtomicBool) -> Result<(), Error> {
        let mut waited = ASK_EVERY;
        while !is_over.load(Ordering::Relaxed) {
            if waited >= ASK_EVERY {
                waited = Duration::ZERO;
                for command in ["serverStatus", "top", "currentOp"] {
                    let request = self.speaker.command("admin", |body| body.append(command, 1));
                    self.link.exchange(&request)??;
                }
            }
            std::thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
        Ok(())
    }
}
