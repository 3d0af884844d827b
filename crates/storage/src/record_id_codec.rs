//! How record ids are written: as a record store's key, as the end of an index key, and in an `_id` index's value.
//!
//! A table holds ids of one [`RecordIdKind`] only, so no byte is spent on the kind.
//!
//! **Key.** A long is 8 bytes, big-endian with the sign bit flipped, so that memcmp order is numeric order. Bytes stand as
//! they are.
//!
//! **Suffix** of an index key: see `pando_base::record_id::suffix`.
//!
//! **Value** of an `_id` index: the id so that it can be split off from the front, then the type bits. A long is the
//! zigzag number in groups of seven bits, least significant first, high bit for more; bytes are preceded by their length
//! written likewise.
//!
//! Decoders give none for anything that an encoder did not write; they never panic.

use pando_base::record_id::suffix::{LONG_LENGTH, long_from_bytes, long_to_bytes};
use pando_base::record_id::{RecordId, RecordIdKind};

/// A record id as a record store's key, without allocating for longs.
pub(crate) enum EncodedKey<'a> {
    Long([u8; LONG_LENGTH]),
    Bytes(&'a [u8]),
}

impl<'a> EncodedKey<'a> {
    pub(crate) fn new(id: &'a RecordId) -> EncodedKey<'a> {
        match id {
            RecordId::Long(number) => EncodedKey::Long(long_to_bytes(*number)),
            RecordId::Bytes(bytes) => EncodedKey::Bytes(bytes),
        }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            EncodedKey::Long(bytes) => bytes,
            EncodedKey::Bytes(bytes) => bytes,
        }
    }
}

/// The id that a record store's key stands for.
pub(crate) fn decode_key(kind: RecordIdKind, key: &[u8]) -> Option<RecordId> {
    match kind {
        RecordIdKind::Long => key.try_into().ok().map(|bytes| RecordId::Long(long_from_bytes(bytes))),
        RecordIdKind::Bytes => Some(RecordId::Bytes(key.into())),
    }
}

/// Writes the value of an `_id` index.
pub(crate) fn append_value(out: &mut Vec<u8>, id: &RecordId, type_bits: &[u8]) {
    match id {
        RecordId::Long(number) => append_varint(out, (number << 1 ^ number >> 63) as u64),
        RecordId::Bytes(bytes) => {
            append_varint(out, bytes.len() as u64);
            out.extend_from_slice(bytes);
        }
    }
    out.extend_from_slice(type_bits);
}

/// Splits the value of an `_id` index into the id and the type bits.
pub(crate) fn split_value(kind: RecordIdKind, value: &[u8]) -> Option<(RecordId, &[u8])> {
    let (number, rest) = split_varint(value)?;
    match kind {
        RecordIdKind::Long => Some((RecordId::Long((number >> 1) as i64 ^ -((number & 1) as i64)), rest)),
        RecordIdKind::Bytes => {
            let (bytes, rest) = rest.split_at_checked(usize::try_from(number).ok()?)?;
            Some((RecordId::Bytes(bytes.into()), rest))
        }
    }
}

fn append_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn split_varint(mut bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (mut number, mut shift) = (0_u64, 0_u32);
    loop {
        let (first, rest) = bytes.split_first()?;
        let group = u64::from(first & 0x7f);
        if shift >= u64::BITS || group << shift >> shift != group {
            return None;
        }
        number |= group << shift;
        shift += 7;
        bytes = rest;
        if first & 0x80 == 0 {
            return Some((number, bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::record_id::suffix;
    use proptest::prelude::*;

    fn id_of(kind: RecordIdKind) -> BoxedStrategy<RecordId> {
        match kind {
            RecordIdKind::Long => prop_oneof![any::<i64>(), -3_i64..3].prop_map(RecordId::Long).boxed(),
            // Few distinct bytes, so that prefixes, zeros and ones meet often.
            RecordIdKind::Bytes => prop_oneof![
                proptest::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(255)], 0..6),
                proptest::collection::vec(any::<u8>(), 0..300),
            ]
            .prop_map(|bytes| RecordId::Bytes(bytes.into()))
            .boxed(),
        }
    }

    /// Opaque index keys of which none is a prefix of another, as KeyStrings are.
    fn index_key() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(5_u8..8, 0..4).prop_map(|mut key| {
            key.push(4);
            key
        })
    }

    fn stored(key: &[u8], id: &RecordId) -> Vec<u8> {
        let mut out = key.to_vec();
        suffix::append(id, &mut |bytes| out.extend_from_slice(bytes));
        out
    }

    fn check_pair(kind: RecordIdKind, left: (Vec<u8>, RecordId), right: (Vec<u8>, RecordId)) {
        let (a, b) = (stored(&left.0, &left.1), stored(&right.0, &right.1));
        assert_eq!(a.cmp(&b), left.cmp(&right), "{left:?} {right:?}");
        assert_eq!(suffix::split(kind, &a), Some((&left.0[..], left.1.clone())));
        if let (RecordId::Long(_), RecordId::Long(_)) = (&left.1, &right.1) {
            let (a, b) = (EncodedKey::new(&left.1), EncodedKey::new(&right.1));
            assert_eq!(a.as_slice().cmp(b.as_slice()), left.1.cmp(&right.1));
        }
        assert_eq!(decode_key(kind, EncodedKey::new(&left.1).as_slice()), Some(left.1.clone()));
        let mut value = Vec::new();
        append_value(&mut value, &left.1, &right.0);
        assert_eq!(split_value(kind, &value), Some((left.1, &right.0[..])));
    }

    proptest! {
        #[test]
        fn x13_long_ids_sort_and_split(
            left in (index_key(), id_of(RecordIdKind::Long)), right in (index_key(), id_of(RecordIdKind::Long)),
        ) {
            check_pair(RecordIdKind::Long, left, right);
        }

        #[test]
        fn x13_byte_ids_sort_and_split(
            left in (index_key(), id_of(RecordIdKind::Bytes)), right in (index_key(), id_of(RecordIdKind::Bytes)),
        ) {
            check_pair(RecordIdKind::Bytes, left, right);
        }

        #[test]
        fn damaged_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            for kind in [RecordIdKind::Long, RecordIdKind::Bytes] {
                let _ = suffix::split(kind, &bytes);
                let _ = split_value(kind, &bytes);
                let _ = decode_key(kind, &bytes);
            }
        }
    }

    #[test]
    fn x13_the_extremes_and_a_long_byte_id() {
        for number in [i64::MIN, -1, 0, 1, i64::MAX] {
            check_pair(RecordIdKind::Long, (vec![4], RecordId::Long(number)), (vec![4], RecordId::Long(0)));
        }
        for length in [0, 1, 63, 64, 127, 128, 16_383, 16_384, 100_000] {
            let id = RecordId::Bytes(vec![0; length].into());
            check_pair(RecordIdKind::Bytes, (vec![4], id.clone()), (vec![4], id));
        }
    }

    #[test]
    fn lengths_that_overflow_are_refused() {
        assert_eq!(split_varint(&[0xff; 20]), None);
    }
}
