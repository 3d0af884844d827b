//! A steady load beside an index build.
//!
//! Several connections, each with a thread and a timetable: so many operations a second in all, whatever the server does. A latency runs from
//! the time in the table, so that a server that stands still pays for every operation that waits meanwhile.

use super::data::{NAME, write_fields};
use crate::Error;
use crate::measure::Latencies;
use crate::server::data::Json;
use crate::server::dialects::{mongo::Mongo, postgres};
use crate::server::link::Link;
use crate::server::options::System;
use crate::workload::Random;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How many connections share the load.
const CONNECTIONS: u64 = 8;
const SALT: u64 = 0x10ad_0000;

/// A load that is running.
pub struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<Latencies, Error>>>,
}

/// What was measured of a load.
pub struct Measured {
    /// Operations that were answered.
    pub count: u64,
    /// The 99th percentile.
    pub p99_us: f64,
}

impl Load {
    /// Begins; `next` is the number of the next thing to be inserted.
    pub fn start(
        system: System,
        address: SocketAddr,
        things: u64,
        per_second: u64,
        next: &Arc<AtomicU64>,
    ) -> Result<Load, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for connection in 0..CONNECTIONS {
            let mut worker = Worker {
                link: Link::open(address, system.dialect(0))?,
                speaker: Mongo::new(0),
                system,
                things,
                random: Random::stream(SALT, connection),
                next: Arc::clone(next),
            };
            let stop = Arc::clone(&stop);
            let pause = Duration::from_secs_f64(CONNECTIONS as f64 / per_second.max(1) as f64);
            threads.push(std::thread::spawn(move || worker.run(&stop, pause)));
        }
        Ok(Load { stop, threads })
    }

    /// Ends it.
    pub fn stop(self) -> Result<Measured, Error> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Latencies::new();
        for thread in self.threads {
            all.merge(&thread.join().map_err(|_| "a connection of the load has panicked")??);
        }
        Ok(Measured { count: all.count(), p99_us: all.percentile_us(0.99) })
    }
}

struct Worker {
    link: Link,
    speaker: Mongo,
    system: System,
    things: u64,
    random: Random,
    next: Arc<AtomicU64>,
}

impl Worker {
    fn run(&mut self, stop: &AtomicBool, pause: Duration) -> Result<Latencies, Error> {
        let mut latencies = Latencies::new();
        let mut due = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            due += pause;
            let request = self.request();
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            self.link.exchange(&request)??;
            latencies.add(due.elapsed());
        }
        Ok(latencies)
    }

    /// Half of the operations find a thing, three in ten change one, two in ten insert one.
    fn request(&mut self) -> Vec<u8> {
        let number = self.random.below(self.things);
        match self.random.below(10) {
            0..=4 => self.find(number),
            5..=7 => self.update(number),
            _ => {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                let things = self.things;
                match self.system {
                    System::Pando => self.speaker.insert_batch(NAME, number..number + 1, |number, sink| {
                        write_fields(number, things, 0, sink);
                    }),
                    System::Postgres => postgres::statement(&format!(
                        "INSERT INTO {NAME} VALUES ({number}, '{}')",
                        self.json(number, 0)
                    )),
                }
            }
        }
    }

    fn json(&self, number: u64, version: u64) -> String {
        let mut json = Vec::new();
        Json::object(&mut json, |sink| write_fields(number, self.things, version, sink));
        String::from_utf8_lossy(&json).into_owned()
    }

    fn find(&mut self, number: u64) -> Vec<u8> {
        match self.system {
            System::Postgres => postgres::statement(&format!("SELECT id, doc FROM {NAME} WHERE id = {number}")),
            System::Pando => self.speaker.command("bench", |body| {
                body.append("find", NAME);
                body.document("filter", |filter| filter.append("_id", number as i64));
                body.append("limit", 1);
                body.append("singleBatch", true);
            }),
        }
    }

    fn update(&mut self, number: u64) -> Vec<u8> {
        let amount = self.random.below(1_000_000);
        match self.system {
            System::Postgres => postgres::statement(&format!(
                "UPDATE {NAME} SET doc = doc || '{{\"amount\":{amount}}}' WHERE id = {number}"
            )),
            System::Pando => self.speaker.command("bench", |body| {
                body.append("update", NAME);
                body.array("updates", |updates| {
                    updates.document(|update| {
                        update.document("q", |query| query.append("_id", number as i64));
                        update.document("u", |change| {
                            change.document("$set", |fields| fields.append("amount", amount as i64));
                        });
                    });
                });
                body.document("writeConcern", |concern| {
                    concern.append("w", "majority");
                    concern.append("j", true);
                });
            }),
        }
    }
}
