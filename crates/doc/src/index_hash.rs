//! The hash of a value, as hashed indexes and hashed shard keys have it.
//!
//! It is visible outside (chunk bounds, `convertShardKeyToHashed`), so it is MongoDB's, bit for bit: MD5 over the seed and
//! the value, of which the first eight bytes are taken as a little-endian integer. Each element contributes its canonical
//! type as four bytes, inside documents and arrays its name with the final zero, then its value: numbers of every type as
//! the whole number they begin with, so that `1`, `1.0` and `1.5` hash alike; nested elements one by one, closed by a
//! zero type; all else as encoded.

use crate::{DocRef, Number, RawElement, Value, ValueType};
use md5::{Digest, Md5};

/// The seed of every index; nothing else was ever used.
pub const HASH_SEED: i32 = 0;
/// The first double that no int64 reaches.
const INT64_BOUND: f64 = 9_223_372_036_854_775_808.0;

/// The hash of a field's value; its name does not matter.
pub fn hash_element(element: RawElement<'_>, seed: i32) -> i64 {
    let mut digest = Md5::new();
    digest.update(seed.to_le_bytes());
    add_type(&mut digest, element.value_type.canonical_order());
    add_value(&mut digest, element);
    first_half(digest)
}

/// The hash of null, which stands for a missing field too.
pub fn hash_null(seed: i32) -> i64 {
    let mut digest = Md5::new();
    digest.update(seed.to_le_bytes());
    add_type(&mut digest, ValueType::Null.canonical_order());
    first_half(digest)
}

fn first_half(digest: Md5) -> i64 {
    let mut half = [0; 8];
    half.iter_mut().zip(digest.finalize()).for_each(|(half, byte)| *half = byte);
    i64::from_le_bytes(half)
}

fn add_type(digest: &mut Md5, canonical_order: i8) {
    digest.update(i32::from(canonical_order).to_le_bytes());
}

fn add_value(digest: &mut Md5, element: RawElement<'_>) {
    match element.value() {
        Some(Value::Document(nested)) => add_nested(digest, nested),
        Some(Value::Array(nested)) => add_nested(digest, nested.as_doc()),
        Some(Value::CodeWithScope { code, scope }) => {
            digest.update(code);
            digest.update([0]);
            add_nested(digest, scope);
        }
        Some(value) => match value.as_number() {
            Some(number) => digest.update(whole_part(number).to_le_bytes()),
            None => digest.update(element.value_bytes),
        },
        None => {}
    }
}

fn add_nested(digest: &mut Md5, nested: DocRef<'_>) {
    for element in nested.raw_elements() {
        add_type(digest, element.value_type.canonical_order());
        digest.update(element.name);
        digest.update([0]);
        add_value(digest, element);
    }
    add_type(digest, 0);
}

/// Two to the 63rd as a double gives the smallest int64: an overflow of long ago that hashes in use depend on.
fn whole_part(number: Number) -> i64 {
    match number {
        Number::Double(INT64_BOUND) => i64::MIN,
        number => number.truncated_i64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decimal128, Doc, doc};

    fn hash(doc: &Doc) -> i64 {
        hash_element(doc.view().raw_elements().next().unwrap(), HASH_SEED)
    }

    #[test]
    fn u7_hashes_are_those_of_mongodb() {
        // The value that the server checks itself against at each start.
        assert_eq!(hash(&doc! { "check": 42_i32 }), -944_302_157_085_130_861);
        assert_eq!(hash(&doc! { "": Value::Null }), hash_null(HASH_SEED));
    }

    #[test]
    fn u7_numbers_hash_by_their_whole_part() {
        let one = hash(&doc! { "a": 1_i32 });
        for doc in [doc! { "b": 1_i64 }, doc! { "": 1.9 }, doc! { "": Decimal128::ONE }] {
            assert_eq!(hash(&doc), one, "{doc}");
        }
        assert_ne!(hash(&doc! { "a": 2_i32 }), one);
        assert_eq!(hash(&doc! { "a": f64::NAN }), hash(&doc! { "a": 0_i32 }));
        assert_eq!(hash(&doc! { "a": INT64_BOUND }), hash(&doc! { "a": i64::MIN }));
        assert_eq!(hash(&doc! { "a": 1e300 }), hash(&doc! { "a": i64::MAX }));
    }

    #[test]
    fn u7_names_matter_inside_only() {
        assert_eq!(hash(&doc! { "a": { "x": 1_i32 } }), hash(&doc! { "b": { "x": 1.5 } }));
        assert_ne!(hash(&doc! { "a": { "x": 1_i32 } }), hash(&doc! { "a": { "y": 1_i32 } }));
        assert_ne!(hash(&doc! { "a": { "x": { } } }), hash(&doc! { "a": { "x": [] } }));
        assert_ne!(
            hash_element(doc! { "a": 1_i32 }.view().raw_elements().next().unwrap(), 1),
            hash(&doc! { "a": 1_i32 })
        );
    }
}
