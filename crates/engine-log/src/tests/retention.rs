//! The old end of the oplog, and backups.

use super::*;
use pando_env::simulated::{Loss, Simulation};

fn capped(bytes: u64) -> LogOptions {
    LogOptions { oplog_max_bytes: bytes, ..small(true) }
}

fn fill(log: &Log, sequences: std::ops::RangeInclusive<u64>) {
    for sequence in sequences {
        commit(log, sequence, &[sequence], &[5; 30]).unwrap();
    }
    log.flush().unwrap();
}

#[test]
fn x25_the_oplog_stays_at_its_size() {
    let machine = Simulation::new(31);
    let point = Point::at(u64::MAX);
    let (log, _) = open(&machine.env(), capped(8000), &point).unwrap();
    for round in 0..20 {
        fill(&log, round * 100 + 1..=round * 100 + 100);
        if round == 0 {
            assert_eq!(log.truncate_oplog_old().unwrap(), Dropped::default(), "nothing before a checkpoint");
        }
        let before = log.oplog().size_bytes();
        log.checkpointed(log.position()).unwrap();
        let dropped = log.truncate_oplog_old().unwrap();
        assert_eq!(before - dropped.bytes, log.oplog().size_bytes());
        assert!(log.oplog().size_bytes() <= 8000);
        if round > 2 {
            assert!(log.oplog().size_bytes() > 4000);
        }
    }
    let markers = log.truncate_markers();
    assert!(markers.len() > 2 && markers.iter().rev().skip(1).all(|marker| marker.whole));
    assert!(!markers.last().unwrap().whole);
    assert_eq!(markers.iter().map(|marker| marker.bytes).sum::<u64>(), log.oplog().size_bytes());
    assert_eq!(markers.iter().map(|marker| marker.records).sum::<u64>(), log.oplog().count());
    let (first, count, bytes) = (log.oplog().first(), log.oplog().count(), log.oplog().size_bytes());
    let from = Some(log.position());
    log.flush().unwrap();
    let env = machine.crash_with(Loss::Everything);
    let (log, _) = Log::open(&env, &directory(), capped(8000), from, point.function()).unwrap();
    assert_eq!((log.oplog().first(), log.oplog().count(), log.oplog().size_bytes()), (first, count, bytes));
    assert_eq!(log.truncate_markers()[..markers.len() - 1], markers[..markers.len() - 1]);
}

#[test]
fn x25_x26_pins_retention_and_checkpoints_hold_the_old_end() {
    let machine = Simulation::new(32);
    let point = Point::at(u64::MAX);
    let (log, _) = open(&machine.env(), capped(1000), &point).unwrap();
    fill(&log, 1..=300);
    let second_last = log.truncate_markers()[1].last;
    log.checkpointed(log.position()).unwrap();
    log.pin("rollback", second_last);
    log.pin("backup", Timestamp(290));
    assert_eq!(log.truncate_oplog_old().unwrap().segments, 1, "the segment with the pinned entry stays");
    assert_eq!(log.pins(), [("backup".to_owned(), Timestamp(290)), ("rollback".to_owned(), second_last)]);
    log.pin("rollback", second_last.next());
    assert_eq!(log.truncate_oplog_old().unwrap().segments, 1);
    assert!(log.unpin("rollback") && !log.unpin("rollback"));
    log.set_oplog_min_retention_ms(60_000);
    machine.clock().advance(std::time::Duration::from_millis(59_999));
    assert_eq!(log.truncate_oplog_old().unwrap(), Dropped::default());
    machine.clock().advance(std::time::Duration::from_millis(1));
    assert!(log.truncate_oplog_old().unwrap().segments > 0);
    assert!(log.oplog().first().unwrap() <= Timestamp(290));
    assert_eq!(forward(&log).first().copied(), log.oplog().first().map(|first| first.0));
}

#[test]
fn x26_the_oplog_is_resized() {
    let machine = Simulation::new(33);
    let point = Point::at(u64::MAX);
    let (log, _) = open(&machine.env(), capped(1 << 20), &point).unwrap();
    fill(&log, 1..=500);
    log.checkpointed(log.position()).unwrap();
    assert_eq!(log.truncate_oplog_old().unwrap(), Dropped::default());
    log.set_oplog_max_bytes(5000);
    assert_eq!(log.oplog_max_bytes(), 5000);
    assert!(log.truncate_oplog_old().unwrap().segments > 2);
    assert!(log.oplog().size_bytes() <= 5000);
}

#[test]
fn segments_follow_a_small_oplogs_size() {
    let machine = Simulation::new(34);
    let point = Point::at(u64::MAX);
    let options = LogOptions { oplog: true, oplog_max_bytes: 64 << 20, ..LogOptions::default() };
    let (log, _) = open(&machine.env(), options, &point).unwrap();
    let file = machine.disk().files()[0].clone();
    assert_eq!(machine.env().disk().open(&file, pando_env::OpenMode::Read).unwrap().length().unwrap(), 4 << 20);
    drop(log);
}

#[test]
fn x26_a_reader_that_fell_off_the_old_end_is_told() {
    let machine = Simulation::new(35);
    let point = Point::at(u64::MAX);
    let (log, _) = open(&machine.env(), capped(2000), &point).unwrap();
    fill(&log, 1..=300);
    let mut slow = log.oplog().forward();
    slow.seek_exact(Timestamp(3)).unwrap();
    let mut fast = log.oplog().forward();
    fast.seek_exact(Timestamp(295)).unwrap();
    let mut descending = log.oplog().backward();
    descending.seek_exact(Timestamp(299)).unwrap();
    log.checkpointed(log.position()).unwrap();
    log.truncate_oplog_old().unwrap();
    assert!(matches!(slow.advance(), Err(LogError::PositionLost(Timestamp(3)))));
    assert_eq!(read_all(&mut fast), [296, 297, 298, 299, 300]);
    assert_eq!(read_all(&mut descending).last().copied(), log.oplog().first().map(|first| first.0));
}

#[test]
fn x25_no_gap_shows_where_segments_overlap() {
    let machine = Simulation::new(36);
    let point = Point::at(u64::MAX);
    let (log, _) = open(&machine.env(), capped(500), &point).unwrap();
    // The low timestamps come late: they land in younger segments than the high ones.
    for (sequence, timestamp) in (1..).zip((101..=160).chain(1..=100).chain(161..=220)) {
        commit(&log, sequence, &[timestamp], &[5; 30]).unwrap();
    }
    log.flush().unwrap();
    log.checkpointed(log.position()).unwrap();
    let highest_dropped = log.truncate_markers()[0].last;
    log.set_oplog_max_bytes(log.oplog().size_bytes() - 1);
    assert_eq!(log.truncate_oplog_old().unwrap().segments, 1);
    assert!(log.oplog().first().unwrap() > highest_dropped);
    let check = |log: &Log| {
        let entries = forward(log);
        assert_eq!(entries, (highest_dropped.0 + 1..=220).collect::<Vec<u64>>());
        assert_eq!(log.oplog().count(), entries.len() as u64);
        assert_eq!(log.oplog().size_bytes(), entries.iter().map(|at| entry(*at).len() as u64).sum::<u64>());
    };
    check(&log);
    let from = Some(log.position());
    log.flush().unwrap();
    let env = machine.crash_with(Loss::Everything);
    check(&Log::open(&env, &directory(), capped(500), from, point.function()).unwrap().0);
}

#[test]
fn a_backup_pins_its_files_and_recovers() {
    let machine = Simulation::new(37);
    let point = Point::at(u64::MAX);
    let (log, _) = open(&machine.env(), capped(1000), &point).unwrap();
    fill(&log, 1..=200);
    let mut backup = log.backup().unwrap();
    fill(&log, 201..=400);
    log.checkpointed(log.position()).unwrap();
    assert_eq!(log.truncate_oplog_old().unwrap(), Dropped::default(), "the backup holds its files");
    let copy = |files: &[BackupFile], other: &Simulation| {
        for file in files {
            let bytes = machine.disk().contents(&file.path).unwrap();
            other.disk().plant(&file.path, &bytes[..file.bytes as usize]).unwrap();
        }
    };
    let other = Simulation::new(1);
    copy(backup.files(), &other);
    let (copied, recovery) = open(&other.env(), capped(1000), &point).unwrap();
    assert_eq!((recovery.end(), sequences(recovery).len()), (backup.position(), 200));
    assert_eq!(forward(&copied).len(), 200);
    let extended = Simulation::new(2);
    copy(backup.files(), &extended);
    copy(&backup.extend().unwrap(), &extended);
    let (copied, recovery) = open(&extended.env(), capped(1000), &point).unwrap();
    assert_eq!((sequences(recovery).len(), forward(&copied).len()), (400, 400));
    drop(backup);
    assert!(log.truncate_oplog_old().unwrap().segments > 3);
}
