//! `./bench scale`: what many connections and many collections cost our server.
//!
//! Connections that only said hello are counted in memory. Collections with three indexes and one document each are made one
//! after the other; the creation of the last ones and point reads in them are held against the first ones, when the server
//! was all but empty. Medians, since the machine has other work too.

use super::dialects::mongo::Mongo;
use super::hosts::{self, Host};
use super::link::Link;
use super::options::System;
use super::processes::Processes;
use crate::Error;
use crate::children::remove_folder;
use crate::measure::{middle, timed};
use crate::report::{Figures, SCALE_METRICS, SCALE_TARGETS, print_table, print_targets};
use clap::Args;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

const JSON_PATH: &str = "target/bench/scale.json";
const DATABASE: &str = "scale";
const REST: Duration = Duration::from_secs(1);
/// How many collections at the beginning and at the end are looked at closely.
const SAMPLE: u64 = 200;
const READS_PER_COLLECTION: usize = 10;
const LISTINGS: usize = 9;

/// `./bench scale`.
#[derive(Args)]
pub struct ScaleOptions {
    /// Connections at rest.
    #[arg(long, default_value_t = 5000)]
    pub connections: usize,
    /// Collections with three indexes each.
    #[arg(long, default_value_t = 10_000)]
    pub collections: u64,
    /// Where data lies meanwhile.
    #[arg(long, default_value = "target/bench/stores")]
    pub directory: PathBuf,
    /// Another binary than the one built beside this.
    #[arg(long)]
    pub binary: Option<PathBuf>,
}

/// Runs it, prints the table and writes the JSON.
pub fn run(options: &ScaleOptions) -> Result<(), Error> {
    raise_file_limit();
    let directory = options.directory.join("scale");
    let binary = options.binary.clone().map_or_else(hosts::pando::default_binary, Ok)?;
    let mut host = hosts::pando::start(&binary, &directory)?;
    let mut scale = Scale {
        link: host.first_link(|| System::Pando.dialect(0))?,
        speaker: Mongo::new(0),
        figures: Figures::default(),
    };
    scale.record("start", host.started.elapsed().as_secs_f64(), "s");
    std::thread::sleep(REST);
    let processes = Processes::of(host.process());
    scale.record("rest_memory", processes.memory_bytes()? as f64, "bytes");
    scale.connections(&host, options.connections)?;
    scale.collections(options.collections)?;
    scale.record("collections_memory", processes.memory_bytes()? as f64, "bytes");
    scale.record("stop", host.stop()?.as_secs_f64(), "s");
    remove_folder(&directory);
    print_table(&scale.figures, SCALE_METRICS);
    print_targets(&scale.figures, SCALE_TARGETS);
    scale.figures.write_json(Path::new(JSON_PATH))?;
    println!("\nfigures: {JSON_PATH}");
    Ok(())
}

/// A server under test and what was found out about it.
struct Scale {
    link: Link,
    speaker: Mongo,
    figures: Figures,
}

impl Scale {
    fn record(&mut self, metric: &str, value: f64, unit: &str) {
        self.figures.add("pando", metric, value, unit);
    }

    fn connections(&mut self, host: &Host, count: usize) -> Result<(), Error> {
        let processes = Processes::of(host.process());
        let open = |_| Link::open(host.address, Box::new(Mongo::new(0)));
        let links: Vec<Link> = (0..count).map(open).collect::<Result<_, Error>>()?;
        std::thread::sleep(REST);
        self.record("idle_connections", links.len() as f64, "connections");
        self.record("idle_connections_memory", processes.memory_bytes()? as f64, "bytes");
        Ok(())
    }

    fn collections(&mut self, count: u64) -> Result<(), Error> {
        let sample = SAMPLE.min(count / 2);
        // The very first is the server's first of all, with all that is made then.
        self.create(0)?;
        let first = 1..1 + sample;
        let last = count - sample..count;
        let created_first = self.creations(first.clone())?;
        let read_first = self.reads(first.clone())?;
        self.creations(first.end..last.start)?;
        let created_last = self.creations(last.clone())?;
        let read_last = self.reads(last)?;
        self.record("create_first", created_first, "us");
        self.record("create_last", created_last, "us");
        self.record("create_growth", created_last / created_first, "ratio");
        self.record("read_first", read_first, "us");
        self.record("read_last", read_last, "us");
        self.record("read_growth", read_last / read_first, "ratio");
        for (metric, names_only) in [("list_collections", false), ("list_names", true)] {
            let listings = (0..LISTINGS).map(|_| self.list(count, names_only)).collect::<Result<_, Error>>()?;
            self.record(metric, middle(listings) / 1e3, "ms");
        }
        Ok(())
    }

    fn creations(&mut self, numbers: Range<u64>) -> Result<f64, Error> {
        Ok(middle(numbers.map(|number| self.create(number)).collect::<Result<_, Error>>()?))
    }

    /// Makes a collection with three indexes, puts a document into it; how long the making took.
    fn create(&mut self, number: u64) -> Result<f64, Error> {
        let name = name(number);
        let create = self.speaker.command(DATABASE, |body| {
            body.append("createIndexes", name.as_str());
            body.array("indexes", |indexes| {
                for field in ["a", "b", "c"] {
                    indexes.document(|index| {
                        index.document("key", |key| key.append(field, 1));
                        index.append("name", field);
                    });
                }
            });
        });
        let micros = self.ask(&create, None)?;
        let insert = self.speaker.command(DATABASE, |body| {
            body.append("insert", name.as_str());
            body.array("documents", |documents| {
                documents.document(|document| {
                    ["_id", "a", "b", "c"].into_iter().for_each(|field| document.append(field, 1))
                });
            });
        });
        self.ask(&insert, Some(1))?;
        Ok(micros)
    }

    fn reads(&mut self, numbers: Range<u64>) -> Result<f64, Error> {
        let mut times = Vec::new();
        for number in numbers {
            let find = self.speaker.command(DATABASE, |body| {
                body.append("find", name(number).as_str());
                body.document("filter", |filter| filter.append("_id", 1));
                body.append("limit", 1);
                body.append("singleBatch", true);
            });
            for _ in 0..READS_PER_COLLECTION {
                times.push(self.ask(&find, Some(1))?);
            }
        }
        Ok(middle(times))
    }

    fn list(&mut self, count: u64, names_only: bool) -> Result<f64, Error> {
        let list = self.speaker.command(DATABASE, |body| {
            body.append("listCollections", 1);
            body.append("nameOnly", names_only);
            body.document("cursor", |cursor| cursor.append("batchSize", count as i32 + 1));
        });
        self.ask(&list, Some(count))
    }

    /// Sends a request and checks the count of its reply; microseconds.
    fn ask(&mut self, request: &[u8], expected: Option<u64>) -> Result<f64, Error> {
        let (outcome, duration) = timed(|| self.link.exchange(request))?;
        let found = outcome?;
        match expected {
            Some(expected) if found != expected => Err(format!("{found} instead of {expected} in a reply").into()),
            _ => Ok(duration.as_secs_f64() * 1e6),
        }
    }
}

fn name(number: u64) -> String {
    format!("collection{number:06}")
}

/// As many files as the machine lets us have; the server inherits that.
fn raise_file_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointers are to a local of the right type, for the duration of the calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}
