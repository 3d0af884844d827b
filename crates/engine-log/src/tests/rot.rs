//! Flipped bytes: named or harmless, never returned, never a panic.

use super::*;
use pando_env::simulated::{Loss, Simulation};

const COMMITS: u64 = 60;

/// A log with a torn life, rolled segments and an end in good order or in a crash.
fn prepare(closed: bool) -> Simulation {
    let machine = Simulation::new(9);
    let point = Point::at(30);
    let (log, _) = open(&machine.env(), small(true), &point).unwrap();
    for sequence in 1..=30 {
        commit(&log, sequence, &[sequence], &[sequence as u8; 40]).unwrap();
    }
    log.flush().unwrap();
    commit(&log, 31, &[31], &[31; 40]).unwrap();
    log.write_back().unwrap();
    let (log, recovery) = open(&machine.crash_with(Loss::Everything), small(true), &point).unwrap();
    assert_eq!(recovery.last_sequence(), 30);
    point.set(COMMITS);
    for sequence in 31..=COMMITS {
        commit(&log, sequence, &[sequence], &[sequence as u8; 40]).unwrap();
        if sequence % 10 == 0 {
            log.flush().unwrap();
        }
    }
    if closed {
        log.close().unwrap();
    }
    drop(log);
    machine.kill();
    machine
}

/// How an open after a flip may go.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Outcome {
    Whole,
    Refused,
    Shorter,
}

fn open_flipped(machine: &Simulation, path: &Path, offset: u64) -> Outcome {
    let fork = machine.fork(offset);
    fork.disk().flip_byte(path, offset).unwrap();
    let opened = open(&fork.env(), small(true), &Point::at(COMMITS));
    let (log, recovery) = match opened {
        Ok(opened) => opened,
        Err(error) => return refused(error, path, offset),
    };
    let mut expected = 1;
    for record in recovery {
        match record {
            Err(error) => return refused(error, path, offset),
            Ok(record) => {
                assert_eq!((record.sequence, &record.payload[..]), (expected, &[expected as u8; 40][..]));
                assert_eq!(record.entries, [(Timestamp(expected), entry(expected))]);
                expected += 1;
            }
        }
    }
    let mut reader = log.oplog().forward();
    let mut timestamp = 0;
    while let Some((at, bytes)) = reader.advance().unwrap() {
        assert_eq!((at.0, bytes), (timestamp + 1, entry(timestamp + 1)));
        timestamp += 1;
    }
    if expected > COMMITS && timestamp == COMMITS { Outcome::Whole } else { Outcome::Shorter }
}

fn refused(error: LogError, path: &Path, flipped: u64) -> Outcome {
    let LogError::Corruption { file, offset, .. } = error else { panic!("{error}") };
    assert!(
        file == path && offset <= flipped,
        "{} at {flipped} named as {} at {offset}",
        path.display(),
        file.display()
    );
    Outcome::Refused
}

#[test]
fn x21_a_flipped_byte_in_a_closed_log_is_named_or_harmless() {
    let machine = prepare(true);
    let sound = crate::verify(&machine.env(), &directory()).unwrap();
    assert!(sound.is_sound() && sound.records == COMMITS, "{sound:?}");
    let mut outcomes = [0; 2];
    for path in machine.disk().files() {
        let length = machine.disk().contents(&path).unwrap().len() as u64;
        for offset in 0..length {
            match open_flipped(&machine, &path, offset) {
                Outcome::Whole => outcomes[0] += 1,
                Outcome::Refused => outcomes[1] += 1,
                Outcome::Shorter => panic!("{} at {offset}: data lost without a word", path.display()),
            }
        }
    }
    assert!(outcomes[0] > 100 && outcomes[1] > 5000, "{outcomes:?}");
}

#[test]
fn x21_a_flipped_byte_in_a_crashed_log_is_named_or_torn() {
    let machine = prepare(false);
    let mut shorter = Vec::new();
    for path in machine.disk().files() {
        let length = machine.disk().contents(&path).unwrap().len() as u64;
        for offset in 0..length {
            if open_flipped(&machine, &path, offset) == Outcome::Shorter {
                shorter.push((path.clone(), offset));
            }
        }
    }
    // Only the last flush is not vouched for by a later one.
    let (first, last) = (shorter.first().unwrap(), shorter.last().unwrap());
    assert_eq!(first.0, last.0);
    assert!(last.1 - first.1 < 2500, "{first:?} {last:?}");
}

#[test]
fn a_flipped_byte_is_found_by_verification_and_the_rest_is_salvaged() {
    let machine = prepare(true);
    for path in machine.disk().files() {
        let length = machine.disk().contents(&path).unwrap().len() as u64;
        for offset in (0..length).step_by(3) {
            let fork = machine.fork(offset);
            fork.disk().flip_byte(&path, offset).unwrap();
            let report = crate::verify(&fork.env(), &directory()).unwrap();
            let harmless = open_flipped(&machine, &path, offset) == Outcome::Whole;
            assert!(harmless || !report.is_sound(), "{} at {offset}: not found", path.display());
            let target = PathBuf::from("/data/salvaged");
            let saved = crate::salvage(&fork.env(), &directory(), &target, small(true)).unwrap();
            assert!(saved.records >= COMMITS - 1, "{} at {offset}: {saved:?}", path.display());
            let (_, recovery) =
                Log::open(&fork.env(), &target, small(true), None, Point::at(COMMITS).function()).unwrap();
            let sequences = sequences(recovery);
            assert_eq!(sequences.len() as u64, saved.records);
            assert!(sequences.is_sorted_by(|left, right| left < right));
        }
    }
}

#[test]
fn a_log_is_described() {
    let machine = prepare(true);
    let mut text = String::new();
    crate::describe(&machine.env(), &directory(), true, &mut text).unwrap();
    assert!(text.contains("Commit #42 kind 1 redo 40 bytes Timestamp(0, 42)"), "{text}");
    assert!(text.contains("Seal"));
}

#[test]
fn b3_damage_to_a_read_entry_is_named() {
    let machine = prepare(true);
    let (log, _) = open(&machine.env(), small(true), &Point::at(COMMITS)).unwrap();
    let path = machine.disk().files()[0].clone();
    let contents = machine.disk().contents(&path).unwrap();
    let wanted = entry(5);
    let at = contents.windows(wanted.len()).position(|bytes| bytes == &wanted[..]).unwrap() as u64;
    machine.disk().flip_byte(&path, at + 3).unwrap();
    let Err(LogError::Corruption { file, offset, .. }) = log.oplog().get(Timestamp(5)) else { panic!("not found") };
    assert_eq!((file, offset), (path.clone(), at));
    assert_eq!(log.oplog().get(Timestamp(6)).unwrap(), Some(entry(6)));
    let live = log.verify().unwrap();
    assert_eq!((live.damages.len(), &live.damages[0].file), (1, &path));
}

#[test]
fn a_missing_segment_is_named() {
    let machine = prepare(true);
    let files = machine.disk().files();
    assert!(files.len() >= 3);
    machine.env().disk().remove(&files[1]).unwrap();
    let Err(LogError::Corruption { file, detail, .. }) = open(&machine.env(), small(true), &Point::at(1)) else {
        panic!("not noticed");
    };
    assert_eq!(file, files[2]);
    assert!(detail.contains("missing"), "{detail}");
}
