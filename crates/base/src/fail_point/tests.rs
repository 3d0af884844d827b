//! U18: fail points in all modes. Each test has a point of its own, because points belong to the process.

use super::*;
use crate::{Error, ErrorCode, Result};
use bytes::Bytes;
use std::pin::pin;
use std::task::{Context, Waker};

fn hits(point: &FailPoint, attempts: usize) -> Vec<bool> {
    (0..attempts).map(|_| point.should_fail()).collect()
}

fn turn_on(point: &FailPoint, mode: FailPointMode) {
    point.set(mode, Bytes::new(), 1).unwrap();
}

#[test]
fn u18_modes() {
    static POINT: FailPoint = FailPoint::new("modes");
    assert_eq!(hits(&POINT, 2), [false, false]);
    turn_on(&POINT, FailPointMode::AlwaysOn);
    assert_eq!(hits(&POINT, 2), [true, true]);
    turn_on(&POINT, FailPointMode::Times(2));
    assert_eq!(hits(&POINT, 4), [true, true, false, false]);
    assert!(!POINT.is_on());
    turn_on(&POINT, FailPointMode::Skip(2));
    assert_eq!(hits(&POINT, 4), [false, false, true, true]);
    assert_eq!(POINT.set(FailPointMode::Off, Bytes::new(), 1), Ok(6));
    assert_eq!(hits(&POINT, 1), [false]);
}

#[test]
fn u18_chance_comes_from_the_seed() {
    static POINT: FailPoint = FailPoint::new("chance");
    let count = |probability, seed| {
        POINT.set(FailPointMode::probability(probability).unwrap(), Bytes::new(), seed).unwrap();
        hits(&POINT, 1_000)
    };
    assert_eq!(count(0.3, 7), count(0.3, 7));
    assert_ne!(count(0.3, 7), count(0.3, 8));
    let share = count(0.3, 7).iter().filter(|hit| **hit).count();
    assert!((200..400).contains(&share), "{share}");
    assert!(!count(0.0, 7).contains(&true) && !count(1.0, 7).contains(&false));
}

#[test]
fn u18_what_the_predicate_refuses_does_not_count() {
    static POINT: FailPoint<u8> = FailPoint::with_data("predicate", first_byte);
    POINT.set(FailPointMode::Times(1), Bytes::from_static(&[5, 6]), 1).unwrap();
    assert!(POINT.hit_if(|data| *data == 4).is_none());
    assert_eq!(POINT.times_entered(), 0);
    let hit = POINT.hit_if(|data| *data == 5).unwrap();
    assert_eq!((*hit, &hit.bytes()[..]), (5, &[5, 6][..]));
    assert!(POINT.hit().is_none());
}

#[test]
fn u18_bad_data_is_refused_and_changes_nothing() {
    static POINT: FailPoint<u8> = FailPoint::with_data("data", first_byte);
    POINT.set(FailPointMode::AlwaysOn, Bytes::from_static(&[5]), 1).unwrap();
    assert_eq!(POINT.set(FailPointMode::AlwaysOn, Bytes::new(), 1).unwrap_err().code(), ErrorCode::BadValue);
    assert_eq!(POINT.hit().map(|hit| *hit), Some(5));
}

fn first_byte(bytes: &[u8]) -> Result<u8> {
    bytes.first().copied().ok_or_else(|| Error::bad_value("no data"))
}

#[test]
fn u18_counts_have_bounds() {
    assert_eq!(FailPointMode::times(3), Ok(FailPointMode::Times(3)));
    for mode in [
        FailPointMode::times(-1),
        FailPointMode::skip(1 << 31),
        FailPointMode::probability(1.1),
        FailPointMode::probability(f64::NAN),
        FailPointMode::named("on"),
    ] {
        assert_eq!(mode.unwrap_err().code(), ErrorCode::BadValue);
    }
    assert_eq!(FailPointMode::named("alwaysOn"), Ok(FailPointMode::AlwaysOn));
}

#[test]
fn u18_tests_wait_for_a_point() {
    static POINT: FailPoint = FailPoint::new("waiting");
    let mut context = Context::from_waker(Waker::noop());
    turn_on(&POINT, FailPointMode::AlwaysOn);
    let mut entered = pin!(POINT.entered(1));
    assert!(entered.as_mut().poll(&mut context).is_pending());
    let mut paused = pin!(POINT.pause_while_on());
    assert!(paused.as_mut().poll(&mut context).is_pending());
    assert!(entered.as_mut().poll(&mut context).is_ready());
    POINT.turn_off();
    assert!(paused.as_mut().poll(&mut context).is_ready());
    assert!(pin!(POINT.pause_while_on()).poll(&mut context).is_ready());
}

#[test]
fn u18_sets_find_points_by_name() {
    static ONE: FailPoint = FailPoint::new("one");
    static TWO: FailPoint<u8> = FailPoint::with_data("two", first_byte);
    static FAIL_POINTS: &[&dyn AnyFailPoint] = &[&TWO, &ONE];
    let set = FailPointSet::new(&[FAIL_POINTS]).unwrap();
    set.set("two", FailPointMode::Skip(3), Bytes::from_static(&[9]), 1).unwrap();
    assert!(TWO.hit().is_none());
    let status = set.find("two").unwrap().status();
    assert_eq!((status.mode, &status.data[..], status.times_entered), (FailPointMode::Skip(2), &[9][..], 0));
    assert_eq!(status.mode.number(), 4);
    let error = set.set("three", FailPointMode::Off, Bytes::new(), 1).unwrap_err();
    assert_eq!((error.code(), error.reason()), (ErrorCode::FailPointSetFailed, "three not found"));
    set.turn_all_off();
    assert!(!TWO.is_on());
    assert_eq!(set.list().map(|point| point.name()).collect::<Vec<_>>(), ["one", "two"]);
    assert!(FailPointSet::new(&[FAIL_POINTS, &[&ONE]]).is_err());
}
