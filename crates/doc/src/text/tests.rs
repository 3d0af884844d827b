//! Texts: the shell's notation, extended JSON both ways, cross-checked with the `bson` crate.

use super::*;
use crate::testing::{config, document};
use crate::{Doc, ObjectId, OwnedValue, Value, array, doc};
use pando_base::Timestamp;
use proptest::prelude::*;

fn of_every_type() -> Doc {
    let id = ObjectId::from_bytes([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    let scope = doc! { "x": 1 };
    doc! {
        "double": 1.5, "string": "a\"b", "document": { "x": {} }, "array": [1, []],
        "binary": Value::Binary { subtype: 0, bytes: &[0xAB, 1] }, "uuid": Value::Binary { subtype: 4, bytes: &[0x11; 16] },
        "undefined": Value::Undefined, "id": id, "bool": true, "date": Value::DateTime(1_136_214_245_678), "null": null,
        "regex": Value::Regex { pattern: "^a".into(), options: "i".into() },
        "pointer": Value::DbPointer { namespace: "a.b".into(), id }, "code": Value::Code("f()".into()),
        "symbol": Value::Symbol("s".into()), "scoped": Value::CodeWithScope { code: "g()".into(), scope: scope.view() },
        "int": -3, "timestamp": Timestamp::new(5, 6), "long": 1_i64 << 40, "decimal": Value::Decimal("1.20".parse().unwrap()),
        "min": Value::MinKey, "max": Value::MaxKey,
    }
}

#[test]
fn the_shells_notation() {
    assert_eq!(
        of_every_type().to_string(),
        "{ double: 1.5, string: \"a\"b\", document: { x: {} }, array: [ 1, [] ], binary: BinData(0, AB01), \
         uuid: UUID(\"11111111-1111-1111-1111-111111111111\"), undefined: undefined, \
         id: ObjectId('0102030405060708090a0b0c'), bool: true, date: new Date(1136214245678), null: null, regex: /^a/i, \
         pointer: DBRef('a.b',0102030405060708090a0b0c), code: f(), symbol: \"s\", scoped: CodeWScope( g(), { x: 1 }), \
         int: -3, timestamp: Timestamp(5, 6), long: 1099511627776, decimal: 1.20, min: MinKey, max: MaxKey }"
    );
}

#[test]
fn doubles_in_messages() {
    for (number, text) in [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e+16.0"),
        (1.5e-7, "1.5e-07"),
        (0.0001, "0.0001"),
        (0.1 + 0.2, "0.3"),
        (1.0 / 3.0, "0.3333333333333333"),
        (f64::NAN, "nan.0"),
        (f64::INFINITY, "inf.0"),
        (f64::NEG_INFINITY, "-inf.0"),
        (123456.75, "123456.75"),
    ] {
        assert_eq!(Value::Double(number).to_string(), text);
    }
}

#[test]
fn long_texts_are_cut_in_messages() {
    let cut = Value::String("x".repeat(160).as_str().into()).to_string();
    assert_eq!(cut, format!("\"{}...\"", "x".repeat(150)));
    assert_eq!(Value::String("x".repeat(159).as_str().into()).to_string().len(), 161);
    assert_eq!(format!("{:#}", Value::String("x".repeat(200).as_str().into())).len(), 202);
    let mut deep = doc! { "a": 1 };
    for _ in 0..150 {
        deep = doc! { "a": &deep };
    }
    assert!(deep.to_string().contains("{ ... }"));
}

#[test]
fn extended_json() {
    let canonical = concat!(
        r#"{"double":{"$numberDouble":"1.5"},"string":"a\"b","document":{"x":{}},"array":[{"$numberInt":"1"},[]],"#,
        r#""binary":{"$binary":{"base64":"qwE=","subType":"0"}},"uuid":{"$uuid":"11111111-1111-1111-1111-111111111111"},"#,
        r#""undefined":{"$undefined":true},"id":{"$oid":"0102030405060708090a0b0c"},"bool":true,"#,
        r#""date":{"$date":{"$numberLong":"1136214245678"}},"null":null,"#,
        r#""regex":{"$regularExpression":{"pattern":"^a","options":"i"}},"#,
        r#""pointer":{"$ref":"a.b","$id":"0102030405060708090a0b0c"},"code":{"$code":"f()"},"symbol":{"$symbol":"s"},"#,
        r#""scoped":{"$code":"g()","$scope":{"x":{"$numberInt":"1"}}},"int":{"$numberInt":"-3"},"#,
        r#""timestamp":{"$timestamp":{"t":5,"i":6}},"long":{"$numberLong":"1099511627776"},"#,
        r#""decimal":{"$numberDecimal":"1.20"},"min":{"$minKey":1},"max":{"$maxKey":1}}"#
    );
    assert_eq!(doc_to_json(of_every_type().view(), JsonFormat::Canonical), canonical);
    let read = doc_from_json(canonical).unwrap();
    for (ours, theirs) in of_every_type().elements().zip(read.elements()).filter(|(ours, _)| ours.name != "pointer") {
        assert_eq!(ours, theirs);
    }
    let relaxed =
        doc_to_json(doc! { "d": 1.0, "i": 1, "l": 1_i64 << 40, "t": Value::DateTime(0) }.view(), JsonFormat::Relaxed);
    assert_eq!(relaxed, r#"{"d":1.0,"i":1,"l":1099511627776,"t":{"$date":"1970-01-01T00:00:00.000Z"}}"#);
    let odd = doc! { "n": f64::NAN, "t": Value::DateTime(-1), "c": "\u{1}\n" };
    let text = r#"{"n":{"$numberDouble":"NaN"},"t":{"$date":{"$numberLong":"-1"}},"c":"\u0001\n"}"#;
    assert_eq!(doc_to_json(odd.view(), JsonFormat::Relaxed), text);
    assert_eq!(value_to_json(Value::Array(array![1, "x"].view()), JsonFormat::Relaxed), r#"[1,"x"]"#);
}

#[test]
fn json_is_read_in_all_its_forms() {
    let read = |text: &str| value_from_json(text).unwrap();
    assert_eq!(
        read("[1, 2147483648, 1.0, -0.0, 18446744073709551615]").to_string(),
        "[ 1, 2147483648, 1.0, -0.0, 1.844674407370955e+19 ]"
    );
    for (text, shown) in [
        (r#"{"$date": 5}"#, "new Date(5)"),
        (r#"{"$date": {"$numberLong": "-5"}}"#, "new Date(-5)"),
        (r#"{"$date": "1970-01-01T01:00:00.005+01:00"}"#, "new Date(5)"),
        (r#"{"$numberLong": 7}"#, "7"),
        (r#"{"$regex": "a", "$options": "x"}"#, "/a/x"),
        (r#"{"$binary": "qwE=", "$type": "05"}"#, "BinData(5, AB01)"),
        (
            r#"{"$dbPointer": {"$ref": "c", "$id": {"$oid": "000000000000000000000001"}}}"#,
            "DBRef('c',000000000000000000000001)",
        ),
        (r#"{"$numberDouble": "-Infinity"}"#, "-inf.0"),
        (r#"{"$gt": 5}"#, "{ $gt: 5 }"),
        (r#"{"a": 1, "a": 2}"#, "{ a: 1, a: 2 }"),
    ] {
        assert_eq!(read(text).to_string(), shown);
    }
    for wrong in [
        "",
        "{",
        r#"{"$oid": "x"}"#,
        r#"{"$date": "yesterday"}"#,
        r#"{"$numberInt": "3000000000"}"#,
        r#"{"a\u0000": 1}"#,
        r#"{"$binary": {"base64": "?", "subType": "0"}}"#,
        r#"{"$uuid": "11"}"#,
        r#"{"$timestamp": {"t": -1, "i": 0}}"#,
    ] {
        assert!(value_from_json(wrong).is_err(), "{wrong}");
    }
    assert!(doc_from_json("[]").is_err());
    assert!(matches!(read("9007199254740993"), OwnedValue::Int64(9_007_199_254_740_993)));
}

/// The text holds only what is UTF-8, and pointers are written in a form that is not theirs alone.
fn survives_json(doc: &Doc) -> bool {
    let text = doc_to_json(doc.view(), JsonFormat::Canonical);
    !text.contains('\u{FFFD}') && !text.contains("$ref") && !text.contains("NaN")
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn canonical_json_leads_back(doc in document()) {
        let text = doc_to_json(doc.view(), JsonFormat::Canonical);
        let read = doc_from_json(&text).unwrap();
        prop_assert_eq!(doc_to_json(read.view(), JsonFormat::Canonical) == text || !survives_json(&doc), true);
    }
}
