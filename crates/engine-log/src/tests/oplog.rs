//! The oplog view.

use super::*;
use pando_env::simulated::{Loss, Simulation};

/// Timestamps out of order over many segments, in memory and on disk.
fn shuffled(count: u64) -> Vec<u64> {
    (0..count).map(|at| 1 + (at / 16) * 16 + (at * 7) % 16).collect()
}

#[test]
fn x26_entries_out_of_order_over_segments_are_read_in_order() {
    let machine = Simulation::new(21);
    let point = Point::default();
    let (log, _) = open(&machine.env(), small(true), &point).unwrap();
    let timestamps = shuffled(640);
    for (sequence, pair) in (1..).zip(timestamps.chunks(2)) {
        commit(&log, sequence, pair, b"").unwrap();
        if sequence % 50 == 0 {
            log.flush().unwrap();
        }
    }
    assert!(log.statistics().segments > 10);
    let all: Vec<u64> = (1..=640).collect();
    let reversed: Vec<u64> = (1..=640).rev().collect();
    point.set(640);
    let check = |log: &Log| {
        assert_eq!(forward(log), all);
        assert_eq!(backward(log), reversed);
        let oplog = log.oplog();
        assert_eq!((oplog.first(), oplog.last(), oplog.count()), (Some(Timestamp(1)), Some(Timestamp(640)), 640));
        assert_eq!(oplog.size_bytes(), all.iter().map(|at| entry(*at).len() as u64).sum::<u64>());
        for timestamp in [1, 17, 333, 640] {
            assert_eq!(oplog.get(Timestamp(timestamp)).unwrap(), Some(entry(timestamp)));
        }
        assert_eq!(oplog.get(Timestamp(641)).unwrap(), None);
    };
    check(&log);
    log.flush().unwrap();
    drop(log);
    let (log, _) = open(&machine.crash_with(Loss::Everything), small(true), &point).unwrap();
    check(&log);
    log.close().unwrap();
    let (log, _) = open(&machine.kill(), small(true), &point).unwrap();
    check(&log);
}

#[test]
fn x26_a_forward_reader_never_passes_a_hole() {
    let machine = Simulation::new(22);
    let point = Point::at(4);
    let (log, _) = open(&machine.env(), small(true), &point).unwrap();
    for (sequence, timestamp) in (1..).zip([1, 2, 3, 4, 6, 7]) {
        commit(&log, sequence, &[timestamp], b"").unwrap();
    }
    let mut reader = log.oplog().forward();
    assert_eq!(read_all(&mut reader), [1, 2, 3, 4]);
    assert_eq!(backward(&log), [7, 6, 4, 3, 2, 1]);
    assert!(reader.advance().unwrap().is_none());
    assert!(log.oplog().forward().seek_exact(Timestamp(6)).unwrap().is_none());
    commit(&log, 7, &[5], b"").unwrap();
    point.set(7);
    assert_eq!(read_all(&mut reader), [5, 6, 7]);
}

#[test]
fn x26_readers_seek() {
    let machine = Simulation::new(23);
    let point = Point::at(1000);
    let (log, _) = open(&machine.env(), small(true), &point).unwrap();
    for sequence in 1..=100 {
        commit(&log, sequence, &[sequence * 10], b"").unwrap();
    }
    let at = |found: Option<(Timestamp, Bytes)>| found.map(|(timestamp, _)| timestamp.0);
    let mut reader = log.oplog().forward();
    assert_eq!(at(reader.seek(Timestamp(95)).unwrap()), Some(100));
    assert_eq!(at(reader.advance().unwrap()), Some(110));
    assert_eq!(at(reader.seek(Timestamp(100)).unwrap()), Some(100));
    assert_eq!(at(reader.seek_exact(Timestamp(300)).unwrap()), Some(300));
    assert_eq!((at(reader.advance().unwrap()), reader.position()), (Some(310), Some(Timestamp(310))));
    assert_eq!(at(reader.seek_exact(Timestamp(305)).unwrap()), None);
    assert_eq!(at(reader.advance().unwrap()), Some(310));
    assert_eq!(at(reader.seek(Timestamp(1001)).unwrap()), None);
    let mut reader = log.oplog().backward();
    assert_eq!(at(reader.seek(Timestamp(95)).unwrap()), Some(90));
    assert_eq!(at(reader.advance().unwrap()), Some(80));
    assert_eq!(at(reader.seek_exact(Timestamp(300)).unwrap()), Some(300));
    assert_eq!(at(reader.advance().unwrap()), Some(290));
    assert_eq!(at(reader.seek(Timestamp(9)).unwrap()), None);
}

#[test]
fn x26_slots_between_the_last_entry_and_a_truncation_are_holes_again() {
    let machine = Simulation::new(27);
    let point = Point::at(9);
    let (log, _) = open(&machine.env(), small(true), &point).unwrap();
    commit(&log, 1, &[3, 9], b"").unwrap();
    log.flush().unwrap();
    log.truncate_oplog_after(Timestamp(7), false).unwrap();
    point.set(3);
    // The slot at 4 is open.
    commit(&log, 2, &[5], b"").unwrap();
    log.flush().unwrap();
    assert_eq!(log.durable_no_holes(), Timestamp(3));
    let (log, recovery) = open(&machine.crash_with(Loss::Everything), small(true), &point).unwrap();
    assert_eq!((recovery.no_holes(), forward(&log)), (Timestamp(3), vec![3]));
}

#[test]
fn x26_slots_behind_the_last_recovered_entry_are_holes_again() {
    let machine = Simulation::new(28);
    let point = Point::at(7);
    let (log, _) = open(&machine.env(), small(true), &point).unwrap();
    commit(&log, 1, &[3, 9], b"").unwrap();
    log.flush().unwrap();
    let (log, recovery) = open(&machine.crash_with(Loss::Everything), small(true), &point).unwrap();
    assert_eq!(recovery.no_holes(), Timestamp(7));
    point.set(3);
    // The slot at 4 is open.
    commit(&log, 2, &[5], b"").unwrap();
    log.flush().unwrap();
    let (log, recovery) = open(&machine.crash_with(Loss::Everything), small(true), &point).unwrap();
    assert_eq!((recovery.no_holes(), forward(&log)), (Timestamp(3), vec![3]));
}

#[test]
fn x26_truncation_takes_entries_and_their_timestamps_can_be_used_again() {
    let machine = Simulation::new(24);
    let point = Point::at(100);
    let (log, _) = open(&machine.env(), small(true), &point).unwrap();
    for sequence in 1..=100 {
        commit(&log, sequence, &[sequence], &[9; 50]).unwrap();
    }
    log.flush().unwrap();
    let mut stays = log.oplog().forward();
    stays.seek_exact(Timestamp(50)).unwrap();
    let mut lost = log.oplog().forward();
    lost.seek_exact(Timestamp(61)).unwrap();
    let doomed = commit(&log, 101, &[101], b"").unwrap();
    log.truncate_oplog_after(Timestamp(61), true).unwrap();
    point.set(60);
    assert!(matches!(log.wait_durable(doomed), Err(LogError::Truncated(_))));
    assert_eq!((log.oplog().count(), log.oplog().last()), (60, Some(Timestamp(60))));
    assert!(matches!(lost.advance(), Err(LogError::PositionLost(Timestamp(61)))));
    assert!(matches!(lost.advance(), Err(LogError::PositionLost(Timestamp(61)))), "it stays lost");
    for sequence in 102..=130 {
        commit(&log, sequence, &[sequence - 41], b"again").unwrap();
    }
    point.set(89);
    assert!(
        matches!(lost.advance(), Err(LogError::PositionLost(_))),
        "another entry at its timestamp is not its entry"
    );
    assert_eq!(read_all(&mut stays), (51..=89).collect::<Vec<u64>>());
    lost.seek(Timestamp(88)).unwrap();
    assert_eq!(read_all(&mut lost), [89]);
    log.flush().unwrap();
    let (log, recovery) = open(&machine.crash_with(Loss::Everything), small(true), &point).unwrap();
    assert_eq!(recovery.last_sequence(), 130, "redo survives whatever happens to the oplog");
    assert_eq!(sequences(recovery).len(), 130);
    assert_eq!(forward(&log), (1..=89).collect::<Vec<u64>>());
    log.reset_oplog().unwrap();
    assert_eq!((log.oplog().count(), log.oplog().size_bytes(), log.oplog().first()), (0, 0, None));
    commit(&log, 131, &[7], b"").unwrap();
    point.set(7);
    log.flush().unwrap();
    let (log, recovery) = open(&machine.crash_with(Loss::Everything), small(true), &point).unwrap();
    assert_eq!((sequences(recovery).len(), forward(&log)), (131, vec![7]));
}

#[test]
fn x26_a_tailing_reader_is_woken() {
    let machine = Simulation::new(25);
    let point = Point::default();
    let (log, _) = open(&machine.env(), small(true), &point).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let oplog = log.oplog();
        let mut wait = std::pin::pin!(oplog.wait_for_visible_after_async(Timestamp::NONE, oplog.generation()));
        macro_rules! pending {
            () => {
                std::future::poll_fn(|context| std::task::Poll::Ready(wait.as_mut().poll(context).is_pending())).await
            };
        }
        assert!(pending!());
        commit(&log, 1, &[2], b"").unwrap();
        log.no_holes_advanced();
        assert!(pending!(), "a hole is before it");
        point.set(2);
        log.no_holes_advanced();
        wait.await.unwrap();
        let mut wait = std::pin::pin!(oplog.wait_for_visible_after_async(Timestamp(2), oplog.generation()));
        assert!(std::future::poll_fn(|context| std::task::Poll::Ready(wait.as_mut().poll(context).is_pending())).await);
        log.truncate_oplog_after(Timestamp(1), false).unwrap();
        wait.await.unwrap();
    });
}

#[test]
fn readers_go_on_after_the_log_has_stopped() {
    let machine = Simulation::new(26);
    let point = Point::at(300);
    let (log, _) = open(&machine.env(), small(true), &point).unwrap();
    for sequence in 1..=300 {
        commit(&log, sequence, &[sequence], b"").unwrap();
    }
    log.close().unwrap();
    assert_eq!(forward(&log).len(), 300);
    assert!(log.oplog().wait_for_visible_after(Timestamp(300), log.oplog().generation()).is_err());
}
