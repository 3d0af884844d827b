//! Crashes and clean shutdowns: what is there afterwards.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;
use pando_env::Random;

pub(super) fn x21_flushed_commits_of_logged_tables_survive(maker: &dyn EngineFactoryMaker) {
    for mut store in Store::both(maker) {
        let table = store.local("t");
        store.put(&table, "a", "1", 0);
        store.put(&table, "b", "2", 0);
        store.delete(&table, "a", 0);
        let position = store.put(&table, "c", "3", 0);
        store.wait_durable(position).block().unwrap();
        drop(table);
        store.crash();
        assert_eq!(store.dump_ident("t"), "b=2 c=3");
        // Once more, from what recovery left.
        store.crash();
        assert_eq!(store.dump_ident("t"), "b=2 c=3");
    }
}

pub(super) fn x21_only_logged_tables_have_redo_under_a_replica_set(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let (replicated, local) = (store.replicated("replicated"), store.local("local"));
    store.replicate(&replicated, "a", "1", 10);
    store.put(&local, "a", "1", 0);
    store.flush_log().unwrap();
    drop((replicated, local));
    store.crash();
    assert_eq!(store.idents(), ["local", "replicated"]);
    assert_eq!((store.dump_ident("replicated"), store.dump_ident("local")), ("".into(), "a=1".into()));
    // The oplog has it, for replication to apply again.
    assert_eq!(store.dump_oplog(), "10=a=1");
}

pub(super) fn x21_everything_has_redo_in_stand_alone_mode(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::stand_alone(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 0);
    store.flush_log().unwrap();
    drop(table);
    store.crash();
    assert_eq!(store.dump_ident("t"), "a=1");
}

pub(super) fn x21_what_survives_is_a_prefix_of_the_commits(maker: &dyn EngineFactoryMaker) {
    for mut store in Store::both(maker) {
        let dice = Dice::new(21);
        drop(store.local("t"));
        store.flush_log().unwrap();
        let (mut survived, mut next) = (0, 1);
        for _ in 0..8 {
            let table = store.open_table("t").unwrap();
            let (mut durable, end) = (survived, next + dice.below(30));
            while next < end {
                // Two keys that must be there together.
                let mut transaction = store.start();
                put(&mut transaction, &table, &format!("{next:05} left"), "x").unwrap();
                put(&mut transaction, &table, &format!("{next:05} right"), "x").unwrap();
                let position = transaction.commit().unwrap().position;
                if dice.below(10) == 0 {
                    store.wait_durable(position).block().unwrap();
                    durable = next;
                }
                if dice.below(25) == 0 {
                    store.checkpoint(CheckpointKind::Full).unwrap();
                }
                next += 1;
            }
            drop(table);
            store.crash();
            let found = store.dump_ident("t");
            survived = found.split("=x").count() as u64 / 2;
            let expected: Vec<String> =
                (1..=survived).map(|number| format!("{number:05} left=x {number:05} right=x")).collect();
            assert_eq!(found, expected.join(" "), "whole transactions, none missing in between");
            assert!(survived >= durable && survived < next, "{survived} of {next}, durable {durable}");
            next = survived + 1;
        }
    }
}

pub(super) fn b3_a_transactions_redo_and_oplog_entries_survive_together(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    drop(store.local("t"));
    store.flush_log().unwrap();
    for round in 0..5_u64 {
        let table = store.open_table("t").unwrap();
        for number in 1..=20 {
            let timestamp = round * 100 + number;
            let position = store.replicate(&table, &format!("{timestamp:04}"), "x", timestamp);
            if number == 10 {
                store.wait_durable(position).block().unwrap();
            }
        }
        drop(table);
        store.crash();
        let (data, entries) = (store.dump_ident("t"), store.dump_oplog());
        let timestamps: Vec<String> =
            entries.split(' ').filter_map(|entry| entry.split('=').nth(1)).map(|key| format!("{key}=x")).collect();
        assert_eq!(data, timestamps.join(" "));
        assert!(data.contains(&format!("{:04}=x", round * 100 + 10)));
    }
}

pub(super) fn x17_tables_and_their_options_survive(maker: &dyn EngineFactoryMaker) {
    for mut store in Store::both(maker) {
        let options = TableOptions { replicated: true, filter: KeyFilter::ExceptLast(8), note: "a note".into() };
        let id = store.create_table("t", &options).unwrap().id();
        store.flush_log().unwrap();
        for clean in [false, true, false] {
            if clean {
                store.reopen();
            } else {
                store.crash();
            }
            let table = store.open_table("t").unwrap();
            assert_eq!((table.id(), table.options()), (id, &options));
        }
        let other = store.local("other").id();
        assert_ne!(other, id);
    }
}

pub(super) fn x17_a_clean_shutdown_keeps_everything_in_stand_alone_mode(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::stand_alone(maker);
    let table = store.local("t");
    for number in 0..300 {
        store.put(&table, &format!("{number:03}"), "x", 0);
    }
    store.grow(&table, (300, 300), 0);
    let before = store.dump(&table);
    drop(table);
    for _ in 0..2 {
        store.reopen();
        let table = store.open_table("t").unwrap();
        assert_eq!((store.dump(&table), store.size(&table)), (before.clone(), (300, 300)));
    }
}

pub(super) fn x17_a_clean_shutdown_keeps_replicated_data_up_to_stable(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let (replicated, local) = (store.replicated("replicated"), store.local("local"));
    store.replicate(&replicated, "a", "1", 10);
    store.replicate(&replicated, "b", "2", 20);
    store.put(&local, "a", "1", 0);
    store.stable_from_start(10);
    drop((replicated, local));
    store.reopen();
    assert_eq!((store.dump_ident("replicated"), store.dump_ident("local")), ("a=1".into(), "a=1".into()));
    assert_eq!(store.timestamps().recovery, ts(10));
    assert_eq!((store.dump_oplog(), store.all_durable()), ("10=a=1 20=b=2".into(), 20));
    // Replication applies again what comes after stable.
    let replicated = store.open_table("replicated").unwrap();
    store.put(&replicated, "b", "2", 20);
    assert_eq!(store.dump(&replicated), "a=1 b=2");
}

pub(super) fn x17_shutting_down_is_idempotent_and_final(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        store.put(&table, "a", "1", 0);
        store.shut_down().unwrap();
        store.shut_down().unwrap();
        let written = store.begin(BeginOptions::default()).and_then(|mut transaction| {
            put(&mut transaction, &table, "b", "2")?;
            transaction.commit()
        });
        assert!(written.is_err(), "writes after the shutdown fail");
    }
}

pub(super) fn x17_logged_redo_after_a_checkpoint_is_applied_once(maker: &dyn EngineFactoryMaker) {
    for mut store in Store::both(maker) {
        let table = store.local("t");
        store.put(&table, "a", "1", 0);
        store.grow(&table, (1, 1), 0);
        store.checkpoint(CheckpointKind::Full).unwrap();
        store.put(&table, "a", "2", 0);
        store.put(&table, "b", "2", 0);
        store.grow(&table, (1, 1), 0);
        store.flush_log().unwrap();
        drop(table);
        for _ in 0..2 {
            store.crash();
            let table = store.open_table("t").unwrap();
            assert_eq!((store.dump(&table), store.size(&table)), ("a=2 b=2".into(), (2, 2)));
        }
    }
}

pub(super) fn x17_logged_tables_lose_nothing_to_a_checkpoint_at_stable(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let local = store.local("local");
    store.put(&local, "timestamped", "x", 50);
    store.put(&local, "plain", "x", 0);
    store.stable_from_start(10);
    store.checkpoint_now();
    store.flush_log().unwrap();
    drop(local);
    store.crash();
    assert_eq!(store.dump_ident("local"), "plain=x timestamped=x");
}

pub(super) fn x17_unfinished_transactions_are_gone(maker: &dyn EngineFactoryMaker) {
    for mut store in Store::both(maker) {
        let table = store.local("t");
        store.put(&table, "a", "1", 0);
        let mut running = store.start();
        put(&mut running, &table, "b", "2").unwrap();
        store.flush_log().unwrap();
        store.checkpoint(CheckpointKind::Full).unwrap();
        drop((running, table));
        store.crash();
        assert_eq!(store.dump_ident("t"), "a=1");
    }
}

pub(super) fn x17_timestamped_history_of_logged_tables_survives(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::stand_alone(maker);
    let table = store.local("t");
    store.put(&table, "a", "10", 10);
    store.put(&table, "a", "20", 20);
    store.flush_log().unwrap();
    drop(table);
    store.crash();
    let table = store.open_table("t").unwrap();
    assert_eq!((store.dump_at(&table, 15), store.dump(&table)), ("a=10".into(), "a=20".into()));
}

pub(super) fn x21_log_positions_rise_and_become_durable(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        let mut last = LogPosition::default();
        for number in 0..20 {
            let position = store.put(&table, &number.to_string(), "x", 0);
            assert!(position > last && position <= store.log_end());
            last = position;
        }
        assert!(store.flush_log().unwrap() >= last);
        assert!(is_over(&mut store.wait_durable(last)));
    }
}
