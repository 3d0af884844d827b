//! Benchmarks beside peers, started by the script `bench` at the root: `./bench engine`, `./bench recovery`, `./bench server`,
//! `./bench query`, `./bench index`, `./bench series`, `./bench fairness`, `./bench scale`, `./bench txn`, `./bench turns`, `./bench watch`.
//!
//! The parent process prints the workload, starts one child for each system, gathers the figures as JSON lines and prints
//! one table. From the bottom up: [`workload`] is what is stored, [`peers`] the systems behind one trait, [`measure`] what is
//! measured besides time, [`phases`] what a child does with a system, [`report`] what becomes of the figures. [`server`] is the
//! odd one: there the systems are servers and this process is their load.
//!
//! Peers are dependencies of this crate alone, and nothing depends on it.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark measures the real clock, threads and files, and its peers use them too"
)]

mod children;
mod engine;
mod measure;
mod options;
mod peers;
mod phases;
mod recovery;
mod report;
mod server;
mod workload;

use clap::Parser;
use options::{ChildOptions, ChildTask, Command, Options};
use phases::Plan;
use report::Recorder;
use std::process::ExitCode;

/// Our engine is measured with the allocator that the server has; the peers' libraries bring or choose theirs.
#[global_allocator]
static ALLOCATOR: pando_env::real::Allocator = pando_env::real::Allocator;

/// Whatever went wrong, to be shown to a human.
type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let result = match Options::parse().command {
        Command::Engine(options) => engine::run(&options),
        Command::Recovery(options) => recovery::run(&options),
        Command::Server(options) => server::run(&options),
        Command::Query(options) => server::run_query(&options),
        Command::Index(options) => server::run_index(&options),
        Command::Series(options) => server::run_series(&options),
        Command::Fairness(options) => server::run_fairness(&options),
        Command::Scale(options) => server::run_scale(&options),
        Command::Txn(options) => server::run_txn(&options),
        Command::Turns(options) => server::run_turns(&options),
        Command::Watch(options) => server::run_watch(&options),
        Command::Child(options) => run_child(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_child(options: &ChildOptions) -> Result<(), Error> {
    let recorder = Recorder::new(options.system);
    let plan = Plan::new(options.documents, options.quick);
    let directory = &options.directory;
    match options.task {
        ChildTask::Engine => phases::run_engine(options.system, directory, &plan, &recorder),
        ChildTask::Growth => phases::run_growth(options.system, directory, &plan, options.updates, &recorder),
        ChildTask::WriteLog => recovery::write_log(directory, options.megabytes, &recorder),
        ChildTask::ReplayLog => recovery::replay_log(directory, &recorder),
        ChildTask::BuildStore => recovery::build_store(directory, options.megabytes, &recorder),
        ChildTask::OpenStore => recovery::open_store(directory, &recorder),
    }
}
