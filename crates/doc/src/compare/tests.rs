//! The order is total, exact on numbers, and in line with hashes.

use super::*;
use crate::testing::{config, number, value};
use crate::{Decimal128, DecimalParts, Doc, OwnedValue, ValueType, array, doc};
use bstr::BStr;
use num_bigint::BigInt;
use pando_base::Timestamp;
use proptest::prelude::*;
use std::hash::{DefaultHasher, Hasher};

fn hash(value: &OwnedValue) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_value(value.view(), &mut hasher);
    hasher.finish()
}

/// A number as the oracle sees it: NaN, an infinity, or a fraction.
#[derive(PartialEq, Eq)]
enum Exact {
    Nan,
    Infinity { negative: bool },
    Fraction { numerator: BigInt, denominator: BigInt },
}

fn exact(value: &OwnedValue) -> Exact {
    let fraction = |number: BigInt, base: u32, exponent: i32| {
        let power = BigInt::from(base).pow(exponent.unsigned_abs());
        if exponent >= 0 {
            Exact::Fraction { numerator: number * power, denominator: BigInt::from(1) }
        } else {
            Exact::Fraction { numerator: number, denominator: power }
        }
    };
    match *value {
        OwnedValue::Int32(number) => fraction(number.into(), 1, 0),
        OwnedValue::Int64(number) => fraction(number.into(), 1, 0),
        OwnedValue::Double(number) if number.is_nan() => Exact::Nan,
        OwnedValue::Double(number) if number.is_infinite() => Exact::Infinity { negative: number < 0.0 },
        OwnedValue::Double(number) => {
            // Scaled by two to the 1074th every double is whole; the halves keep the scale finite.
            let bits = number.abs().to_bits();
            let (exponent, fraction_bits) = ((bits >> 52) as i32, bits & 0xF_FFFF_FFFF_FFFF);
            let mantissa = if exponent == 0 { fraction_bits } else { fraction_bits + 0x10_0000_0000_0000 };
            let mantissa = BigInt::from(mantissa) * if number < 0.0 { -1 } else { 1 };
            fraction(mantissa, 2, exponent.max(1) - 1075)
        }
        OwnedValue::Decimal(number) => match number.parts() {
            DecimalParts::Nan { .. } => Exact::Nan,
            DecimalParts::Infinity { negative } => Exact::Infinity { negative },
            DecimalParts::Finite { negative, coefficient, exponent } => {
                fraction(BigInt::from(coefficient) * if negative { -1 } else { 1 }, 10, exponent)
            }
        },
        ref other => panic!("{other} is no number"),
    }
}

fn exact_order(left: &OwnedValue, right: &OwnedValue) -> Ordering {
    let rank = |exact: &Exact| match exact {
        Exact::Nan => 0,
        Exact::Infinity { negative: true } => 1,
        Exact::Fraction { .. } => 2,
        Exact::Infinity { negative: false } => 3,
    };
    match (exact(left), exact(right)) {
        (
            Exact::Fraction { numerator, denominator },
            Exact::Fraction { numerator: right_numerator, denominator: right_denominator },
        ) => (numerator * right_denominator).cmp(&(right_numerator * denominator)),
        (left, right) => rank(&left).cmp(&rank(&right)),
    }
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn numbers_are_in_their_exact_order(left in number(), right in number()) {
        prop_assert_eq!(compare(left.view(), right.view()), exact_order(&left, &right), "{} and {}", left, right);
    }

    #[test]
    fn a_decimal_beside_a_double_is_told_from_it(double: f64, step in -2_i128..3) {
        let near = Decimal128::from_double_34_digits(double);
        let DecimalParts::Finite { negative, coefficient, exponent } = near.parts() else { return Ok(()) };
        let Some(coefficient) = coefficient.checked_add_signed(step) else { return Ok(()) };
        let decimal = OwnedValue::Decimal(Decimal128::nearest(negative, coefficient, exponent).value);
        let double = OwnedValue::Double(double);
        prop_assert_eq!(compare(decimal.view(), double.view()), exact_order(&decimal, &double));
        prop_assert_eq!(compare(double.view(), decimal.view()), exact_order(&double, &decimal));
    }

    #[test]
    fn the_order_is_total(values in proptest::collection::vec(value(), 3)) {
        let [a, b, c] = [values[0].view(), values[1].view(), values[2].view()];
        prop_assert_eq!(compare(a, a), Ordering::Equal);
        prop_assert_eq!(compare(a, b), compare(b, a).reverse());
        if compare(a, b).is_le() && compare(b, c).is_le() {
            prop_assert!(compare(a, c).is_le());
        }
        if compare(a, b).is_eq() {
            prop_assert_eq!(compare(a, c), compare(b, c));
            prop_assert_eq!(hash(&values[0]), hash(&values[1]));
        }
    }

    #[test]
    fn equal_numbers_hash_alike(left in number(), right in number()) {
        if compare(left.view(), right.view()).is_eq() {
            prop_assert_eq!(hash(&left), hash(&right));
        }
        let wrapped = |value: &OwnedValue| OwnedValue::from(doc! { "a": [value] });
        prop_assert_eq!(hash(&wrapped(&left)) == hash(&wrapped(&right)), hash(&left) == hash(&right));
    }
}

#[test]
fn types_are_in_canonical_order() {
    let id = crate::ObjectId::default();
    let values = [
        OwnedValue::MinKey,
        OwnedValue::Undefined,
        OwnedValue::Null,
        OwnedValue::Double(f64::NAN),
        OwnedValue::Decimal(Decimal128::NEGATIVE_INFINITY),
        OwnedValue::Int32(7),
        OwnedValue::String("".into()),
        OwnedValue::Symbol("a".into()),
        OwnedValue::Document(doc! {}),
        OwnedValue::Array(array![]),
        OwnedValue::Binary { subtype: 0, bytes: "".into() },
        OwnedValue::ObjectId(id),
        OwnedValue::Bool(false),
        OwnedValue::Bool(true),
        OwnedValue::DateTime(i64::MAX),
        OwnedValue::Timestamp(Timestamp(0)),
        Value::Regex { pattern: "".into(), options: "".into() }.to_owned(),
        OwnedValue::DbPointer { namespace: "".into(), id },
        OwnedValue::Code("".into()),
        Value::CodeWithScope { code: "".into(), scope: DocRef::EMPTY }.to_owned(),
        OwnedValue::MaxKey,
    ];
    for (index, left) in values.iter().enumerate() {
        for (other, right) in values.iter().enumerate() {
            assert_eq!(compare(left.view(), right.view()), index.cmp(&other), "{left} and {right}");
        }
    }
    assert_eq!(ValueType::ALL.len(), 21);
}

#[test]
fn values_of_one_type() {
    fn check(left: Value<'_>, right: Value<'_>) {
        assert_eq!(compare(left, right), Ordering::Less, "{left} and {right}");
        assert_eq!(compare(right, left), Ordering::Greater);
    }
    let binary = |subtype, bytes: &'static [u8]| Value::Binary { subtype, bytes };
    check(Value::DateTime(-1), Value::DateTime(0));
    check(Value::Timestamp(Timestamp(1)), Value::Timestamp(Timestamp(u64::MAX)));
    check(Value::String("a".into()), Value::String("a\0".into()));
    check(Value::String("Z".into()), Value::Symbol("a".into()));
    check(binary(9, b"b"), binary(0, b"aa"));
    check(binary(0, b"b"), binary(1, b"a"));
    check(
        Value::Regex { pattern: "a".into(), options: "z".into() },
        Value::Regex { pattern: "b".into(), options: "".into() },
    );
    let pairs = [
        (doc! { "b": 1 }, doc! { "a": "x" }),
        (doc! { "a": 9 }, doc! { "b": 1 }),
        (doc! { "a": 1 }, doc! { "a": 1, "b": 0 }),
        (doc! { "a": [1] }, doc! { "a": [1, 0] }),
        (doc! { "a": { "x": 1 } }, doc! { "a": { "x": 2 } }),
    ];
    for (left, right) in &pairs {
        check(Value::Document(left.view()), Value::Document(right.view()));
        assert_eq!(compare_docs(left.view(), right.view()), Ordering::Less);
    }
}

#[test]
fn names_and_their_order_may_be_ignored() {
    let under = |left: &Doc, right: &Doc, options| compare_documents_with(left.view(), right.view(), &options);
    let (left, right) = (doc! { "a": 1, "b": { "c": 2 } }, doc! { "x": 1, "y": { "c": 2 } });
    let names = CompareOptions { ignore_field_names: true, ..CompareOptions::default() };
    assert_eq!(under(&left, &right, names), Ordering::Equal);
    assert_eq!(under(&left, &doc! { "x": 1, "y": { "d": 2 } }, names), Ordering::Less, "nested names count");
    let order = CompareOptions { ignore_field_order: true, ..CompareOptions::default() };
    let turned = doc! { "b": { "c": 2 }, "a": 1 };
    assert_eq!(under(&left, &turned, order), Ordering::Equal);
    assert_eq!(under(&left, &turned, CompareOptions::default()), Ordering::Less);
    let hashed = |doc: &Doc| {
        let mut hasher = DefaultHasher::new();
        hash_value_with(Value::Document(doc.view()), &order, &mut hasher);
        hasher.finish()
    };
    assert_eq!(hashed(&left), hashed(&turned));
}

/// Upper and lower case are the same.
struct CaseBlind;

impl StringComparator for CaseBlind {
    fn compare(&self, left: &BStr, right: &BStr) -> Ordering {
        self.equality_key(left).cmp(&self.equality_key(right))
    }

    fn equality_key(&self, text: &BStr) -> Vec<u8> {
        text.to_ascii_lowercase()
    }
}

#[test]
fn a_collation_orders_strings_but_not_code() {
    let options = CompareOptions { strings: Some(&CaseBlind), ..CompareOptions::default() };
    let equal = |left: Value<'_>, right: Value<'_>| compare_with(left, right, &options).is_eq();
    assert!(equal(Value::String("aB".into()), Value::Symbol("Ab".into())));
    let (left, right) = (doc! { "a": ["X"] }, doc! { "a": ["x"] });
    assert!(equal(Value::Document(left.view()), Value::Document(right.view())));
    assert!(!equal(Value::Code("X".into()), Value::Code("x".into())));
    let scoped = |doc| Value::CodeWithScope { code: "".into(), scope: doc };
    assert!(!equal(scoped(left.view()), scoped(right.view())));
    assert!(!equal(Value::Document(doc! { "A": 1 }.view()), Value::Document(doc! { "a": 1 }.view())));
}
