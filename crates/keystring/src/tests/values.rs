//! Values to make keys of: all edges of numbers, and random values of every type.

use pando_base::Timestamp;
use pando_doc::{
    Array, Decimal128, DecimalParts, Doc, DocBuilder, ObjectId, OwnedCodeWithScope, OwnedRegex, OwnedValue,
};
use proptest::collection::vec;
use proptest::prelude::*;

pub(super) fn decimal(negative: bool, coefficient: u128, exponent: i32) -> Option<OwnedValue> {
    let parts = DecimalParts::Finite { negative, coefficient, exponent };
    Decimal128::from_parts(parts).map(OwnedValue::Decimal)
}

/// The positive doubles at which some rule of the format changes, and their neighbours.
fn edge_doubles() -> Vec<f64> {
    let mut edges = vec![
        f64::from_bits(1),
        f64::from_bits(2),
        f64::from_bits(3),
        f64::from_bits(1 << 30),
        f64::MIN_POSITIVE,
        2_f64.powi(-511),
        2_f64.powi(-256),
        2_f64.powi(-255),
        2_f64.powi(-254),
        1e-200,
        1e-20,
        0.1,
        0.3,
        0.5,
        1.0,
        1.5,
        3.0,
        9.99,
        10.0,
        123_456.789,
        999_999_999_999_999.9,
        1e15,
        1e16,
        1e18,
        1e22,
        1e23,
        1e34,
        1e100,
        f64::MAX,
        f64::INFINITY,
    ];
    edges.extend(
        [6, 7, 8, 14, 15, 22, 23, 31, 32, 47, 51, 52, 53, 54, 55, 56, 61, 62, 63, 64, 112].map(|n| 2_f64.powi(n)),
    );
    edges.iter().flat_map(|edge| [edge.next_down(), *edge, edge.next_up()]).filter(|edge| *edge > 0.0).collect()
}

/// Decimals next to a double: its first 15 and 34 digits, rounded both ways, and one unit beside.
fn decimals_near(double: f64) -> Vec<(u128, i32)> {
    let text = format!("{double:.40e}");
    let Some((significand, exponent)) = text.split_once('e') else { return Vec::new() };
    let digits: String = significand.chars().filter(char::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap();
    let mut near = Vec::new();
    for count in [1, 2, 14, 15, 16, 17, 33, 34] {
        let coefficient: u128 = digits[..count].parse().unwrap();
        let exponent = exponent - count as i32 + 1;
        for shift in [-1_i128, 0, 1, 2] {
            near.push(((coefficient as i128 + shift) as u128, exponent));
        }
    }
    near
}

/// The number with this magnitude and its opposite, in every type that can hold it.
pub(super) fn edge_numbers() -> Vec<OwnedValue> {
    let mut numbers = vec![
        OwnedValue::Double(f64::NAN),
        OwnedValue::Double(0.0),
        OwnedValue::Double(-0.0),
        OwnedValue::Int32(0),
        OwnedValue::Int64(0),
        OwnedValue::Decimal(Decimal128::NAN),
        OwnedValue::Decimal(Decimal128::INFINITY),
        OwnedValue::Decimal(Decimal128::NEGATIVE_INFINITY),
    ];
    for double in edge_doubles() {
        numbers.extend([double, -double].map(OwnedValue::Double));
    }
    numbers.extend([i32::MIN, i32::MIN + 1, -1, 1, 127, 128, i32::MAX].map(OwnedValue::Int32));
    numbers.extend([i64::MIN, i64::MIN + 1, i64::MAX, i64::MAX - 1].map(OwnedValue::Int64));
    for bit in 0..63 {
        for number in [(1_i64 << bit) - 1, 1 << bit, (1 << bit) + 1] {
            numbers.extend([number, -number].map(OwnedValue::Int64));
        }
    }
    numbers.extend(edge_decimals());
    numbers
}

fn edge_decimals() -> Vec<OwnedValue> {
    let widest = 10_u128.pow(34) - 1;
    let mut parts = vec![(0, 0), (0, -6176), (0, 6111), (0, 3), (1, -6176), (widest, 6111), (widest, -6176), (1, 6111)];
    for exponent in
        [-6176, -6170, -400, -358, -357, -324, -323, -310, -307, -34, -33, -2, -1, 0, 1, 15, 33, 275, 276, 308]
    {
        parts.extend([(1, exponent), (10, exponent), (25, exponent), (widest, exponent), (widest - 1, exponent)]);
    }
    // Beyond int64 and between int64.
    for whole in [1_u128 << 53, 1 << 55, 1 << 56, 1 << 62, 1 << 63, (1 << 63) - 1, 1 << 64] {
        for fraction in [0, 1, 5 * 10_u128.pow(13), 10_u128.pow(14) - 1] {
            parts.push((whole * 10_u128.pow(14) + fraction, -14));
            parts.push(((whole + 1) * 10_u128.pow(14) + fraction, -14));
        }
        parts.push((whole, 0));
        parts.push((whole + 1, 0));
    }
    parts.extend(edge_doubles().into_iter().filter(|double| double.is_finite()).flat_map(decimals_near));
    // The same numbers with other exponents.
    let others: Vec<(u128, i32)> =
        parts.iter().step_by(5).flat_map(|(c, e)| [(c * 10, e - 1), (c * 1000, e - 3)]).collect();
    parts.extend(others);
    let signed = parts
        .iter()
        .flat_map(|(coefficient, exponent)| [(false, *coefficient, *exponent), (true, *coefficient, *exponent)]);
    signed.filter_map(|(negative, coefficient, exponent)| decimal(negative, coefficient, exponent)).collect()
}

/// Any number; many close to each other.
pub(super) fn number() -> impl Strategy<Value = OwnedValue> {
    // Any size, everyday size, around the smallest normal double and around the ends of small and large.
    let exponent = prop_oneof![0_u64..2048, 1000_u64..1100, 0_u64..3, 766_u64..770, 1084_u64..1088];
    let bits = (exponent, any::<u64>()).prop_map(|(exponent, mantissa)| exponent << 52 | mantissa >> 12);
    let double = bits.prop_map(f64::from_bits);
    let near =
        (double.clone(), any::<proptest::sample::Index>(), any::<bool>()).prop_map(|(double, index, negative)| {
            let near = if double.is_finite() && double != 0.0 { decimals_near(double.abs()) } else { vec![(0, 7)] };
            let (coefficient, exponent) = near[index.index(near.len())];
            decimal(negative, coefficient, exponent).unwrap_or(OwnedValue::Int32(3))
        });
    let any_decimal = (any::<bool>(), 0_u32..=34, any::<u128>(), -6176..=6111_i32)
        .prop_map(|(negative, digits, coefficient, exponent)| (negative, coefficient % 10_u128.pow(digits), exponent))
        .prop_map(|(negative, coefficient, exponent)| decimal(negative, coefficient, exponent).unwrap());
    let price = (any::<bool>(), 0_u128..2_000_000, -6..3_i32)
        .prop_map(|(negative, coefficient, exponent)| decimal(negative, coefficient, exponent).unwrap());
    prop_oneof![
        any::<i32>().prop_map(OwnedValue::Int32),
        (-300..300_i32).prop_map(OwnedValue::Int32),
        any::<i64>().prop_map(OwnedValue::Int64),
        (any::<i64>(), 0_u32..64).prop_map(|(number, shift)| OwnedValue::Int64(number >> shift)),
        (double, any::<bool>()).prop_map(|(double, negative)| OwnedValue::Double(if negative {
            -double
        } else {
            double
        })),
        (-2000..2000_i32).prop_map(|quarters| OwnedValue::Double(f64::from(quarters) / 4.0)),
        near,
        any_decimal,
        price,
    ]
}

/// Few distinct bytes, so that prefixes and zeros meet often.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(prop_oneof![Just(0_u8), Just(1), Just(b'a'), Just(254), Just(255)], 0..5),
        "[a-c]{0,3}".prop_map(String::into_bytes),
    ]
}

fn name() -> impl Strategy<Value = String> {
    "[ab]{0,2}"
}

fn object_id() -> impl Strategy<Value = ObjectId> {
    prop_oneof![any::<[u8; 12]>(), any::<u8>().prop_map(|byte| [byte; 12])].prop_map(ObjectId::from_bytes)
}

fn scalar() -> impl Strategy<Value = OwnedValue> {
    let length = prop_oneof![4 => 0_usize..4, 1 => 253_usize..258];
    let binary = (length, any::<bool>(), any::<u8>()).prop_map(|(length, is_second, byte)| OwnedValue::Binary {
        subtype: if is_second { 4 } else { 0 },
        bytes: vec![byte; length].into(),
    });
    prop_oneof![
        6 => number(),
        4 => text().prop_map(|text| OwnedValue::String(text.into())),
        1 => text().prop_map(|text| OwnedValue::Symbol(text.into())),
        1 => text().prop_map(|text| OwnedValue::Code(text.into())),
        1 => binary,
        1 => object_id().prop_map(OwnedValue::ObjectId),
        1 => any::<bool>().prop_map(OwnedValue::Bool),
        1 => any::<i64>().prop_map(OwnedValue::DateTime),
        1 => any::<u64>().prop_map(|bits| OwnedValue::Timestamp(Timestamp(bits))),
        1 => (name(), name()).prop_map(|(pattern, options)| OwnedValue::Regex(Box::new(OwnedRegex {
            pattern: pattern.into(), options: options.into(),
        }))),
        1 => (name(), object_id()).prop_map(|(namespace, id)| OwnedValue::DbPointer { namespace: namespace.into(), id }),
        1 => prop_oneof![
            Just(OwnedValue::Null), Just(OwnedValue::Undefined), Just(OwnedValue::MinKey), Just(OwnedValue::MaxKey),
        ],
    ]
}

fn document_of(fields: &[(String, OwnedValue)]) -> Doc {
    let mut builder = DocBuilder::new();
    for (name, value) in fields {
        builder.append(name, value.view());
    }
    builder.finish()
}

fn array_of(values: &[OwnedValue]) -> Array {
    let fields: Vec<(String, OwnedValue)> =
        values.iter().enumerate().map(|(index, value)| (index.to_string(), value.clone())).collect();
    Array::from_doc(document_of(&fields))
}

/// A value of any type.
pub(super) fn value() -> impl Strategy<Value = OwnedValue> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        let fields = vec((name(), inner.clone()), 0..3).boxed();
        prop_oneof![
            fields.clone().prop_map(|fields| OwnedValue::Document(document_of(&fields))),
            vec(inner, 0..3).prop_map(|values| OwnedValue::Array(array_of(&values))),
            (text(), fields).prop_map(|(code, fields)| {
                let scope = document_of(&fields);
                OwnedValue::CodeWithScope(Box::new(OwnedCodeWithScope { code: code.into(), scope }))
            }),
        ]
    })
}
