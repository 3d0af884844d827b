//! The log as the oplog: holes, cursors, waiting, and cutting either end.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;
use std::time::Duration;

pub(super) fn x26_stand_alone_stores_have_no_oplog(maker: &dyn EngineFactoryMaker) {
    let store = Store::stand_alone(maker);
    assert!(store.oplog().is_none());
    let mut transaction = store.start();
    fails!(transaction.append_oplog(ts(10), b"x"), IllegalOperation);
}

pub(super) fn x26_entries_appear_at_commit(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    assert_eq!((store.log().first(), store.log().last(), store.log().visible()), (None, None, ts(0)));
    let mut transaction = store.start();
    transaction.set_commit_timestamp(ts(10)).unwrap();
    transaction.append_oplog(ts(10), b"a").unwrap();
    assert_eq!(store.log().last(), None);
    transaction.commit().unwrap();
    store.append(20, "bb");
    assert_eq!((store.log().first(), store.log().last()), (Some(ts(10)), Some(ts(20))));
    assert_eq!(store.log().visible(), ts(20));
    assert_eq!(store.dump_oplog(), "10=a 20=bb");
    assert_eq!(store.dump_oplog_backward(), "20=bb 10=a");
    assert_eq!(store.log().size(), TableSize::new(2, 3));
    let mut transaction = store.start();
    transaction.append_oplog(ts(30), b"never").unwrap();
    transaction.roll_back();
    assert_eq!(store.dump_oplog_backward(), "20=bb 10=a");
}

pub(super) fn x26_a_transaction_may_have_many_entries(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let mut transaction = store.start();
    for timestamp in [10, 20, 30] {
        transaction.set_commit_timestamp(ts(timestamp)).unwrap();
        put(&mut transaction, &table, &timestamp.to_string(), "x").unwrap();
        transaction.append_oplog(ts(timestamp), b"e").unwrap();
    }
    transaction.commit().unwrap();
    assert_eq!(store.dump_oplog(), "10=e 20=e 30=e");
    assert_eq!(store.all_durable(), 30);
}

pub(super) fn x26_entries_may_be_built_in_place(maker: &dyn EngineFactoryMaker) {
    const ENTRIES: u64 = 200;
    let store = Store::replica_set(maker);
    let build = |transaction: &mut Box<dyn Transaction>, timestamp: u64, length: usize| {
        transaction.build_oplog(ts(timestamp), &mut |mut buffer| {
            buffer.resize(buffer.len() + length, b'0' + (timestamp % 10) as u8);
            buffer
        })
    };
    let fill = |first: u64, length: usize| {
        let mut transaction = store.start();
        transaction.expect_oplog(ENTRIES as usize, ENTRIES as usize * length);
        for timestamp in first..first + ENTRIES {
            assert_eq!(build(&mut transaction, timestamp, length).unwrap(), length);
        }
        transaction.append_oplog(ts(first + ENTRIES), b"last").unwrap();
        assert!(store.all_durable() < first);
        transaction
    };
    // Large records, the second of which lies before the first, and a small one.
    let early = fill(10, 1_000);
    fill(1_000, 1_000).commit().unwrap();
    assert!(store.all_durable() < 10);
    early.commit().unwrap();
    fill(2_000, 3).commit().unwrap();
    let mut entries = store.log().forward().unwrap();
    for (first, length) in [(10, 1_000), (1_000, 1_000), (2_000, 3)] {
        for timestamp in first..first + ENTRIES {
            let entry = entries.next().unwrap().unwrap();
            assert_eq!((entry.timestamp, entry.entry.len()), (ts(timestamp), length));
            assert!(entry.entry.iter().all(|byte| *byte == b'0' + (timestamp % 10) as u8));
        }
        assert_eq!(entries.next().unwrap().unwrap().entry.as_ref(), b"last");
    }
    assert!(entries.next().unwrap().is_none());
    let mut transaction = store.start();
    fails!(build(&mut transaction, 1_100, 1), DuplicateKey);
}

pub(super) fn x26_entries_count_for_all_durable_without_commit_timestamps(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let mut transaction = store.start();
    transaction.append_oplog(ts(30), b"e").unwrap();
    transaction.commit().unwrap();
    assert_eq!((store.all_durable(), store.dump_oplog()), (30, "30=e".into()));
}

pub(super) fn x26_forward_readers_stop_before_holes(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    store.append(10, "a");
    let mut tailing = store.log().forward().unwrap();
    assert_eq!(shown_entry(tailing.next().unwrap()), "10=a");
    let slot = store.reserve_slot(ts(20)).unwrap();
    store.append(30, "c");
    assert_eq!(store.log().visible(), ts(19));
    assert_eq!(shown_entry(tailing.next().unwrap()), "none");
    assert_eq!(shown_entry(store.log().forward().unwrap().seek(ts(30)).unwrap()), "none");
    assert_eq!(store.dump_oplog_backward(), "30=c 10=a");
    assert_eq!(store.log().last(), Some(ts(30)));
    // The hole is filled.
    let mut transaction = store.start();
    transaction.hold_slot(slot);
    transaction.set_commit_timestamp(ts(20)).unwrap();
    transaction.append_oplog(ts(20), b"b").unwrap();
    transaction.commit().unwrap();
    assert_eq!(shown_entry(tailing.next().unwrap()), "20=b");
    assert_eq!(shown_entry(tailing.next().unwrap()), "30=c");
    assert_eq!(shown_entry(tailing.next().unwrap()), "none");
    store.append(40, "d");
    assert_eq!(shown_entry(tailing.next().unwrap()), "40=d");
}

pub(super) fn x26_an_abandoned_slot_leaves_no_hole(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let slot = store.reserve_slot(ts(20)).unwrap();
    store.append(30, "c");
    assert_eq!(store.dump_oplog(), "");
    drop(slot);
    assert_eq!(store.dump_oplog(), "30=c");
}

pub(super) fn x26_cursors_seek_in_their_direction(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    for timestamp in [10, 20, 30] {
        store.append(timestamp, "x");
    }
    let mut forward = store.log().forward().unwrap();
    assert_eq!(shown_entry(forward.seek(ts(11)).unwrap()), "20=x");
    assert_eq!(shown_entry(forward.next().unwrap()), "30=x");
    assert_eq!(shown_entry(forward.seek(ts(10)).unwrap()), "10=x");
    assert_eq!(shown_entry(forward.next().unwrap()), "20=x");
    assert_eq!(shown_entry(forward.seek(ts(31)).unwrap()), "none");
    let mut backward = store.log().backward().unwrap();
    assert_eq!(shown_entry(backward.seek(ts(29)).unwrap()), "20=x");
    assert_eq!(shown_entry(backward.next().unwrap()), "10=x");
    assert_eq!(shown_entry(backward.next().unwrap()), "none");
    assert_eq!(shown_entry(backward.seek(ts(30)).unwrap()), "30=x");
    assert_eq!(shown_entry(backward.seek(ts(9)).unwrap()), "none");
}

pub(super) fn x26_entries_sort_by_timestamp_whatever_the_order_of_commits(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let slots: Vec<Slot> = (1..=40).map(|number| store.reserve_slot(ts(number)).unwrap()).collect();
    // Each third first, then the next third: timestamps go back and forth in the log.
    let mut order: Vec<Slot> = slots.into_iter().collect();
    order.sort_by_key(|slot| (slot.timestamp().0 % 3, slot.timestamp()));
    for slot in order {
        let timestamp = slot.timestamp();
        let mut transaction = store.start();
        transaction.hold_slot(slot);
        transaction.set_commit_timestamp(timestamp).unwrap();
        transaction.append_oplog(timestamp, b"x").unwrap();
        transaction.commit().unwrap();
    }
    let expected: Vec<String> = (1..=40).map(|number| format!("{number}=x")).collect();
    assert_eq!(store.dump_oplog(), expected.join(" "));
}

pub(super) fn x26_a_timestamp_is_used_once(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    store.append(10, "a");
    let mut transaction = store.start();
    fails!(transaction.append_oplog(ts(10), b"again"), DuplicateKey);
    drop(transaction);
    assert_eq!(store.dump_oplog(), "10=a");
}

pub(super) fn x26_waiting_ends_when_something_is_visible(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    store.append(10, "a");
    assert!(is_over(&mut store.log().wait_visible(ts(9))));
    let (mut tailing, mut other) = (store.log().wait_visible(ts(10)), store.log().wait_visible(ts(10)));
    assert!(!is_over(&mut tailing));
    let slot = store.reserve_slot(ts(20)).unwrap();
    store.append(30, "c");
    drop(slot);
    tailing.block().unwrap();
    let mut truncated = store.log().wait_visible(ts(30));
    assert!(!is_over(&mut truncated));
    store.log().truncate_after(ts(10), false).unwrap();
    truncated.block().unwrap();
    let _ = is_over(&mut other);
}

pub(super) fn x26_the_new_end_can_be_truncated(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    for timestamp in [10, 20, 30, 40] {
        store.append(timestamp, "x");
    }
    store.log().truncate_after(ts(30), false).unwrap();
    assert_eq!(store.dump_oplog(), "10=x 20=x 30=x");
    assert_eq!((store.log().last(), store.all_durable()), (Some(ts(30)), 30));
    store.log().truncate_after(ts(20), true).unwrap();
    assert_eq!((store.dump_oplog(), store.log().size()), ("10=x".into(), TableSize::new(1, 1)));
    assert_eq!(store.all_durable(), 10);
    // The timestamps are free again, and what comes after a truncation outlives it.
    store.append(20, "new");
    store.append(35, "new");
    store.flush_log().unwrap();
    assert_eq!(store.dump_oplog_backward(), "35=new 20=new 10=x");
    store.crash();
    assert_eq!(store.dump_oplog(), "10=x 20=new 35=new");
}

pub(super) fn x26_the_new_end_is_not_truncated_below_stable_in_time(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    store.append(10, "x");
    store.append(40, "x");
    store.set_stable(ts(25)).unwrap();
    store.log().truncate_after(ts(10), false).unwrap();
    assert_eq!((store.log().last(), store.all_durable()), (Some(ts(10)), 25));
}

pub(super) fn x26_readers_notice_the_truncation_of_the_new_end(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    store.append(10, "a");
    store.append(20, "b");
    let mut forward = store.log().forward().unwrap();
    assert_eq!(shown_entry(forward.next().unwrap()), "10=a");
    store.log().truncate_after(ts(10), false).unwrap();
    assert_eq!(shown_entry(forward.next().unwrap()), "none");
    store.append(15, "c");
    assert_eq!(shown_entry(forward.next().unwrap()), "15=c");
}

pub(super) fn x26_a_reset_removes_every_entry(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let local = store.local("local");
    store.append(10, "a");
    store.append(20, "b");
    store.put(&local, "before", "1", 0);
    store.log().reset().unwrap();
    assert_eq!((store.log().first(), store.log().last(), store.all_durable()), (None, None, 0));
    assert_eq!((store.dump_oplog(), store.log().size()), ("".into(), TableSize::default()));
    store.append(5, "new");
    store.put(&local, "after", "1", 0);
    store.flush_log().unwrap();
    drop(local);
    store.crash();
    assert_eq!(store.dump_oplog(), "5=new");
    assert_eq!(store.dump_ident("local"), "after=1 before=1");
}

pub(super) fn x26_entries_survive_a_crash_up_to_the_first_hole(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    store.append(10, "a");
    let slot = store.reserve_slot(ts(20)).unwrap();
    store.append(30, "c");
    store.flush_log().unwrap();
    drop(slot);
    // The hole is gone in memory; only the next flush says so on disk.
    store.crash();
    let entries = store.dump_oplog_backward();
    assert!(entries == "10=a" || entries == "30=c 10=a", "{entries}");
    store.append(40, "d");
    let slot = store.reserve_slot(ts(50)).unwrap();
    let position = store.append(60, "f");
    let mut wait = store.wait_durable(position);
    assert!(!is_over(&mut wait));
    store.flush_log().unwrap();
    assert!(!is_over(&mut wait), "a commit past a hole is not durable");
    drop(slot);
    wait.block().unwrap();
    store.crash();
    assert!(store.dump_oplog().ends_with("40=d 60=f"), "{}", store.dump_oplog());
}

pub(super) fn x26_a_hole_at_the_crash_cuts_the_oplog(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let local = store.local("local");
    store.append(10, "a");
    let slot = store.reserve_slot(ts(20)).unwrap();
    store.append(30, "c");
    store.put(&local, "k", "v", 0);
    store.flush_log().unwrap();
    drop(local);
    // The slot outlives its engine: what a process has in hand when the power goes.
    store.crash_holding(slot);
    assert_eq!((store.dump_oplog(), store.dump_oplog_backward()), ("10=a".into(), "10=a".into()));
    assert_eq!((store.log().last(), store.all_durable()), (Some(ts(10)), 10));
    assert_eq!(store.dump_ident("local"), "k=v");
    store.append(20, "new");
    assert_eq!(store.dump_oplog(), "10=a 20=new");
}

pub(super) fn x26_the_oplog_survives_a_clean_shutdown_whole(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    for timestamp in 1..200 {
        store.append(timestamp, "x");
    }
    store.stable_from_start(50);
    store.reopen();
    assert_eq!(store.log().size(), TableSize::new(199, 199));
    assert_eq!((store.log().first(), store.log().last(), store.all_durable()), (Some(ts(1)), Some(ts(199)), 199));
}

pub(super) fn x26_large_entries_are_kept(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let entry = "e".repeat(16 << 20);
    store.append(10, &entry);
    let position = store.append(20, "small");
    store.wait_durable(position).block().unwrap();
    store.crash();
    let mut forward = store.log().forward().unwrap();
    assert_eq!(forward.next().unwrap().unwrap().entry.len(), entry.len());
    assert_eq!(shown_entry(forward.next().unwrap()), "20=small");
}

// ---- The old end.

const ENTRY_BYTES: usize = 4096;
const ENTRIES_MAX: u64 = 20_000;
const SIZE_MAX: u64 = 1 << 20;

/// Appends entries until the oplog is far over its size and has several whole markers, and checkpoints past all of them.
/// None if the engine's markers are too large for a test.
fn with_markers(store: &Store) -> Option<Vec<TruncateMarker>> {
    store.log().set_size_max(SIZE_MAX).unwrap();
    assert_eq!(store.log().size_max(), SIZE_MAX);
    let entry = vec![b'x'; ENTRY_BYTES];
    let mut timestamp = 0;
    while store.log().markers().len() < 4 || (store.log().size().bytes as u64) < 2 * SIZE_MAX {
        if timestamp > ENTRIES_MAX {
            return None;
        }
        let mut transaction = store.start();
        for _ in 0..50 {
            timestamp += 1;
            transaction.set_commit_timestamp(ts(timestamp)).unwrap();
            transaction.append_oplog(ts(timestamp), &entry).unwrap();
        }
        transaction.commit().unwrap();
    }
    store.flush_log().unwrap();
    store.stable_from_start(timestamp);
    store.checkpoint_now();
    Some(store.log().markers())
}

pub(super) fn x25_markers_cover_the_oplog_from_its_old_end(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let Some(markers) = with_markers(&store) else { return };
    assert!(markers.is_sorted_by_key(|marker| marker.last));
    let (records, bytes) = (store.log().size().records as u64, store.log().size().bytes as u64);
    assert!(markers.iter().map(|marker| marker.records).sum::<u64>() <= records);
    assert!(markers.iter().map(|marker| marker.bytes).sum::<u64>() <= bytes);
    let mut covered = 0;
    for marker in &markers {
        covered += marker.records;
        assert_eq!(marker.last, ts(covered), "timestamps count the entries");
        assert_eq!(marker.bytes, marker.records * ENTRY_BYTES as u64);
    }
}

pub(super) fn x25_the_old_end_goes_while_the_oplog_is_over_its_size(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let Some(markers) = with_markers(&store) else { return };
    let bytes = store.log().size().bytes as u64;
    let dropped = store.log().truncate_old().unwrap();
    assert!(dropped >= 1);
    let gone = &markers[..dropped];
    assert_eq!(store.log().first(), Some(gone[dropped - 1].last.next()));
    assert_eq!(store.log().size().bytes as u64, bytes - gone.iter().map(|marker| marker.bytes).sum::<u64>());
    assert_eq!(store.log().markers(), markers[dropped..]);
    // Not one more than needed: with the last one it was still too large.
    assert!(store.log().size().bytes as u64 + gone[dropped - 1].bytes > SIZE_MAX);
    assert_eq!(store.log().truncate_old().unwrap(), 0);
    let (first, last) = (store.log().first(), store.log().last());
    store.flush_log().unwrap();
    store.crash();
    assert_eq!((store.log().first(), store.log().last()), (first, last));
}

pub(super) fn x26_a_larger_oplog_keeps_more(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    if with_markers(&store).is_none() {
        return;
    }
    store.log().set_size_max(1 << 40).unwrap();
    assert_eq!(store.log().size_max(), 1 << 40);
    assert_eq!((store.log().truncate_old().unwrap(), store.log().first()), (0, Some(ts(1))));
    store.log().set_size_max(SIZE_MAX).unwrap();
    assert!(store.log().truncate_old().unwrap() > 0);
}

pub(super) fn x26_a_reader_whose_place_is_truncated_is_told(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    if with_markers(&store).is_none() {
        return;
    }
    let mut lost = store.log().forward().unwrap();
    lost.next().unwrap().unwrap();
    let mut fresh = store.log().forward().unwrap();
    let mut at_the_end = store.log().forward().unwrap();
    at_the_end.seek(store.log().last().unwrap()).unwrap().unwrap();
    assert!(store.log().truncate_old().unwrap() > 0);
    fails!(lost.next(), PositionLost);
    assert_eq!(fresh.next().unwrap().map(|entry| entry.timestamp), store.log().first());
    assert_eq!(at_the_end.next().unwrap(), None);
}

pub(super) fn x26_pins_keep_entries(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let Some(markers) = with_markers(&store) else { return };
    let pin = store.log().pin("test", ts(1)).unwrap();
    assert_eq!(store.log().truncate_old().unwrap(), 0);
    pin.advance(markers[1].last);
    assert_eq!(store.log().truncate_old().unwrap(), 1);
    assert!(store.log().first().unwrap() <= markers[1].last);
    pin.advance(markers[1].last.next());
    assert_eq!(store.log().truncate_old().unwrap(), 1);
    drop(pin);
    assert!(store.log().truncate_old().unwrap() >= 1);
}

pub(super) fn x26_entries_that_recovery_needs_are_kept(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    // The checkpoint stays at the very beginning.
    store.append(1, "first");
    store.log().set_size_max(SIZE_MAX).unwrap();
    store.stable_from_start(1);
    store.checkpoint_now();
    let entry = "x".repeat(ENTRY_BYTES);
    for timestamp in 2..1000 {
        store.append(timestamp, &entry);
    }
    store.log().truncate_old().unwrap();
    assert!(store.log().first().unwrap() <= ts(2), "replay starts after the checkpoint");
}

pub(super) fn x26_young_entries_are_kept(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    store.log().set_retention_min(3_600_000).unwrap();
    if with_markers(&store).is_none() {
        return;
    }
    assert_eq!(store.log().truncate_old().unwrap(), 0);
    if store.factory.advance_clock(Duration::from_secs(7200)) {
        assert!(store.log().truncate_old().unwrap() > 0);
    } else {
        store.log().set_retention_min(0).unwrap();
        assert!(store.log().truncate_old().unwrap() > 0);
    }
}

pub(super) fn b3_a_replicated_write_is_logged_once(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let document: Vec<u8> = (0..10_000_u32).map(|number| (number % 251) as u8).collect();
    let before = store.log_end();
    let mut transaction = store.start();
    transaction.set_commit_timestamp(ts(10)).unwrap();
    transaction.put(&table, b"key", &document).unwrap();
    transaction.append_oplog(ts(10), &document).unwrap();
    transaction.commit().unwrap();
    let after = store.log_end();
    assert!(after > before);
    if after.segment == before.segment {
        assert!(after.offset - before.offset < 15_000, "the document is in the log more than once");
    }
}
