//! `./bench query`: questions that look at much of the data, for Pando and for PostgreSQL 15 with JSONB.
//!
//! One connection asks one question after the other; each is asked once to warm up and then several times, and the median is told. PostgreSQL gets
//! no parallel workers: a question has one core on both sides, and the other is free for the client. With `--large` Pando answers the same
//! questions about ten times the documents, for the growth of the cost: two servers, one with each size, are asked in turns, so that both
//! meet the same neighbours on the machine, whose memory is a fifth slower in one minute than in another.

mod data;
mod questions;

use super::data::Json;
use super::dialects::{Chore, mongo::Mongo, postgres};
use super::hosts::Host;
use super::link::Link;
use super::options::{HostOptions, System};
use crate::Error;
use crate::measure::{median, timed};
use crate::report::{Figures, readable};
use clap::Args;
use data::Collection;
use pando_doc::{Doc, doc};
use questions::{QUESTIONS, Question};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

const JSON_PATH: &str = "target/bench/query.json";
const DATABASE: &str = "bench";
const BATCH_DOCUMENTS: u64 = 1000;
/// How many times as many documents `--large` asks about.
const GROWTH: u64 = 10;
/// What the cost may grow by then.
const GROWTH_MAX: f64 = 11.0;
/// Documents that a scan with a simple filter must look at in a second.
const SCANNED_PER_SECOND_MIN: f64 = 2e6;

/// `./bench query`.
#[derive(Args)]
pub struct QueryOptions {
    /// 20,000 documents, to see that everything runs.
    #[arg(long)]
    pub quick: bool,
    /// How many sales; 1,000,000 unless told.
    #[arg(long)]
    pub documents: Option<u64>,
    /// How often each question is asked.
    #[arg(long, default_value_t = 5)]
    pub repeats: usize,
    /// Also ten times the documents on Pando, for the growth of the cost.
    #[arg(long)]
    pub large: bool,
    /// The servers.
    #[command(flatten)]
    pub hosts: HostOptions,
}

impl QueryOptions {
    fn documents(&self) -> u64 {
        self.documents.unwrap_or(if self.quick { 20_000 } else { 1_000_000 }).max(1)
    }
}

/// Runs it, prints the table and writes the JSON.
pub fn run(options: &QueryOptions) -> Result<(), Error> {
    let mut figures = Figures::default();
    for &system in options.hosts.systems.iter().filter(|system| options.hosts.has(**system)) {
        run_system(options, system, &mut figures)?;
    }
    if options.large {
        compare_sizes(options, &mut figures)?;
    }
    print_table(&figures, options.documents());
    figures.write_json(Path::new(JSON_PATH))?;
    println!("\nfigures: {JSON_PATH}");
    Ok(())
}

fn run_system(options: &QueryOptions, system: System, figures: &mut Figures) -> Result<(), Error> {
    let folder = format!("query-{}", system.name());
    options.hosts.with_host(system, &folder, |host| {
        let asker = Asker::filled(host, system, options.documents())?;
        ask_all(options, asker, figures)
    })
}

/// Asks two servers of ours about documents of both sizes, in turns. Each time the small one is asked once more before its time is taken: it
/// finds its documents where its own last answer left them, as when it is asked alone.
fn compare_sizes(options: &QueryOptions, figures: &mut Figures) -> Result<(), Error> {
    let (small, large) = (options.documents(), options.documents() * GROWTH);
    options.hosts.with_host(System::Pando, "query-small", |small_host| {
        let mut small = Asker::filled(small_host, System::Pando, small)?;
        options.hosts.with_host(System::Pando, "query-large", |large_host| {
            let mut large = Asker::filled(large_host, System::Pando, large)?;
            for question in QUESTIONS {
                let (mut durations, mut large_durations) = (Vec::new(), Vec::new());
                large.ask(question)?;
                for _ in 0..options.repeats.max(1) {
                    small.ask(question)?;
                    durations.push(small.ask(question)?.0);
                    large_durations.push(large.ask(question)?.0);
                }
                let (small, large) = (median(durations).as_secs_f64(), median(large_durations).as_secs_f64());
                eprintln!("  {:14} {:>9.1} ms, {:>9.1} ms", question.name, small * 1e3, large * 1e3);
                figures.add(System::Pando.name(), &format!("{}_small", question.name), small, "s");
                figures.add(System::Pando.name(), &format!("{}_large", question.name), large, "s");
            }
            Ok(())
        })
    })
}

fn ask_all(options: &QueryOptions, mut asker: Asker, figures: &mut Figures) -> Result<(), Error> {
    let system = asker.system;
    for question in QUESTIONS {
        let (_, rows) = asker.ask(question)?;
        let durations = (0..options.repeats.max(1)).map(|_| Ok(asker.ask(question)?.0));
        let seconds = median(durations.collect::<Result<Vec<_>, Error>>()?).as_secs_f64();
        eprintln!("  {:14} {:>9.1} ms, {rows} rows", question.name, seconds * 1e3);
        figures.add(system.name(), question.name, seconds, "s");
        let rows_name = format!("{}_rows", question.name);
        let expected = options.hosts.systems.iter().find_map(|system| figures.of(system.name(), &rows_name));
        if expected.is_some_and(|expected| expected != rows as f64) {
            return Err(format!("{}: the systems give {expected:?} and {rows} rows", question.name).into());
        }
        figures.add(system.name(), &rows_name, rows as f64, "rows");
    }
    Ok(())
}

/// A connection to a server under test.
struct Asker {
    link: Link,
    speaker: Mongo,
    system: System,
    sales: u64,
}

impl Asker {
    /// A server with the documents.
    fn filled(host: &mut Host, system: System, sales: u64) -> Result<Asker, Error> {
        eprintln!("{}, {sales} documents", system.name());
        let link = host.first_link(|| system.dialect(0))?;
        let mut asker = Asker { link, speaker: Mongo::new(0), system, sales };
        asker.fill()?;
        Ok(asker)
    }

    fn command(&mut self, command: &Doc) -> Vec<u8> {
        self.speaker.command(DATABASE, |body| {
            command.view().elements().for_each(|field| body.append(field.name, field.value));
        })
    }

    fn run(&mut self, request: Vec<u8>) -> Result<(), Error> {
        self.link.run(vec![Chore::new(request)])
    }

    /// Loads both collections, with their indexes.
    fn fill(&mut self) -> Result<(), Error> {
        for collection in [Collection::Customers, Collection::Sales] {
            if self.system == System::Postgres {
                let table = format!("CREATE TABLE {} (id bigint PRIMARY KEY, doc jsonb NOT NULL)", collection.name());
                self.run(postgres::statement(&table))?;
            }
            let count = collection.count(self.sales);
            for from in (0..count).step_by(BATCH_DOCUMENTS as usize) {
                let request = self.batch(collection, from..count.min(from + BATCH_DOCUMENTS));
                self.run(request)?;
            }
        }
        match self.system {
            System::Postgres => {
                for statement in [
                    "CREATE INDEX ON sales (((doc->'number')::bigint))",
                    "CREATE INDEX ON sales USING gin (to_tsvector('simple', doc->>'words'))",
                    "VACUUM ANALYZE",
                    "CHECKPOINT",
                    "SET max_parallel_workers_per_gather = 0",
                ] {
                    self.run(postgres::statement(statement))?;
                }
            }
            System::Pando => {
                let indexes = doc! { "createIndexes": (Collection::Sales.name()), "indexes": [
                    { "key": { "number": 1 }, "name": "number_1" },
                    { "key": { "words": "text" }, "name": "words_text", "default_language": "none" },
                ] };
                for command in [indexes, doc! { "fsync": 1 }] {
                    let database = if command.get("fsync").is_some() { "admin" } else { DATABASE };
                    let request = self.speaker.command(database, |body| {
                        command.view().elements().for_each(|field| body.append(field.name, field.value));
                    });
                    self.run(request)?;
                }
            }
        }
        Ok(())
    }

    fn batch(&mut self, collection: Collection, numbers: std::ops::Range<u64>) -> Vec<u8> {
        let sales = self.sales;
        match self.system {
            System::Pando => self.speaker.insert_batch(collection.name(), numbers, |number, sink| {
                collection.write_fields(number, sales, sink);
            }),
            System::Postgres => {
                let mut rows = String::new();
                for number in numbers {
                    let mut json = Vec::new();
                    Json::object(&mut json, |sink| collection.write_fields(number, sales, sink));
                    // Writing to a string does not fail.
                    _ = writeln!(rows, "{number}\t{}", String::from_utf8_lossy(&json));
                }
                postgres::copy_text(collection.name(), &rows)
            }
        }
    }

    /// How long the answer takes, and how many rows it has.
    fn ask(&mut self, question: &Question) -> Result<(Duration, u64), Error> {
        let request = match self.system {
            System::Pando => self.command(&(question.command)(self.sales)),
            System::Postgres => postgres::statement(&(question.sql)(self.sales)),
        };
        let (rows, duration) = timed(|| Ok(self.link.exchange(&request)??))?;
        Ok((duration, rows))
    }
}

fn print_table(figures: &Figures, documents: u64) {
    println!(
        "\n{documents} documents\n{:42} {:>12} {:>12} {:>8} {:>12} {:>8}",
        "", "pando", "postgres", "faster", "10x", "growth"
    );
    let show = |value: Option<f64>| value.map_or("-".to_owned(), |value| readable(value, "s"));
    let ratio = |a: Option<f64>, b: Option<f64>| {
        a.zip(b).map_or(String::new(), |(a, b)| format!("{:.2}x", a / b.max(f64::MIN_POSITIVE)))
    };
    let mut misses = Vec::new();
    for question in QUESTIONS {
        let (ours, theirs) = (figures.of("pando", question.name), figures.of("postgres", question.name));
        let [small, large] = ["small", "large"].map(|size| figures.of("pando", &format!("{}_{size}", question.name)));
        println!(
            "{:42} {:>12} {:>12} {:>8} {:>12} {:>8}",
            question.label,
            show(ours),
            show(theirs),
            ratio(theirs, ours),
            show(large),
            ratio(large, small)
        );
        if ours.zip(theirs).is_some_and(|(ours, theirs)| ours > theirs) {
            misses.push(format!("{}: slower than PostgreSQL", question.name));
        }
        if small.zip(large).is_some_and(|(small, large)| large > GROWTH_MAX * small) {
            misses.push(format!("{}: grows by more than {GROWTH_MAX}", question.name));
        }
    }
    if let Some(seconds) = figures.of("pando", "filter_scan") {
        let rate = documents as f64 / seconds;
        println!("scan with a simple filter: {}", readable(rate, "documents/s"));
        if rate < SCANNED_PER_SECOND_MIN {
            misses.push(format!("filter_scan: below {}", readable(SCANNED_PER_SECOND_MIN, "documents/s")));
        }
    }
    println!("\ntargets (for information)");
    match misses.as_slice() {
        [] => println!("  pass  all"),
        misses => misses.iter().for_each(|miss| println!("  MISS  {miss}")),
    }
}
