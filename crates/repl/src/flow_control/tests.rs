//! The state machine, second by second.

use super::*;
use pando_base::ParameterSet;
use pando_oplog::OpTime;

const SECOND_NS: u64 = 1_000_000_000;

fn parameters() -> FlowControlParameters {
    FlowControlParameters::of(&ParameterSet::new(&[PARAMETERS], false).unwrap())
}

fn dated(seconds: u32) -> Dated {
    (OpTime::new(Timestamp::new(seconds, 1), 1), i64::from(seconds) * 1000)
}

/// At a second, the majority so many seconds behind, after so many entries of the sustainer.
fn input(second: u32, lag_seconds: u32, sustained_count: u64) -> FlowInput {
    let (applied, committed) = (dated(100 + second), dated(100 + second - lag_seconds));
    FlowInput {
        is_primary: true,
        now_ns: u64::from(second) * SECOND_NS,
        applied,
        committed,
        sustained: committed.0.timestamp,
        sustained_count: Some(sustained_count),
        entry_count: u64::from(second) * 1000,
        lock_count: u64::from(second) * 2000,
    }
}

#[test]
fn x23_who_is_not_behind_is_never_slowed_down() {
    let mut control = FlowControl::new(0);
    for second in 1..20 {
        let decision = control.step(&input(second, 0, 1000), &parameters());
        assert_eq!(decision, FlowDecision { tickets: FLOW_TICKETS_UNLIMITED, is_stuck: false });
    }
    assert!(!control.status().is_lagged && control.status().lagged_count == 0);
    assert_eq!((control.status().locks_per_kilo_operation, control.status().sustainer_rate), (2000.0, 1000));
}

#[test]
fn x23_beyond_the_threshold_the_sustainer_sets_the_pace() {
    let mut control = FlowControl::new(0);
    control.step(&input(1, 0, 1000), &parameters());
    // At the threshold of 5 seconds: what it did, a little less, two locks each.
    assert_eq!(control.step(&input(2, 5, 1000), &parameters()).tickets, 1900);
    // Twice as far: half of that.
    assert_eq!(control.step(&input(3, 10, 1000), &parameters()).tickets, 950);
    assert_eq!(control.step(&input(4, 15, 1000), &parameters()).tickets, 475);
    // Never fewer than the least.
    assert_eq!(control.step(&input(5, 90, 1000), &parameters()).tickets, 100);
    let status = control.status();
    assert_eq!((status.is_lagged, status.lagged_count, status.lagged_micros), (true, 1, 3_000_000));
    // Somebody else sustains: as before.
    assert_eq!(control.step(&FlowInput { sustained_count: None, ..input(6, 90, 0) }, &parameters()).tickets, 100);
    // Caught up: more each second.
    assert_eq!(control.step(&input(7, 1, 1000), &parameters()).tickets, 1155);
    assert_eq!(control.step(&input(8, 1, 1000), &parameters()).tickets, 2262);
    let status = control.status();
    assert_eq!((status.is_lagged, status.lagged_count, status.lagged_micros), (false, 1, 5_000_000));
    let mut tickets = 0;
    for second in 9..300 {
        let next = control.step(&input(second, 1, 1000), &parameters()).tickets;
        assert!(next > tickets || next == FLOW_TICKETS_UNLIMITED);
        tickets = next;
    }
    assert_eq!(tickets, FLOW_TICKETS_UNLIMITED);
}

#[test]
fn x23_switched_off_or_secondary_it_lets_everybody_in() {
    let mut control = FlowControl::new(0);
    let off = FlowControlParameters { is_enabled: false, ..parameters() };
    assert_eq!(control.step(&input(1, 60, 10), &off).tickets, FLOW_TICKETS_UNLIMITED);
    assert!(control.step(&input(2, 60, 10), &parameters()).tickets < FLOW_TICKETS_UNLIMITED);
    let secondary = FlowInput { is_primary: false, ..input(3, 60, 10) };
    assert_eq!(control.step(&secondary, &parameters()).tickets, FLOW_TICKETS_UNLIMITED);
    assert!(!control.status().is_lagged);
    // Nothing is committed before the first majority.
    let young = FlowInput { committed: (OpTime::NULL, 0), ..input(4, 0, 0) };
    assert_eq!(control.step(&young, &parameters()).tickets, FLOW_TICKETS_UNLIMITED);
}

#[test]
fn x23_a_sustainer_that_does_not_move_is_told_of_now_and_then() {
    let mut control = FlowControl::new(0);
    let stuck = |second: u32| FlowInput { sustained: Timestamp::new(7, 7), ..input(second, 30, 0) };
    let told: Vec<u32> = (1..=35).filter(|second| control.step(&stuck(*second), &parameters()).is_stuck).collect();
    assert_eq!(told, [11, 21, 31]);
    let never = FlowControlParameters { warn_ns: None, ..parameters() };
    assert!((36..=60).all(|second| !control.step(&stuck(second), &never).is_stuck));
}

#[test]
fn x23_absurd_parameters_give_numbers_of_tickets() {
    let absurd = FlowControlParameters {
        decay: f64::MAX,
        fudge: f64::MAX,
        multiplier: f64::NAN,
        threshold_percentage: 0.0,
        ..parameters()
    };
    let mut control = FlowControl::new(0);
    for (second, lag) in [(1, 0), (2, 50), (3, 50), (4, 0)] {
        let tickets = control.step(&input(second, lag, 5), &absurd).tickets;
        assert!((0..=FLOW_TICKETS_UNLIMITED).contains(&tickets));
    }
}
