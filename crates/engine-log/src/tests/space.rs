//! Full disks.

use super::*;
use pando_env::Random;
use pando_env::simulated::{Loss, SimulatedRandom, Simulation};

#[test]
fn x21_a_full_disk_refuses_cleanly_and_goes_on_when_there_is_room() {
    let machine = Simulation::new(11);
    let point = Point::at(u64::MAX);
    machine.disk().set_capacity_bytes(40 * 1024);
    let (log, _) = open(&machine.env(), small(true), &point).unwrap();
    let mut sequence = 1;
    for _ in 0..3 {
        let refused = loop {
            match commit(&log, sequence, &[sequence], &[1; 100]) {
                Ok(_) => sequence += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, LogError::OutOfSpace { .. }), "{refused}");
        let used = machine.disk().used_bytes();
        for _ in 0..20 {
            assert!(matches!(commit(&log, sequence, &[sequence], &[1; 100]), Err(LogError::OutOfSpace { .. })));
        }
        assert_eq!(machine.disk().used_bytes(), used, "a refusal leaves nothing behind");
        log.flush().unwrap();
        assert_eq!(forward(&log).len() as u64, sequence - 1);
        machine.disk().set_capacity_bytes(machine.disk().used_bytes() + 32 * 1024);
    }
    commit(&log, sequence, &[sequence], b"room again").unwrap();
    log.flush().unwrap();
    machine.disk().set_capacity_bytes(1 << 30);
    let (_, recovery) = open(&machine.crash_with(Loss::Everything), small(true), &point).unwrap();
    assert_eq!(sequences(recovery), (1..=sequence).collect::<Vec<u64>>());
}

#[test]
fn what_is_reserved_always_enters() {
    for seed in 0..200 {
        let machine = Simulation::new(seed);
        let random = SimulatedRandom::new(seed);
        let point = Point::at(u64::MAX);
        machine.disk().set_capacity_bytes(64 * 1024 + random.below(100_000));
        let (log, _) = open(&machine.env(), small(true), &point).unwrap();
        let mut held = Vec::new();
        let (mut sequence, mut refusals) = (0, 0);
        for round in 0..600 {
            if random.below(2) == 0 {
                let size = if random.below(30) == 0 { 9000 } else { 300 };
                let record =
                    PreparedRecord::new(1, &[(Timestamp(round + 1), "entry")], &vec![3; random.below(size) as usize]);
                let record = record.unwrap();
                match log.reserve(record.reserved_bytes()) {
                    Ok(room) => held.push((record, room)),
                    Err(LogError::OutOfSpace { .. }) => refusals += 1,
                    Err(error) => panic!("seed {seed}: {error}"),
                }
            } else if !held.is_empty() {
                let (record, room) = held.swap_remove(random.below(held.len() as u64) as usize);
                sequence += 1;
                log.lock().append(&record, sequence);
                drop(room);
            }
            match random.below(10) {
                0..3 => drop(log.flush().unwrap_or_else(|error| panic!("seed {seed}: {error}"))),
                3 => log.write_back().unwrap(),
                _ => {}
            }
        }
        assert!(refusals > 0 || sequence > 200, "seed {seed}");
        log.flush().unwrap();
        machine.disk().set_capacity_bytes(1 << 30);
        let (_, recovery) = open(&machine.crash_with(Loss::Everything), small(true), &point).unwrap();
        assert_eq!(sequences(recovery), (1..=sequence).collect::<Vec<u64>>(), "seed {seed}");
    }
}

#[test]
fn x25_truncation_works_on_a_full_disk_and_makes_room() {
    let machine = Simulation::new(13);
    let point = Point::at(u64::MAX);
    machine.disk().set_capacity_bytes(64 * 1024);
    let options = LogOptions { oplog_max_bytes: 3000, ..small(true) };
    let (log, _) = open(&machine.env(), options, &point).unwrap();
    let mut sequence = 1;
    while commit(&log, sequence, &[sequence], &[1; 100]).is_ok() {
        sequence += 1;
    }
    let position = log.flush().unwrap();
    log.truncate_oplog_after(Timestamp(sequence - 5), false).unwrap();
    log.flush().unwrap();
    log.checkpointed(position).unwrap();
    let dropped = log.truncate_oplog_old().unwrap();
    assert!(dropped.segments > 3, "{dropped:?}");
    commit(&log, sequence, &[sequence], &[1; 100]).unwrap();
    log.flush().unwrap();
}
