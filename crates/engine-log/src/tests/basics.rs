//! Appending, flushing, coming back.

use super::*;
use pando_env::simulated::{Fault, FaultKind, Loss, Simulation};

#[test]
fn x21_what_was_flushed_comes_back_and_what_was_not_does_not() {
    let machine = Simulation::new(1);
    let point = Point::default();
    let (log, recovery) = open(&machine.env(), small(false), &point).unwrap();
    assert!(recovery.was_clean() && recovery.torn_tail().is_none());
    assert_eq!(sequences(recovery), Vec::<u64>::new());
    for sequence in 1..=100 {
        commit(&log, sequence, &[], format!("redo {sequence}").as_bytes()).unwrap();
    }
    let durable = log.flush().unwrap();
    assert_eq!((durable, log.durable_position()), (log.position(), log.position()));
    commit(&log, 101, &[], b"lost").unwrap();
    let env = machine.crash_with(Loss::Everything);
    let (log, recovery) = open(&env, small(false), &point).unwrap();
    assert!(!recovery.was_clean());
    assert_eq!(recovery.last_sequence(), 100);
    for (record, sequence) in recovery.zip(1..) {
        let record = record.unwrap();
        assert_eq!((record.sequence, &record.payload[..]), (sequence, format!("redo {sequence}").as_bytes()));
    }
    assert!(log.statistics().segments > 2);
    commit(&log, 101, &[], b"again").unwrap();
    log.close().unwrap();
    assert!(matches!(commit(&log, 102, &[], b""), Err(LogError::Stopped(_))));
    let (_, recovery) = open(&machine.kill(), small(false), &point).unwrap();
    assert!(recovery.was_clean());
    assert_eq!(sequences(recovery), (1..=101).collect::<Vec<u64>>());
}

#[test]
fn recovery_starts_at_the_checkpoint() {
    let machine = Simulation::new(2);
    let point = Point::default();
    let (log, _) = open(&machine.env(), small(false), &point).unwrap();
    let mut positions = Vec::new();
    for sequence in 1..=80 {
        positions.push(log.position());
        commit(&log, sequence, &[], &[7; 60]).unwrap();
    }
    positions.push(log.position());
    log.flush().unwrap();
    for (at, position) in positions.into_iter().enumerate() {
        let env = machine.fork(at as u64).env();
        let opened = Log::open(&env, &directory(), small(false), Some(position), point.function());
        let (log, recovery) = opened.unwrap();
        assert_eq!(sequences(recovery), (at as u64 + 1..=80).collect::<Vec<u64>>());
        log.checkpointed(position).unwrap();
        let left = log.truncate_markers().first().map(|marker| marker.segment);
        assert_eq!(left, Some(position.segment), "segments before the checkpoint are dropped");
        drop(log);
        let env = machine.kill();
        let beyond = LogPosition::new(99, 64);
        let refused = Log::open(&env, &directory(), small(false), Some(beyond), point.function());
        assert!(matches!(refused, Err(LogError::Corruption { .. })));
    }
}

#[test]
fn large_records_get_segments_of_their_own() {
    let machine = Simulation::new(3);
    let point = Point::default();
    let (log, _) = open(&machine.env(), small(true), &point).unwrap();
    for (sequence, size) in (1..).zip([10, 100_000, 3000, 1_000_000, 0, 50_000, 3900]) {
        commit(&log, sequence, &[sequence], &vec![sequence as u8; size]).unwrap();
    }
    log.flush().unwrap();
    let (log, recovery) = open(&machine.crash_with(Loss::Everything), small(true), &point).unwrap();
    let sizes: Vec<usize> = recovery.map(|record| record.unwrap().payload.len()).collect();
    assert_eq!(sizes, [10, 100_000, 3000, 1_000_000, 0, 50_000, 3900]);
    let too_large = PreparedRecord::new::<&[u8]>(1, &[], &vec![0; (1 << 30) + 1]);
    assert!(matches!(too_large, Err(LogError::RecordTooLarge { .. })));
    drop(log);
}

#[test]
fn x21_a_failed_sync_stops_the_log_and_what_was_durable_stays_readable() {
    for kind in [FaultKind::SyncFails, FaultKind::WriteFails] {
        let machine = Simulation::new(4);
        let point = Point::at(1);
        let (log, _) = open(&machine.env(), small(true), &point).unwrap();
        commit(&log, 1, &[1], b"durable").unwrap();
        log.flush().unwrap();
        machine.disk().inject(Fault::new(kind).times(1));
        let second = commit(&log, 2, &[2], b"doubtful").unwrap();
        point.set(2);
        let Err(LogError::Stopped(reason)) = log.wait_durable(second) else { panic!("the failure was not told") };
        assert!(reason.contains("failed"), "{reason}");
        assert!(matches!(log.flush(), Err(LogError::Stopped(_))));
        assert!(matches!(log.reserve(1), Err(LogError::Stopped(_))));
        assert!(matches!(log.close(), Err(LogError::Stopped(_))));
        assert_eq!(forward(&log), [1, 2]);
        let (log, recovery) = open(&machine.crash(), small(true), &point).unwrap();
        assert!(recovery.last_sequence() >= 1);
        assert_eq!(forward(&log)[0], 1);
    }
}

#[test]
fn x21_a_wait_goes_on_until_the_hole_below_is_closed() {
    let machine = Simulation::new(5);
    let point = Point::at(4);
    let (log, _) = open(&machine.env(), small(true), &point).unwrap();
    let six = commit(&log, 1, &[6], b"").unwrap();
    log.flush().unwrap();
    assert!(log.durable_position() >= six.position && log.durable_no_holes() == Timestamp(4));
    // A crash now cuts the entry although its record is there.
    let fork = machine.fork(1);
    let (other, recovery) = open(&fork.crash_with(Loss::Everything), small(true), &point).unwrap();
    assert_eq!((recovery.no_holes(), recovery.last_sequence()), (Timestamp(4), 1));
    assert_eq!((other.oplog().count(), other.oplog().last()), (0, None));
    drop(other);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut wait = std::pin::pin!(log.wait_durable_async(six));
        let pending = std::future::poll_fn(|context| std::task::Poll::Ready(wait.as_mut().poll(context).is_pending()));
        assert!(pending.await);
        commit(&log, 2, &[5], b"").unwrap();
        point.set(6);
        log.no_holes_advanced();
        wait.await.unwrap();
    });
    let (log, recovery) = open(&machine.crash_with(Loss::Everything), small(true), &point).unwrap();
    assert_eq!((recovery.no_holes(), forward(&log)), (Timestamp(6), vec![5, 6]));
}

#[test]
fn an_idle_flush_writes_nothing() {
    let machine = Simulation::new(6);
    let point = Point::at(1);
    let (log, _) = open(&machine.env(), small(true), &point).unwrap();
    commit(&log, 1, &[1, 3], b"").unwrap();
    log.flush().unwrap();
    let before = machine.disk().operation_count();
    for _ in 0..10 {
        log.flush().unwrap();
        log.write_back().unwrap();
    }
    assert_eq!(machine.disk().operation_count(), before);
    point.set(4);
    log.flush().unwrap();
    assert!(machine.disk().operation_count() > before, "a new no-holes point is worth recording");
    let (_, recovery) = open(&machine.crash_with(Loss::Everything), small(true), &point).unwrap();
    assert_eq!(recovery.no_holes(), Timestamp(3), "no point above the entries is recorded");
}

#[test]
fn b3_an_entry_reaches_the_disk_once() {
    let machine = Simulation::new(7);
    let point = Point::at(u64::MAX);
    let options = LogOptions { segment_bytes: 1 << 20, oplog: true, ..LogOptions::default() };
    let (log, _) = open(&machine.env(), options, &point).unwrap();
    machine.disk().reset_statistics();
    let mut logical = 0;
    for sequence in 1..=2000 {
        let bytes = vec![sequence as u8; 600];
        let record = PreparedRecord::new(1, &[(Timestamp(sequence), &bytes)], b"").unwrap();
        logical += bytes.len() as u64;
        let _room = log.reserve(record.reserved_bytes()).unwrap();
        log.lock().append(&record, sequence);
        if sequence % 20 == 0 {
            log.flush().unwrap();
        }
    }
    let written = log.statistics().written_bytes;
    assert!(written < logical * 12 / 10, "{written} bytes for {logical}");
}

#[test]
fn x19_a_log_opened_for_reading_shows_all_and_changes_nothing() {
    let simulation = pando_env::simulated::Simulation::new(5);
    let env = simulation.env();
    let point = Point::at(0);
    let (log, _) = open(&env, small(true), &point).unwrap();
    for number in 1..=100 {
        commit(&log, number, &[number], b"redo").unwrap();
    }
    point.set(90);
    log.flush().unwrap();
    drop(log);
    let env = simulation.kill();
    let contents = || {
        let files = simulation.disk().files().into_iter();
        files.map(|path| (simulation.disk().contents(&path), path)).collect::<Vec<_>>()
    };
    let before = contents();
    let opened = Log::open_read_only(&env, &directory(), small(true), None, Point::at(90).function());
    let (log, recovery) = opened.unwrap();
    assert_eq!(recovery.map(|record| record.unwrap().sequence).collect::<Vec<_>>(), (1..=100).collect::<Vec<_>>());
    assert_eq!(forward(&log), (1..=90).collect::<Vec<_>>(), "the rest lies behind a hole");
    assert_eq!((log.oplog().last(), log.oplog().count()), (Some(Timestamp(90)), 90));
    assert_eq!(log.position(), log.durable_position());
    log.wait_durable(log.position()).unwrap();
    assert!(log.verify().unwrap().is_sound());
    assert!(matches!(log.reserve(100), Err(LogError::Stopped(_))));
    assert!(matches!(log.flush(), Err(LogError::Stopped(_))));
    assert!(matches!(log.truncate_oplog_after(Timestamp(5), false), Err(LogError::Stopped(_))));
    assert!(matches!(log.truncate_oplog_old(), Err(LogError::Stopped(_))));
    assert!(matches!(log.close(), Err(LogError::Stopped(_))));
    drop(log);
    assert!(before == contents());
}
