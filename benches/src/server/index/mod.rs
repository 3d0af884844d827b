//! `./bench index`: three indexes on many documents under a steady load, for Pando and for PostgreSQL 15 with JSONB.
//!
//! Before anything is measured the server has merged what was loaded and read it once, as PostgreSQL's `VACUUM ANALYZE` does.
//! The load runs alone first, for its 99th percentile without a build and for the memory that it takes by itself in a second: what it
//! writes stays in memory until a checkpoint. Then the indexes are built while it goes on: in one `createIndexes`
//! here, by one `CREATE INDEX CONCURRENTLY` after the other there. PostgreSQL gets no parallel workers and as much memory for a build as
//! Pando's limit is.

mod data;
mod load;

use super::data::Json;
use super::dialects::{Chore, mongo::Mongo, postgres};
use super::hosts::Host;
use super::link::Link;
use super::options::{HostOptions, System};
use super::processes::Processes;
use crate::Error;
use crate::measure::timed;
use crate::report::{Figures, readable};
use clap::Args;
use data::{INDEXES, NAME, write_fields};
use load::Load;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const JSON_PATH: &str = "target/bench/index.json";
const BATCH_THINGS: u64 = 1000;
const BUILD_PATIENCE: Duration = Duration::from_secs(3600);
/// How long a server may merge what was loaded.
const MERGE_PATIENCE: Duration = Duration::from_secs(600);
const MERGE_LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often memory is looked at during a build.
const MEMORY_EVERY: Duration = Duration::from_millis(250);
/// `maxIndexBuildMemoryUsageMegabytes`.
const BUILD_MEGABYTES: u64 = 200;
/// What a build may take beyond it.
const MORE_BYTES_MAX: f64 = 100e6;
/// How much later answers may come during a build.
const P99_FACTOR: f64 = 3.0;

/// `./bench index`.
#[derive(Args)]
pub struct IndexOptions {
    /// 100,000 documents, to see that everything runs.
    #[arg(long)]
    pub quick: bool,
    /// How many documents; 10,000,000 unless told.
    #[arg(long)]
    pub documents: Option<u64>,
    /// How many operations the load has in a second.
    #[arg(long, default_value_t = 3000)]
    pub load: u64,
    /// How long the load runs without a build.
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
    /// The servers.
    #[command(flatten)]
    pub hosts: HostOptions,
}

impl IndexOptions {
    fn documents(&self) -> u64 {
        self.documents.unwrap_or(if self.quick { 100_000 } else { 10_000_000 }).max(1)
    }
}

/// Runs it, prints the table and writes the JSON.
pub fn run(options: &IndexOptions) -> Result<(), Error> {
    let mut figures = Figures::default();
    println!("3 indexes on {} documents, {} operations/s beside", options.documents(), options.load);
    for &system in options.hosts.systems.iter().filter(|system| options.hosts.has(**system)) {
        let folder = format!("index-{}", system.name());
        options.hosts.with_host(system, &folder, |host| run_system(options, system, host, &mut figures))?;
    }
    print_table(&figures);
    figures.write_json(Path::new(JSON_PATH))?;
    println!("\nfigures: {JSON_PATH}");
    Ok(())
}

fn run_system(options: &IndexOptions, system: System, host: &mut Host, figures: &mut Figures) -> Result<(), Error> {
    let things = options.documents();
    let link = host.first_link(|| system.dialect(0))?;
    let mut builder = Builder { link, speaker: Mongo::new(0), system, things };
    builder.link.set_patience(BUILD_PATIENCE)?;
    eprintln!("{}, {things} documents", system.name());
    builder.fill()?;
    let next = Arc::new(AtomicU64::new(things));
    let processes = Processes::of(host.process());
    let load = |next: &Arc<AtomicU64>| Load::start(system, host.address, things, options.load, next);
    let (idle_bytes, alone) = (processes.memory_bytes()?, load(&next)?);
    std::thread::sleep(Duration::from_secs_f64(options.seconds));
    let alone = alone.stop()?;
    let before_bytes = processes.memory_bytes()?;
    let of_load_bytes = before_bytes.saturating_sub(idle_bytes) as f64 / options.seconds;
    let (beside, watch) = (load(&next)?, MemoryWatch::start(processes));
    let ((), duration) = timed(|| builder.build())?;
    let (beside, most_bytes) = (beside.stop()?, watch.stop());
    let reached = beside.count as f64 / duration.as_secs_f64();
    eprintln!(
        "  built in {:.1} s, p99 {:.0} us, {:.0} us without",
        duration.as_secs_f64(),
        beside.p99_us,
        alone.p99_us
    );
    let mut add = |metric: &str, value: f64, unit: &str| figures.add(system.name(), metric, value, unit);
    add("build", duration.as_secs_f64(), "s");
    add("p99_alone", alone.p99_us, "us");
    add("p99_beside", beside.p99_us, "us");
    add("load", reached, "operations/s");
    add("memory_of_load", of_load_bytes, "bytes/s");
    add("memory_more", most_bytes.saturating_sub(before_bytes) as f64, "bytes");
    Ok(())
}

/// Looks at a server's memory until it is told to stop.
struct MemoryWatch {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<u64>,
}

impl MemoryWatch {
    fn start(processes: Processes) -> MemoryWatch {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut most = 0;
            while !told.load(Ordering::Relaxed) {
                most = most.max(processes.memory_bytes().unwrap_or(0));
                std::thread::sleep(MEMORY_EVERY);
            }
            most
        });
        MemoryWatch { stop, thread }
    }

    fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or(0)
    }
}

/// The connection that loads and builds.
struct Builder {
    link: Link,
    speaker: Mongo,
    system: System,
    things: u64,
}

impl Builder {
    fn run(&mut self, request: Vec<u8>) -> Result<(), Error> {
        self.link.run(vec![Chore::new(request)])
    }

    fn fill(&mut self) -> Result<(), Error> {
        if self.system == System::Postgres {
            let table = format!("CREATE TABLE {NAME} (id bigint PRIMARY KEY, doc jsonb NOT NULL)");
            self.run(postgres::statement(&table))?;
        }
        let things = self.things;
        for from in (0..things).step_by(BATCH_THINGS as usize) {
            let numbers = from..things.min(from + BATCH_THINGS);
            let request = match self.system {
                System::Pando => self.speaker.insert_batch(NAME, numbers, |number, sink| {
                    write_fields(number, things, 0, sink);
                }),
                System::Postgres => {
                    let mut rows = String::new();
                    for number in numbers {
                        let mut json = Vec::new();
                        Json::object(&mut json, |sink| write_fields(number, things, 0, sink));
                        // Writing to a string does not fail.
                        _ = writeln!(rows, "{number}\t{}", String::from_utf8_lossy(&json));
                    }
                    postgres::copy_text(NAME, &rows)
                }
            };
            self.run(request)?;
        }
        match self.system {
            System::Postgres => {
                let memory = format!("SET maintenance_work_mem = '{BUILD_MEGABYTES}MB'");
                for text in ["VACUUM ANALYZE", "CHECKPOINT", "SET max_parallel_maintenance_workers = 0", &memory] {
                    self.run(postgres::statement(text))?;
                }
                Ok(())
            }
            System::Pando => {
                let request = self.speaker.command("admin", |body| body.append("fsync", 1));
                self.run(request)?;
                self.wait_for_merges()?;
                let request = self.speaker.command("bench", |body| {
                    body.append("count", NAME);
                    body.document("query", |query| query.append("no such field", 1));
                });
                self.run(request)
            }
        }
    }

    fn wait_for_merges(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        while began.elapsed() < MERGE_PATIENCE {
            let request = self.speaker.command("admin", |body| body.append("serverStatus", 1));
            self.run(request)?;
            let body = Mongo::body(self.link.last_answer()).ok_or("serverStatus has no reply")?;
            let own = body.get("pando").and_then(|own| own.as_document());
            let base = own.and_then(|own| own.get("base")).and_then(|base| base.as_document());
            let debt = base.and_then(|base| base.get("merge_debt_bytes")).and_then(|debt| debt.to_double());
            if debt.ok_or("serverStatus does not tell what is to be merged")? == 0.0 {
                return Ok(());
            }
            std::thread::sleep(MERGE_LOOK_EVERY);
        }
        Err("what was loaded is still not merged".into())
    }

    fn build(&mut self) -> Result<(), Error> {
        match self.system {
            System::Postgres => INDEXES.iter().try_for_each(|(name, _, expressions)| {
                self.run(postgres::statement(&format!("CREATE INDEX CONCURRENTLY {name} ON {NAME} ({expressions})")))
            }),
            System::Pando => {
                let request = self.speaker.command("bench", |body| {
                    body.append("createIndexes", NAME);
                    body.array("indexes", |indexes| {
                        for (name, fields, _) in INDEXES {
                            indexes.document(|index| {
                                index.document("key", |key| fields.iter().for_each(|field| key.append(field, 1)));
                                index.append("name", name);
                            });
                        }
                    });
                });
                self.run(request)
            }
        }
    }
}

fn print_table(figures: &Figures) {
    println!("\n{:34} {:>14} {:>14}", "", "pando", "postgres");
    for (label, metric, unit) in [
        ("build of 3 indexes", "build", "s"),
        ("p99 of the load, without a build", "p99_alone", "us"),
        ("p99 of the load, during the build", "p99_beside", "us"),
        ("operations answered meanwhile", "load", "operations/s"),
        ("memory that the load adds alone", "memory_of_load", "bytes/s"),
        ("more memory at most", "memory_more", "bytes"),
    ] {
        let show = |system: &str| figures.of(system, metric).map_or("-".to_owned(), |value| readable(value, unit));
        println!("{label:34} {:>14} {:>14}", show("pando"), show("postgres"));
    }
    println!("\ntargets (for information)");
    let mark = |is_met: bool, words: String| println!("  {}  {words}", if is_met { "pass" } else { "MISS" });
    let of = |metric: &str| figures.of("pando", metric);
    if let (Some(ours), Some(theirs)) = (of("build"), figures.of("postgres", "build")) {
        mark(ours <= theirs, format!("as fast as CREATE INDEX CONCURRENTLY: {:.2}x", theirs / ours));
    }
    if let (Some(alone), Some(beside)) = (of("p99_alone"), of("p99_beside")) {
        mark(beside <= P99_FACTOR * alone, format!("p99 within {P99_FACTOR}x: {:.2}x", beside / alone));
    }
    if let Some(more) = of("memory_more") {
        let limit = BUILD_MEGABYTES as f64 * 1e6 + MORE_BYTES_MAX;
        mark(more <= limit, format!("memory within {}: {}", readable(limit, "bytes"), readable(more, "bytes")));
    }
}
