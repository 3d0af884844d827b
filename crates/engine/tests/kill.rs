//! Real `kill -9`: a child process works on a real disk with all its threads on, and dies in the middle of it, again and
//! again, on one store.
//!
//! The child is this test binary, started for one test with a directory in its environment. Its workers commit and, once
//! the log is durable, say so on the child's standard output before they go on. What they said must be there afterwards.
//!
//! Every commit writes a row of a table with redo, a row of a replicated table and an oplog entry, all with the same
//! numbers, at the next timestamp. So the oplog must be without gaps, the replicated table must be exactly what is at or
//! below the checkpoint's stable timestamp, and rows, sizes and entries must agree.

use pando_base::Timestamp;
use pando_engine::{DurableEngine, EngineOptions, Mode};
use pando_env::{Env, ThreadHandle};
use pando_storage::{
    BeginOptions, CheckpointKind, Durability, Engine, Maintenance, OplogSource, ReadAt, Result, Slot, Table,
    TableOptions, TableRegistry, TableSize, TimestampControl, TransactionSource, Urgency,
};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[path = "support/mod.rs"]
mod support;

/// Tells the child where to work.
const DIRECTORY_VARIABLE: &str = "PANDO_KILL_DIRECTORY";
const WORKERS: u64 = 4;
const VALUE_BYTES: usize = 700;

fn options(background: bool) -> EngineOptions {
    EngineOptions {
        mode: Mode::ReplicaSet,
        memory_bytes: 4 << 20,
        background,
        commit_interval: Duration::from_millis(3),
        checkpoint_interval: Duration::from_millis(30),
        log_segment_bytes: 128 << 10,
        oplog_bytes_max: 1 << 20,
        ballast_bytes: 64 << 10,
        ..EngineOptions::default()
    }
}

fn row_key(worker: u64, number: u64) -> Vec<u8> {
    [worker.to_be_bytes(), number.to_be_bytes()].concat()
}

/// What a row or an entry says: who, which commit, when; then filling that depends on it.
fn content(worker: u64, number: u64, timestamp: Timestamp, length: usize) -> Vec<u8> {
    let mut bytes = [worker.to_be_bytes(), number.to_be_bytes(), timestamp.0.to_be_bytes()].concat();
    let mut state = worker ^ number.rotate_left(17) ^ timestamp.0.rotate_left(33);
    while bytes.len() < length {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        bytes.push((state >> 56) as u8);
    }
    bytes
}

fn numbers(bytes: &[u8]) -> (u64, u64, Timestamp) {
    let number = |place: usize| u64::from_be_bytes(bytes[place * 8..place * 8 + 8].try_into().expect("eight bytes"));
    (number(0), number(1), Timestamp(number(2)))
}

// The child.

struct Crew {
    engine: Arc<DurableEngine>,
    logged: Table,
    replicated: Table,
    newest: Mutex<u64>,
}

impl Crew {
    /// The next place in the oplog; reserved in order.
    fn reserve(&self) -> Slot {
        let mut newest = self.newest.lock().expect("no panic");
        *newest += 1;
        self.engine.reserve_slot(Timestamp(*newest)).expect("a slot above all others")
    }

    fn put(&self, worker: u64, number: u64) -> Result<()> {
        let slot = self.reserve();
        let timestamp = slot.timestamp();
        let value = content(worker, number, timestamp, VALUE_BYTES);
        let mut transaction =
            self.engine.begin(BeginOptions { urgency: Urgency::Exempt, ..BeginOptions::default() })?;
        transaction.hold_slot(slot);
        transaction.set_commit_timestamp(timestamp)?;
        transaction.put(&self.logged, &row_key(worker, number), &value)?;
        transaction.adjust_size(&self.logged, TableSize::new(1, value.len() as i64))?;
        transaction.put(&self.replicated, &timestamp.0.to_be_bytes(), &value)?;
        transaction.adjust_size(&self.replicated, TableSize::new(1, value.len() as i64))?;
        transaction.append_oplog(timestamp, &content(worker, number, timestamp, 100))?;
        let committed = transaction.commit()?;
        self.engine.wait_durable(committed.position).block()
    }

    fn work(&self, worker: u64, mut number: u64) {
        loop {
            self.put(worker, number).expect("a commit");
            // One call, so that lines do not mix; a line that is not whole does not count.
            std::io::stdout().write_all(format!("done {worker} {number}\n").as_bytes()).expect("a pipe");
            number += 1;
        }
    }

    /// Moves stable and oldest, makes and drops tables.
    fn tend(&self, env: &Env) {
        for round in 0.. {
            let now = self.engine.timestamps();
            if now.all_durable > now.stable {
                self.engine.set_stable(now.all_durable).expect("stable");
                let oldest = Timestamp(now.stable.0.saturating_sub(20).max(1));
                self.engine.set_oldest(oldest, false).expect("oldest");
            }
            let ident = format!("passing-{}", round % 3);
            if self.engine.drop_table(&ident).is_err() {
                self.engine.create_table(&ident, &TableOptions::default()).expect("a table");
            }
            env.clock().pause(Duration::from_millis(2));
        }
    }

    /// Applies the oplog after the checkpoint, as replication does at start-up.
    fn apply_again(&self) -> Result<()> {
        let stable = self.engine.timestamps().stable;
        let mut cursor = self.engine.oplog().expect("an oplog").forward()?;
        let mut found = cursor.seek(stable.next())?;
        while let Some(entry) = found {
            let (worker, number, timestamp) = numbers(&entry.entry);
            assert_eq!(timestamp, entry.timestamp);
            let value = content(worker, number, timestamp, VALUE_BYTES);
            let mut transaction =
                self.engine.begin(BeginOptions { urgency: Urgency::Exempt, ..BeginOptions::default() })?;
            transaction.set_commit_timestamp(timestamp)?;
            transaction.put(&self.replicated, &timestamp.0.to_be_bytes(), &value)?;
            transaction.adjust_size(&self.replicated, TableSize::new(1, value.len() as i64))?;
            transaction.commit()?;
            found = cursor.next()?;
        }
        Ok(())
    }
}

fn table(engine: &dyn Engine, ident: &str, replicated: bool) -> Table {
    engine.open_table(ident).unwrap_or_else(|_| {
        let options = TableOptions { replicated, ..TableOptions::default() };
        engine.create_table(ident, &options).expect("a table")
    })
}

fn live(directory: &Path) {
    let env = Env::real();
    let engine = DurableEngine::open(&env, directory, options(true)).expect("the store opens");
    let (logged, replicated) = (table(&*engine, "logged", false), table(&*engine, "replicated", true));
    if engine.timestamps().recovery.is_none() {
        begin_history(&engine);
    }
    let newest = Mutex::new(engine.timestamps().all_durable.0);
    let crew = Arc::new(Crew { engine, logged, replicated, newest });
    crew.apply_again().expect("the oplog applies");
    let next = next_numbers(&*crew.engine);
    let mut threads: Vec<Box<dyn ThreadHandle>> = Vec::new();
    for worker in 0..WORKERS {
        let (crew, number) = (crew.clone(), next.get(&worker).copied().unwrap_or(0));
        let body = Box::new(move || crew.work(worker, number));
        threads.push(env.tasks().spawn_thread("worker", body).expect("a thread"));
    }
    println!("started");
    crew.tend(&env);
}

/// From the first checkpoint on there is a stable timestamp; nothing was written before.
fn begin_history(engine: &DurableEngine) {
    engine.set_initial_data(Timestamp(1));
    engine.set_stable(Timestamp(1)).expect("stable");
    engine.checkpoint(CheckpointKind::Automatic).expect("a checkpoint");
}

/// The first number that each worker has not used.
fn next_numbers(engine: &dyn Engine) -> BTreeMap<u64, u64> {
    let mut next = BTreeMap::new();
    for key in rows(engine, "logged").into_keys() {
        let (worker, number) = key.split_at(8);
        let number = u64::from_be_bytes(number.try_into().expect("eight bytes"));
        let worker = u64::from_be_bytes(worker.try_into().expect("eight bytes"));
        let expected = next.insert(worker, number + 1).unwrap_or(0);
        assert_eq!(number, expected, "a gap in the commits of worker {worker}");
    }
    next
}

fn rows(engine: &dyn Engine, ident: &str) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut rows = BTreeMap::new();
    let Ok(table) = engine.open_table(ident) else { return rows };
    let transaction =
        engine.begin(BeginOptions { read: ReadAt::Latest, ..BeginOptions::default() }).expect("a snapshot");
    let mut cursor = transaction.cursor(&table).expect("a cursor");
    while let Some(entry) = cursor.next().expect("a row") {
        rows.insert(entry.key.to_vec(), entry.value.to_vec());
    }
    let bytes: usize = rows.values().map(Vec::len).sum();
    let size = TableSize::new(rows.len() as i64, bytes as i64);
    assert_eq!(engine.table_size(&table).expect("a size"), size, "the size of {ident}");
    rows
}

// The parent.

/// A directory that is removed with everything in it, unless the test failed.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let number = Env::real().random().next_u64();
        Scratch(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kill-{number:016x}")))
    }
}

impl Drop for Scratch {
    #[allow(clippy::disallowed_methods)]
    fn drop(&mut self) {
        match std::thread::panicking() {
            true => eprintln!("the store is left in {}", self.0.display()),
            false => drop(std::fs::remove_dir_all(&self.0)),
        }
    }
}

/// Kills the child even if the parent fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(directory: &Path) -> Killed {
    let child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "child_of_the_kill_test", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY_VARIABLE, directory)
        .stdout(Stdio::piped())
        .spawn();
    Killed(child.expect("a child"))
}

/// Lets a child work for a while, kills it, and returns the newest commit that each worker acknowledged.
fn live_and_die(env: &Env, directory: &Path) -> BTreeMap<u64, u64> {
    let mut child = start(directory);
    let output = child.0.stdout.take().expect("a pipe");
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = env.tasks().spawn_thread(
        "reader",
        Box::new(move || {
            let mut acknowledged = BTreeMap::new();
            let mut reader = BufReader::new(output);
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 0) && line.ends_with('\n') {
                match line.split_whitespace().collect::<Vec<_>>()[..] {
                    // Behind what the test harness prints on the same line.
                    [.., "started"] => sender.send(()).expect("the parent waits"),
                    ["done", worker, number] => {
                        let number = number.parse::<u64>().expect("a number");
                        acknowledged.insert(worker.parse::<u64>().expect("a worker"), number);
                    }
                    _ => {}
                }
                line.clear();
            }
            *ACKNOWLEDGED.lock().expect("no panic") = acknowledged;
        }),
    );
    receiver.recv_timeout(Duration::from_secs(120)).expect("the child starts");
    env.clock().pause(Duration::from_millis(5 + env.random().next_u64() % 400));
    drop(child);
    reader.expect("a thread").join().expect("no panic");
    std::mem::take(&mut ACKNOWLEDGED.lock().expect("no panic"))
}

static ACKNOWLEDGED: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

/// Checks the store; returns where its checkpoint stands.
fn check(env: &Env, directory: &Path, acknowledged: &BTreeMap<u64, u64>) -> Timestamp {
    let engine = DurableEngine::open(env, directory, options(false)).expect("the store opens");
    let next = next_numbers(&*engine);
    for (worker, number) in acknowledged {
        let there = next.get(worker).copied().unwrap_or(0);
        assert!(there > *number, "worker {worker} acknowledged {number}, but only {there} commits are there");
    }
    let logged = rows(&*engine, "logged");
    for (key, value) in &logged {
        let (worker, number, timestamp) = numbers(value);
        assert!(*key == row_key(worker, number) && *value == content(worker, number, timestamp, VALUE_BYTES));
    }
    let last = check_oplog(&*engine, &logged);
    check_replicated(&*engine, last);
    let report = engine.verify().expect("verification");
    assert!(report.damage.is_empty(), "{:?}", report.damage);
    engine.timestamps().recovery
}

/// The oplog has no gap, and each entry belongs to a row. Returns its last timestamp.
fn check_oplog(engine: &dyn Engine, logged: &BTreeMap<Vec<u8>, Vec<u8>>) -> Timestamp {
    let oplog = engine.oplog().expect("an oplog");
    let mut cursor = oplog.forward().expect("a cursor");
    let (mut last, mut entries, mut bytes) = (None::<Timestamp>, 0, 0);
    while let Some(entry) = cursor.next().expect("an entry") {
        let (worker, number, timestamp) = numbers(&entry.entry);
        assert_eq!(entry.entry, content(worker, number, timestamp, 100));
        assert_eq!(timestamp, entry.timestamp);
        assert!(last.is_none_or(|last| last.next() == timestamp), "a hole between {last:?} and {timestamp}");
        let row = logged.get(&row_key(worker, number)).expect("the row of an entry");
        assert_eq!(numbers(row).2, timestamp, "row and entry of one commit");
        last = Some(timestamp);
        entries += 1;
        bytes += entry.entry.len() as i64;
    }
    assert_eq!((oplog.last(), oplog.size()), (last, TableSize::new(entries, bytes)));
    last.unwrap_or_default()
}

/// The replicated table is exactly at the checkpoint.
fn check_replicated(engine: &dyn Engine, last: Timestamp) {
    let stable = engine.timestamps().recovery;
    assert!(stable <= last.max(Timestamp(1)), "the checkpoint at {stable} is past the oplog's end {last}");
    let found = rows(engine, "replicated");
    let timestamps: Vec<u64> = found.keys().map(|key| u64::from_be_bytes(key[..].try_into().expect("eight"))).collect();
    assert!(timestamps.iter().copied().eq(2..=stable.0), "{} rows at stable {stable}", timestamps.len());
    for (key, value) in &found {
        let (worker, number, timestamp) = numbers(value);
        assert!(timestamp.0.to_be_bytes() == key[..] && *value == content(worker, number, timestamp, VALUE_BYTES));
    }
}

/// Does nothing unless it was started by the test below.
#[test]
fn child_of_the_kill_test() {
    if let Some(directory) = std::env::var_os(DIRECTORY_VARIABLE) {
        live(Path::new(&directory));
    }
}

#[test]
fn x17_x21_x26_what_a_killed_process_acknowledged_is_there() {
    let env = Env::real();
    let scratch = Scratch::new();
    let (mut commits, mut checkpoint) = (0, Timestamp::NONE);
    for _ in 0..support::seeds(50) {
        let acknowledged = live_and_die(&env, &scratch.0);
        commits += acknowledged.len();
        checkpoint = check(&env, &scratch.0, &acknowledged);
    }
    assert!(commits > 0, "no child ever acknowledged anything");
    assert!(checkpoint > Timestamp(1), "no child ever took a checkpoint");
}
