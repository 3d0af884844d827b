//! `./bench fairness`: whether a server answers small requests while six connections have it do
//! large ones.
//!
//! For each load six connections send the same large request again and again. Meanwhile three
//! others ask, one after the other and with a pause in between, what a monitor asks (`hello`,
//! PostgreSQL's `SELECT 1`), what a pool asks (`ping`) and a document by its key. Then the requests
//! under way are killed, and it is measured how long that takes. PostgreSQL has a process for each
//! connection and gets loads of the same kind, where it has such.
//!
//! [`loads`] is what is asked, [`probe`] who asks meanwhile.

mod loads;
mod probe;

use super::dialects::{mongo::Mongo, postgres};
use super::hosts::Host;
use super::link::Link;
use super::options::{HostOptions, System};
use crate::Error;
use crate::report::Figures;
use clap::Args;
use loads::{GRAPH_DOCUMENTS, LOADS, Load, SMALL_DOCUMENTS};
use pando_doc::{Doc, DocRef, doc};
use probe::{PROBES, Probed};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const JSON_PATH: &str = "target/bench/fairness.json";
const DATABASE: &str = "bench";
/// So many connections run the load.
const CONNECTIONS: usize = 6;
const BATCH_DOCUMENTS: u64 = 1000;
/// How long a load runs before anybody looks.
const WARM_UP: Duration = Duration::from_millis(300);
/// Until then, requests that were killed have ended, or the connections are closed.
const END_PATIENCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(1);
const KILL_EVERY: Duration = Duration::from_millis(100);

/// What our server is held to.
const HELLO_P99_MS: f64 = 5.0;
const HELLO_MAX_MS: f64 = 50.0;
const FIND_P99_MS: f64 = 50.0;
const END_MS: f64 = 200.0;

/// `./bench fairness`.
#[derive(Args)]
pub struct FairnessOptions {
    /// Few documents and short phases, to see that everything runs.
    #[arg(long)]
    pub quick: bool,
    /// How many documents in the large collection; 200,000 unless told.
    #[arg(long)]
    pub documents: Option<u64>,
    /// How long each load runs; 5 s unless told.
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Only these, with commas between them.
    #[arg(long, value_delimiter = ',')]
    pub loads: Vec<String>,
    /// Our server without its peer.
    #[arg(long)]
    pub alone: bool,
    /// The servers.
    #[command(flatten)]
    pub hosts: HostOptions,
}

impl FairnessOptions {
    fn documents(&self) -> u64 {
        self.documents.unwrap_or(if self.quick { 10_000 } else { 200_000 }).max(1000)
    }

    fn duration(&self) -> Duration {
        let seconds = self.seconds.unwrap_or(if self.quick { 0.5 } else { 5.0 });
        Duration::from_secs_f64(seconds.clamp(0.1, 3600.0))
    }

    fn loads(&self) -> impl Iterator<Item = &'static Load> {
        LOADS.iter().filter(|load| self.loads.is_empty() || self.loads.iter().any(|name| name == load.name))
    }
}

/// Runs it, prints the table and writes the JSON.
pub fn run(options: &FairnessOptions) -> Result<(), Error> {
    let mut figures = Figures::default();
    let is_asked = |system: &System| !(options.alone && *system == System::Postgres) && options.hosts.has(*system);
    for system in options.hosts.systems.iter().copied().filter(is_asked) {
        let folder = format!("fairness-{}", system.name());
        options.hosts.with_host(system, &folder, |host| run_system(options, system, host, &mut figures))?;
    }
    print_targets(options, &figures);
    figures.write_json(Path::new(JSON_PATH))?;
    println!("\nfigures: {JSON_PATH}");
    Ok(())
}

fn run_system(options: &FairnessOptions, system: System, host: &mut Host, figures: &mut Figures) -> Result<(), Error> {
    let documents = options.documents();
    let mut admin = Speaker { link: host.first_link(|| system.dialect(0))?, system, mongo: Mongo::new(0) };
    admin.fill(documents)?;
    println!("\n{}, {documents} documents; p50 / p99 / greatest in ms, and until all were killed", system.name());
    let columns = PROBES.iter().map(|probe| format!("{:>25}", probe.label(system))).collect::<String>();
    println!("{:22}{columns} {:>9} {:>9}", "", "killed", "requests");
    for load in options.loads() {
        let Some(requests) = admin.requests(load, documents) else { continue };
        let service = Service { address: host.address, system, documents };
        let seen = service.run(&requests, options.duration(), &mut admin)?;
        host.check_alive()?;
        seen.print(load.name);
        seen.record(system, load.name, figures);
    }
    Ok(())
}

/// A connection that waits for its answers.
struct Speaker {
    link: Link,
    system: System,
    mongo: Mongo,
}

impl Speaker {
    fn command(&mut self, database: &str, command: &Doc) -> Vec<u8> {
        self.mongo.command(database, |body| body.append_all(command.view()))
    }

    fn run(&mut self, database: &str, command: &Doc) -> Result<(), Error> {
        let request = self.command(database, command);
        self.link.exchange(&request)??;
        Ok(())
    }

    fn run_sql(&mut self, text: &str) -> Result<(), Error> {
        self.link.exchange(&postgres::statement(text))??;
        Ok(())
    }

    /// What each connection sends; none if the system has no such load.
    fn requests(&mut self, load: &Load, documents: u64) -> Option<Vec<Vec<u8>>> {
        let each = 0..CONNECTIONS as u64;
        match self.system {
            System::Postgres => {
                let sql = load.sql?;
                Some(each.map(|number| postgres::statement(&sql(documents, number))).collect())
            }
            System::Pando => {
                if let Some(raw) = load.raw {
                    return Some(each.map(|_| raw()).collect());
                }
                Some(each.map(|number| self.command(DATABASE, &(load.command)(documents, number))).collect())
            }
        }
    }

    /// Makes the collections.
    fn fill(&mut self, documents: u64) -> Result<(), Error> {
        match self.system {
            System::Postgres => loads::tables(documents).iter().try_for_each(|text| self.run_sql(text)),
            System::Pando => {
                let sizes = [("numbers", documents), ("small", SMALL_DOCUMENTS), ("graph", GRAPH_DOCUMENTS)];
                for (collection, count) in sizes {
                    for from in (0..count).step_by(BATCH_DOCUMENTS as usize) {
                        let numbers = from..count.min(from + BATCH_DOCUMENTS);
                        let request = self.mongo.insert_documents(collection, numbers, |number, document| {
                            loads::write_document(number, documents, document);
                        });
                        self.link.exchange(&request)??;
                    }
                }
                self.run(DATABASE, &loads::texts())?;
                self.run(DATABASE, &loads::indexes())?;
                self.run("admin", &doc! { "fsync": 1 })
            }
        }
    }

    /// Kills all requests of the load that are under way.
    fn kill(&mut self) -> Result<(), Error> {
        if self.system == System::Postgres {
            let others = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state = 'active'";
            return self.run_sql(others);
        }
        let asked = doc! { "aggregate": 1, "cursor": { "batchSize": 1000 }, "pipeline": [
            { "$currentOp": { "allUsers": true } },
            { "$match": { "ns": { "$regex": "^bench" }, "active": true } },
            { "$project": { "opid": 1 } },
        ] };
        let request = self.command("admin", &asked);
        self.link.exchange(&request)??;
        let numbers = Mongo::body(self.link.last_answer()).map(opids).unwrap_or_default();
        numbers.into_iter().try_for_each(|number| self.run("admin", &doc! { "killOp": 1, "op": number }))
    }
}

fn opids(reply: DocRef<'_>) -> Vec<i64> {
    let batch = reply.get("cursor").and_then(|cursor| cursor.as_document()?.get("firstBatch")?.as_array());
    let found = batch.map(|batch| {
        batch.values().filter_map(|found| found.as_document()?.get("opid").map(|opid| opid.to_i64_or_zero())).collect()
    });
    found.unwrap_or_default()
}

/// The server under test.
struct Service {
    address: SocketAddr,
    system: System,
    documents: u64,
}

/// What a load's threads share.
struct Under {
    is_over: AtomicBool,
    is_probing: AtomicBool,
    busy: AtomicUsize,
    answered: AtomicU64,
    refusal: OnceLock<String>,
}

impl Service {
    /// Runs a load for so long, and looks at the server meanwhile.
    fn run(&self, requests: &[Vec<u8>], duration: Duration, admin: &mut Speaker) -> Result<Seen, Error> {
        let open = |_| Link::open(self.address, self.system.dialect(0));
        let links = requests.iter().map(open).collect::<Result<Vec<_>, Error>>()?;
        let sockets = links.iter().map(Link::socket).collect::<Result<Vec<_>, Error>>()?;
        let under = Under {
            is_over: AtomicBool::new(false),
            is_probing: AtomicBool::new(true),
            busy: AtomicUsize::new(links.len()),
            answered: AtomicU64::new(0),
            refusal: OnceLock::new(),
        };
        std::thread::scope(|scope| {
            for (link, request) in links.into_iter().zip(requests) {
                let under = &under;
                scope.spawn(move || under.repeat(link, request));
            }
            std::thread::sleep(WARM_UP);
            let probes = PROBES.map(|probe| {
                scope.spawn({
                    let under = &under;
                    move || probe.run(self, &under.is_probing)
                })
            });
            std::thread::sleep(duration);
            under.is_over.store(true, Ordering::Relaxed);
            let killed = under.end(admin, &sockets);
            under.is_probing.store(false, Ordering::Relaxed);
            let mut probed = Vec::new();
            for probe in probes {
                probed.push(probe.join().map_err(|_| "a probe panicked")??);
            }
            let answered = under.answered.load(Ordering::Relaxed);
            Ok(Seen { probed, killed: killed?, answered, refusal: under.refusal.get().cloned() })
        })
    }
}

impl Under {
    /// Sends the request until it is over.
    fn repeat(&self, mut link: Link, request: &[u8]) {
        while !self.is_over.load(Ordering::Relaxed) {
            match link.exchange(request) {
                Ok(Ok(_)) => {}
                // That a request is refused is an answer, too: what is looked at is who waits for
                // it.
                Ok(Err(refusal)) => drop(self.refusal.set(refusal)),
                Err(_) => break,
            }
            self.answered.fetch_add(1, Ordering::Relaxed);
        }
        self.busy.fetch_sub(1, Ordering::Relaxed);
    }

    /// Kills what is under way: how long that takes.
    fn end(&self, admin: &mut Speaker, sockets: &[TcpStream]) -> Result<Duration, Error> {
        let began = Instant::now();
        let mut next_kill = began;
        while self.busy.load(Ordering::Relaxed) > 0 {
            if began.elapsed() > END_PATIENCE {
                sockets.iter().try_for_each(|socket| socket.shutdown(Shutdown::Both))?;
                return Ok(began.elapsed());
            }
            // A request that was sent just before comes after the first look.
            if Instant::now() >= next_kill {
                admin.kill()?;
                next_kill = Instant::now() + KILL_EVERY;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(began.elapsed())
    }
}

/// What was seen under a load.
struct Seen {
    probed: Vec<Probed>,
    killed: Duration,
    answered: u64,
    refusal: Option<String>,
}

impl Seen {
    fn print(&self, load: &str) {
        let times = self.probed.iter().map(|probed| {
            let [p50, p99, most] = probed.ms();
            format!("{:>25}", format!("{p50:.2} / {p99:.2} / {most:.1}"))
        });
        let (times, killed) = (times.collect::<String>(), self.killed.as_secs_f64() * 1e3);
        println!("{load:22}{times} {killed:>9.1} {:>9}", self.answered);
        if let Some(refusal) = &self.refusal {
            println!("    {}", refusal.lines().next().unwrap_or_default().chars().take(120).collect::<String>());
        }
    }

    fn record(&self, system: System, load: &str, figures: &mut Figures) {
        for (probe, probed) in PROBES.iter().zip(&self.probed) {
            for (name, value) in ["p50", "p99", "max"].iter().zip(probed.ms()) {
                figures.add(system.name(), &format!("{load}_{}_{name}", probe.name()), value, "ms");
            }
        }
        figures.add(system.name(), &format!("{load}_killed"), self.killed.as_secs_f64() * 1e3, "ms");
        figures.add(system.name(), &format!("{load}_answered"), self.answered as f64, "requests");
    }
}

fn print_targets(options: &FairnessOptions, figures: &Figures) {
    let bounds =
        [("hello_p99", HELLO_P99_MS), ("hello_max", HELLO_MAX_MS), ("find_p99", FIND_P99_MS), ("killed", END_MS)];
    println!("\ntargets (for information)");
    for (measure, most) in bounds {
        let of = |load: &'static Load| Some((load.name, figures.of("pando", &format!("{}_{measure}", load.name))?));
        let found: Vec<(&str, f64)> = options.loads().filter_map(of).collect();
        let missed: Vec<String> =
            found.iter().filter(|(_, value)| *value > most).map(|(load, value)| format!("{load} {value:.1}")).collect();
        match missed.is_empty() {
            true => println!("  pass  {measure} <= {most} ms under {} loads", found.len()),
            false => println!("  MISS  {measure} <= {most} ms: {}", missed.join(", ")),
        }
    }
}
