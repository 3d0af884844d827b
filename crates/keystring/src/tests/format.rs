//! The bytes themselves: they are seen by clients and must stay as MongoDB writes them.

use super::{bytes_of, key_of, versioned_key_of};
use crate::{Discriminator, KeyOrdering, Version, to_doc};
use pando_base::Timestamp;
use pando_doc::{Value, doc};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn check(value: Value<'_>, expected: &str) {
    assert_eq!(hex(&bytes_of(value)), format!("{expected}04"), "{value:?}");
}

fn check_decimal(negative: bool, coefficient: u128, exponent: i32, expected: &str) {
    check(super::values::decimal(negative, coefficient, exponent).unwrap().view(), expected);
}

#[test]
fn x12_integers_and_doubles() {
    check(Value::Int32(0), "29");
    check(Value::Int32(1), "2B02");
    check(Value::Int32(-1), "27FD");
    check(Value::Int32(127), "2BFE");
    check(Value::Int64(128), "2C0100");
    check(Value::Int64(i64::MAX), "32FFFFFFFFFFFFFFFE");
    check(Value::Int64(i64::MIN), "1FF83FFFFFFFFFFFFF");
    check(Value::Double(-9_223_372_036_854_775_808.0), "1FF83FFFFFFFFFFFFF");
    check(Value::Double(1.5), "2B0380000000000000");
    check(Value::Double(-1.5), "27FC7FFFFFFFFFFFFF");
    check(Value::Double(0.5), "2AFF80000000000000");
    check(Value::Double(f64::INFINITY), "33FFFFFFFFFFFFFFFF");
    check(Value::Double(f64::NEG_INFINITY), "1F0000000000000000");
    check(Value::Double(f64::NAN), "1E");
    // The smallest double is 2^-1074, scaled 2^-818: exponent field 205.
    check(Value::Double(f64::from_bits(1)), "2A59A0000000000000");
}

#[test]
fn x12_decimals() {
    check_decimal(false, 4_000_000, -6, "2B08");
    check_decimal(false, 1, -1, "2AFEE6666666666666");
    // 2^53 + 1.5: seven bytes of integer, the marker, 5 × 10^17 of the 34th digit.
    check_decimal(false, 90_071_992_547_409_935, -1, "31400000000000030306F05B59D3B20000");
    check_decimal(false, 1, 6111, "33DFBC314DC6448D9338C15B0A00000000");
    check_decimal(true, 1, -6176, "28FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFE");
}

#[test]
fn x12_other_types() {
    check(Value::String("abc".into()), "3C61626300");
    check(Value::String("a\0b".into()), "3C6100FF6200");
    check(Value::DateTime(1_704_067_200_000), "788000018CC251F400");
    check(Value::Array(doc! { "a": [1_i32, 2_i32, 3_i32] }.get("a").unwrap().as_array().unwrap()), "502B022B042B0600");
    let document = doc! { "b": 1_i32, "c": 2_i32, "d": 3_i32 };
    check(Value::Document(document.view()), "461E62002B021E63002B041E64002B0600");
    check(Value::Binary { subtype: 4, bytes: &[7; 2] }, "5A02040707");
    check(Value::Binary { subtype: 0, bytes: &[0; 255] }, &format!("5AFF000000FF00{}", "00".repeat(255)));
    let id = pando_doc::ObjectId::from_bytes([0x11; 12]);
    check(Value::DbPointer { namespace: "a.b".into(), id }, &format!("9600000003612E62{}", "11".repeat(12)));
    check(Value::Regex { pattern: "a".into(), options: "i".into() }, "8C61006900");
    check(Value::CodeWithScope { code: "x".into(), scope: doc! { "y": true }.view() }, "AA78006E79006F00");
}

#[test]
fn x12_descending_components_are_inverted_but_not_the_end() {
    let ordering = KeyOrdering::from_bits(0b10);
    let (key, _) = key_of(&[Value::Int32(1), Value::Int32(1)], ordering, Discriminator::Inclusive);
    assert_eq!(hex(&key), "2B02D4FD04");
    let (key, _) = key_of(&[Value::Int32(1)], ordering, Discriminator::ExclusiveBefore);
    assert_eq!(hex(&key), "2B0201");
    let (key, _) = key_of(&[Value::Int32(1)], ordering, Discriminator::ExclusiveAfter);
    assert_eq!(hex(&key), "2B02FE");
}

#[test]
fn x12_version_0_fractions() {
    let key = |number| {
        let ordering = KeyOrdering::ASCENDING;
        hex(&versioned_key_of(&[Value::Double(number)], ordering, Discriminator::Inclusive, Version::V0).0)
    };
    assert_eq!(key(1.5), "2B030800000000000004");
    assert_eq!(key(-1.5), "27FCF7FFFFFFFFFFFF04");
    assert_eq!(key(-0.5), "28401FFFFFFFFFFFFF04");
    assert_eq!(key(f64::INFINITY), "337FF000000000000004");
}

/// A token that a server has handed out: cluster time, token version, place in the transaction and in the entry, whether it
/// invalidates, the collection's id, the document key.
#[test]
fn x12_resume_tokens_decode_and_encode() {
    let token = "82612E8513000000012B022C0100296E5A1004A5093ABB38FE4B9EA67F01BB1A96D812463C5F6964003C5F5F5F78000004";
    let bytes = unhex(token);
    let values = to_doc(&bytes, KeyOrdering::ASCENDING, &[], Version::V1).unwrap();
    let values: Vec<Value<'_>> = values.elements().map(|element| element.value).collect();
    assert_eq!(values[0], Value::Timestamp(Timestamp::new(0x612E_8513, 1)));
    assert_eq!(values[1..5], [Value::Int32(1), Value::Int32(128), Value::Int32(0), Value::Bool(false)]);
    assert!(matches!(values[5], Value::Binary { subtype: 4, bytes } if bytes.len() == 16));
    assert_eq!(values[6], Value::Document(doc! { "_id": "___x" }.view()));
    let (key, type_bits) = key_of(&values, KeyOrdering::ASCENDING, Discriminator::Inclusive);
    assert_eq!((hex(&key), type_bits), (token.into(), Vec::new()));
}
