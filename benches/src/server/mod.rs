//! `./bench server`: the same documents and questions for Pando and for PostgreSQL 15 with JSONB.
//!
//! Each server is a child of this process, which is the load; both sides share the machine's cores. Clients speak the
//! protocols raw. Durability is equal: `{w: "majority", j: true}` here, `synchronous_commit` there.
//!
//! From the bottom up: [`data`] is what is stored, [`skew`] and [`workloads`] choose what is asked, an
//! [`operation`](operation::Operation) is one question, [`dialects`] put it into bytes, [`talk`] says what follows what, [`link`] and [`drive`] carry them,
//! [`processes`] look at the server meanwhile, [`phase`] is one measurement, [`run`] all of one server, [`report`] the rest.

mod data;
mod dialects;
mod drive;
mod fairness;
mod hosts;
mod index;
mod link;
mod operation;
mod options;
mod phase;
mod processes;
mod query;
mod report;
mod run;
mod scale;
mod series;
mod skew;
mod talk;
#[cfg(test)]
mod tests;
mod transactions;
mod turns;
mod watch;
mod workloads;

pub use fairness::{FairnessOptions, run as run_fairness};
pub use index::{IndexOptions, run as run_index};
pub use options::ServerOptions;
pub use query::{QueryOptions, run as run_query};
pub use scale::{ScaleOptions, run as run_scale};
pub use series::{SeriesOptions, run as run_series};
pub use transactions::{TxnOptions, run as run_txn};
pub use turns::{TurnsOptions, run as run_turns};
pub use watch::{WatchOptions, run as run_watch};

use crate::Error;
use crate::children::remove_folder;
use crate::measure::quiet_disk;
use crate::report::Figures;
use data::orders_of;
use hosts::Host;
use options::System;
use phase::Service;
use processes::Processes;
use run::Run;
use std::path::Path;

const JSON_PATH: &str = "target/bench/server.json";

/// Runs every system, prints the table and writes the JSON. A machine that others share is a third slower for half a minute, and fast again: what something is asked
/// of is measured in several rounds, each with new servers, and the middle one of each figure counts.
pub fn run(options: &ServerOptions) -> Result<(), Error> {
    let mut figures = Figures::default();
    let mut failures = Vec::new();
    print_workload(options);
    let in_turn = (0..options.rounds()).flat_map(|round| options.systems.iter().map(move |&system| (round, system)));
    for (round, system) in in_turn {
        if let Err(error) = run_system(options, round, system, &mut figures, &mut failures) {
            let message = format!("{}: {error}", name(options, system));
            eprintln!("  FAILED {message}");
            failures.push(message);
        }
    }
    figures.keep_middles();
    let ours = name(options, System::Pando);
    report::print_table(&figures, ours, &options.workloads(), &options.connections);
    report::print_targets(&figures, ours);
    figures.write_json(Path::new(JSON_PATH))?;
    println!("\nfigures: {JSON_PATH}");
    if failures.is_empty() {
        return Ok(());
    }
    println!("\nfailures");
    failures.iter().for_each(|failure| println!("  {failure}"));
    Err(format!("{} parts failed", failures.len()).into())
}

fn name(options: &ServerOptions, system: System) -> &'static str {
    match system {
        System::Pando if options.target.is_some() => "target",
        _ => system.name(),
    }
}

fn print_workload(options: &ServerOptions) {
    let (documents, orders) = (options.documents(), orders_of(options.documents()));
    let times = options.times();
    println!("{documents} documents and {orders} with indexes, of 1 kB; {:.1} s a phase", times.measured.as_secs_f64());
}

fn run_system(
    options: &ServerOptions,
    round: usize,
    system: System,
    figures: &mut Figures,
    failures: &mut Vec<String>,
) -> Result<(), Error> {
    if system == System::Postgres && hosts::postgres::programs().is_none() {
        println!("PostgreSQL is not installed and is left out");
        return Ok(());
    }
    eprintln!("{}", name(options, system));
    // What an earlier server left to be written back would be charged to this one's time.
    quiet_disk();
    let orders = orders_of(options.documents());
    let dialect = || system.dialect(orders);
    let directory = options.directory.join(name(options, system));
    let mut host = start(options, system, &directory)?;
    let (address, process) = match (&host, options.target) {
        (Some(host), _) => (host.address, Some(host.process())),
        (None, Some(target)) => (target, options.target_process),
        (None, None) => return Err("neither a server nor a target".into()),
    };
    let service = Service { address, processes: process.map(Processes::of), dialect: &dialect };
    let mut run = Run { name: name(options, system), round, service, options, figures, failures };
    match &mut host {
        Some(host) => run_host(host, &mut run),
        None => run.measure(),
    }
    drop(host);
    remove_folder(&directory);
    Ok(())
}

/// Starts it, unless it is already there.
fn start(options: &ServerOptions, system: System, directory: &Path) -> Result<Option<Host>, Error> {
    match system {
        System::Postgres => hosts::postgres::start(directory).map(Some),
        System::Pando if options.target.is_some() => Ok(None),
        System::Pando => {
            let binary = options.binary.clone().map_or_else(hosts::pando::default_binary, Ok)?;
            hosts::pando::start(&binary, directory).map(Some)
        }
    }
}

fn run_host(host: &mut Host, run: &mut Run<'_>) {
    if let Err(error) = run.greet(host) {
        run.fail("start", &error.to_string());
    }
    if host.check_alive().is_err() {
        return;
    }
    run.measure();
    match host.check_alive().and_then(|()| host.stop()) {
        Ok(duration) => run.record("stop", duration.as_secs_f64(), "s"),
        Err(error) => run.fail("stop", &error.to_string()),
    }
}
