//! Who asks meanwhile: a monitor, a pool, and somebody who wants a document.

use super::{DATABASE, Service};
use crate::Error;
use crate::measure::Latencies;
use crate::server::dialects::{mongo::Mongo, postgres};
use crate::server::link::Link;
use crate::server::options::System;
use crate::workload::Random;
use pando_doc::doc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(2);
const SEED: u64 = 0xfa12;

/// One of them, with a connection of its own.
#[derive(Clone, Copy)]
pub(super) enum Probe {
    /// A monitor's connection never asks for anything else.
    Hello,
    /// On a connection that has also asked for documents.
    Ping,
    /// A document by its key.
    Find,
}

/// All of them.
pub(super) const PROBES: [Probe; 3] = [Probe::Hello, Probe::Ping, Probe::Find];

/// How long one has waited.
pub(super) struct Probed {
    latencies: Latencies,
    most: Duration,
}

impl Probed {
    /// The median, the 99th of a hundred and the greatest, in milliseconds.
    pub(super) fn ms(&self) -> [f64; 3] {
        let share = |share| self.latencies.percentile_us(share) / 1e3;
        [share(0.5), share(0.99), self.most.as_secs_f64() * 1e3]
    }
}

impl Probe {
    /// In figures.
    pub(super) fn name(self) -> &'static str {
        match self {
            Probe::Hello => "hello",
            Probe::Ping => "ping",
            Probe::Find => "find",
        }
    }

    /// In the table.
    pub(super) fn label(self, system: System) -> &'static str {
        match (self, system) {
            (Probe::Hello, System::Pando) => "hello",
            (Probe::Ping, System::Pando) => "ping",
            (Probe::Find, System::Pando) => "find by _id",
            (Probe::Hello | Probe::Ping, System::Postgres) => "SELECT 1",
            (Probe::Find, System::Postgres) => "SELECT by key",
        }
    }

    /// Asks until it is told to end; once at least.
    pub(super) fn run(self, service: &Service, goes_on: &AtomicBool) -> Result<Probed, Error> {
        let mut link = Link::open(service.address, service.system.dialect(0))?;
        let (mut mongo, mut random) = (Mongo::new(0), Random::stream(SEED, 0));
        let mut probed = Probed { latencies: Latencies::new(), most: Duration::ZERO };
        if matches!(self, Probe::Ping) {
            link.exchange(&Probe::Find.request(service, &mut mongo, &mut random))??;
        }
        loop {
            let request = self.request(service, &mut mongo, &mut random);
            let began = Instant::now();
            // Who kills the load may hit this as well, which is an answer, too.
            drop(link.exchange(&request)?);
            let waited = began.elapsed();
            probed.latencies.add(waited);
            probed.most = probed.most.max(waited);
            if !goes_on.load(Ordering::Relaxed) {
                return Ok(probed);
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn request(self, service: &Service, mongo: &mut Mongo, random: &mut Random) -> Vec<u8> {
        let key = random.below(service.documents);
        let text = match (self, service.system) {
            (Probe::Hello, System::Pando) => return mongo.command("admin", |body| body.append("hello", 1)),
            (Probe::Ping, System::Pando) => return mongo.command("admin", |body| body.append("ping", 1)),
            (Probe::Find, System::Pando) => {
                let find =
                    doc! { "find": "numbers", "filter": { "_id": (key as i64) }, "limit": 1, "singleBatch": true };
                return mongo.command(DATABASE, |body| body.append_all(find.view()));
            }
            (Probe::Hello | Probe::Ping, System::Postgres) => "SELECT 1".to_owned(),
            (Probe::Find, System::Postgres) => format!("SELECT * FROM numbers WHERE id = {key}"),
        };
        postgres::statement(&text)
    }
}
