//! Random gets and full scans of the documents, on one thread.
//!
//! A get takes a snapshot of its own, as a find by `_id` does; a second figure shares one snapshot among a hundred gets.

use super::Plan;
use crate::Error;
use crate::measure::{median, per_second, timed};
use crate::peers::{Direction, Peer, Table};
use crate::report::Recorder;
use crate::workload::{Random, document_key, document_number};
use std::time::Duration;

/// Gets that share a snapshot in the second figure.
const SHARING_GETS: u64 = 100;
const SCANS: usize = 5;
/// A cache that is too small can be very slow: then this is long enough.
const UNCACHED_TIME_MAX: Duration = Duration::from_secs(6);
const UNCACHED_BATCH: u64 = 10_000;

/// Brings every block into the cache by gets, because a scan need not fill it. Every document is read: where a newer run hides most of a
/// block's documents, a few of them would not show whether the block is needed.
pub fn warm(peer: &dyn Peer, plan: &Plan) -> Result<(), Error> {
    let mut reader = peer.reader()?;
    reader.refresh()?;
    for number in 0..plan.documents {
        reader.get(Table::Documents, &document_key(number), &mut |_| ())?;
    }
    Ok(())
}

/// Everything is in the system's cache.
pub fn cached(peer: &dyn Peer, plan: &Plan, recorder: &Recorder, suffix: &str) -> Result<(), Error> {
    let duration = uniform_gets(peer, plan.documents, plan.gets, 1)?;
    recorder.record(&format!("get_cached{suffix}"), per_second(plan.gets, duration));
    let duration = uniform_gets(peer, plan.documents, plan.gets, SHARING_GETS)?;
    recorder.record(&format!("get_cached_shared{suffix}"), per_second(plan.gets, duration));
    Ok(())
}

/// The system's cache holds a twentieth; the files stay in the operating system's page cache.
pub fn uncached(peer: &dyn Peer, plan: &Plan, recorder: &Recorder, suffix: &str) -> Result<(), Error> {
    let mut random = Random::stream(0x6e7_0000, 0);
    let (mut gets, mut total) = (0, Duration::ZERO);
    // The first batch fills the cache.
    timed_gets(peer, UNCACHED_BATCH, 1, || random.below(plan.documents))?;
    while gets < plan.gets / 2 && total < UNCACHED_TIME_MAX {
        total += timed_gets(peer, UNCACHED_BATCH, 1, || random.below(plan.documents))?;
        gets += UNCACHED_BATCH;
    }
    recorder.record(&format!("get_uncached{suffix}"), per_second(gets, total));
    Ok(())
}

fn uniform_gets(peer: &dyn Peer, documents: u64, count: u64, sharing: u64) -> Result<Duration, Error> {
    let mut random = Random::stream(0x6e7_0000, sharing);
    timed_gets(peer, count, sharing, || random.below(documents))
}

/// Times gets of documents, each of which must be there.
pub fn timed_gets(
    peer: &dyn Peer,
    count: u64,
    sharing: u64,
    mut choose: impl FnMut() -> u64,
) -> Result<Duration, Error> {
    let mut reader = peer.reader()?;
    let mut right = 0;
    let ((), duration) = timed(|| {
        for done in 0..count {
            if done % sharing == 0 {
                reader.refresh()?;
            }
            let number = choose();
            let mut see = |document: &[u8]| right += u64::from(document_number(document) == Some(number));
            reader.get(Table::Documents, &document_key(number), &mut see)?;
        }
        Ok(())
    })?;
    if right != count {
        return Err(format!("{} of {count} gets gave the wrong document or none", count - right).into());
    }
    Ok(duration)
}

/// Both ways, the median of several.
pub fn scans(peer: &dyn Peer, plan: &Plan, recorder: &Recorder, suffix: &str) -> Result<(), Error> {
    for (direction, metric) in [(Direction::Forward, "scan"), (Direction::Reverse, "scan_reverse")] {
        let duration = scan_time(peer, plan.documents, direction, SCANS)?;
        recorder.record(&format!("{metric}{suffix}"), per_second(plan.documents, duration));
    }
    Ok(())
}

/// The median time of a full scan, which must see every document in order.
pub fn scan_time(peer: &dyn Peer, documents: u64, direction: Direction, scans: usize) -> Result<Duration, Error> {
    let mut durations = Vec::new();
    for _ in 0..scans {
        let mut reader = peer.reader()?;
        let mut in_order = 0;
        let (count, duration) = timed(|| {
            reader.refresh()?;
            reader.scan(Table::Documents, direction, &mut |_, document| {
                let expected = match direction {
                    Direction::Forward => in_order,
                    Direction::Reverse => documents - 1 - in_order,
                };
                in_order += u64::from(document_number(document) == Some(expected));
            })
        })?;
        if (count, in_order) != (documents, documents) {
            return Err(format!("a scan gave {count} documents, {in_order} of {documents} in order").into());
        }
        durations.push(duration);
    }
    Ok(median(durations))
}

/// How many entries the index has.
pub fn count_index(peer: &dyn Peer) -> Result<u64, Error> {
    let mut reader = peer.reader()?;
    reader.refresh()?;
    reader.scan(Table::Index, Direction::Forward, &mut |_, _| ())
}
