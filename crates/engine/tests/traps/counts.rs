//! Records and bytes that commit with their transaction are exact after every crash and rollback.

use crate::store::{Dice, Store, forward, is_long, ts};
use pando_engine::Mode;
use pando_storage::{CheckpointKind, Table, TableSize, Transaction};

const KEYS: u64 = 60;

/// A store with a replicated and a logged table, changed at random; the engine's own contents say what the counts must be.
struct Scene {
    store: Store,
    dice: Dice,
    clock: u64,
    /// Commit timestamps whose durable timestamp is the next one: read at them, but not yet counted as stable.
    not_yet_durable: Vec<u64>,
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:04}").into_bytes()
}

fn counted(transaction: &dyn Transaction, table: &Table) -> TableSize {
    let rows = forward(transaction, table);
    TableSize::new(rows.len() as i64, rows.iter().map(|(_, value)| value.len() as i64).sum())
}

impl Scene {
    fn new(seed: u64) -> Scene {
        let store = Store::new(Mode::ReplicaSet, 4 << 20);
        drop((store.replicated("replicated"), store.local("logged")));
        store.stable_from_start(1);
        store.engine().set_oldest(ts(1), false).unwrap();
        Scene { store, dice: Dice::new(seed), clock: 1, not_yet_durable: Vec::new() }
    }

    /// Changes some keys and the table's size by what that changes.
    fn change(&mut self, transaction: &mut Box<dyn Transaction>, table: &Table) {
        for _ in 0..1 + self.dice.below(5) {
            let key = key(self.dice.below(KEYS));
            let before = transaction.get(table, &key).unwrap().map(|value| value.len() as i64);
            let mut change = before.map_or(TableSize::default(), |bytes| TableSize::new(-1, -bytes));
            if self.dice.below(3) > 0 {
                let length = 1 + self.dice.below(300) as usize;
                transaction.put(table, &key, &vec![3; length]).unwrap();
                change += TableSize::new(1, length as i64);
            } else {
                transaction.delete(table, &key).unwrap();
            }
            transaction.adjust_size(table, change).unwrap();
        }
    }

    fn commit(&mut self, ident: &str) {
        let table = self.store.table(ident);
        let mut transaction = self.store.start();
        if ident == "logged" {
            self.change(&mut transaction, &table);
            transaction.commit().unwrap();
            return;
        }
        self.clock += 2;
        match self.dice.below(6) {
            0 => {
                // Prepared: counted at its durable timestamp.
                self.change(&mut transaction, &table);
                transaction.prepare(ts(self.clock)).unwrap();
                if self.dice.below(4) == 0 {
                    transaction.roll_back();
                    return;
                }
                transaction.set_commit_timestamp(ts(self.clock)).unwrap();
                transaction.set_durable_timestamp(ts(self.clock + 1)).unwrap();
                self.not_yet_durable.push(self.clock);
            }
            1 => {
                // Vectored: two timestamps in one transaction.
                transaction.set_commit_timestamp(ts(self.clock)).unwrap();
                self.change(&mut transaction, &table);
                transaction.set_commit_timestamp(ts(self.clock + 1)).unwrap();
                self.change(&mut transaction, &table);
            }
            2 => {
                self.change(&mut transaction, &table);
                transaction.set_commit_timestamp(ts(self.clock)).unwrap();
            }
            _ => {
                transaction.set_commit_timestamp(ts(self.clock)).unwrap();
                self.change(&mut transaction, &table);
            }
        }
        self.clock += 1;
        match self.dice.below(8) {
            0 => transaction.roll_back(),
            _ => _ = transaction.commit().unwrap(),
        }
    }

    fn stable(&self) -> u64 {
        self.store.engine().timestamps().stable.0
    }

    /// The counts are what is there, latest and at stable.
    fn check(&self, when: &str) {
        for ident in ["replicated", "logged"] {
            let table = self.store.table(ident);
            let size = self.store.engine().table_size(&table).unwrap();
            assert_eq!(size, counted(&*self.store.start(), &table), "{ident}, {when}");
            let stable_size = self.store.engine().stable_table_size(&table).unwrap();
            let expected = match ident {
                "logged" => size,
                _ if self.not_yet_durable.contains(&self.stable()) => continue,
                _ => counted(&*self.store.start_at(self.stable()), &table),
            };
            assert_eq!(stable_size, expected, "{ident} at stable, {when}");
        }
    }

    fn crash(&mut self, when: &str) {
        self.store.crash();
        self.store.engine().set_initial_data(ts(1));
        self.store.engine().set_stable(ts(self.stable().max(1))).unwrap();
        self.store.engine().set_oldest(ts(1), false).unwrap();
        self.clock = self.clock.max(self.stable());
        self.check(when);
    }
}

#[test]
fn x18_counts_are_exact_after_crash_and_rollback() {
    for seed in 1..=if is_long() { 300 } else { 25 } {
        let mut scene = Scene::new(seed);
        for step in 0..150 {
            let when = format!("seed {seed}, step {step}");
            match scene.dice.below(16) {
                0..=7 => scene.commit("replicated"),
                8..=10 => scene.commit("logged"),
                11 => {
                    let stable = scene.stable() + scene.dice.below(scene.clock - scene.stable() + 1);
                    scene.store.engine().set_stable(ts(stable)).unwrap();
                }
                12 => drop(scene.store.checkpoint_now()),
                13 => {
                    scene.store.engine().roll_back_to_stable().unwrap();
                    scene.check(&format!("{when}, rolled back"));
                    assert_eq!(
                        scene.store.engine().table_size(&scene.store.table("replicated")).unwrap(),
                        scene.store.engine().stable_table_size(&scene.store.table("replicated")).unwrap()
                    );
                }
                14 => {
                    scene.store.engine().flush_log().unwrap();
                    scene.crash(&format!("{when}, crashed"));
                }
                _ => scene.store.settle(),
            }
            scene.check(&when);
        }
    }
}

/// A stable in the middle of a transaction's timestamps splits its counts, too.
#[test]
fn x18_stable_between_the_timestamps_of_one_transaction() {
    let mut store = Store::new(Mode::ReplicaSet, 4 << 20);
    let table = store.replicated("t");
    store.stable_from_start(1);
    store.engine().set_oldest(ts(1), false).unwrap();
    let mut transaction = store.start();
    for timestamp in 10..20 {
        transaction.set_commit_timestamp(ts(timestamp)).unwrap();
        transaction.put(&table, &key(timestamp), b"12345").unwrap();
        transaction.adjust_size(&table, TableSize::new(1, 5)).unwrap();
    }
    transaction.commit().unwrap();
    store.engine().set_stable(ts(14)).unwrap();
    assert_eq!(store.engine().stable_table_size(&table).unwrap(), TableSize::new(5, 25));
    assert_eq!(store.engine().table_size(&table).unwrap(), TableSize::new(10, 50));
    store.checkpoint_now();
    store.engine().checkpoint(CheckpointKind::Automatic).unwrap();
    drop(table);
    store.crash();
    let table = store.table("t");
    assert_eq!(store.engine().table_size(&table).unwrap(), TableSize::new(5, 25));
    assert_eq!(counted(&*store.start(), &table), TableSize::new(5, 25));
}
