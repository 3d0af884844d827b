//! The command line of `./bench server`, and what other benchmarks of servers share of it.

use super::dialects::{Dialect, mongo::Mongo, postgres::Postgres};
use super::hosts::{self, Host};
use super::phase::Times;
use super::workloads::Workload;
use crate::Error;
use crate::children::remove_folder;
use crate::measure::quiet_disk;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A server under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum System {
    /// Ours.
    Pando,
    /// With JSONB.
    Postgres,
}

impl System {
    /// In figures and names of folders.
    pub fn name(self) -> &'static str {
        match self {
            System::Pando => "pando",
            System::Postgres => "postgres",
        }
    }

    /// How a client speaks to it, told how many orders there are.
    pub fn dialect(self, orders: u64) -> Box<dyn Dialect> {
        match self {
            System::Pando => Box::new(Mongo::new(orders)),
            System::Postgres => Box::new(Postgres::new(orders)),
        }
    }
}

/// Which servers are started, and where: for benchmarks that start them with nothing special.
#[derive(Args)]
pub struct HostOptions {
    /// Only these, with commas between them.
    #[arg(long, value_delimiter = ',', default_values = ["postgres", "pando"])]
    pub systems: Vec<System>,
    /// Pando's binary; the one beside this program unless told.
    #[arg(long)]
    pub binary: Option<PathBuf>,
    /// Where data is kept, one folder each, removed afterwards.
    #[arg(long, default_value = "target/bench/stores")]
    pub directory: PathBuf,
}

impl HostOptions {
    /// True if the system was asked for and can be started; says so if it cannot.
    pub fn has(&self, system: System) -> bool {
        let is_asked = self.systems.contains(&system);
        let is_there = system != System::Postgres || hosts::postgres::programs().is_some();
        if is_asked && !is_there {
            println!("PostgreSQL is not installed and is left out");
        }
        is_asked && is_there
    }

    /// Has `work` done with a server of its own, whose folder has this name and is removed afterwards.
    pub fn with_host(
        &self,
        system: System,
        folder: &str,
        work: impl FnOnce(&mut Host) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut host = self.start(system, folder)?;
        work(&mut host)?;
        self.end(host, folder)
    }

    /// Starts a server with its data in the folder of this name.
    pub fn start(&self, system: System, folder: &str) -> Result<Host, Error> {
        // What an earlier server left to be written back would be charged to this one's time.
        quiet_disk();
        let directory = self.directory.join(folder);
        match system {
            System::Postgres => hosts::postgres::start(&directory),
            System::Pando => {
                let binary = self.binary.clone().map_or_else(hosts::pando::default_binary, Ok)?;
                hosts::pando::start(&binary, &directory)
            }
        }
    }

    /// Ends a server, which has to be alive, and removes its folder.
    pub fn end(&self, mut host: Host, folder: &str) -> Result<(), Error> {
        host.check_alive()?;
        host.stop()?;
        remove_folder(&self.directory.join(folder));
        Ok(())
    }
}

/// `./bench server`.
#[derive(Args)]
pub struct ServerOptions {
    /// Few documents and short phases, to see that everything runs.
    #[arg(long)]
    pub quick: bool,
    /// How many documents of a kilobyte; 200,000 unless told. Half as many lie in the collection with indexes.
    #[arg(long)]
    pub documents: Option<u64>,
    /// How long each phase is measured; 5 s unless told.
    #[arg(long)]
    pub seconds: Option<f64>,
    /// In how many rounds what something is asked of is measured; 3 unless told.
    #[arg(long)]
    pub rounds: Option<usize>,
    /// Only these, with commas between them.
    #[arg(long, value_delimiter = ',', default_values = ["postgres", "pando"])]
    pub systems: Vec<System>,
    /// Only these, with commas between them; all unless told.
    #[arg(long, value_delimiter = ',')]
    pub workloads: Vec<Workload>,
    /// Numbers of connections, with commas between them.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 16, 64])]
    pub connections: Vec<usize>,
    /// Instead of starting Pando: a server that is already there and speaks MongoDB's protocol. Its database `bench` is overwritten.
    #[arg(long)]
    pub target: Option<SocketAddr>,
    /// The process of that server, for its processor time and memory.
    #[arg(long, requires = "target")]
    pub target_process: Option<u32>,
    /// Pando's binary; the one beside this program unless told.
    #[arg(long)]
    pub binary: Option<PathBuf>,
    /// Where data is kept, one folder each, removed afterwards.
    #[arg(long, default_value = "target/bench/stores")]
    pub directory: PathBuf,
}

impl ServerOptions {
    /// How many documents.
    pub fn documents(&self) -> u64 {
        self.documents.unwrap_or(if self.quick { 10_000 } else { 200_000 }).max(1)
    }

    /// How long a phase is.
    pub fn times(&self) -> Times {
        let measured = self.seconds.unwrap_or(if self.quick { 0.5 } else { 5.0 }).clamp(0.05, 3600.0);
        Times { warm_up: Duration::from_secs_f64(measured / 4.0), measured: Duration::from_secs_f64(measured) }
    }

    /// How many rounds.
    pub fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 1 } else { 3 }).max(1)
    }

    /// What runs, in its order.
    pub fn workloads(&self) -> Vec<Workload> {
        let is_asked = |workload: &Workload| self.workloads.is_empty() || self.workloads.contains(workload);
        Workload::ALL.into_iter().filter(is_asked).collect()
    }
}
