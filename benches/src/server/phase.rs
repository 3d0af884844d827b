//! One measurement: a workload at a number of connections, for a fixed time.

use super::dialects::Dialect;
use super::drive::{Connection, Tally, Window, drive};
use super::link::Link;
use super::processes::{Processes, Usage};
use super::skew::Zipfian;
use super::talk::{Talk, Workloads};
use super::workloads::{Chooser, Shared, Workload};
use crate::Error;
use crate::measure::{LOOK_EVERY, Reserve, wait_for_rest};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the hungriest load has a server take in a second, its files in the page cache included.
const NEEDED_BYTES_PER_SECOND: f64 = 768e6;

/// Whoever waits for rest looks no more seldom.
const REST_LOOK_MAX: Duration = Duration::from_millis(400);

/// What a client needs to know of a running server.
pub struct Service<'a> {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its processes, where they are ours to look at.
    pub processes: Option<Processes>,
    /// Makes the client's side of a connection.
    pub dialect: &'a dyn Fn() -> Box<dyn Dialect>,
}

impl Service<'_> {
    /// A connection that waits.
    pub fn link(&self) -> Result<Link, Error> {
        Link::open(self.address, (self.dialect)())
    }

    /// One that is ready for operations.
    pub fn prepared_link(&self) -> Result<Link, Error> {
        let mut link = self.link()?;
        link.prepare()?;
        Ok(link)
    }

    fn usage(&self) -> Result<Usage, Error> {
        self.processes.map_or(Ok(Usage::default()), Processes::usage)
    }
}

/// How long.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Before anything is counted.
    pub warm_up: Duration,
    /// While it is.
    pub measured: Duration,
}

/// What was measured.
pub struct Measured {
    /// From the clients' side.
    pub tally: Tally,
    /// For how long.
    pub duration: Duration,
    /// From the server's side; zeros where its processes are not known.
    pub usage: Usage,
    /// At the end, with all connections open.
    pub memory_bytes: Option<u64>,
}

/// Runs one phase.
pub fn run(
    service: &Service<'_>,
    workload: Workload,
    connections: usize,
    times: Times,
    latest: &Zipfian,
    shared: &Arc<Shared>,
) -> Result<Measured, Error> {
    let open = (0..connections).map(|index| {
        let (stream, dialect) = service.prepared_link()?.into_parts()?;
        let chooser = Chooser::new(workload, index, latest.clone(), Arc::clone(shared));
        let talk: Box<dyn Talk> = Box::new(Workloads::new(dialect, chooser));
        Connection::new(stream, talk, None)
    });
    measure(service, open.collect::<Result<Vec<_>, Error>>()?, times)
}

/// Has the connections speak for so long, when the machine is at rest. The memory that the server may come to need is made ready before, and given out
/// meanwhile (see [`Reserve`]).
pub fn measure(service: &Service<'_>, connections: Vec<Connection>, times: Times) -> Result<Measured, Error> {
    let groups = groups(connections);
    let reserve = Reserve::fill(((times.warm_up + times.measured).as_secs_f64() * NEEDED_BYTES_PER_SECOND) as u64)?;
    wait_for_rest((times.measured / 8).min(REST_LOOK_MAX))?;
    let from = Instant::now() + times.warm_up;
    let window = Window { from, until: from + times.measured };
    std::thread::scope(|scope| {
        let spawn = |group| scope.spawn(move || drive(group, &window));
        let handles: Vec<_> = groups.into_iter().map(spawn).collect();
        sleep_until(window.from, &reserve)?;
        let before = service.usage()?;
        sleep_until(window.until, &reserve)?;
        let usage = service.usage()? - before;
        let mut tally = Tally::new();
        let mut open = Vec::new();
        for handle in handles {
            let (part, connections) = handle.join().map_err(|_| "a thread of the load panicked")??;
            tally.merge(part);
            open.push(connections);
        }
        let memory_bytes = service.processes.and_then(|processes| processes.memory_bytes().ok());
        Ok(Measured { tally, duration: times.measured, usage, memory_bytes })
    })
}

/// As many groups as there are threads for them: half the cores, the others are the server's.
fn groups(connections: Vec<Connection>) -> Vec<Vec<Connection>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = (cores / 2).clamp(1, connections.len().max(1));
    let mut groups: Vec<Vec<Connection>> = (0..threads).map(|_| Vec::new()).collect();
    for (index, connection) in connections.into_iter().enumerate() {
        if let Some(group) = groups.get_mut(index % threads) {
            group.push(connection);
        }
    }
    groups
}

fn sleep_until(instant: Instant, reserve: &Reserve) -> Result<(), Error> {
    loop {
        let left = instant.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(LOOK_EVERY));
        reserve.look()?;
    }
}
