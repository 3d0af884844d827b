//! A scan must not miss a key that moves from overlay to base under it.

use crate::store::{Contents, Dice, Store, ts};
use pando_engine::Mode;
use pando_storage::{CheckpointKind, Cursor, Table, Transaction};

/// Enough for a few leaves.
const KEYS: u64 = 300;

fn key(number: u64) -> Vec<u8> {
    format!("key-{number:06}").into_bytes()
}

/// What happens between two steps of a scan.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A key ahead is written and stays in the overlay.
    Write,
    /// A checkpoint moves what was dirty to the base.
    Checkpoint,
    /// The same, and rows that the base has leave memory.
    CheckpointAndEvict,
    /// The same, and runs are merged.
    Merge,
    /// A key ahead moves to the base, and a newer version of it comes to the overlay.
    MoveAndWriteAgain,
    /// Keys ahead are deleted, and the deletion moves to the base.
    DeleteAndMove,
    /// A range that was deleted before the scan moves to the base; then another one is deleted.
    MoveRangeAndTruncate,
}

const EVENTS: [Event; 7] = [
    Event::Write,
    Event::Checkpoint,
    Event::CheckpointAndEvict,
    Event::Merge,
    Event::MoveAndWriteAgain,
    Event::DeleteAndMove,
    Event::MoveRangeAndTruncate,
];

/// A table and what its newest commit left.
struct Scene {
    store: Store,
    table: Table,
    now: Contents,
    clock: u64,
    dice: Dice,
}

impl Scene {
    fn new(mode: Mode, seed: u64) -> Scene {
        let store = Store::new(mode, 8 << 20);
        let table = match mode {
            Mode::StandAlone => store.local("t"),
            Mode::ReplicaSet => store.replicated("t"),
        };
        if mode == Mode::ReplicaSet {
            store.stable_from_start(1);
        }
        Scene { store, table, now: Contents::new(), clock: 1, dice: Dice::new(seed) }
    }

    fn is_replicated(&self) -> bool {
        self.store.options.mode == Mode::ReplicaSet
    }

    /// Rows in the base, rows in the overlay and rows in both, in no order.
    fn fill(&mut self) {
        for round in 0..4 {
            for _ in 0..KEYS / 2 {
                let number = self.dice.below(KEYS);
                self.write(number, round != 2 || !number.is_multiple_of(3));
            }
            if round < 3 {
                self.checkpoint();
                self.store.evict();
            }
        }
    }

    fn write(&mut self, number: u64, is_put: bool) {
        let timestamp = if self.is_replicated() { self.tick() } else { 0 };
        let value = format!("value-{}-{}", number, self.dice.next()).into_bytes();
        self.store.write(&self.table, &key(number), is_put.then_some(&value[..]), timestamp);
        match is_put {
            true => self.now.insert(key(number), value),
            false => self.now.remove(&key(number)),
        };
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn checkpoint(&mut self) {
        if self.is_replicated() {
            self.store.engine().set_stable(ts(self.clock)).unwrap();
            self.store.engine().set_oldest(ts(self.clock), false).unwrap();
            self.store.checkpoint_now();
        } else {
            self.store.engine().checkpoint(CheckpointKind::Full).unwrap();
        }
    }

    /// Lets it happen near a key.
    fn happen(&mut self, event: Event, near: u64) {
        let ahead = |dice: &mut Dice| (near + KEYS + dice.below(9) - 4) % KEYS;
        match event {
            Event::Write => {
                let number = ahead(&mut self.dice);
                self.write(number, true);
            }
            Event::Checkpoint => self.checkpoint(),
            Event::CheckpointAndEvict => {
                self.checkpoint();
                self.store.evict();
            }
            Event::Merge => {
                self.checkpoint();
                self.store.settle();
                self.store.evict();
            }
            Event::MoveAndWriteAgain => {
                let number = ahead(&mut self.dice);
                self.write(number, true);
                self.checkpoint();
                self.store.evict();
                self.write(number, true);
            }
            Event::DeleteAndMove => {
                for _ in 0..3 {
                    let number = ahead(&mut self.dice);
                    self.write(number, false);
                }
                self.checkpoint();
                self.store.evict();
            }
            Event::MoveRangeAndTruncate => {
                self.checkpoint();
                self.store.evict();
                for _ in 0..6 {
                    let number = self.dice.below(KEYS);
                    self.write(number, true);
                }
                let start = ahead(&mut self.dice);
                self.truncate(start, start + 4);
            }
        }
    }

    fn truncate(&mut self, start: u64, end: u64) {
        let mut transaction = self.store.start();
        if self.is_replicated() {
            let timestamp = self.tick();
            transaction.set_commit_timestamp(ts(timestamp)).unwrap();
        }
        transaction.truncate(&self.table, &key(start), Some(&key(end))).unwrap();
        transaction.commit().unwrap();
        self.now.retain(|found, _| *found < key(start) || *found >= key(end));
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Forward,
    Backward,
}

fn step(cursor: &mut Box<dyn Cursor>, way: Way) -> Option<(Vec<u8>, Vec<u8>)> {
    let entry = match way {
        Way::Forward => cursor.next().unwrap(),
        Way::Backward => cursor.previous().unwrap(),
    };
    entry.map(|entry| (entry.key.to_vec(), entry.value.to_vec()))
}

fn expected_rows(expected: &Contents, way: Way) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows: Vec<_> = expected.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    if way == Way::Backward {
        rows.reverse();
    }
    rows
}

/// Scans all of it; the event happens before the step of this number, near the cursor.
fn scan_with_event(scene: &mut Scene, way: Way, event: Event, at: usize) {
    let expected = expected_rows(&scene.now, way);
    // A timestamped snapshot must survive that oldest passes it.
    let reader = match scene.is_replicated() && at.is_multiple_of(2) {
        true => scene.store.start_at(scene.clock),
        false => scene.store.start(),
    };
    let mut cursor = reader.cursor(&scene.table).unwrap();
    let mut rows = Vec::new();
    loop {
        if rows.len() == at {
            let near = match way {
                Way::Forward => at as u64 + 4,
                Way::Backward => KEYS.saturating_sub(at as u64 + 4),
            };
            scene.happen(event, near.min(KEYS - 1));
        }
        match step(&mut cursor, way) {
            Some(row) => rows.push(row),
            None => break,
        }
    }
    assert!(rows == expected, "{way:?}, {event:?} before step {at}: {} of {} rows", rows.len(), expected.len());
}

fn every_event_at_every_position(mode: Mode) {
    for (seed, event) in EVENTS.into_iter().enumerate() {
        let mut scene = Scene::new(mode, seed as u64 + 1);
        scene.fill();
        for at in 0..KEYS as usize {
            for way in [Way::Forward, Way::Backward] {
                scan_with_event(&mut scene, way, event, at);
            }
        }
    }
}

#[test]
fn x4_a_scan_misses_no_key_that_moves_under_it() {
    every_event_at_every_position(Mode::StandAlone);
}

#[test]
fn x4_x25_a_scan_of_a_replicated_table_misses_no_key_that_moves_under_it() {
    every_event_at_every_position(Mode::ReplicaSet);
}

/// Events at every single step, for cursors that go both ways, seek and see their transaction's own writes.
fn wander(mode: Mode, seed: u64) {
    let mut scene = Scene::new(mode, seed);
    scene.fill();
    let mut reader = scene.store.start();
    let mut expected = scene.now.clone();
    let mut cursor = reader.cursor(&scene.table).unwrap();
    let mut place: Option<Vec<u8>> = None;
    for number in 0..400 {
        // Truncations would conflict with the reader's own writes, whichever comes first.
        let event = EVENTS[scene.dice.below(EVENTS.len() as u64 - 1) as usize];
        let near = scene.dice.below(KEYS);
        scene.happen(event, near);
        if scene.dice.below(8) == 0 {
            write_own(&mut scene, &mut reader, &mut expected);
        }
        let found = match scene.dice.below(10) {
            0 => {
                let wanted = key(scene.dice.below(KEYS));
                let found = cursor.seek(&wanted).unwrap().map(|entry| entry.key.to_vec());
                assert_eq!(found.as_ref(), expected.range(wanted..).next().map(|(key, _)| key), "seek, step {number}");
                found
            }
            1 => {
                let wanted = key(scene.dice.below(KEYS));
                let found = cursor.seek_back(&wanted).unwrap().map(|entry| entry.key.to_vec());
                let wish = expected.range(..=wanted).next_back().map(|(key, _)| key);
                assert_eq!(found.as_ref(), wish, "seek_back, step {number}");
                found
            }
            odd if odd % 2 == 1 => {
                let wish = match &place {
                    Some(place) => expected.range(place.clone()..).find(|(key, _)| *key > place),
                    None => expected.iter().next(),
                };
                let found = cursor.next().unwrap().map(|entry| entry.key.to_vec());
                assert_eq!(found.as_ref(), wish.map(|(key, _)| key), "next, step {number}");
                found
            }
            _ => {
                let wish = match &place {
                    Some(place) => expected.range(..place.clone()).next_back(),
                    None => expected.iter().next_back(),
                };
                let found = cursor.previous().unwrap().map(|entry| entry.key.to_vec());
                assert_eq!(found.as_ref(), wish.map(|(key, _)| key), "previous, step {number}");
                found
            }
        };
        if let Some(key) = &found {
            let entry = cursor.entry().expect("it stands on a row");
            assert_eq!((entry.key, Some(entry.value)), (&key[..], expected.get(key).map(|value| &value[..])));
        }
        place = found;
        if place.is_none() {
            // Past an end a cursor starts again only after a seek, or as a new one.
            cursor = reader.cursor(&scene.table).unwrap();
        }
    }
}

/// A write of the reader itself, to a key that nobody else writes, so that it never conflicts.
fn write_own(scene: &mut Scene, reader: &mut Box<dyn Transaction>, expected: &mut Contents) {
    let own = [key(scene.dice.below(KEYS)), b"-own".to_vec()].concat();
    match scene.dice.below(3) {
        0 => {
            reader.delete(&scene.table, &own).unwrap();
            expected.remove(&own);
        }
        _ => {
            let value = scene.dice.bytes(8);
            reader.put(&scene.table, &own, &value).unwrap();
            expected.insert(own, value);
        }
    }
}

#[test]
fn x4_cursors_wander_while_everything_moves() {
    for seed in 1..=if crate::store::is_long() { 200 } else { 10 } {
        wander(Mode::StandAlone, seed);
        wander(Mode::ReplicaSet, seed);
    }
}
