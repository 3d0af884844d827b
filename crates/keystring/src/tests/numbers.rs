//! Numbers of all four types at every edge of the format.

use super::values::{edge_numbers, number};
use super::{bytes_of, check_round_trip, key_of, versioned_key_of};
use crate::{Discriminator, Error, KeyOrdering, StackBuilder, Version};
use pando_doc::{Decimal128, OwnedValue, Value, compare};
use proptest::prelude::*;
use std::cmp::Ordering;

/// Both orders are total, so if all neighbours in the one agree with the other, all pairs do.
#[test]
fn x12_edge_numbers_sort_by_value() {
    let numbers = edge_numbers();
    assert!(numbers.len() > 1000);
    for ordering in [KeyOrdering::ASCENDING, KeyOrdering::from_bits(1)] {
        let key = |number: &OwnedValue| key_of(&[number.view()], ordering, Discriminator::Inclusive).0;
        let mut by_key: Vec<(Vec<u8>, &OwnedValue)> = numbers.iter().map(|number| (key(number), number)).collect();
        by_key.sort_by(|left, right| left.0.cmp(&right.0));
        if ordering.is_descending(0) {
            by_key.reverse();
        }
        for pair in by_key.windows(2) {
            let (left, right) = (&pair[0], &pair[1]);
            let order = if left.0 == right.0 { Ordering::Equal } else { Ordering::Less };
            assert_eq!(compare(left.1.view(), right.1.view()), order, "{left:?} {right:?}");
        }
    }
}

/// The same without trusting that the order of values is total.
#[test]
fn x12_pairs_of_edge_numbers_compare_by_value() {
    let numbers = edge_numbers();
    let some: Vec<(&OwnedValue, Vec<u8>)> =
        numbers.iter().step_by(11).map(|number| (number, bytes_of(number.view()))).collect();
    for (left, left_key) in &some {
        for (right, right_key) in &some {
            assert_eq!(left_key.cmp(right_key), compare(left.view(), right.view()), "{left:?} {right:?}");
        }
    }
}

#[test]
fn x12_edge_numbers_are_restored() {
    for number in edge_numbers() {
        check_round_trip(&[number], Version::V1);
    }
}

#[test]
fn x12_every_exponent_is_restored() {
    for exponent in -6176..=6111 {
        for coefficient in [0, 120, 10_u128.pow(34) - 1] {
            let number = super::values::decimal(exponent % 2 == 0, coefficient, exponent).unwrap();
            let (key, type_bits) = key_of(&[number.view()], KeyOrdering::ASCENDING, Discriminator::Inclusive);
            let restored = crate::to_values(&key, KeyOrdering::ASCENDING, &type_bits, Version::V1).unwrap();
            assert_eq!(restored, [number]);
        }
    }
}

#[test]
fn x12_version_0_sorts_and_restores_doubles_and_integers() {
    let is_old = |number: &OwnedValue| !matches!(number, OwnedValue::Decimal(_));
    let numbers: Vec<OwnedValue> = edge_numbers().into_iter().filter(is_old).collect();
    let key = |number: &OwnedValue| {
        versioned_key_of(&[number.view()], KeyOrdering::ASCENDING, Discriminator::Inclusive, Version::V0).0
    };
    let keys: Vec<Vec<u8>> = numbers.iter().map(key).collect();
    for (left, left_key) in numbers.iter().zip(&keys) {
        for (right, right_key) in numbers.iter().zip(&keys) {
            assert_eq!(left_key.cmp(right_key), compare(left.view(), right.view()), "{left:?} {right:?}");
        }
        check_round_trip(std::slice::from_ref(left), Version::V0);
    }
}

#[test]
fn x12_version_0_refuses_decimals() {
    let mut builder = StackBuilder::new(Version::V0, KeyOrdering::ASCENDING);
    assert_eq!(builder.append(Value::Decimal(Decimal128::ONE)), Err(Error::DecimalInVersion0));
    builder.reset(KeyOrdering::ASCENDING);
    assert_eq!(builder.append(Value::Int32(1)), Ok(()));
}

#[test]
fn x12_equal_numbers_have_equal_bytes() {
    let two = super::values::decimal(false, 200, -2).unwrap();
    let others = [Value::Int32(2), Value::Int64(2), Value::Double(2.0), two.view()];
    for other in others {
        assert_eq!(bytes_of(other), [0x2b, 4, 4]);
    }
}

proptest! {
    #![proptest_config(super::cases(4000))]

    #[test]
    fn x12_random_numbers_sort_by_value(left in number(), right in number()) {
        let order = compare(left.view(), right.view());
        prop_assert_eq!(bytes_of(left.view()).cmp(&bytes_of(right.view())), order, "{:?} {:?}", left, right);
    }

    #[test]
    fn x12_random_numbers_are_restored(number in number()) {
        check_round_trip(&[number], Version::V1);
    }
}
