//! `./bench txn`: transactions beside plain writes and beside PostgreSQL's, and change streams beside writers.
//!
//! PostgreSQL does the transactions of four statements alone, at repeatable read. Everything that is compared runs several times, in
//! turns, and the medians are told, since machines have better and worse moments. Both servers run all the time; one waits while the
//! other is measured.

mod accounts;
mod mongo;
mod postgres;
mod report;
mod stream;

pub use accounts::fill;

use super::dialects::Dialect;
use super::drive::{Connection, Pace};
use super::hosts::Host;
use super::link::Link;
use super::options::{HostOptions, System};
use super::phase::{self, Measured, Service, Times};
use super::processes::Processes;
use super::talk::Talk;
use crate::Error;
use crate::measure::{Latencies, middle};
use crate::report::Figures;
use clap::Args;
use mongo::{Kind, Transactions};
use postgres::Transfers;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use stream::{Inserted, Inserts, Reader, operation_time};

const JSON_PATH: &str = "target/bench/txn.json";
/// How often what is no pair is measured.
const ROUNDS: usize = 3;
/// How often each server has its turn with the transactions that both do.
const TRANSFER_ROUNDS: usize = 5;
/// Writers beside a change stream: many, since each waits for the disk and all of them have to keep a rate.
const DELIVERY_CONNECTIONS: usize = 64;
const DELIVERED: &str = "delivered";
const LAGGED: &str = "lagged";
/// Figures of a load with a greater share of errors are none.
const ERROR_SHARE_MAX: f64 = 0.01;

/// `./bench txn`.
#[derive(Args)]
pub struct TxnOptions {
    /// Few accounts and short phases, to see that everything runs.
    #[arg(long)]
    pub quick: bool,
    /// How many accounts; 100,000 unless told.
    #[arg(long)]
    pub accounts: Option<u64>,
    /// How long each phase is measured; 5 s unless told.
    #[arg(long)]
    pub seconds: Option<f64>,
    /// How many connections transactions come on.
    #[arg(long, default_value_t = 16)]
    pub connections: usize,
    /// How many documents are written in a second beside a change stream.
    #[arg(long, default_value_t = 10_000)]
    pub rate: u64,
    /// How many pairs of phases, without and with a lagging reader.
    #[arg(long, default_value_t = 5)]
    pub pairs: usize,
    /// The servers.
    #[command(flatten)]
    pub hosts: HostOptions,
}

impl TxnOptions {
    fn accounts(&self) -> u64 {
        self.accounts.unwrap_or(if self.quick { 5_000 } else { 100_000 }).max(2)
    }

    fn times(&self) -> Times {
        let measured = self.seconds.unwrap_or(if self.quick { 0.5 } else { 5.0 }).clamp(0.05, 3600.0);
        Times { warm_up: Duration::from_secs_f64(measured / 4.0), measured: Duration::from_secs_f64(measured) }
    }
}

/// Runs it, prints the table and writes the JSON.
pub fn run(options: &TxnOptions) -> Result<(), Error> {
    let mut figures = Figures::default();
    println!("{} accounts, {} connections", options.accounts(), options.connections);
    let systems = options.hosts.systems.iter().copied().filter(|system| options.hosts.has(*system));
    let mut servers = systems.map(|system| Server::start(options, system)).collect::<Result<Vec<_>, Error>>()?;
    for server in servers.iter_mut().filter(|server| server.system == System::Pando) {
        server.bench(options, &mut figures).plain_and_single()?;
    }
    transfers_in_turns(options, &mut servers, &mut figures)?;
    for server in &mut servers {
        let system = server.system;
        let mut link = server.host.first_link(|| system.dialect(0))?;
        accounts::check(&mut link, system, options.accounts())?;
        if system == System::Pando {
            let mut bench = server.bench(options, &mut figures);
            bench.delivery()?;
            bench.lag(&mut link)?;
        }
    }
    for server in servers {
        options.hosts.end(server.host, &folder(server.system))?;
    }
    report::print(&figures, options.rate);
    figures.write_json(Path::new(JSON_PATH))?;
    println!("\nfigures: {JSON_PATH}");
    Ok(())
}

/// Every server in each round, so that better and worse moments of the machine strike all of them alike.
fn transfers_in_turns(options: &TxnOptions, servers: &mut [Server], figures: &mut Figures) -> Result<(), Error> {
    let mut rounds: Vec<Vec<Measured>> = servers.iter().map(|_| Vec::new()).collect();
    for _ in 0..TRANSFER_ROUNDS {
        for (server, rounds) in servers.iter_mut().zip(&mut rounds) {
            let retries = Arc::clone(&server.retries);
            rounds.push(server.bench(options, figures).transactions(Kind::Transfer, &retries)?);
        }
    }
    for (server, rounds) in servers.iter_mut().zip(&rounds) {
        let retries = server.retries.load(Ordering::Relaxed);
        server.bench(options, figures).record_transfers(rounds, retries);
    }
    Ok(())
}

fn folder(system: System) -> String {
    format!("txn-{}", system.name())
}

/// A running server with its accounts.
struct Server {
    system: System,
    host: Host,
    /// How many sessions there were.
    sessions: u64,
    /// How often transfers were tried again.
    retries: Arc<AtomicU64>,
}

impl Server {
    fn start(options: &TxnOptions, system: System) -> Result<Server, Error> {
        let mut host = options.hosts.start(system, &folder(system))?;
        let mut link = host.first_link(|| system.dialect(0))?;
        accounts::fill(&mut link, system, options.accounts())?;
        Ok(Server { system, host, sessions: 0, retries: Arc::default() })
    }

    fn bench<'a>(&'a mut self, options: &'a TxnOptions, figures: &'a mut Figures) -> Bench<'a> {
        let dialect: &dyn Fn() -> Box<dyn Dialect> = match self.system {
            System::Pando => &|| System::Pando.dialect(0),
            System::Postgres => &|| System::Postgres.dialect(0),
        };
        let processes = Some(Processes::of(self.host.process()));
        let service = Service { address: self.host.address, processes, dialect };
        Bench { options, system: self.system, service, figures, sessions: &mut self.sessions }
    }
}

/// One system under measurement.
struct Bench<'a> {
    options: &'a TxnOptions,
    system: System,
    service: Service<'a>,
    figures: &'a mut Figures,
    /// How many sessions there were.
    sessions: &'a mut u64,
}

impl Bench<'_> {
    fn record(&mut self, metric: &str, value: f64, unit: &str) {
        self.figures.add(self.system.name(), metric, value, unit);
    }

    fn plain_and_single(&mut self) -> Result<(), Error> {
        let retries = Arc::default();
        let (mut plain, mut single, mut latencies) = (Vec::new(), Vec::new(), Latencies::new());
        for _ in 0..ROUNDS {
            plain.push(throughput(&self.transactions(Kind::Plain, &retries)?));
            let measured = self.transactions(Kind::Single, &retries)?;
            single.push(throughput(&measured));
            latencies.merge(&measured.tally.latencies);
        }
        let (plain, single) = (middle(plain), middle(single));
        eprintln!("  {plain:.0} updates/s, {single:.0} as transactions");
        self.record("plain", plain, "operations/s");
        self.record("single", single, "transactions/s");
        self.record("single_of_plain", single / plain, "ratio");
        self.record("single_p99", latencies.percentile_us(0.99), "us");
        Ok(())
    }

    fn record_transfers(&mut self, rounds: &[Measured], retries: u64) {
        let mut latencies = Latencies::new();
        rounds.iter().for_each(|measured| latencies.merge(&measured.tally.latencies));
        let turns: u64 = rounds.iter().map(|measured| measured.tally.turns).sum();
        let processor_us = |measured: &Measured| measured.usage.cpu_seconds * 1e6 / measured.tally.turns.max(1) as f64;
        let transfers = middle(rounds.iter().map(throughput).collect());
        eprintln!("{}: {transfers:.0} transactions/s of 4 statements", self.system.name());
        self.record("transfer", transfers, "transactions/s");
        self.record("transfer_p50", latencies.percentile_us(0.5), "us");
        self.record("transfer_p99", latencies.percentile_us(0.99), "us");
        self.record("transfer_cpu", middle(rounds.iter().map(processor_us).collect()), "us");
        self.record("transfer_retried", retries as f64 / turns.max(1) as f64, "ratio");
    }

    /// One phase of transactions, or of what they are compared with.
    fn transactions(&mut self, kind: Kind, retries: &Arc<AtomicU64>) -> Result<Measured, Error> {
        let (count, accounts, before) = (self.options.connections.max(1), self.options.accounts(), *self.sessions);
        *self.sessions += count as u64;
        self.measure(opened(&self.service, self.system, kind, before, count, accounts, retries)?)
    }

    fn measure(&self, connections: Vec<Connection>) -> Result<Measured, Error> {
        let measured = phase::measure(&self.service, connections, self.options.times())?;
        let tally = &measured.tally;
        match &tally.first_error {
            Some(error) if tally.errors as f64 > ERROR_SHARE_MAX * tally.turns as f64 => Err(error.clone().into()),
            _ => Ok(measured),
        }
    }

    /// Connections that insert.
    fn inserts(
        &self,
        collection: &'static str,
        inserted: &Arc<Inserted>,
        count: usize,
        rate: Option<u64>,
    ) -> Result<Vec<Connection>, Error> {
        let every = rate.map(|rate| Duration::from_secs_f64(count as f64 / rate.max(1) as f64));
        let open = |index: usize| {
            let pace = every.map(|every| Pace { every, first: every.mul_f64(index as f64 / count.max(1) as f64) });
            let talk = Box::new(Inserts::new(collection, inserted));
            Connection::new(self.service.link()?.into_parts()?.0, talk, pace)
        };
        (0..count).map(open).collect()
    }

    fn delivery(&mut self) -> Result<(), Error> {
        let (rate, times) = (self.options.rate, self.options.times());
        // Twice what a load that keeps its rate needs.
        let times_kept = (2.0 * rate as f64 * (times.warm_up + times.measured).as_secs_f64()) as u64;
        let inserted = Inserted::with_times(times_kept);
        let mut reader = Reader::open(self.service.address, DELIVERED, None)?;
        let connections = self.inserts(DELIVERED, &inserted, DELIVERY_CONNECTIONS, Some(rate))?;
        let from = Instant::now() + times.warm_up;
        let (measured, latencies) =
            beside(|is_over| reader.read_all(&inserted, from, is_over), || self.measure(connections))?;
        let written = throughput(&measured);
        let p99 = latencies.percentile_us(0.99);
        eprintln!("  {written:.0} inserts/s, delivered in {p99:.0} us (p99)");
        self.record("delivery_writes", written, "operations/s");
        self.record("delivery_p50", latencies.percentile_us(0.5), "us");
        self.record("delivery_p99", p99, "us");
        Ok(())
    }

    fn lag(&mut self, link: &mut Link) -> Result<(), Error> {
        // Every reader begins here, so that all that was written since lies before it.
        let start = operation_time(link)?;
        let inserted = Inserted::with_times(0);
        let (mut without, mut with, mut costs, mut behind) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let writers = |bench: &Self| bench.inserts(LAGGED, &inserted, bench.options.connections.max(1), None);
        for _ in 0..self.options.pairs.max(1) {
            let alone = throughput(&self.measure(writers(self)?)?);
            let mut reader = Reader::open(self.service.address, LAGGED, Some(start))?;
            let connections = writers(self)?;
            let (measured, read) = beside(|is_over| reader.lag(is_over), || self.measure(connections))?;
            let beside = throughput(&measured);
            eprintln!("  {alone:.0} inserts/s, {beside:.0} beside a lagging reader");
            behind.push(inserted.count().saturating_sub(read) as f64);
            costs.push(1.0 - beside / alone);
            without.push(alone);
            with.push(beside);
        }
        self.record("lag_without", middle(without), "operations/s");
        self.record("lag_with", middle(with), "operations/s");
        self.record("lag_cost", middle(costs), "ratio");
        self.record("lag_events", middle(behind), "events");
        Ok(())
    }
}

/// Connections with sessions of their own, of which there were so many before.
fn opened(
    service: &Service<'_>,
    system: System,
    kind: Kind,
    sessions_before: u64,
    count: usize,
    accounts: u64,
    retries: &Arc<AtomicU64>,
) -> Result<Vec<Connection>, Error> {
    let open = |session: u64| {
        let mut link = service.link()?;
        let talk: Box<dyn Talk> = match system {
            System::Pando => Box::new(Transactions::new(kind, session, accounts, retries)),
            System::Postgres => {
                link.run(postgres::preparation())?;
                Box::new(Transfers::new(session, accounts, retries))
            }
        };
        Connection::new(link.into_parts()?.0, talk, None)
    };
    (sessions_before + 1..=sessions_before + count as u64).map(open).collect()
}

/// One phase of transactions of four statements, on as many new sessions as connections.
pub fn transfers(
    service: &Service<'_>,
    system: System,
    sessions_before: u64,
    count: usize,
    accounts: u64,
    times: Times,
) -> Result<Measured, Error> {
    let retries = Arc::default();
    let connections = opened(service, system, Kind::Transfer, sessions_before, count, accounts, &retries)?;
    phase::measure(service, connections, times)
}

/// A reader on a thread of its own, until the load is over.
fn beside<T: Send>(
    read: impl FnOnce(&AtomicBool) -> Result<T, Error> + Send,
    load: impl FnOnce() -> Result<Measured, Error>,
) -> Result<(Measured, T), Error> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| read(&is_over));
        let measured = load();
        is_over.store(true, Ordering::SeqCst);
        let read = reading.join().map_err(|_| "the reader panicked")?;
        Ok((measured?, read?))
    })
}

fn throughput(measured: &Measured) -> f64 {
    measured.tally.turns as f64 / measured.duration.as_secs_f64()
}
