//! `./bench turns`: several servers under the same load, in turns.
//!
//! The speed of a virtual machine can differ by a third from one minute to the next, so figures that were taken a minute apart compare
//! two minutes rather than two servers. Here all servers run at once, each waits while another is measured, and the turns are short:
//! a better or worse moment strikes them alike. Each round gives every server one figure, and the first server's figure of that round
//! is what the others' are compared with; told are the medians over all rounds. Every other round goes backwards, so that nobody is always first.
//!
//! What a server happens to lie in stays with it through all rounds: a binary beside a copy of itself differs by up to a tenth. Where that matters, each is named
//! twice, in the order a, b, b, a.
//!
//! The servers are PostgreSQL and any number of Pando's binaries, so that a change can be seen beside what was there before it.

use super::data::{Collection, orders_of};
use super::hosts::{self, Host};
use super::options::{ServerOptions, System};
use super::phase::{self, Measured, Service, Times};
use super::processes::Processes;
use super::run::Run;
use super::skew::Zipfian;
use super::transactions;
use super::workloads::{Shared, Workload};
use crate::Error;
use crate::children::remove_folder;
use crate::measure::middle;
use crate::report::Figures;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What PostgreSQL is called among the servers.
const POSTGRES: &str = "postgres";
/// What the binary beside this program is called among the servers.
const PANDO: &str = "pando";
/// What transactions of four statements are called among the workloads.
const TRANSFER: &str = "transfer";

/// `./bench turns`.
#[derive(Args)]
pub struct TurnsOptions {
    /// `postgres`, `pando` (the binary beside this program) or paths of Pando's binaries, with commas between them.
    #[arg(long, value_delimiter = ',', default_values = [POSTGRES, PANDO])]
    servers: Vec<String>,
    /// Those of `./bench server`, and `transfer`, the transactions of four statements of `./bench txn`; with commas between them.
    #[arg(long, value_delimiter = ',', default_values = ["find", "ycsb-b", TRANSFER, "insert", "insert-many"])]
    workloads: Vec<String>,
    /// How often each server has its turn with each workload.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// How long a turn is measured.
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// How many connections.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// How many documents of a kilobyte.
    #[arg(long, default_value_t = 100_000)]
    documents: u64,
    /// How many accounts.
    #[arg(long, default_value_t = 100_000)]
    accounts: u64,
    /// Where data is kept, one folder each, removed afterwards.
    #[arg(long, default_value = "target/bench/stores")]
    directory: PathBuf,
}

impl TurnsOptions {
    fn times(&self) -> Times {
        let measured = self.seconds.clamp(0.05, 3600.0);
        Times { warm_up: Duration::from_secs_f64(measured / 4.0), measured: Duration::from_secs_f64(measured) }
    }

    /// As the load of `./bench server` has it.
    fn of_server(&self) -> ServerOptions {
        ServerOptions {
            rounds: Some(1),
            quick: false,
            documents: Some(self.documents),
            seconds: Some(self.seconds),
            systems: Vec::new(),
            workloads: Vec::new(),
            connections: vec![self.connections],
            target: None,
            target_process: None,
            binary: None,
            directory: self.directory.clone(),
        }
    }
}

/// What is measured.
#[derive(Clone, Copy, PartialEq)]
enum Load {
    Transfer,
    Of(Workload),
}

impl Load {
    fn named(name: &str) -> Result<Load, Error> {
        if name == TRANSFER {
            return Ok(Load::Transfer);
        }
        Ok(Load::Of(<Workload as clap::ValueEnum>::from_str(name, true)?))
    }

    fn name(self) -> &'static str {
        match self {
            Load::Transfer => TRANSFER,
            Load::Of(workload) => workload.name(),
        }
    }

    fn units_per_turn(self) -> u64 {
        match self {
            Load::Transfer => 1,
            Load::Of(workload) => workload.units_per_operation(),
        }
    }
}

/// One turn's figures.
#[derive(Clone, Copy)]
struct Turn {
    per_second: f64,
    p99_us: f64,
    processor_us: f64,
}

/// One of a turn's figures.
type Pick = fn(&Turn) -> f64;

/// One of the servers.
struct Contestant {
    name: String,
    system: System,
    host: Host,
    directory: PathBuf,
    shared: Arc<Shared>,
    sessions: u64,
}

impl Contestant {
    fn start(options: &TurnsOptions, name: &str, index: usize) -> Result<Contestant, Error> {
        let directory = options.directory.join(format!("turns-{index}"));
        let (system, host) = match name {
            POSTGRES => (System::Postgres, hosts::postgres::start(&directory)?),
            PANDO => (System::Pando, hosts::pando::start(&hosts::pando::default_binary()?, &directory)?),
            binary => (System::Pando, hosts::pando::start(binary.as_ref(), &directory)?),
        };
        let shared = Arc::new(Shared::new(options.documents, options.connections));
        Ok(Contestant { name: name.to_owned(), system, host, directory, shared, sessions: 0 })
    }

    /// Does something with what a client needs to know of it.
    fn with_service<T>(
        &mut self,
        documents: u64,
        work: impl FnOnce(&mut Contestant, Service<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (system, orders) = (self.system, orders_of(documents));
        let dialect = || system.dialect(orders);
        let processes = Some(Processes::of(self.host.process()));
        let service = Service { address: self.host.address, processes, dialect: &dialect };
        work(self, service)
    }

    fn fill(&mut self, options: &TurnsOptions, loads: &[Load]) -> Result<(), Error> {
        let (of_server, mut figures, mut failures) = (options.of_server(), Figures::default(), Vec::new());
        self.with_service(options.documents, |contestant, service| {
            let name = contestant.system.name();
            let mut run =
                Run { name, round: 0, service, options: &of_server, figures: &mut figures, failures: &mut failures };
            run.greet(&mut contestant.host)?;
            if loads.iter().any(|load| *load != Load::Transfer) {
                run.load(&contestant.shared)?;
            }
            if loads.contains(&Load::Transfer) {
                transactions::fill(&mut run.service.link()?, contestant.system, options.accounts)?;
            }
            Ok(())
        })
    }

    fn turn(&mut self, options: &TurnsOptions, load: Load) -> Result<Turn, Error> {
        self.host.check_alive()?;
        let measured =
            self.with_service(options.documents, |contestant, service| contestant.measure(options, load, &service))?;
        let tally = &measured.tally;
        if let Some(error) = &tally.first_error {
            return Err(format!("{}, {}: {error}", self.name, load.name()).into());
        }
        let units = (tally.turns * load.units_per_turn()).max(1) as f64;
        Ok(Turn {
            per_second: units / measured.duration.as_secs_f64(),
            p99_us: tally.latencies.percentile_us(0.99),
            processor_us: measured.usage.cpu_seconds * 1e6 / units,
        })
    }

    fn measure(&mut self, options: &TurnsOptions, load: Load, service: &Service<'_>) -> Result<Measured, Error> {
        let times = options.times();
        match load {
            Load::Transfer => {
                let before = self.sessions;
                self.sessions += options.connections as u64;
                transactions::transfers(service, self.system, before, options.connections, options.accounts, times)
            }
            Load::Of(workload) => {
                if workload.fills_inserts() {
                    let mut link = service.link()?;
                    let chores = link.dialect().reset(Collection::Inserts);
                    link.run(chores)?;
                }
                let latest = Zipfian::new(options.documents);
                phase::run(service, workload, options.connections, times, &latest, &self.shared)
            }
        }
    }
}

/// Runs it and prints the table.
pub fn run(options: &TurnsOptions) -> Result<(), Error> {
    let loads = options.workloads.iter().map(|name| Load::named(name)).collect::<Result<Vec<_>, Error>>()?;
    let mut contestants = Vec::new();
    for (index, name) in options.servers.iter().enumerate() {
        contestants.push(Contestant::start(options, name, index)?);
    }
    for contestant in &mut contestants {
        contestant.fill(options, &loads)?;
    }
    println!(
        "{:14} {:>12} {:>9} {:>10} {:>9} {:>9} {:>9}",
        "", "a second", "ratio", "server us", "ratio", "p99 us", "ratio"
    );
    for load in loads {
        let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); contestants.len()];
        for round in 0..options.rounds.max(1) {
            let mut order: Vec<_> = contestants.iter_mut().zip(&mut turns).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for (contestant, turns) in order {
                turns.push(contestant.turn(options, load)?);
            }
        }
        print(load, &contestants, &turns);
    }
    for mut contestant in contestants {
        contestant.host.stop()?;
        remove_folder(&contestant.directory);
    }
    Ok(())
}

fn print(load: Load, contestants: &[Contestant], turns: &[Vec<Turn>]) {
    let Some(first) = turns.first() else { return };
    for (contestant, own) in contestants.iter().zip(turns) {
        let value = |pick: Pick| middle(own.iter().map(pick).collect());
        let ratio = |pick: Pick| middle(own.iter().zip(first).map(|(own, first)| pick(own) / pick(first)).collect());
        let per_second: Pick = |turn| turn.per_second;
        let processor: Pick = |turn| turn.processor_us;
        let p99: Pick = |turn| turn.p99_us;
        println!(
            "{:14} {:>12.0} {:>9.3} {:>10.2} {:>9.3} {:>9.0} {:>9.3}   {}",
            load.name(),
            value(per_second),
            ratio(per_second),
            value(processor),
            ratio(processor),
            value(p99),
            ratio(p99),
            contestant.name
        );
    }
}
