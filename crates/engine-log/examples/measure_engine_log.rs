//! What the log can do on this machine: appends per second, commits per sync, recovery.
//!
//! `cargo run --release -p pando-engine-log --example measure_engine_log [directory]`

use pando_base::Timestamp;
use pando_engine_log::{Log, LogOptions, NoHoles, PreparedRecord};
use pando_env::Env;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const RECORD_BYTES: usize = 500;

fn main() {
    let base = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = base.join(format!("pando-log-measure-{}", std::process::id()));
    let env = Env::real();
    for oplog in [false, true] {
        for threads in [1, 2] {
            appends(&env, &directory.join(format!("append-{oplog}-{threads}")), oplog, threads);
        }
    }
    group_commit(&env, &directory.join("group"));
    recovery(&env, &directory.join("recovery"));
    remove(&directory);
}

#[allow(clippy::disallowed_methods)]
fn remove(directory: &Path) {
    let _ = std::fs::remove_dir_all(directory);
}

fn open(env: &Env, directory: &Path, oplog: bool, no_holes: NoHoles) -> Log {
    let options = LogOptions { oplog, ..LogOptions::default() };
    Log::open(env, directory, options, None, no_holes).expect("open").0
}

fn everything() -> NoHoles {
    Arc::new(|| Timestamp::MAX)
}

fn seconds_since(env: &Env, start_ns: u64) -> f64 {
    (env.clock().monotonic_ns() - start_ns) as f64 / 1e9
}

/// Records of 500 B, encoded, reserved and appended, not waiting for the disk: rounds of 25 MB, written between them.
fn appends(env: &Env, directory: &Path, oplog: bool, threads: u64) {
    let log = open(env, directory, oplog, everything());
    let sequence = Arc::new(AtomicU64::new(0));
    let (rounds, round_records) = (16, 48_000 / threads);
    let mut seconds = 0.0;
    let mut in_lock_ns = Vec::new();
    for _ in 0..rounds {
        let start = env.clock().monotonic_ns();
        let samples = Arc::new(Mutex::new(Vec::new()));
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let (log, env2, sequence, samples) = (log.clone(), env.clone(), sequence.clone(), samples.clone());
                let work = move || samples.lock().extend(append_some(&env2, &log, oplog, &sequence, round_records));
                env.tasks().spawn_thread("append", Box::new(work)).expect("thread")
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().expect("worker"));
        seconds += seconds_since(env, start);
        in_lock_ns.append(&mut samples.lock());
        log.flush().expect("flush");
    }
    in_lock_ns.sort_unstable();
    let (median, p99) = (in_lock_ns[in_lock_ns.len() / 2], in_lock_ns[in_lock_ns.len() * 99 / 100]);
    let rate = (rounds * round_records * threads) as f64 / seconds;
    println!(
        "oplog {oplog}, {threads} thread(s): {rate:.0} appends/s; under the lock {median} ns, p99 {p99} ns, clock included"
    );
    remove(directory);
}

fn append_some(env: &Env, log: &Log, oplog: bool, sequence: &AtomicU64, count: u64) -> Vec<u64> {
    let bytes = [7u8; RECORD_BYTES];
    let mut record = PreparedRecord::default();
    let mut samples = Vec::new();
    for at in 0..count {
        if oplog {
            let timestamp = Timestamp(sequence.load(Ordering::Relaxed) * 4 + at % 4 + 1);
            record.rebuild(1, &[(timestamp, &bytes)], b"").expect("small");
        } else {
            record.rebuild::<&[u8]>(1, &[], &bytes).expect("small");
        }
        let _room = log.reserve(record.reserved_bytes()).expect("room");
        let mut guard = log.lock();
        // One in 64 is timed, so that the clock does not count.
        let before = if at % 64 == 0 { env.clock().monotonic_ns() } else { 0 };
        let next = guard.last_sequence() + 1;
        guard.append(&record, next);
        if before > 0 {
            samples.push(env.clock().monotonic_ns() - before);
        }
        sequence.store(next, Ordering::Relaxed);
    }
    samples
}

/// 64 threads that each wait for the durability of each commit.
fn group_commit(env: &Env, directory: &Path) {
    let log = open(env, directory, false, everything());
    let sequence = Arc::new(AtomicU64::new(0));
    let start = env.clock().monotonic_ns();
    let workers: Vec<_> = (0..64)
        .map(|_| {
            let (log, sequence) = (log.clone(), sequence.clone());
            let work = move || {
                let record = PreparedRecord::new::<&[u8]>(1, &[], &[7; RECORD_BYTES]).expect("small");
                for _ in 0..200 {
                    let room = log.reserve(record.reserved_bytes()).expect("room");
                    let point = log.lock().append(&record, sequence.fetch_add(1, Ordering::Relaxed) + 1);
                    drop(room);
                    log.wait_durable(point).expect("durable");
                }
            };
            env.tasks().spawn_thread("commit", Box::new(work)).expect("thread")
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().expect("worker"));
    let seconds = seconds_since(env, start);
    let statistics = log.statistics();
    println!(
        "64 waiting committers: {:.0} commits/s, {} syncs, {:.1} commits per sync",
        12_800.0 / seconds,
        statistics.syncs,
        statistics.flushed_commits as f64 / statistics.syncs as f64
    );
    remove(directory);
}

/// A gigabyte of log, read again after a crash.
fn recovery(env: &Env, directory: &Path) {
    let log = open(env, directory, true, everything());
    let mut record = PreparedRecord::default();
    let count = (1u64 << 30) / (RECORD_BYTES as u64 + 64);
    for sequence in 1..=count {
        record.rebuild(1, &[(Timestamp(sequence), &[sequence as u8; RECORD_BYTES])], b"").expect("small");
        let room = log.reserve(record.reserved_bytes()).expect("room");
        log.lock().append(&record, sequence);
        drop(room);
    }
    log.flush().expect("flush");
    drop(log);
    let start = env.clock().monotonic_ns();
    let options = LogOptions { oplog: true, ..LogOptions::default() };
    let (log, recovery) = Log::open(env, directory, options, None, everything()).expect("open");
    println!("open after a crash: {:.3} s", seconds_since(env, start));
    let start = env.clock().monotonic_ns();
    let read: u64 = recovery.map(|record| u64::from(record.expect("sound").kind)).sum();
    assert_eq!(read, count);
    let seconds = seconds_since(env, start);
    println!("recovery: {count} records, {:.0} MB/s, {seconds:.2} s", 1074.0 / seconds);
    let start = env.clock().monotonic_ns();
    let mut reader = log.oplog().forward();
    let mut entries = 0u64;
    while reader.advance().expect("sound").is_some() {
        entries += 1;
    }
    println!("oplog scan: {:.0} entries/s", entries as f64 / seconds_since(env, start));
    remove(directory);
}
