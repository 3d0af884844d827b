//! Updates, then a checkpoint, then the merges that it causes, while another thread reads.
//!
//! Each round rewrites a tenth of the documents and replaces their index entries: one small transaction for each document,
//! none waiting, then one flush of the log, where a system has a log; all in one durable transaction where it has none.
//! Time and bytes run until nothing is left to do. The reading thread gets random documents all the while, each with a
//! snapshot of its own, and competes for the same cores, as a server's readers do.

use super::{Plan, reads};
use crate::Error;
use crate::measure::{Latencies, WrittenBytes, sync_count, written_bytes};
use crate::peers::{Change, Peer, Table, Wait};
use crate::report::Recorder;
use crate::workload::{Random, Rewrite, Workload, document_key};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Latencies are kept in slices, so that what was read after everything had settled can be left out.
const SLICE: Duration = Duration::from_millis(10);

struct Round {
    transactions: Duration,
    checkpointed: Duration,
    settled: Duration,
    written: WrittenBytes,
    syncs: u64,
    latencies: Latencies,
}

/// All rounds; records their means.
pub fn run(peer: &dyn Peer, workload: &mut Workload, plan: &Plan, recorder: &Recorder) -> Result<(), Error> {
    let mut rounds = Vec::new();
    for number in 0..plan.checkpoints {
        let rewrites = workload.rewrites(plan.rewrites);
        rounds.push(round(peer, plan, &rewrites, number)?);
    }
    record(&rounds, recorder);
    let entries = reads::count_index(peer)?;
    if entries != plan.documents {
        return Err(format!("the index has {entries} entries after the checkpoints, not {}", plan.documents).into());
    }
    Ok(())
}

fn round(peer: &dyn Peer, plan: &Plan, rewrites: &[Rewrite], number: u64) -> Result<Round, Error> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_until(peer, plan.documents, number, &stop));
        let result = write_and_settle(peer, rewrites);
        stop.store(true, Ordering::Relaxed);
        let slices = reader.join().map_err(|_| "the reading thread panicked")??;
        let (mut round, end) = result?;
        for (start, latencies) in &slices {
            if *start < end {
                round.latencies.merge(latencies);
            }
        }
        Ok(round)
    })
}

fn write_and_settle(peer: &dyn Peer, rewrites: &[Rewrite]) -> Result<(Round, Instant), Error> {
    let (written_before, syncs_before) = (written_bytes()?, sync_count());
    let start = Instant::now();
    write(peer, rewrites)?;
    let transactions = start.elapsed();
    peer.checkpoint()?;
    let checkpointed = start.elapsed();
    let end = peer.settle()?.max(start + checkpointed);
    let round = Round {
        transactions,
        checkpointed,
        settled: end - start,
        written: written_bytes()? - written_before,
        syncs: sync_count() - syncs_before,
        latencies: Latencies::new(),
    };
    Ok((round, end))
}

fn changes(rewrite: &Rewrite) -> [Change<'_>; 3] {
    [
        Change::Put(Table::Documents, &rewrite.key, &rewrite.document),
        Change::Delete(Table::Index, &rewrite.index_removed),
        Change::Put(Table::Index, &rewrite.index_added, &rewrite.key),
    ]
}

/// Commits the rewrites and makes them durable, in the way that suits the system.
pub fn write(peer: &dyn Peer, rewrites: &[Rewrite]) -> Result<(), Error> {
    let mut writer = peer.writer()?;
    if !peer.has_log() {
        let all: Vec<Change<'_>> = rewrites.iter().flat_map(changes).collect();
        return writer.commit(&all, Wait::ForDisk);
    }
    for rewrite in rewrites {
        writer.commit(&changes(rewrite), Wait::No)?;
    }
    peer.flush_log()
}

fn read_until(
    peer: &dyn Peer,
    documents: u64,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Vec<(Instant, Latencies)>, Error> {
    let mut random = Random::stream(0x4ead_0000, seed);
    let mut reader = peer.reader()?;
    let mut slices = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let start = Instant::now();
        let mut latencies = Latencies::new();
        let mut before = start;
        while before - start < SLICE {
            reader.refresh()?;
            let found = reader.get(Table::Documents, &document_key(random.below(documents)), &mut |_| ())?;
            let after = Instant::now();
            latencies.add(after - before);
            before = after;
            if !found {
                return Err("a document was missing during a checkpoint".into());
            }
        }
        slices.push((start, latencies));
    }
    Ok(slices)
}

fn record(rounds: &[Round], recorder: &Recorder) {
    let mean = |of: &dyn Fn(&Round) -> f64| rounds.iter().map(of).sum::<f64>() / rounds.len().max(1) as f64;
    recorder.record("checkpoint_transactions", mean(&|round| round.transactions.as_secs_f64()));
    recorder.record("checkpoint_taken", mean(&|round| round.checkpointed.as_secs_f64()));
    recorder.record("checkpoint_settled", mean(&|round| round.settled.as_secs_f64()));
    let longest = rounds.iter().map(|round| round.settled).max().unwrap_or_default();
    recorder.record("checkpoint_settled_longest", longest.as_secs_f64());
    recorder.record("checkpoint_written", mean(&|round| round.written.passed as f64));
    recorder.record("checkpoint_dirtied", mean(&|round| round.written.dirtied as f64));
    recorder.record("checkpoint_syncs", mean(&|round| round.syncs as f64));
    let mut latencies = Latencies::new();
    rounds.iter().for_each(|round| latencies.merge(&round.latencies));
    recorder.record("checkpoint_get_p50", latencies.percentile_us(0.5));
    recorder.record("checkpoint_get_p99", latencies.percentile_us(0.99));
    recorder.record("checkpoint_get_p999", latencies.percentile_us(0.999));
    let seconds: f64 = rounds.iter().map(|round| round.settled.as_secs_f64()).sum();
    recorder.record("checkpoint_gets", latencies.count() as f64 / seconds.max(1e-9));
}
