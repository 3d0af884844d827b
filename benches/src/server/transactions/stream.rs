//! A change stream beside inserts: how soon an event is there, and what a reader that lags costs the writers.
//!
//! Writers and readers are threads of one process and have one clock: the time of each insert is kept under its number, which is also the
//! key of the document, and so in its event.

use crate::Error;
use crate::measure::Latencies;
use crate::server::dialects::Dialect;
use crate::server::dialects::mongo::{DATABASE, Mongo};
use crate::server::link::Link;
use crate::server::talk::{Next, Taken, Talk};
use pando_doc::{DocBuilder, Value};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const NOTE: &str =
    "a note that nobody reads, as long as notes are that somebody has written in a hurry at the end of a day";
/// How long events may stay away after the last insert.
const PATIENCE: Duration = Duration::from_secs(20);
/// A reader that lags takes so many events ...
const LAGGING_BATCH: i32 = 100;
/// ... and then does something else for so long: 2,000 events a second at most, and far less than is written.
const LAGGING_PAUSE: Duration = Duration::from_millis(50);

/// The inserts of a phase: their numbers and their times.
pub struct Inserted {
    began: Instant,
    next: AtomicU64,
    /// Nanoseconds after the beginning, by number.
    sent: Vec<AtomicU64>,
}

impl Inserted {
    /// With times for so many.
    pub fn with_times(count: u64) -> Arc<Inserted> {
        let sent = (0..count).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Inserted { began: Instant::now(), next: AtomicU64::new(0), sent })
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.next.load(Ordering::SeqCst)
    }

    /// The number of the next, which is sent now.
    fn send(&self) -> u64 {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        if let Some(time) = self.sent.get(number as usize) {
            time.store(self.nanoseconds(), Ordering::Release);
        }
        number
    }

    fn nanoseconds(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// How long ago it was sent, if that is known and was not before `from`.
    fn age(&self, number: u64, from: Instant) -> Option<Duration> {
        let sent = self.sent.get(number as usize)?.load(Ordering::Acquire);
        let is_counted = self.began + Duration::from_nanos(sent) >= from;
        is_counted.then(|| Duration::from_nanos(self.nanoseconds().saturating_sub(sent)))
    }
}

/// A connection that inserts one document in a turn.
pub struct Inserts {
    speaker: Mongo,
    collection: &'static str,
    inserted: Arc<Inserted>,
}

impl Inserts {
    /// Into this collection.
    pub fn new(collection: &'static str, inserted: &Arc<Inserted>) -> Inserts {
        Inserts { speaker: Mongo::new(0), collection, inserted: Arc::clone(inserted) }
    }
}

impl Talk for Inserts {
    fn begin(&mut self, out: &mut Vec<u8>) {
        let number = self.inserted.send();
        self.speaker.insert_into(out, self.collection, number..number + 1, |number, document| {
            document.append("_id", number as i64);
            document.append("note", NOTE);
        });
    }

    fn take(&mut self, arrived: &[u8], _: &mut Vec<u8>) -> Result<Option<Taken>, Error> {
        let Some(answer) = self.speaker.reply(arrived)? else { return Ok(None) };
        let outcome = match answer.outcome {
            Ok(1) => Ok(()),
            Ok(documents) => Err(format!("{documents} documents where 1 was expected")),
            Err(error) => Err(error),
        };
        Ok(Some(Taken { size_bytes: answer.size_bytes, next: Next::Over(outcome) }))
    }
}

/// A change stream of one collection.
pub struct Reader {
    link: Link,
    speaker: Mongo,
    collection: &'static str,
    cursor: i64,
}

impl Reader {
    /// Opens it, from here on or from a time on.
    pub fn open(address: SocketAddr, collection: &'static str, from: Option<Value<'_>>) -> Result<Reader, Error> {
        let mut link = Link::open(address, Box::new(Mongo::new(0)))?;
        link.set_patience(PATIENCE)?;
        let mut speaker = Mongo::new(0);
        let request = speaker.command(DATABASE, |body| {
            body.append("aggregate", collection);
            body.array("pipeline", |stages| {
                stages.document(|stage| {
                    stage.document("$changeStream", |stream| stream.append_some("startAtOperationTime", from));
                });
            });
            body.document("cursor", |cursor| cursor.append("batchSize", 0));
        });
        link.exchange(&request)??;
        let cursor = match Mongo::body(link.last_answer()).and_then(|body| body.get("cursor")) {
            Some(Value::Document(cursor)) => cursor.get("id"),
            _ => None,
        };
        let Some(Value::Int64(cursor)) = cursor else { return Err("a change stream without a cursor".into()) };
        Ok(Reader { link, speaker, collection, cursor })
    }

    /// The next events, for which the server waits a second: `each` is told the keys. How many there were.
    fn next(&mut self, batch_size: Option<i32>, mut each: impl FnMut(u64)) -> Result<u64, Error> {
        let (cursor, collection) = (self.cursor, self.collection);
        let request = self.speaker.command(DATABASE, |body: &mut DocBuilder| {
            body.append("getMore", cursor);
            body.append("collection", collection);
            body.append_some("batchSize", batch_size);
        });
        let events = self.link.exchange(&request)??;
        let Some(Value::Document(cursor)) = Mongo::body(self.link.last_answer()).and_then(|body| body.get("cursor"))
        else {
            return Err("a batch without a cursor".into());
        };
        if let Some(Value::Array(batch)) = cursor.get("nextBatch") {
            for event in batch.values() {
                let Value::Document(event) = event else { return Err("an event that is no document".into()) };
                let Some(Value::Document(key)) = event.get("documentKey") else { continue };
                if let Some(Value::Int64(number)) = key.get("_id") {
                    each(u64::try_from(number)?);
                }
            }
        }
        Ok(events)
    }

    /// Reads everything until the inserts are over and each had its event; how long after its insert was sent each came, of those that
    /// were sent from this time on.
    pub fn read_all(&mut self, inserted: &Inserted, from: Instant, is_over: &AtomicBool) -> Result<Latencies, Error> {
        let mut latencies = Latencies::new();
        let (mut read, mut last) = (0, Instant::now());
        loop {
            let ended = is_over.load(Ordering::SeqCst);
            if ended && read >= inserted.count() {
                return Ok(latencies);
            }
            let events = self.next(None, |number| {
                if let Some(age) = inserted.age(number, from) {
                    latencies.add(age);
                }
            })?;
            read += events;
            if events > 0 {
                last = Instant::now();
            } else if ended && last.elapsed() > PATIENCE {
                return Err(format!("{read} events of {} inserts", inserted.count()).into());
            }
        }
    }

    /// Reads slowly until it is told to end; how many events it read.
    pub fn lag(&mut self, is_over: &AtomicBool) -> Result<u64, Error> {
        let mut read = 0;
        while !is_over.load(Ordering::SeqCst) {
            read += self.next(Some(LAGGING_BATCH), |_| ())?;
            std::thread::sleep(LAGGING_PAUSE);
        }
        Ok(read)
    }
}

/// The server's time now, for a stream that begins here.
pub fn operation_time(link: &mut Link) -> Result<Value<'static>, Error> {
    let request = Mongo::new(0).command("admin", |body| body.append("ping", 1));
    link.exchange(&request)??;
    match Mongo::body(link.last_answer()).and_then(|body| body.get("operationTime")) {
        Some(Value::Timestamp(time)) => Ok(Value::Timestamp(time)),
        _ => Err("the server tells no operationTime".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_known_of_what_was_sent_in_time() {
        let inserted = Inserted::with_times(2);
        let from = Instant::now();
        assert_eq!((inserted.send(), inserted.send(), inserted.send()), (0, 1, 2));
        assert_eq!(inserted.count(), 3);
        assert!(inserted.age(0, from).is_some() && inserted.age(1, from).is_some());
        assert_eq!(inserted.age(2, from), None, "no time is kept");
        assert_eq!(inserted.age(0, Instant::now() + Duration::from_secs(1)), None, "sent before");
    }
}
