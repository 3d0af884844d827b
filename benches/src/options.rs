//! The command line.

use crate::peers::System;
use crate::server::{
    FairnessOptions, IndexOptions, QueryOptions, ScaleOptions, SeriesOptions, ServerOptions, TurnsOptions, TxnOptions,
    WatchOptions,
};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Benchmarks beside peers.
#[derive(Parser)]
#[command(name = "bench")]
pub struct Options {
    /// Which benchmark.
    #[command(subcommand)]
    pub command: Command,
}

/// Which benchmark.
#[derive(Subcommand)]
pub enum Command {
    /// The engine's workload on our engine and its peers.
    Engine(EngineOptions),
    /// Replay of a log, open of a large store, idle memory: our engine alone.
    Recovery(RecoveryOptions),
    /// A load for our server and for PostgreSQL.
    Server(ServerOptions),
    /// Questions about much of the data, for our server and for PostgreSQL.
    Query(QueryOptions),
    /// Indexes built under a load, by our server and by PostgreSQL.
    Index(IndexOptions),
    /// Points of sensors in a time-series collection, in a plain one, and in PostgreSQL.
    Series(SeriesOptions),
    /// Small requests while six connections have large ones done, by our server and by PostgreSQL.
    Fairness(FairnessOptions),
    /// Many connections and many collections on our server.
    Scale(ScaleOptions),
    /// Transactions beside plain writes and PostgreSQL's, and change streams beside writers.
    Txn(TxnOptions),
    /// Several servers under the same load, in turns.
    Turns(TurnsOptions),
    /// What it costs our server to be watched.
    Watch(WatchOptions),
    /// One system's part of a benchmark; started by the others.
    #[command(hide = true)]
    Child(ChildOptions),
}

/// `./bench engine`.
#[derive(Args)]
pub struct EngineOptions {
    /// 50,000 documents, to see that everything runs.
    #[arg(long)]
    pub quick: bool,
    /// How many documents; 1,000,000 unless told.
    #[arg(long)]
    pub documents: Option<u64>,
    /// Only these, with commas between them; all that were built in unless told.
    #[arg(long, value_delimiter = ',')]
    pub systems: Vec<System>,
    /// Also ten times the documents on our engine and LMDB, for the growth of the cost.
    #[arg(long)]
    pub large: bool,
    /// Where stores are made, one folder each, removed afterwards.
    #[arg(long, default_value = "target/bench/stores")]
    pub directory: PathBuf,
}

impl EngineOptions {
    /// How many documents.
    pub fn documents(&self) -> u64 {
        self.documents.unwrap_or(if self.quick { 50_000 } else { 1_000_000 })
    }
}

/// `./bench recovery`.
#[derive(Args)]
pub struct RecoveryOptions {
    /// A hundredth of everything, to see that it runs.
    #[arg(long)]
    pub quick: bool,
    /// Length of the log that is re-applied.
    #[arg(long, default_value_t = 1000)]
    pub log_megabytes: u64,
    /// Size on disk of the clean store.
    #[arg(long, default_value_t = 10_000)]
    pub store_megabytes: u64,
    /// Where stores are made, one folder each, removed afterwards.
    #[arg(long, default_value = "target/bench/stores")]
    pub directory: PathBuf,
}

/// What a child does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ChildTask {
    /// The whole workload.
    Engine,
    /// The costs at one size.
    Growth,
    /// Fill a log and die.
    WriteLog,
    /// Open a store with that log.
    ReplayLog,
    /// Make a large store.
    BuildStore,
    /// Open it.
    OpenStore,
}

/// One system's part.
#[derive(Args)]
pub struct ChildOptions {
    /// What to do.
    #[arg(long)]
    pub task: ChildTask,
    /// On which system.
    #[arg(long)]
    pub system: System,
    /// The store.
    #[arg(long)]
    pub directory: PathBuf,
    /// Documents, where the task has documents.
    #[arg(long, default_value_t = 0)]
    pub documents: u64,
    /// Megabytes of log or store to make.
    #[arg(long, default_value_t = 0)]
    pub megabytes: u64,
    /// Updates that the growth of the cost is measured with.
    #[arg(long, default_value_t = 0)]
    pub updates: u64,
    /// Fewer operations.
    #[arg(long)]
    pub quick: bool,
}
