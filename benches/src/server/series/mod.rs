//! `./bench series`: points of many sensors in a time-series collection, in a plain collection, and in PostgreSQL.
//!
//! One connection inserts batches of 1,000 points in the order of their time, each durable before the next is sent. Then the size is taken
//! after a checkpoint, and two questions are asked: the last point of each sensor, and the average of each sensor and hour. The plain
//! collection has the index on `_id` that every collection has; the time-series collection has what it gets when it is made; PostgreSQL has
//! ordinary columns and an index on sensor and time.

mod data;

use super::dialects::{Chore, mongo::Mongo, postgres};
use super::hosts::Host;
use super::link::Link;
use super::options::{HostOptions, System};
use super::processes::{Processes, Usage};
use crate::Error;
use crate::measure::{median, per_second, timed};
use crate::report::{Figures, readable};
use clap::Args;
use data::{Points, batches, insert_statement};
use pando_doc::{Doc, doc};
use std::path::Path;
use std::time::{Duration, Instant};

const JSON_PATH: &str = "target/bench/series.json";
const DATABASE: &str = "bench";
const BATCH_POINTS: u64 = 1000;
/// History ends by the second, with the next write.
const FORGET_PAUSE: Duration = Duration::from_millis(1100);
/// What is asked of the inserts beside PostgreSQL's.
const INSERT_FACTOR: f64 = 1.5;
/// How much smaller the series must be than the plain collection.
const SIZE_FACTOR: f64 = 5.0;
/// How much faster its questions.
const QUESTION_FACTOR: f64 = 3.0;

/// `./bench series`.
#[derive(Args)]
pub struct SeriesOptions {
    /// 100,000 points, to see that everything runs.
    #[arg(long)]
    pub quick: bool,
    /// How many points; 10,000,000 unless told.
    #[arg(long)]
    pub points: Option<u64>,
    /// How many sensors.
    #[arg(long, default_value_t = 100)]
    pub sensors: u64,
    /// How often each question is asked.
    #[arg(long, default_value_t = 3)]
    pub repeats: usize,
    /// The servers.
    #[command(flatten)]
    pub hosts: HostOptions,
}

impl SeriesOptions {
    fn points(&self) -> u64 {
        self.points.unwrap_or(if self.quick { 100_000 } else { 10_000_000 }).max(1)
    }
}

/// Where the points go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    Postgres,
    Plain,
    Series,
}

impl Store {
    fn name(self) -> &'static str {
        match self {
            Store::Postgres => "postgres",
            Store::Plain => "plain",
            Store::Series => "series",
        }
    }

    fn system(self) -> System {
        match self {
            Store::Postgres => System::Postgres,
            Store::Plain | Store::Series => System::Pando,
        }
    }
}

const STORES: [Store; 3] = [Store::Postgres, Store::Plain, Store::Series];

/// A question: its name, what is asked of Pando and of PostgreSQL.
struct Question {
    name: &'static str,
    label: &'static str,
    pipeline: fn() -> Vec<Doc>,
    sql: &'static str,
}

const QUESTIONS: &[Question] = &[
    Question {
        name: "last_point",
        label: "last point of each sensor",
        pipeline: || {
            vec![
                doc! { "$sort": { "sensor": 1, "time": -1 } },
                doc! { "$group": { "_id": "$sensor", "time": { "$first": "$time" },
                "temperature": { "$first": "$temperature" }, "humidity": { "$first": "$humidity" } } },
            ]
        },
        sql: "SELECT DISTINCT ON (sensor) sensor, time, temperature, humidity FROM points ORDER BY sensor, time DESC",
    },
    Question {
        name: "hourly",
        label: "hourly averages of each sensor",
        pipeline: || {
            vec![doc! { "$group": {
                "_id": { "sensor": "$sensor", "hour": { "$dateTrunc": { "date": "$time", "unit": "hour" } } },
                "average": { "$avg": "$temperature" },
            } }]
        },
        sql: "SELECT sensor, date_trunc('hour', time), avg(temperature) FROM points GROUP BY 1, 2",
    },
];

/// Runs it, prints the table and writes the JSON.
pub fn run(options: &SeriesOptions) -> Result<(), Error> {
    let mut figures = Figures::default();
    println!("{} points of {} sensors, one second apart", options.points(), options.sensors);
    for store in STORES.into_iter().filter(|store| options.hosts.has(store.system())) {
        let folder = format!("series-{}", store.name());
        options.hosts.with_host(store.system(), &folder, |host| run_store(options, store, host, &mut figures))?;
    }
    print_table(&figures);
    figures.write_json(Path::new(JSON_PATH))?;
    println!("\nfigures: {JSON_PATH}");
    Ok(())
}

fn run_store(options: &SeriesOptions, store: Store, host: &mut Host, figures: &mut Figures) -> Result<(), Error> {
    let mut client = Client { link: host.first_link(|| store.system().dialect(0))?, speaker: Mongo::new(0), store };
    let processes = Processes::of(host.process());
    client.create()?;
    let before = processes.usage()?;
    let spent = client.fill(options)?;
    let Usage { cpu_seconds, written_bytes, .. } = processes.usage()? - before;
    let points = options.points() as f64;
    let rate = per_second(options.points(), spent);
    eprintln!("{}: {} inserted", store.name(), readable(rate, "points/s"));
    let mut add = |metric: &str, value: f64, unit: &str| figures.add(store.name(), metric, value, unit);
    add("insert", rate, "points/s");
    add("insert_cpu", cpu_seconds * 1e6 / points, "us");
    add("insert_written", written_bytes as f64 / points, "B");
    add("memory", processes.memory_bytes()? as f64, "bytes");
    client.settle()?;
    if let Some(size_bytes) = client.size_bytes()? {
        add("size", size_bytes, "bytes");
    }
    for question in QUESTIONS {
        let (seconds, rows) = client.ask(question, options.repeats.max(1))?;
        eprintln!("  {:12} {:>10.1} ms, {rows} rows", question.name, seconds * 1e3);
        add(question.name, seconds, "s");
        add(&format!("{}_rows", question.name), rows as f64, "rows");
    }
    Ok(())
}

/// A connection to a server under test.
struct Client {
    link: Link,
    speaker: Mongo,
    store: Store,
}

impl Client {
    fn command(&mut self, database: &str, command: &Doc) -> Vec<u8> {
        self.speaker.command(database, |body| {
            command.view().elements().for_each(|field| body.append(field.name, field.value));
        })
    }

    fn run(&mut self, request: Vec<u8>) -> Result<(), Error> {
        self.link.run(vec![Chore::new(request)])
    }

    fn create(&mut self) -> Result<(), Error> {
        let requests = match self.store {
            Store::Postgres => vec![
                postgres::statement(
                    "CREATE TABLE points (time timestamptz NOT NULL, sensor int NOT NULL, temperature float8, \
                     humidity float8, pressure float8)",
                ),
                postgres::statement("CREATE INDEX ON points (sensor, time)"),
            ],
            Store::Plain => vec![self.command(DATABASE, &doc! { "create": "plain" })],
            Store::Series => {
                let options = doc! { "timeField": "time", "metaField": "sensor", "granularity": "seconds" };
                vec![self.command(DATABASE, &doc! { "create": "series", "timeseries": options })]
            }
        };
        requests.into_iter().try_for_each(|request| self.run(request))
    }

    /// Inserts everything. Only the time from request to answer counts: making the points is nobody's cost.
    fn fill(&mut self, options: &SeriesOptions) -> Result<Duration, Error> {
        let mut points = Points::new(options.sensors);
        let mut spent = Duration::ZERO;
        for numbers in batches(options.points(), BATCH_POINTS) {
            let (first, count) = (numbers.start, numbers.end - numbers.start);
            let batch = points.take(count);
            let request = match self.store {
                Store::Postgres => postgres::statement(&insert_statement(&batch)),
                Store::Plain | Store::Series => {
                    self.speaker.insert_documents(self.store.name(), numbers, |number, document| {
                        if let Some(point) = batch.get((number - first) as usize) {
                            point.write(document);
                        }
                    })
                }
            };
            let start = Instant::now();
            let inserted = self.link.exchange(&request)??;
            spent += start.elapsed();
            if inserted != count {
                return Err(format!("{inserted} of {count} points were inserted").into());
            }
        }
        Ok(spent)
    }

    /// A checkpoint, and fresh statistics.
    fn settle(&mut self) -> Result<(), Error> {
        match self.store {
            Store::Postgres => {
                for statement in ["VACUUM ANALYZE", "CHECKPOINT", "SET max_parallel_workers_per_gather = 0"] {
                    self.run(postgres::statement(statement))?;
                }
                Ok(())
            }
            Store::Plain | Store::Series => {
                if self.store == Store::Series {
                    self.forget_history()?;
                }
                let request = self.command("admin", &doc! { "fsync": 1 });
                self.run(request)
            }
        }
    }

    /// Earlier versions of buckets are kept for reads in the past, some minutes long: they are no part of the collection's size. Documents
    /// that were only inserted have none.
    fn forget_history(&mut self) -> Result<(), Error> {
        let forget = doc! { "setParameter": 1, "minSnapshotHistoryWindowInSeconds": 0 };
        let request = self.command("admin", &forget);
        self.run(request)?;
        for number in 0..3 {
            std::thread::sleep(FORGET_PAUSE);
            let request = self.command(DATABASE, &doc! { "insert": "other", "documents": [{ "_id": (number) }] });
            self.run(request)?;
        }
        Ok(())
    }

    /// What the documents take on disk, indexes apart.
    fn size_bytes(&mut self) -> Result<Option<f64>, Error> {
        if self.store == Store::Postgres {
            return Ok(None);
        }
        let request = self.command(DATABASE, &doc! { "collStats": (self.store.name()) });
        self.link.exchange(&request)??;
        let body = Mongo::body(self.link.last_answer()).ok_or("collStats has no reply")?;
        let size = body.get("storageSize").and_then(|size| size.to_double()).ok_or("collStats has no storageSize")?;
        Ok(Some(size))
    }

    /// How long the answer takes, and how many rows it has.
    fn ask(&mut self, question: &Question, repeats: usize) -> Result<(f64, u64), Error> {
        let request = match self.store {
            Store::Postgres => postgres::statement(question.sql),
            Store::Plain | Store::Series => {
                let mut pipeline = pando_doc::ArrayBuilder::new();
                (question.pipeline)().iter().for_each(|stage| pipeline.push(stage));
                let pipeline = pipeline.finish();
                let command = doc! { "aggregate": (self.store.name()), "pipeline": pipeline,
                "cursor": { "batchSize": 100_000 } };
                self.command(DATABASE, &command)
            }
        };
        let rows = self.link.exchange(&request)??;
        let mut durations = Vec::new();
        for _ in 0..repeats {
            let ((), duration) = timed(|| {
                self.link.exchange(&request)??;
                Ok(())
            })?;
            durations.push(duration);
        }
        Ok((median(durations).as_secs_f64(), rows))
    }
}

fn print_table(figures: &Figures) {
    println!("\n{:34} {:>14} {:>14} {:>14}", "", "series", "plain", "postgres");
    let row = |label: &str, metric: &str, unit: &str| {
        let show = |store: &str| figures.of(store, metric).map_or("-".to_owned(), |value| readable(value, unit));
        println!("{label:34} {:>14} {:>14} {:>14}", show("series"), show("plain"), show("postgres"));
    };
    row("insert, batches of 1,000", "insert", "points/s");
    row("  server CPU a point", "insert_cpu", "us");
    row("  written for a point", "insert_written", "B");
    row("  memory after it", "memory", "bytes");
    row("size of the documents", "size", "bytes");
    QUESTIONS.iter().for_each(|question| row(question.label, question.name, "s"));
    println!("\ntargets (for information)");
    let mark = |words: String, ratio: Option<f64>, wanted: f64| {
        let Some(ratio) = ratio else { return };
        println!("  {}  {words}: {ratio:.2}x of {wanted}x", if ratio >= wanted { "pass" } else { "MISS" });
    };
    let ratio = |more: Option<f64>, less: Option<f64>| Some(more? / less?.max(f64::MIN_POSITIVE));
    let of = |store: &str, metric: &str| figures.of(store, metric);
    let insert = ratio(of("series", "insert"), of("postgres", "insert"));
    mark("inserts beside PostgreSQL".to_owned(), insert, INSERT_FACTOR);
    mark("smaller than the plain collection".to_owned(), ratio(of("plain", "size"), of("series", "size")), SIZE_FACTOR);
    for question in QUESTIONS {
        let faster = ratio(of("plain", question.name), of("series", question.name));
        mark(format!("{} beside the plain collection", question.label), faster, QUESTION_FACTOR);
    }
}
