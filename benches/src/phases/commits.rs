//! Rows that were just written, and many small transactions.

use super::{Plan, checkpoints, reads};
use crate::Error;
use crate::measure::{Latencies, per_second, sync_count};
use crate::peers::{Change, Peer, Table, Wait};
use crate::report::Recorder;
use crate::workload::{Random, Workload};
use std::time::{Duration, Instant};

const HOT_ROWS: u64 = 1000;
const SHARING_GETS: u64 = 100;
const BUSY_WRITERS: u64 = 2;
const WAITING_WRITERS: u64 = 64;
/// A small transaction puts one value of this length.
const SMALL_VALUE_BYTES: usize = 100;
/// The keys of small transactions lie far after the documents, a range for each thread.
const SMALL_KEYS_FROM: u64 = 1 << 40;
const SMALL_KEYS_PER_THREAD: u64 = 1 << 20;
/// How many commits go by between two looks at the clock.
const COMMITS_PER_LOOK: u64 = 32;

/// Gets of a thousand rows that were written since the last checkpoint: from our overlay, from a peer's memtable or page.
pub fn hot_rows(peer: &dyn Peer, workload: &mut Workload, plan: &Plan, recorder: &Recorder) -> Result<(), Error> {
    let rewrites = workload.rewrites(HOT_ROWS);
    checkpoints::write(peer, &rewrites)?;
    let numbers: Vec<u64> = rewrites.iter().map(|rewrite| u64::from_be_bytes(rewrite.key)).collect();
    for (sharing, metric) in [(1, "hot_get"), (SHARING_GETS, "hot_get_shared")] {
        let mut random = Random::stream(0x407_0000, sharing);
        let choose = || numbers[random.below(numbers.len() as u64) as usize];
        let duration = reads::timed_gets(peer, plan.gets, sharing, choose)?;
        recorder.record(metric, per_second(plan.gets, duration));
    }
    Ok(())
}

/// Commits of one small value on two threads, none waiting for the disk.
pub fn small_transactions(peer: &dyn Peer, plan: &Plan, recorder: &Recorder) -> Result<(), Error> {
    peer.relax(true)?;
    let outcome = commit_for(peer, BUSY_WRITERS, plan.commit_time, Wait::No)?;
    peer.relax(false)?;
    recorder.record("small_commits", per_second(outcome.commits, outcome.duration));
    peer.flush_log()?;
    peer.checkpoint()?;
    peer.settle()?;
    Ok(())
}

/// Commits of one small value on many threads, each waiting until its own is durable.
pub fn waiting_committers(peer: &dyn Peer, plan: &Plan, recorder: &Recorder) -> Result<(), Error> {
    let syncs_before = sync_count();
    let outcome = commit_for(peer, WAITING_WRITERS, plan.commit_time, Wait::ForDisk)?;
    let syncs = sync_count() - syncs_before;
    if syncs == 0 {
        return Err(Error::from("commits were acknowledged as durable, and nothing waited for the disk"));
    }
    recorder.record("waiting_commits", per_second(outcome.commits, outcome.duration));
    recorder.record("waiting_commits_per_sync", outcome.commits as f64 / syncs as f64);
    recorder.record("waiting_commit_p99", outcome.latencies.percentile_us(0.99));
    Ok(())
}

struct Outcome {
    commits: u64,
    duration: Duration,
    latencies: Latencies,
}

fn commit_for(peer: &dyn Peer, threads: u64, time: Duration, wait: Wait) -> Result<Outcome, Error> {
    let start = Instant::now();
    let deadline = start + time;
    std::thread::scope(|scope| {
        let spawn = |thread| scope.spawn(move || commit_until(peer, thread, deadline, wait));
        let handles: Vec<_> = (0..threads).map(spawn).collect();
        let mut latencies = Latencies::new();
        let mut commits = 0;
        for handle in handles {
            let outcome = handle.join().map_err(|_| "a writing thread panicked")??;
            commits += outcome.0;
            latencies.merge(&outcome.1);
        }
        Ok(Outcome { commits, duration: start.elapsed(), latencies })
    })
}

fn commit_until(peer: &dyn Peer, thread: u64, deadline: Instant, wait: Wait) -> Result<(u64, Latencies), Error> {
    let mut random = Random::stream(0x5a11_0000, thread);
    let mut writer = peer.writer()?;
    let mut latencies = Latencies::new();
    let mut value = [0; SMALL_VALUE_BYTES];
    let commits_per_look = if wait == Wait::No { COMMITS_PER_LOOK } else { 1 };
    let mut commits = 0;
    let mut before = Instant::now();
    while before < deadline {
        for _ in 0..commits_per_look {
            let offset = random.below(SMALL_KEYS_PER_THREAD);
            let key = SMALL_KEYS_FROM + thread * SMALL_KEYS_PER_THREAD + offset;
            value[..8].copy_from_slice(&random.bits().to_le_bytes());
            writer.commit(&[Change::Put(Table::Documents, &key.to_be_bytes(), &value)], wait)?;
        }
        commits += commits_per_look;
        let after = Instant::now();
        latencies.add((after - before) / commits_per_look as u32);
        before = after;
    }
    Ok((commits, latencies))
}
