//! Generated values for the property tests: every type, with the numbers where things go wrong.

use crate::{Array, Decimal128, Doc, ObjectId, OwnedCodeWithScope, OwnedRegex, OwnedValue};
use bytes::Bytes;
use pando_base::Timestamp;
use proptest::prelude::*;

/// The same cases at every run.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let rng_seed = proptest::test_runner::RngSeed::Fixed(0x0DD_BA11);
    ProptestConfig { failure_persistence: None, rng_seed, ..ProptestConfig::with_cases(cases) }
}

const LONGS: &[i64] = &[
    0,
    1,
    -1,
    2,
    i32::MAX as i64,
    i32::MIN as i64,
    1 << 53,
    (1 << 53) + 1,
    -(1 << 53) - 1,
    i64::MAX,
    i64::MAX - 1,
    i64::MIN,
    i64::MIN + 1,
    i64::MAX - 511,
    i64::MAX - 1023,
];

const DOUBLES: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    0.5,
    1.5,
    9_007_199_254_740_992.0,
    9_007_199_254_740_994.0,
    9_223_372_036_854_775_808.0,
    -9_223_372_036_854_775_808.0,
    9_223_372_036_854_774_784.0,
    1e22,
    1e23,
    1e300,
    f64::MAX,
    f64::MIN,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

const DECIMALS: &[&str] = &[
    "0",
    "-0",
    "0E+100",
    "1",
    "1.000",
    "0.1",
    "0.10",
    "0.1000000000000000055511151231257827",
    "0.5",
    "1.5",
    "1E+22",
    "9007199254740993",
    "9007199254740992.5",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775808.000000000000001",
    "1E+400",
    "-1E+400",
    "1E-400",
    "4.940656458412465E-324",
    "1E+23",
    "1.797693134862315708145274237317044E+308",
    "9.999999999999999161136E+22",
    "NaN",
    "-NaN",
    "Infinity",
    "-Infinity",
    "1E-6176",
    "9.999999999999999999999999999999999E+6144",
];

pub(crate) fn number() -> impl Strategy<Value = OwnedValue> {
    prop_oneof![
        any::<i32>().prop_map(OwnedValue::Int32),
        (-3_i32..4).prop_map(OwnedValue::Int32),
        any::<i64>().prop_map(OwnedValue::Int64),
        proptest::sample::select(LONGS).prop_map(OwnedValue::Int64),
        any::<f64>().prop_map(OwnedValue::Double),
        (-8_i32..9).prop_map(|quarters| OwnedValue::Double(f64::from(quarters) / 4.0)),
        any::<i64>().prop_map(|number| OwnedValue::Double(number as f64)),
        proptest::sample::select(DOUBLES).prop_map(OwnedValue::Double),
        any::<[u8; 16]>().prop_map(|bytes| OwnedValue::Decimal(Decimal128::from_bid_bytes(bytes))),
        any::<i64>().prop_map(|number| OwnedValue::Decimal(number.into())),
        any::<f64>().prop_map(|number| OwnedValue::Decimal(Decimal128::from_double_34_digits(number))),
        (-40_i64..40, -3..3).prop_map(|(digits, exponent)| {
            OwnedValue::Decimal(Decimal128::nearest(digits < 0, digits.unsigned_abs().into(), exponent).value)
        }),
        proptest::sample::select(DECIMALS).prop_map(|text| OwnedValue::Decimal(text.parse().unwrap())),
    ]
}

fn text() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        "[ab]{0,2}".prop_map(Bytes::from),
        "[a-zé\\x00\"]{0,6}".prop_map(Bytes::from),
        proptest::collection::vec(any::<u8>(), 0..6).prop_map(Bytes::from),
    ]
}

fn c_string() -> impl Strategy<Value = Bytes> {
    text().prop_map(|text| text.into_iter().filter(|&byte| byte != 0).collect())
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![3 => "[abc]{0,1}".prop_map(String::into_bytes), 1 => c_string().prop_map(Vec::from)]
}

fn id() -> impl Strategy<Value = ObjectId> {
    any::<[u8; 12]>().prop_map(ObjectId::from_bytes)
}

fn scalar() -> impl Strategy<Value = OwnedValue> {
    prop_oneof![
        4 => number(),
        2 => text().prop_map(OwnedValue::String),
        1 => (0_u8..3, text()).prop_map(|(subtype, bytes)| OwnedValue::Binary { subtype, bytes }),
        1 => id().prop_map(OwnedValue::ObjectId),
        1 => any::<bool>().prop_map(OwnedValue::Bool),
        1 => any::<i64>().prop_map(OwnedValue::DateTime),
        1 => any::<u64>().prop_map(|number| OwnedValue::Timestamp(Timestamp(number))),
        1 => (c_string(), c_string()).prop_map(|(pattern, options)| {
            OwnedValue::Regex(Box::new(OwnedRegex { pattern, options }))
        }),
        1 => (text(), id()).prop_map(|(namespace, id)| OwnedValue::DbPointer { namespace, id }),
        1 => text().prop_map(OwnedValue::Code),
        1 => text().prop_map(OwnedValue::Symbol),
        1 => proptest::sample::select(&[
            OwnedValue::Undefined, OwnedValue::Null, OwnedValue::MinKey, OwnedValue::MaxKey,
        ][..]),
    ]
}

/// Any value, a few levels deep.
pub(crate) fn value() -> impl Strategy<Value = OwnedValue> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        let fields = proptest::collection::vec((name(), inner.clone()), 0..4);
        let doc = fields.prop_map(|fields| fields.into_iter().collect::<Doc>()).boxed();
        prop_oneof![
            doc.clone().prop_map(OwnedValue::Document),
            (text(), doc)
                .prop_map(|(code, scope)| { OwnedValue::CodeWithScope(Box::new(OwnedCodeWithScope { code, scope })) }),
            proptest::collection::vec(inner, 0..4)
                .prop_map(|values| OwnedValue::Array(values.into_iter().collect::<Array>())),
        ]
    })
}

/// Any document.
pub(crate) fn document() -> impl Strategy<Value = Doc> {
    proptest::collection::vec((name(), value()), 0..5).prop_map(|fields| fields.into_iter().collect())
}
