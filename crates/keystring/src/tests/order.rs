//! The order of keys is the order of values.

use super::values::value;
use super::{bytes_of, check_round_trip, key_of};
use crate::{Discriminator, KeyOrdering, Version};
use pando_doc::{OwnedValue, Value, compare};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cmp::Ordering;

fn directed(order: Ordering, ordering: KeyOrdering, component: usize) -> Ordering {
    if ordering.is_descending(component) { order.reverse() } else { order }
}

/// Component by component; none decides if all are equal.
fn compare_components(left: &[OwnedValue], right: &[OwnedValue], ordering: KeyOrdering) -> Ordering {
    let pairs = left.iter().zip(right).enumerate();
    pairs.fold(Ordering::Equal, |order, (component, (left, right))| {
        order.then_with(|| directed(compare(left.view(), right.view()), ordering, component))
    })
}

fn views(values: &[OwnedValue]) -> Vec<Value<'_>> {
    values.iter().map(OwnedValue::view).collect()
}

fn discriminator() -> impl Strategy<Value = Discriminator> {
    prop_oneof![
        Just(Discriminator::Inclusive),
        Just(Discriminator::ExclusiveBefore),
        Just(Discriminator::ExclusiveAfter),
    ]
}

proptest! {
    #![proptest_config(super::cases(1000))]

    #[test]
    fn x12_values_sort_in_both_directions(left in value(), right in value()) {
        let order = compare(left.view(), right.view());
        prop_assert_eq!(bytes_of(left.view()).cmp(&bytes_of(right.view())), order);
        let descending = |value: &OwnedValue| key_of(&[value.view()], KeyOrdering::from_bits(1), Discriminator::Inclusive).0;
        prop_assert_eq!(descending(&left).cmp(&descending(&right)), order.reverse());
    }

    #[test]
    fn x12_no_component_is_a_prefix_of_another(left in value(), right in value()) {
        let (left_bytes, right_bytes) = (bytes_of(left.view()), bytes_of(right.view()));
        let component = &left_bytes[..left_bytes.len() - 1];
        if component.len() < right_bytes.len() - 1 {
            prop_assert!(!right_bytes.starts_with(component), "{:?} {:?}", left, right);
        }
    }

    #[test]
    fn x12_compound_keys_sort(
        left in vec(value(), 3), right in vec(value(), 3), shared in 0..3_usize, bits in 0..8_u32,
    ) {
        let ordering = KeyOrdering::from_bits(bits);
        let mut right = right;
        right[..shared].clone_from_slice(&left[..shared]);
        let key = |values| key_of(&views(values), ordering, Discriminator::Inclusive).0;
        prop_assert_eq!(key(&left).cmp(&key(&right)), compare_components(&left, &right, ordering));
    }

    #[test]
    fn x12_discriminators_stand_around_the_keys_that_continue_a_bound(
        bound in vec(value(), 1..3), stored in vec(value(), 3), is_prefix in any::<bool>(), bits in 0..8_u32,
        discriminator in discriminator(),
    ) {
        let ordering = KeyOrdering::from_bits(bits);
        let bound = if is_prefix { stored[..bound.len()].to_vec() } else { bound };
        let order = compare_components(&stored, &bound, ordering);
        let expected = match (order, discriminator) {
            (Ordering::Equal, Discriminator::ExclusiveAfter) => Ordering::Less,
            // More components sort after the end of fewer.
            (Ordering::Equal, _) => Ordering::Greater,
            (order, _) => order,
        };
        let stored = key_of(&views(&stored), ordering, Discriminator::Inclusive).0;
        let bound = key_of(&views(&bound), ordering, discriminator).0;
        prop_assert_eq!(stored.cmp(&bound), expected);
    }

    #[test]
    fn x12_values_are_restored(values in vec(value(), 0..4)) {
        check_round_trip(&values, Version::V1);
    }
}

#[test]
fn x12_canonical_types_are_in_mongodbs_order() {
    let id = pando_doc::ObjectId::from_bytes([0; 12]);
    let text = bstr::BStr::new("");
    let in_order = [
        Value::MinKey,
        Value::Undefined,
        Value::Null,
        Value::Double(f64::NAN),
        Value::Double(f64::INFINITY),
        Value::String(text),
        Value::Document(pando_doc::DocRef::EMPTY),
        Value::Array(pando_doc::ArrayRef::EMPTY),
        Value::Binary { subtype: 0, bytes: b"" },
        Value::ObjectId(id),
        Value::Bool(false),
        Value::Bool(true),
        Value::DateTime(i64::MIN),
        Value::Timestamp(pando_base::Timestamp(0)),
        Value::Regex { pattern: text, options: text },
        Value::DbPointer { namespace: text, id },
        Value::Code(text),
        Value::CodeWithScope { code: text, scope: pando_doc::DocRef::EMPTY },
        Value::MaxKey,
    ];
    assert!(in_order.is_sorted_by(|left, right| bytes_of(*left) < bytes_of(*right)));
    assert!(in_order.is_sorted_by(|left, right| compare(*left, *right).is_lt()));
}
