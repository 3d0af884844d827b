//! A snapshot that is held for a long time reads its values, and costs space only while it is held.

use crate::store::{Contents, Dice, Store, assert_contents, ts};
use pando_engine::Mode;
use pando_storage::{CheckpointKind, Table};

const KEYS: u64 = 500;
/// Together more than what merges take for tiny.
const VALUE_BYTES: usize = 3_000;

fn key(number: u64) -> Vec<u8> {
    format!("{number:08}").into_bytes()
}

struct Scene {
    store: Store,
    table: Table,
    dice: Dice,
    clock: u64,
    now: Contents,
}

impl Scene {
    fn new(mode: Mode) -> Scene {
        let store = Store::new(mode, 4 << 20);
        let table = match mode {
            Mode::StandAlone => store.local("t"),
            Mode::ReplicaSet => store.replicated("t"),
        };
        if mode == Mode::ReplicaSet {
            store.stable_from_start(1);
        }
        let mut scene = Scene { store, table, dice: Dice::new(11), clock: 1, now: Contents::new() };
        scene.rewrite_all();
        scene.checkpoint();
        scene
    }

    fn is_replicated(&self) -> bool {
        self.store.options.mode == Mode::ReplicaSet
    }

    /// Every key gets a new value, or is deleted, or comes back.
    fn rewrite_all(&mut self) {
        for number in 0..KEYS {
            self.clock += 1;
            let timestamp = if self.is_replicated() { self.clock } else { 0 };
            if self.dice.below(16) == 0 {
                self.store.write(&self.table, &key(number), None, timestamp);
                self.now.remove(&key(number));
            } else {
                let value = self.dice.bytes(VALUE_BYTES);
                self.store.put(&self.table, &key(number), &value, timestamp);
                self.now.insert(key(number), value);
            }
        }
    }

    /// With no history window at all: only the snapshot keeps anything.
    fn checkpoint(&mut self) {
        if self.is_replicated() {
            self.store.engine().set_stable(ts(self.clock)).unwrap();
            self.store.engine().set_oldest(ts(self.clock), false).unwrap();
            assert!(self.store.checkpoint_now().taken);
        } else {
            assert!(self.store.engine().checkpoint(CheckpointKind::Full).unwrap().taken);
        }
        self.store.settle();
        self.store.evict();
    }

    fn live_bytes(&self) -> i64 {
        self.store.figure("base.live_bytes")
    }
}

fn hold_a_snapshot(mode: Mode, rounds: u64) {
    let mut scene = Scene::new(mode);
    let one_copy_bytes = (KEYS as usize * VALUE_BYTES) as i64;
    scene.rewrite_all();
    // One snapshot over rows in the base, and one over rows that are partly in the overlay; one more reads at a timestamp.
    let held_contents = scene.now.clone();
    let held = scene.store.start();
    let held_timestamped = scene.is_replicated().then(|| scene.store.start_at(scene.clock));
    for number in 0..KEYS / 2 {
        scene.clock += 1;
        let timestamp = if scene.is_replicated() { scene.clock } else { 0 };
        scene.store.put(&scene.table, &key(number), b"between", timestamp);
        scene.now.insert(key(number), b"between".to_vec());
    }
    let later_contents = scene.now.clone();
    let later = scene.store.start();
    // A cursor that moves one row a round.
    let mut slow = held.cursor(&scene.table).unwrap();
    let mut slow_rows = held_contents.iter();
    for round in 0..rounds {
        scene.rewrite_all();
        scene.checkpoint();
        let row = slow.next().unwrap().map(|entry| (entry.key.to_vec(), entry.value.to_vec()));
        assert!(row.as_ref().map(|(key, value)| (key, value)) == slow_rows.next(), "round {round}");
        if round % 8 == 7 {
            assert_contents(&*held, &scene.table, &held_contents, &format!("held, round {round}"));
            assert_contents(&*later, &scene.table, &later_contents, &format!("held later, round {round}"));
            if let Some(reader) = &held_timestamped {
                assert_contents(&**reader, &scene.table, &held_contents, &format!("held at time, round {round}"));
            }
            assert_contents(&*scene.store.start(), &scene.table, &scene.now, &format!("latest, round {round}"));
        }
    }
    let while_held_bytes = scene.live_bytes();
    if !scene.is_replicated() {
        // Two snapshots need two copies, and the present is one: the versions between are nobody's. The young runs may
        // reach the size of the oldest before they are merged into it.
        assert!(while_held_bytes < 8 * one_copy_bytes, "{while_held_bytes} bytes for three copies of {one_copy_bytes}");
    }
    drop((slow, held, later, held_timestamped));
    for _ in 0..8 {
        scene.rewrite_all();
        scene.checkpoint();
    }
    let after_bytes = scene.live_bytes();
    assert!(after_bytes < while_held_bytes, "{while_held_bytes} bytes while held, then {after_bytes}");
    assert!(after_bytes < 3 * one_copy_bytes, "{after_bytes} bytes for one copy of {one_copy_bytes}");
    assert_contents(&*scene.store.start(), &scene.table, &scene.now, "afterwards");
}

#[test]
fn x4_x7_a_snapshot_held_for_a_long_time() {
    hold_a_snapshot(Mode::StandAlone, if crate::store::is_long() { 400 } else { 40 });
}

#[test]
fn x4_x7_x25_a_snapshot_held_for_a_long_time_over_a_replicated_table() {
    hold_a_snapshot(Mode::ReplicaSet, if crate::store::is_long() { 400 } else { 40 });
}

/// Without another write: merges alone drop the history of the snapshot that has gone.
#[test]
fn x7_history_goes_after_its_snapshot_without_new_writes() {
    let mut scene = Scene::new(Mode::StandAlone);
    let mut held = Vec::new();
    for _ in 0..10 {
        held.push(scene.store.start());
        scene.rewrite_all();
        scene.checkpoint();
    }
    let before_bytes = scene.live_bytes();
    held.clear();
    scene.store.settle();
    let after_bytes = scene.live_bytes();
    assert!(after_bytes * 2 < before_bytes, "{before_bytes} bytes while held, then {after_bytes}");
    assert_contents(&*scene.store.start(), &scene.table, &scene.now, "afterwards");
}
