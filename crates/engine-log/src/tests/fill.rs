//! Filling ahead between commits, flushes, rolls and crashes.

use super::*;
use pando_env::Random;
use pando_env::simulated::{Loss, SimulatedRandom, Simulation};

#[test]
fn x21_filling_ahead_never_touches_a_record() {
    for seed in 0..30 {
        let machine = Simulation::new(seed);
        let point = Point::at(u64::MAX);
        let options = LogOptions { segment_bytes: 64 << 10, ..small(true) };
        let (log, _) = open(&machine.env(), options.clone(), &point).unwrap();
        let random = SimulatedRandom::new(seed);
        let (mut acknowledged, mut steps) = (0, 0);
        for sequence in 1..=500 {
            commit(&log, sequence, &[sequence], &vec![seed as u8 + 1; random.below(900) as usize]).unwrap();
            match random.below(5) {
                0 => {
                    log.flush().unwrap();
                    acknowledged = sequence;
                }
                1 => log.write_back().unwrap(),
                2 => steps += u64::from(log.inner.fill_step().unwrap()),
                _ => {}
            }
            if random.below(3) == 0 {
                log.inner.look_ahead();
            }
        }
        assert!(steps > 2 && log.statistics().rolls > 2, "{steps} steps");
        log.inner.grow_ahead();
        while log.inner.fill_step().unwrap() {}
        assert!(log.inner.filled.load() > log.position());
        assert_eq!(forward(&log).len(), 500);
        let (log, recovery) = open(&machine.crash_with(Loss::Everything), options, &point).unwrap();
        let there = sequences(recovery);
        assert!(there.len() as u64 >= acknowledged && there.iter().copied().eq(1..=there.len() as u64));
        assert!(log.verify().unwrap().is_sound());
    }
}

#[test]
fn x21_filling_ahead_ends_while_the_log_goes_on() {
    let point = Point::at(u64::MAX);
    let options = LogOptions { segment_bytes: 64 << 20, ..small(true) };
    let (log, _) = open(&Simulation::new(1).env(), options, &point).unwrap();
    while log.inner.fill_step().unwrap() {}
    let filled = log.inner.filled.load();
    for sequence in 1..=20 {
        commit(&log, sequence, &[sequence], &[7; 9000]).unwrap();
        assert!(!log.inner.fill_step().unwrap(), "so little is not worth a step");
    }
    commit(&log, 21, &[21], &[7; 512 << 10]).unwrap();
    assert!(log.inner.fill_step().unwrap() && log.inner.filled.load() > filled);
}
