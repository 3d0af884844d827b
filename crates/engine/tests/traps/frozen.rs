//! Stable stands still while ten times the cache is written: writers go on, memory stays within its budget, and a crash or a
//! rollback leads back to stable.

use crate::store::{Contents, Dice, Store, assert_contents, ts};
use pando_engine::Mode;
use pando_storage::{OplogSource, Table, TableSize};
use std::collections::BTreeMap;

const MEMORY_BYTES: u64 = 4 << 20;
/// The last timestamp of the first part, where stable stays.
const STABLE: u64 = 50;
const KEYS: u64 = 2_000;
const KEYS_PER_COMMIT: u64 = 10;

/// A replicated table and what it had at some timestamps.
struct Scene {
    store: Store,
    table: Table,
    dice: Dice,
    clock: u64,
    written_bytes: u64,
    now: Contents,
    at: BTreeMap<u64, Contents>,
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:08}").into_bytes()
}

impl Scene {
    /// Some rows, all stable.
    fn new() -> Scene {
        let store = Store::new(Mode::ReplicaSet, MEMORY_BYTES);
        let table = store.replicated("t");
        let (at, now) = (BTreeMap::new(), Contents::new());
        let mut scene = Scene { store, table, dice: Dice::new(3), clock: 0, written_bytes: 0, now, at };
        while scene.clock < STABLE {
            scene.commit();
        }
        scene.store.stable_from_start(STABLE);
        scene.store.engine().set_oldest(ts(1), false).unwrap();
        scene.at.insert(STABLE, scene.now.clone());
        scene.written_bytes = 0;
        scene
    }

    /// One transaction at the next timestamp, with its oplog entry: mostly puts, some deletions.
    fn commit(&mut self) {
        self.clock += 1;
        let mut transaction = self.store.start();
        transaction.set_commit_timestamp(ts(self.clock)).unwrap();
        let mut entry = Vec::new();
        let records_before = self.now.len() as i64;
        for _ in 0..KEYS_PER_COMMIT {
            let key = key(self.dice.below(KEYS));
            if self.dice.below(10) == 0 {
                transaction.delete(&self.table, &key).unwrap();
                self.now.remove(&key);
                encode(&mut entry, &key, &[]);
                continue;
            }
            let length = 900 + self.dice.below(200) as usize;
            let value = self.dice.bytes(length);
            transaction.put(&self.table, &key, &value).unwrap();
            encode(&mut entry, &key, &value);
            self.written_bytes += value.len() as u64;
            self.now.insert(key, value);
        }
        let change = TableSize::new(self.now.len() as i64 - records_before, 0);
        transaction.adjust_size(&self.table, change).unwrap();
        transaction.append_oplog(ts(self.clock), &entry).unwrap();
        transaction.commit().unwrap();
    }

    /// Ten times the cache, with stable where it is.
    fn write_ten_times_the_cache(&mut self) {
        while self.written_bytes < 10 * MEMORY_BYTES {
            self.commit();
            if self.clock.is_multiple_of(500) {
                self.at.insert(self.clock, self.now.clone());
            }
            if self.clock.is_multiple_of(100) {
                self.store.settle();
            }
            let overlay_bytes = self.store.figure("overlay.bytes");
            assert!(overlay_bytes <= MEMORY_BYTES as i64 * 9 / 10, "{overlay_bytes} bytes in the overlay");
            let log_bytes = self.store.figure("log.buffered_bytes");
            assert!(log_bytes <= MEMORY_BYTES as i64, "{log_bytes} bytes of the log in memory");
        }
        self.at.insert(self.clock, self.now.clone());
        assert!(self.store.figure("checkpoint.spills") > 5, "it goes on by spilling");
        assert_eq!(self.store.figure("memory.temporarily_unavailable"), 0);
        assert_eq!(self.store.engine().timestamps().checkpoint, ts(STABLE));
    }

    fn check_every_time(&self, when: &str) {
        for (timestamp, expected) in &self.at {
            let reader = self.store.start_at(*timestamp);
            assert_contents(&*reader, &self.table, expected, &format!("{when}, at {timestamp}"));
        }
        assert_contents(&*self.store.start(), &self.table, &self.now, &format!("{when}, latest"));
        assert_eq!(self.store.engine().table_size(&self.table).unwrap().records, self.now.len() as i64);
    }

    /// Goes back to what was at a timestamp.
    fn forget_after(&mut self, timestamp: u64) {
        self.now = self.at[&timestamp].clone();
        self.at.retain(|later, _| *later <= timestamp);
        self.clock = timestamp;
        self.written_bytes = 0;
    }

    fn crash(&mut self) {
        self.store.crash();
        self.table = self.store.table("t");
    }
}

fn encode(entry: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    entry.extend_from_slice(key);
    entry.extend_from_slice(&(value.len() as u32).to_le_bytes());
    entry.extend_from_slice(value);
}

#[test]
fn x20_r20_stable_frozen_then_a_crash() {
    let mut scene = Scene::new();
    scene.store.checkpoint_now();
    scene.write_ten_times_the_cache();
    scene.check_every_time("spilled");
    scene.store.engine().flush_log().unwrap();
    let (last, latest) = (scene.clock, scene.now.clone());
    scene.crash();
    assert_eq!(scene.store.engine().timestamps().recovery, ts(STABLE));
    scene.forget_after(STABLE);
    scene.check_every_time("after the crash");
    // Replication applies the oplog again, whatever the memory limits say.
    let mut entries = scene.store.oplog().unwrap().forward().unwrap();
    let mut entry = entries.seek(ts(STABLE + 1)).unwrap();
    while let Some(found) = entry {
        apply(&scene, found.timestamp.0, &found.entry);
        scene.store.settle();
        scene.clock = found.timestamp.0;
        entry = entries.next().unwrap();
    }
    assert_eq!(scene.clock, last, "every entry is in the oplog");
    assert_contents(&*scene.store.start(), &scene.table, &latest, "applied again");
}

/// Applies an entry as a secondary does.
fn apply(scene: &Scene, timestamp: u64, entry: &[u8]) {
    let mut transaction = scene.store.start_exempt();
    transaction.set_commit_timestamp(ts(timestamp)).unwrap();
    let mut rest = entry;
    while !rest.is_empty() {
        let (key, after) = rest.split_at(8);
        let (length, after) = after.split_at(4);
        let (value, after) = after.split_at(u32::from_le_bytes(length.try_into().unwrap()) as usize);
        match value.is_empty() {
            true => transaction.delete(&scene.table, key).unwrap(),
            false => transaction.put(&scene.table, key, value).unwrap(),
        }
        rest = after;
    }
    transaction.commit().unwrap();
}

#[test]
fn x20_stable_frozen_then_it_advances() {
    let mut scene = Scene::new();
    scene.write_ten_times_the_cache();
    let middle = *scene.at.keys().nth(1).unwrap();
    scene.store.engine().set_stable(ts(middle)).unwrap();
    assert!(scene.store.checkpoint_now().taken);
    scene.store.settle();
    scene.check_every_time("stable has advanced");
    scene.crash();
    scene.forget_after(middle);
    scene.check_every_time("after the crash");
    // History below the new stable is still there, and the store goes on from it.
    scene.store.oplog().unwrap().truncate_after(ts(middle), false).unwrap();
    scene.store.engine().set_initial_data(ts(1));
    scene.write_after(middle);
    scene.check_every_time("going on");
}

impl Scene {
    fn write_after(&mut self, stable: u64) {
        for _ in 0..1_000 {
            self.commit();
        }
        self.at.insert(self.clock, self.now.clone());
        assert_eq!(self.store.engine().timestamps().checkpoint, ts(stable));
    }
}

#[test]
fn x20_x26_stable_frozen_then_rolled_back() {
    let mut scene = Scene::new();
    let mut spilled_bytes = Vec::new();
    for round in 0..3 {
        scene.write_ten_times_the_cache();
        let bytes_before = scene.store.figure("base.live_bytes");
        scene.store.engine().roll_back_to_stable().unwrap();
        scene.forget_after(STABLE);
        scene.check_every_time(&format!("rolled back, round {round}"));
        scene.store.oplog().unwrap().truncate_after(ts(STABLE), false).unwrap();
        scene.store.checkpoint_now();
        scene.store.settle();
        scene.check_every_time(&format!("merged, round {round}"));
        spilled_bytes.push(bytes_before);
    }
    // What is fenced goes in the merges of later writes: it does not pile up.
    let most = spilled_bytes[0] + spilled_bytes[0] / 2;
    assert!(spilled_bytes.iter().all(|bytes| *bytes < most), "{spilled_bytes:?}");
    scene.crash();
    scene.check_every_time("after the crash");
}
