//! Record ids behind keys.

use super::values::value;
use crate::{
    Discriminator, Error, KeyOrdering, RecordIdKind, StackBuilder, Version, decode_record_id_at_end,
    size_without_record_id, split_record_id,
};
use pando_base::RecordId;
use pando_doc::{OwnedValue, compare};
use proptest::collection::vec;
use proptest::prelude::*;

fn id_of(kind: RecordIdKind) -> BoxedStrategy<RecordId> {
    match kind {
        RecordIdKind::Long => prop_oneof![any::<i64>(), -3..3_i64].prop_map(RecordId::Long).boxed(),
        // Few distinct bytes, so that prefixes, zeros and ones meet often.
        RecordIdKind::Bytes => {
            let few = vec(prop_oneof![Just(0_u8), Just(1), Just(255)], 0..6);
            prop_oneof![few, vec(any::<u8>(), 0..300)].prop_map(|bytes| RecordId::Bytes(bytes.into())).boxed()
        }
    }
}

fn entry(value: &OwnedValue, id: &RecordId) -> (Vec<u8>, usize) {
    let mut builder = StackBuilder::new(Version::V1, KeyOrdering::ASCENDING);
    builder.append(value.view()).unwrap();
    builder.finish(Discriminator::Inclusive);
    let size = builder.bytes().len();
    builder.append_record_id(id);
    (builder.bytes().to_vec(), size)
}

fn check_pair(kind: RecordIdKind, left: (&OwnedValue, &RecordId), right: (&OwnedValue, &RecordId)) {
    let ((left_key, size), (right_key, _)) = (entry(left.0, left.1), entry(right.0, right.1));
    let order = compare(left.0.view(), right.0.view()).then_with(|| left.1.cmp(right.1));
    assert_eq!(left_key.cmp(&right_key), order, "{left:?} {right:?}");
    assert_eq!(size_without_record_id(&left_key, kind), Ok(size));
    assert_eq!(decode_record_id_at_end(&left_key, kind).as_ref(), Ok(left.1));
    assert_eq!(split_record_id(&left_key, kind), Ok((&left_key[..size], left.1.clone())));
}

proptest! {
    #![proptest_config(super::cases(300))]

    #[test]
    fn x13_long_ids_sort_behind_equal_keys(
        left in value(), right in value(), ids in (id_of(RecordIdKind::Long), id_of(RecordIdKind::Long)),
    ) {
        check_pair(RecordIdKind::Long, (&left, &ids.0), (&right, &ids.1));
        check_pair(RecordIdKind::Long, (&left, &ids.0), (&left, &ids.1));
    }

    #[test]
    fn x13_byte_ids_sort_behind_equal_keys(
        left in value(), right in value(), ids in (id_of(RecordIdKind::Bytes), id_of(RecordIdKind::Bytes)),
    ) {
        check_pair(RecordIdKind::Bytes, (&left, &ids.0), (&right, &ids.1));
        check_pair(RecordIdKind::Bytes, (&left, &ids.0), (&left, &ids.1));
    }
}

#[test]
fn x13_the_extremes_and_long_byte_ids() {
    let key = OwnedValue::Null;
    for number in [i64::MIN, -1, 0, 1, i64::MAX] {
        check_pair(RecordIdKind::Long, (&key, &RecordId::Long(number)), (&key, &RecordId::Long(0)));
    }
    for length in [0, 1, 63, 64, 127, 128, 16_383, 16_384, 2_000_000] {
        let id = RecordId::Bytes(vec![0; length].into());
        check_pair(RecordIdKind::Bytes, (&key, &id), (&key, &id));
    }
}

/// The storage layer splits index entries by these very bytes.
#[test]
fn x13_suffixes_are_those_of_the_storage_layer() {
    let (entry_bytes, size) = entry(&OwnedValue::Null, &RecordId::Long(5));
    assert_eq!(entry_bytes[size..], [0x80, 0, 0, 0, 0, 0, 0, 5]);
    let (entry_bytes, size) = entry(&OwnedValue::Null, &RecordId::Bytes([1, 0, 2].into()));
    assert_eq!(entry_bytes[size..], [1, 0, 0xff, 2, 0, 4]);
    let (entry_bytes, _) = entry(&OwnedValue::Null, &RecordId::Bytes(vec![9; 130].into()));
    assert!(entry_bytes.ends_with(&[9, 0, 0x01, 0x82]));
}

#[test]
fn x13_damaged_ends_are_refused() {
    assert_eq!(decode_record_id_at_end(&[1, 2, 3], RecordIdKind::Long), Err(Error::BadRecordId));
    for bytes in [&[][..], &[0xff; 20], &[1, 0, 9], &[1, 2, 1], &[0, 1, 0, 2], &[0, 0x81]] {
        assert_eq!(decode_record_id_at_end(bytes, RecordIdKind::Bytes), Err(Error::BadRecordId), "{bytes:?}");
    }
}
