//! Bytes that no encoder wrote: errors, never panics, and what is decoded is a well-formed document.

use super::key_of;
use super::values::value;
use crate::{
    Discriminator, Error, KeyOrdering, RecordIdKind, TypeBitsReader, Version, component_count, decode_record_id_at_end,
    discriminator, key_size, to_doc,
};
use pando_doc::{DocRef, OwnedValue};
use proptest::collection::vec;
use proptest::prelude::*;

fn read_everything(bytes: &[u8], type_bits: &[u8]) {
    for ordering in [KeyOrdering::ASCENDING, KeyOrdering::from_bits(u32::MAX)] {
        for version in [Version::V0, Version::V1] {
            if let Ok(doc) = to_doc(bytes, ordering, type_bits, version) {
                assert!(DocRef::parse(doc.bytes()).is_ok(), "{bytes:02x?} {doc:?}");
                // What can be decoded can be skipped.
                assert_eq!(component_count(bytes, ordering, version), Ok(doc.elements().count()));
            }
            let _ = key_size(bytes, ordering, version);
            let _ = discriminator(bytes, ordering, version);
        }
    }
    let _ = TypeBitsReader::split(bytes);
    for kind in [RecordIdKind::Long, RecordIdKind::Bytes] {
        let _ = decode_record_id_at_end(bytes, kind);
    }
}

/// Bytes that look like the start of some component more often than not.
fn plausible_byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        4 => any::<u8>(),
        4 => 30_u8..52,
        4 => (1_u8..18).prop_map(|ten| ten * 10),
        2 => prop_oneof![Just(0_u8), Just(255), Just(4), Just(128)],
    ]
}

proptest! {
    #![proptest_config(super::cases(5000))]

    #[test]
    fn x12_random_bytes_never_panic(bytes in vec(plausible_byte(), 0..40), type_bits in vec(any::<u8>(), 0..6)) {
        read_everything(&bytes, &type_bits);
    }
}

proptest! {
    #![proptest_config(super::cases(1000))]

    #[test]
    fn x12_damaged_keys_never_panic(
        values in vec(value(), 1..3), at in any::<proptest::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        let views: Vec<_> = values.iter().map(OwnedValue::view).collect();
        let (mut key, type_bits) = key_of(&views, KeyOrdering::ASCENDING, Discriminator::Inclusive);
        let at = at.index(key.len());
        if cut { key.truncate(at) } else { key[at] ^= byte }
        read_everything(&key, &type_bits);
        read_everything(&key, &[]);
    }
}

#[test]
fn x12_bottomless_nesting_is_refused() {
    let arrays = vec![80_u8; 100_000];
    assert_eq!(to_doc(&arrays, KeyOrdering::ASCENDING, &[], Version::V1), Err(Error::TooDeep));
    assert_eq!(component_count(&arrays, KeyOrdering::ASCENDING, Version::V1), Err(Error::TooDeep));
    let documents = [70_u8, 70, 0].repeat(100_000);
    assert_eq!(to_doc(&documents, KeyOrdering::ASCENDING, &[], Version::V1), Err(Error::TooDeep));
}

#[test]
fn x12_lengths_beyond_the_end_are_refused() {
    for bytes in [&[90_u8, 255, 255, 255, 255, 255, 0][..], &[150, 255, 255, 255, 255, 1], &[100, 1], &[60, 65], &[120]]
    {
        assert!(to_doc(bytes, KeyOrdering::ASCENDING, &[], Version::V1).is_err());
    }
    assert_eq!(to_doc(&[9], KeyOrdering::ASCENDING, &[], Version::V1), Err(Error::UnknownType(9)));
}
