//! Keys against the order of values, and back.

mod damage;
mod format;
mod keys;
mod numbers;
mod order;
mod record_ids;
mod values;

use crate::{Discriminator, KeyOrdering, StackBuilder, Version, to_values};
use pando_doc::{OwnedValue, Value};
use proptest::test_runner::{Config as ProptestConfig, RngSeed};

/// The same cases in every run.
fn cases(count: u32) -> ProptestConfig {
    ProptestConfig {
        cases: count,
        rng_seed: RngSeed::Fixed(12),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// The bytes and type bits of a key with these components.
fn key_of(values: &[Value<'_>], ordering: KeyOrdering, discriminator: Discriminator) -> (Vec<u8>, Vec<u8>) {
    versioned_key_of(values, ordering, discriminator, Version::V1)
}

fn versioned_key_of(
    values: &[Value<'_>],
    ordering: KeyOrdering,
    discriminator: Discriminator,
    version: Version,
) -> (Vec<u8>, Vec<u8>) {
    let mut builder = StackBuilder::new(version, ordering);
    for value in values {
        builder.append(*value).unwrap();
    }
    builder.finish(discriminator);
    (builder.bytes().to_vec(), builder.encoded_type_bits().to_vec())
}

/// A single ascending component.
fn bytes_of(value: Value<'_>) -> Vec<u8> {
    key_of(&[value], KeyOrdering::ASCENDING, Discriminator::Inclusive).0
}

/// Writes and reads the values in both directions.
fn check_round_trip(values: &[OwnedValue], version: Version) {
    for ordering in [KeyOrdering::ASCENDING, KeyOrdering::from_bits(u32::MAX), KeyOrdering::from_bits(0b10)] {
        let views: Vec<Value<'_>> = values.iter().map(OwnedValue::view).collect();
        let (key, type_bits) = versioned_key_of(&views, ordering, Discriminator::Inclusive, version);
        let restored = to_values(&key, ordering, &type_bits, version);
        let restored = restored.unwrap_or_else(|error| panic!("{values:?}: {error}"));
        assert_eq!(restored.len(), values.len());
        for (restored, original) in restored.iter().zip(values) {
            assert!(is_same(restored.view(), original.view()), "{restored:?} {original:?} {key:02x?} {type_bits:02x?}");
        }
    }
}

/// The same bits, except that NaN has lost its payload.
fn is_same(left: Value<'_>, right: Value<'_>) -> bool {
    match (left, right) {
        (Value::Double(left), Value::Double(right)) => {
            left.to_bits() == right.to_bits() || left.is_nan() && right.is_nan()
        }
        (Value::Decimal(left), Value::Decimal(right)) => left == right || left.is_nan() && right.is_nan(),
        _ => left == right,
    }
}
