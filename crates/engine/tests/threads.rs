//! Real threads on a real directory: what must hold in every snapshot while everything happens at once.
//!
//! Each test goes by a number of operations, not by time, and asserts nothing about time.
#![allow(clippy::unwrap_used)]

use pando_base::Timestamp;
use pando_engine::{DurableEngine, EngineOptions, Mode};
use pando_env::{Env, ThreadHandle};
use pando_storage::{
    BeginOptions, CheckpointKind, Engine, ReadAt, Result, StorageError, Table, TableOptions, TableSize, Transaction,
    retry_prepare_conflicts,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const ACCOUNTS: u64 = 400;
const BALANCE: i64 = 1_000;

/// A directory of the real disk that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let number = Env::real().random().next_u64();
        Scratch(std::env::temp_dir().join(format!("pando-engine-{name}-{number:016x}")))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    #[allow(clippy::disallowed_methods)]
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How much work; more in the long mode.
fn times(number: u64) -> u64 {
    if std::env::var("PANDO_TEST_LONG").is_ok() { number * 20 } else { number }
}

fn options(mode: Mode, memory_bytes: u64) -> EngineOptions {
    EngineOptions {
        background: true,
        memory_bytes,
        commit_interval: Duration::from_millis(5),
        checkpoint_interval: Duration::from_millis(50),
        ..EngineOptions::stepped(mode)
    }
}

/// Threads that share a flag that says when the workers are done.
struct Crew {
    env: Env,
    done: Arc<AtomicBool>,
    workers: Vec<Box<dyn ThreadHandle>>,
    watchers: Vec<Box<dyn ThreadHandle>>,
}

impl Crew {
    fn new() -> Crew {
        Crew { env: Env::real(), done: Arc::default(), workers: Vec::new(), watchers: Vec::new() }
    }

    /// Runs to its end.
    fn worker(&mut self, body: impl FnOnce() + Send + 'static) {
        self.workers.push(self.env.tasks().spawn_thread("worker", Box::new(body)).unwrap());
    }

    /// Repeats until the workers have ended, and once more.
    fn watcher(&mut self, mut body: impl FnMut() + Send + 'static) {
        let done = self.done.clone();
        let body = move || {
            while !done.load(Ordering::Acquire) {
                body();
            }
            body();
        };
        self.watchers.push(self.env.tasks().spawn_thread("watcher", Box::new(body)).unwrap());
    }

    fn join(self) {
        let ended: Vec<_> = self.workers.into_iter().map(|worker| worker.join()).collect();
        self.done.store(true, Ordering::Release);
        let watched: Vec<_> = self.watchers.into_iter().map(|watcher| watcher.join()).collect();
        assert!(ended.iter().chain(&watched).all(std::result::Result::is_ok), "a thread panicked");
    }
}

/// Numbers that look random and differ between threads.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8) % end
    }
}

// ---- The bank: transfers between accounts; the sum is the same in every snapshot.

/// Hands out commit timestamps.
#[derive(Default)]
struct Clock(Mutex<u64>);

impl Clock {
    /// The next timestamp; `hold` makes it a hold of the engine before anybody can take a later one.
    fn tick<R>(&self, hold: impl FnOnce(Timestamp) -> R) -> (Timestamp, R) {
        let mut last = self.0.lock().unwrap();
        *last += 1;
        let now = Timestamp(*last);
        (now, hold(now))
    }
}

#[derive(Clone)]
struct Bank {
    engine: Arc<DurableEngine>,
    table: Table,
    clock: Arc<Clock>,
    mode: Mode,
    transfers: Arc<AtomicU64>,
}

fn account(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// A balance, with ballast so that leaves and blocks fill.
fn encode(balance: i64, length: usize) -> Vec<u8> {
    let mut value = balance.to_le_bytes().to_vec();
    value.resize(8 + length, b'.');
    value
}

fn decode(value: &[u8]) -> i64 {
    i64::from_le_bytes(value[..8].try_into().unwrap())
}

impl Bank {
    fn open(directory: &Path, mode: Mode, memory_bytes: u64) -> Bank {
        let engine = DurableEngine::open(&Env::real(), directory, options(mode, memory_bytes)).unwrap();
        let table_options = TableOptions { replicated: mode == Mode::ReplicaSet, ..TableOptions::default() };
        let table = engine
            .as_engine()
            .open_table("accounts")
            .unwrap_or_else(|_| engine.as_engine().create_table("accounts", &table_options).unwrap());
        Bank { engine, table, clock: Arc::default(), mode, transfers: Arc::default() }
    }

    fn engine(&self) -> &dyn Engine {
        self.engine.as_engine()
    }

    fn begin(&self, read: ReadAt) -> Result<Box<dyn Transaction>> {
        self.engine().begin(BeginOptions { read, ..BeginOptions::default() })
    }

    /// Gives the transaction the next timestamp.
    fn stamp(&self, transaction: &mut Box<dyn Transaction>) -> Result<()> {
        match self.mode {
            Mode::StandAlone => Ok(()),
            Mode::ReplicaSet => self.clock.tick(|now| transaction.set_commit_timestamp(now)).1,
        }
    }

    fn fill(&self) {
        let mut transaction = self.begin(ReadAt::Latest).unwrap();
        self.stamp(&mut transaction).unwrap();
        for number in 0..ACCOUNTS {
            transaction.put(&self.table, &account(number), &encode(BALANCE, 100)).unwrap();
        }
        transaction.adjust_size(&self.table, TableSize::new(ACCOUNTS as i64, 0)).unwrap();
        transaction.commit().unwrap();
        if self.mode == Mode::ReplicaSet {
            self.engine().set_initial_data(Timestamp(1));
            self.engine().set_stable(Timestamp(1)).unwrap();
            self.engine().set_oldest(Timestamp(1), false).unwrap();
        }
    }

    /// Moves money between two accounts, or empties one into another, or opens one again.
    fn transfer(&self, dice: &mut Dice) -> Result<()> {
        let (from, to) = (dice.below(ACCOUNTS), dice.below(ACCOUNTS));
        if from == to {
            return Ok(());
        }
        let mut transaction = self.begin(ReadAt::Latest)?;
        let early = dice.below(2) == 0;
        if early {
            self.stamp(&mut transaction)?;
        }
        let balance = |transaction: &dyn Transaction, number: u64| -> Result<Option<i64>> {
            Ok(transaction.get(&self.table, &account(number))?.map(|value| decode(&value)))
        };
        let (rich, poor) = (balance(&*transaction, from)?, balance(&*transaction, to)?);
        let amount = if dice.below(10) == 0 { rich.unwrap_or(0) } else { dice.below(50) as i64 };
        let length = dice.below(300) as usize;
        let mut change = 0;
        match rich.unwrap_or(0) - amount {
            0 => {
                transaction.delete(&self.table, &account(from))?;
                change -= i64::from(rich.is_some());
            }
            rest => {
                transaction.put(&self.table, &account(from), &encode(rest, length))?;
                change += i64::from(rich.is_none());
            }
        }
        transaction.put(&self.table, &account(to), &encode(poor.unwrap_or(0) + amount, length))?;
        change += i64::from(poor.is_none());
        transaction.adjust_size(&self.table, TableSize::new(change, 0))?;
        if dice.below(20) == 0 {
            transaction.roll_back();
            return Ok(());
        }
        if !early {
            self.stamp(&mut transaction)?;
        }
        transaction.commit()?;
        self.transfers.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The same as a prepared transaction, which readers have to wait for.
    fn transfer_prepared(&self, dice: &mut Dice) -> Result<()> {
        let (from, to) = (dice.below(ACCOUNTS), dice.below(ACCOUNTS));
        if from == to {
            return Ok(());
        }
        let mut transaction = self.begin(ReadAt::Latest)?;
        for (number, amount) in [(from, -7), (to, 7)] {
            let value = transaction.get(&self.table, &account(number))?;
            let balance = value.as_ref().map_or(0, |value| decode(value)) + amount;
            transaction.put(&self.table, &account(number), &encode(balance, 20))?;
            let change = i64::from(value.is_none());
            transaction.adjust_size(&self.table, TableSize::new(change, 0))?;
        }
        // A slot keeps stable below the prepare timestamp until the transaction is prepared.
        let (prepared, slot) = self.clock.tick(|now| self.engine().reserve_slot(now));
        transaction.prepare(prepared)?;
        drop(slot);
        if dice.below(4) == 0 {
            Env::real().clock().pause(Duration::from_micros(100));
        }
        let (committed, slot) = self.clock.tick(|now| self.engine().reserve_slot(now));
        transaction.set_commit_timestamp(committed)?;
        transaction.set_durable_timestamp(committed)?;
        transaction.hold_slot(slot?);
        transaction.commit()?;
        self.transfers.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Adds up by a scan and by gets; both must give what there was at first.
    fn audit(&self, read: ReadAt, backward: bool) {
        let transaction = match self.begin(read) {
            Ok(transaction) => transaction,
            // Oldest has passed it; that is as it should be.
            Err(StorageError::SnapshotTooOld { .. }) => return,
            Err(error) => panic!("{error:?}"),
        };
        let mut cursor = transaction.cursor(&self.table).unwrap();
        let (mut sum, mut rows) = (0, Vec::new());
        loop {
            let found = retry_prepare_conflicts(self.engine(), || {
                let entry = if backward { cursor.previous()? } else { cursor.next()? };
                Ok(entry.map(|entry| (entry.key.to_vec(), decode(entry.value))))
            });
            let Some((key, balance)) = found.unwrap() else { break };
            sum += balance;
            rows.push((key, balance));
        }
        let in_order = rows.windows(2).all(|pair| (pair[0].0 < pair[1].0) != backward);
        assert!(in_order, "keys come in order, once");
        assert_eq!(sum, ACCOUNTS as i64 * BALANCE, "{read:?}, {} accounts", rows.len());
        let mut by_get = 0;
        for number in 0..ACCOUNTS {
            let get = || transaction.get(&self.table, &account(number));
            let value = retry_prepare_conflicts(self.engine(), get).unwrap();
            by_get += value.map_or(0, |value| decode(&value));
        }
        assert_eq!(by_get, sum, "gets agree with the scan");
    }

    /// Moves stable and oldest to what is durable without holes.
    fn advance(&self) {
        let now = self.engine().timestamps();
        // Another thread may take a lower timestamp as a hold between the two calls; then stable stays.
        if self.engine().set_stable(now.all_durable).is_ok() {
            let oldest = Timestamp(now.all_durable.0.saturating_sub(300)).max(now.oldest);
            if oldest.is_some() {
                drop(self.engine().set_oldest(oldest.min(self.engine().timestamps().stable), false));
            }
        }
    }

    fn check_count(&self) {
        let transaction = self.begin(ReadAt::Latest).unwrap();
        let mut cursor = transaction.cursor(&self.table).unwrap();
        let mut rows = 0;
        while cursor.next().unwrap().is_some() {
            rows += 1;
        }
        assert_eq!(self.engine().table_size(&self.table).unwrap().records, rows);
    }
}

/// The interface of an engine.
trait AsEngine {
    fn as_engine(&self) -> &dyn Engine;
}

impl AsEngine for DurableEngine {
    fn as_engine(&self) -> &dyn Engine {
        self
    }
}

fn is_refusal(error: &StorageError) -> bool {
    // A commit timestamp may lose against a key's newer one, or against stable; both are refused by rule.
    matches!(error, StorageError::WriteConflict | StorageError::PrepareConflict | StorageError::TimestampRule(_))
}

fn run_bank(name: &str, mode: Mode, memory_bytes: u64) {
    let place = Scratch::new(name);
    let bank = Bank::open(place.path(), mode, memory_bytes);
    bank.fill();
    let mut crew = Crew::new();
    for thread in 0..3 {
        let bank = bank.clone();
        crew.worker(move || {
            let mut dice = Dice::new(thread);
            for _ in 0..times(8_000) {
                let done = match mode == Mode::ReplicaSet && dice.below(10) == 0 {
                    true => bank.transfer_prepared(&mut dice),
                    false => bank.transfer(&mut dice),
                };
                if let Err(error) = done {
                    assert!(is_refusal(&error), "{error:?}");
                }
            }
        });
    }
    for backward in [false, true] {
        let bank = bank.clone();
        crew.watcher(move || bank.audit(ReadAt::Latest, backward));
    }
    if mode == Mode::ReplicaSet {
        let (timed, advancing) = (bank.clone(), bank.clone());
        let mut dice = Dice::new(77);
        crew.watcher(move || {
            let now = timed.engine().timestamps();
            let span = now.all_durable.0 - now.oldest.0 + 1;
            timed.audit(ReadAt::Timestamp(Timestamp(now.oldest.0 + dice.below(span))), dice.below(2) == 0);
            timed.audit(ReadAt::AllDurable, false);
        });
        crew.watcher(move || {
            advancing.advance();
            Env::real().clock().pause(Duration::from_millis(1));
        });
    }
    let checkpointing = bank.clone();
    crew.watcher(move || {
        checkpointing.engine().checkpoint(CheckpointKind::Automatic).unwrap();
        // Rows that the base has leave memory, so that readers go there.
        checkpointing.engine().set_memory_bytes(1 << 16);
        checkpointing.engine().set_memory_bytes(memory_bytes);
        Env::real().clock().pause(Duration::from_millis(2));
    });
    crew.join();
    assert!(bank.transfers.load(Ordering::Relaxed) > times(1_000), "most transfers go through");
    bank.check_count();
    let checkpoints = bank.engine().statistics().value("checkpoint.taken");
    assert!(checkpoints > 3, "{checkpoints} checkpoints");
    bank.advance();
    bank.engine().shut_down().unwrap();
    drop(bank);
    let bank = Bank::open(place.path(), mode, memory_bytes);
    bank.audit(ReadAt::Latest, false);
    bank.check_count();
    assert_eq!(bank.engine().verify().unwrap().damage, []);
}

#[test]
fn x4_x7_x18_transfers_audits_and_checkpoints_together() {
    run_bank("bank", Mode::StandAlone, 16 << 20);
}

#[test]
fn x4_x25_x26_transfers_audits_at_timestamps_and_checkpoints_together() {
    run_bank("replicated-bank", Mode::ReplicaSet, 16 << 20);
}

// ---- A scan misses nothing that moves under it.

#[test]
fn x4_scanners_miss_no_key_that_moves_under_them() {
    const KEYS: u64 = 3_000;
    let place = Scratch::new("scanners");
    let memory_bytes = 8 << 20;
    let engine = DurableEngine::open(&Env::real(), place.path(), options(Mode::StandAlone, memory_bytes)).unwrap();
    let table = engine.as_engine().create_table("t", &TableOptions::default()).unwrap();
    let write = |engine: &DurableEngine, table: &Table, number: u64, round: u64| -> Result<()> {
        let mut transaction = engine.as_engine().begin(BeginOptions::default())?;
        transaction.put(table, &account(number), &encode(round as i64, 60))?;
        transaction.commit().map(drop)
    };
    (0..KEYS).for_each(|number| write(&engine, &table, number, 0).unwrap());
    let mut crew = Crew::new();
    for thread in 0..2 {
        let (engine, table) = (engine.clone(), table.clone());
        crew.worker(move || {
            let mut dice = Dice::new(thread);
            for round in 1..times(20_000) {
                // Every key is always there: a scan that finds one less has missed it.
                if let Err(error) = write(&engine, &table, dice.below(KEYS), round) {
                    assert!(is_refusal(&error), "{error:?}");
                }
            }
        });
    }
    for backward in [false, true] {
        let (engine, table) = (engine.clone(), table.clone());
        crew.watcher(move || {
            let transaction = engine.as_engine().begin(BeginOptions::default()).unwrap();
            let mut cursor = transaction.cursor(&table).unwrap();
            for number in 0..KEYS {
                let number = if backward { KEYS - 1 - number } else { number };
                let entry = if backward { cursor.previous().unwrap() } else { cursor.next().unwrap() };
                assert_eq!(entry.map(|entry| entry.key.to_vec()), Some(account(number).to_vec()));
            }
            assert!(if backward { cursor.previous().unwrap() } else { cursor.next().unwrap() }.is_none());
        });
    }
    let moving = engine.clone();
    crew.watcher(move || {
        moving.as_engine().checkpoint(CheckpointKind::Full).unwrap();
        moving.as_engine().set_memory_bytes(1 << 16);
        moving.as_engine().set_memory_bytes(memory_bytes);
    });
    crew.join();
    engine.as_engine().shut_down().unwrap();
}

/// All rows are written in one transaction and deleted as a range in the next: every snapshot has all of one round or none.
#[test]
fn x4_x25_truncations_that_move_under_readers_stay_whole() {
    const ROWS: u64 = 200;
    let place = Scratch::new("truncations");
    let engine = DurableEngine::open(&Env::real(), place.path(), options(Mode::StandAlone, 16 << 20)).unwrap();
    let table = engine.as_engine().create_table("t", &TableOptions::default()).unwrap();
    let mut crew = Crew::new();
    let (writing, written) = (engine.clone(), table.clone());
    crew.worker(move || {
        for round in 0..times(600) {
            let mut transaction = writing.as_engine().begin(BeginOptions::default()).unwrap();
            for number in 0..ROWS {
                transaction.put(&written, &account(number), &encode(round as i64, 50)).unwrap();
            }
            transaction.commit().unwrap();
            let mut transaction = writing.as_engine().begin(BeginOptions::default()).unwrap();
            transaction.truncate(&written, &account(0), None).unwrap();
            transaction.commit().unwrap();
        }
    });
    for by_get in [true, false] {
        let (engine, table) = (engine.clone(), table.clone());
        crew.watcher(move || {
            let transaction = engine.as_engine().begin(BeginOptions::default()).unwrap();
            for _ in 0..5 {
                let mut rounds = Vec::new();
                let mut cursor = transaction.cursor(&table).unwrap();
                for number in 0..ROWS {
                    rounds.extend(match by_get {
                        true => transaction.get(&table, &account(number)).unwrap().map(|value| decode(&value)),
                        false => cursor.next().unwrap().map(|entry| decode(entry.value)),
                    });
                }
                let whole = rounds.len() as u64 == ROWS || rounds.is_empty();
                assert!(whole, "{} rows, by get: {by_get}", rounds.len());
                assert!(rounds.windows(2).all(|pair| pair[0] == pair[1]), "rows of different rounds");
            }
        });
    }
    let moving = engine.clone();
    crew.watcher(move || {
        moving.as_engine().checkpoint(CheckpointKind::Full).unwrap();
        moving.as_engine().set_memory_bytes(0);
        moving.as_engine().set_memory_bytes(16 << 20);
    });
    crew.join();
    engine.as_engine().shut_down().unwrap();
}

/// A table is dropped while a checkpoint may be writing it: open cursors read on.
#[test]
fn x17_a_drop_during_a_checkpoint_leaves_open_cursors_their_rows() {
    const ROWS: u64 = 300;
    let place = Scratch::new("drops");
    let engine = DurableEngine::open(&Env::real(), place.path(), options(Mode::StandAlone, 16 << 20)).unwrap();
    let mut crew = Crew::new();
    let dropping = engine.clone();
    crew.worker(move || {
        for round in 0..times(400) {
            let ident = format!("t{round}");
            let table = dropping.as_engine().create_table(&ident, &TableOptions::default()).unwrap();
            let mut transaction = dropping.as_engine().begin(BeginOptions::default()).unwrap();
            for number in 0..ROWS {
                transaction.put(&table, &account(number), b"row").unwrap();
            }
            transaction.commit().unwrap();
            let reader = dropping.as_engine().begin(BeginOptions::default()).unwrap();
            let mut cursor = reader.cursor(&table).unwrap();
            dropping.as_engine().drop_table(&ident).unwrap();
            let mut rows = 0;
            while cursor.next().unwrap().is_some() {
                rows += 1;
                if rows % 100 == 0 {
                    Env::real().clock().pause(Duration::from_micros(300));
                }
            }
            assert_eq!(rows, ROWS, "round {round}");
        }
    });
    let moving = engine.clone();
    crew.watcher(move || {
        moving.as_engine().checkpoint(CheckpointKind::Full).unwrap();
        moving.as_engine().set_memory_bytes(0);
        moving.as_engine().set_memory_bytes(16 << 20);
    });
    crew.join();
    engine.as_engine().shut_down().unwrap();
}

// ---- The oplog: slots filled out of order, and a reader that follows.

#[test]
fn x21_x26_r20_a_tailing_reader_sees_every_entry_once_in_order() {
    const WRITERS: u64 = 4;
    let entries = times(2_000);
    let place = Scratch::new("oplog");
    let engine = DurableEngine::open(&Env::real(), place.path(), options(Mode::ReplicaSet, 32 << 20)).unwrap();
    let table_options = TableOptions { replicated: true, ..TableOptions::default() };
    let table = engine.as_engine().create_table("t", &table_options).unwrap();
    let clock = Arc::new(Clock::default());
    let written = Arc::new(Mutex::new(BTreeSet::new()));
    let mut crew = Crew::new();
    for thread in 0..WRITERS {
        let (engine, table, clock, written) = (engine.clone(), table.clone(), clock.clone(), written.clone());
        crew.worker(move || {
            let mut dice = Dice::new(thread);
            for number in 0..entries {
                // The slot is taken in order, and filled when its turn comes, or given up.
                let (timestamp, slot) = clock.tick(|now| engine.as_engine().reserve_slot(now));
                let slot = slot.unwrap();
                if dice.below(3) == 0 {
                    Env::real().clock().pause(Duration::from_micros(dice.below(200)));
                }
                if dice.below(16) == 0 {
                    drop(slot);
                    continue;
                }
                let mut transaction = engine.as_engine().begin(BeginOptions::default()).unwrap();
                transaction.set_commit_timestamp(timestamp).unwrap();
                transaction.hold_slot(slot);
                transaction.put(&table, &account(thread), &number.to_le_bytes()).unwrap();
                transaction.append_oplog(timestamp, &timestamp.0.to_le_bytes()).unwrap();
                written.lock().unwrap().insert(timestamp.0);
                let position = transaction.commit().unwrap().position;
                if dice.below(50) == 0 {
                    engine.as_engine().wait_durable(position).block().unwrap();
                }
            }
        });
    }
    // Followers: one waits for what comes, one polls. What they saw is compared at the end.
    // The last entry is told before it is there, so that nobody waits for one after it.
    let end = Arc::new(AtomicU64::new(u64::MAX));
    let mut followers = Vec::new();
    let mut seen = Vec::new();
    for waits in [true, false] {
        let (engine, end) = (engine.clone(), end.clone());
        let found: Arc<Mutex<Vec<u64>>> = Arc::default();
        seen.push(found.clone());
        let body = move || {
            let oplog = engine.as_engine().oplog().unwrap();
            let mut cursor = oplog.forward().unwrap();
            let mut last = Timestamp::NONE;
            loop {
                while let Some(entry) = cursor.next().unwrap() {
                    assert!(entry.timestamp > last, "{} after {last}", entry.timestamp);
                    assert_eq!(entry.entry[..], entry.timestamp.0.to_le_bytes());
                    assert!(entry.timestamp <= oplog.visible(), "nothing past a hole");
                    last = entry.timestamp;
                    found.lock().unwrap().push(last.0);
                }
                if last.0 == end.load(Ordering::Acquire) {
                    return;
                }
                match waits {
                    true => oplog.wait_visible(last).block().unwrap(),
                    false => Env::real().clock().pause(Duration::from_micros(200)),
                }
            }
        };
        followers.push(Env::real().tasks().spawn_thread("follower", Box::new(body)).unwrap());
    }
    crew.join();
    let (timestamp, _) = clock.tick(|_| ());
    end.store(timestamp.0, Ordering::Release);
    let mut transaction = engine.as_engine().begin(BeginOptions::default()).unwrap();
    transaction.set_commit_timestamp(timestamp).unwrap();
    transaction.append_oplog(timestamp, &timestamp.0.to_le_bytes()).unwrap();
    transaction.commit().unwrap();
    followers.into_iter().for_each(|follower| follower.join().expect("no panic"));
    let written: Vec<u64> = written.lock().unwrap().iter().copied().collect();
    for seen in seen {
        let mut seen = seen.lock().unwrap().clone();
        seen.retain(|seen| *seen != timestamp.0);
        assert_eq!(seen.len(), written.len());
        assert!(seen == written, "every entry once, in order");
    }
    engine.as_engine().shut_down().unwrap();
}
