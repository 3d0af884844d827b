//! Accumulators.

use super::{Accumulator, parse_accumulator};
use crate::ParseContext;
use pando_doc::{Doc, OwnedValue, Value, doc};

/// The result of an accumulator over the documents.
fn over(accumulator: Doc, docs: &[Doc]) -> String {
    let context = ParseContext::default();
    let (kind, input, count) = parse_accumulator(accumulator.view().first().unwrap(), &context).unwrap();
    let count = count.map(|count| count.evaluate_document(docs[0].view()).unwrap().into_value().unwrap());
    let count = count.map(crate::Operand::Owned);
    let mut reckoning = Accumulator::new(&kind, count.as_ref(), None).unwrap();
    for doc in docs {
        reckoning.add(input.evaluate_document(doc.view()).unwrap()).unwrap();
    }
    reckoning.result().map_or("missing".to_owned(), |value| value.to_string())
}

fn numbers() -> Vec<Doc> {
    vec![doc! { "a": 3, "k": "x" }, doc! { "a": 1, "k": "y" }, doc! { "k": "z" }, doc! { "a": 3.5, "k": "w" }]
}

#[test]
fn u6_accumulators_over_a_group() {
    let docs = numbers();
    for (accumulator, expected) in [
        (doc! { "$sum": "$a" }, "7.5"),
        (doc! { "$sum": 1 }, "4"),
        (doc! { "$avg": "$a" }, "2.5"),
        (doc! { "$min": "$a" }, "1"),
        (doc! { "$max": "$a" }, "3.5"),
        (doc! { "$first": "$a" }, "3"),
        (doc! { "$last": "$k" }, "\"w\""),
        (doc! { "$push": "$a" }, "[ 3, 1, 3.5 ]"),
        (doc! { "$addToSet": { "$floor": "$a" } }, "[ null, 1, 3 ]"),
        (doc! { "$count": {} }, "4"),
        (doc! { "$mergeObjects": "$$ROOT" }, "{ a: 3.5, k: \"w\" }"),
        (doc! { "$stdDevSamp": "$nothing" }, "null"),
        (doc! { "$firstN": { "n": 2, "input": "$a" } }, "[ 3, 1 ]"),
        (doc! { "$lastN": { "n": 2, "input": "$a" } }, "[ null, 3.5 ]"),
        (doc! { "$minN": { "n": 2, "input": "$a" } }, "[ 1, 3 ]"),
        (doc! { "$maxN": { "n": 2, "input": "$a" } }, "[ 3.5, 3 ]"),
        (doc! { "$top": { "sortBy": { "a": -1 }, "output": "$k" } }, "\"w\""),
        (doc! { "$bottom": { "sortBy": { "a": -1 }, "output": "$k" } }, "\"z\""),
        (
            doc! { "$topN": { "n": 2, "sortBy": { "a": 1 }, "output": ["$k", "$a"] } },
            "[ [ \"z\", null ], [ \"y\", 1 ] ]",
        ),
        (doc! { "$bottomN": { "n": 2, "sortBy": { "a": 1 }, "output": "$a" } }, "[ 3, 3.5 ]"),
    ] {
        assert_eq!(over(accumulator.clone(), &docs), expected, "{accumulator}");
    }
}

#[test]
fn u6_sums_keep_what_they_can() {
    let docs = |values: &[Value<'_>]| values.iter().map(|value| doc! { "a": *value }).collect::<Vec<_>>();
    let sum = |values: &[Value<'_>]| over(doc! { "$sum": "$a" }, &docs(values));
    // What rounding takes is kept, but only the next number brings it back.
    let large = [Value::Double(1e100), Value::Double(1.0), Value::Double(-1e100), Value::Double(0.0)];
    assert_eq!((sum(&large[..3]), sum(&large)), ("0.0".to_owned(), "1.0".to_owned()));
    let limits = docs(&[Value::Int64(i64::MAX), Value::Int64(i64::MIN)]);
    assert_eq!(over(doc! { "$sum": "$a" }, &limits), "-1");
    assert_eq!(over(doc! { "$avg": "$a" }, &limits), "0.0");
    assert_eq!(sum(&[Value::Int32(i32::MAX), Value::Int32(1)]), "2147483648");
    assert_eq!(sum(&[Value::Int64(i64::MAX), Value::Int32(1), Value::Int64(-5)]), "9223372036854775803");
    assert_eq!(sum(&[Value::Int64(i64::MAX), Value::Int64(i64::MAX)]), "1.844674407370955e+19");
    assert_eq!(sum(&[OwnedValue::from("0.1").view(), Value::Int32(2)]), "2");
}

#[test]
fn u6_accumulators_are_refused_with_their_codes() {
    let code = |accumulator: Doc| {
        let element = accumulator.view().first().unwrap();
        parse_accumulator(element, &ParseContext::default()).unwrap_err().code().number()
    };
    assert_eq!(code(doc! { "$foo": 1 }), 15952);
    assert_eq!(code(doc! { "$sum": [1, 2] }), 40237);
    assert_eq!(code(doc! { "$count": 1 }), 14);
    assert_eq!(code(doc! { "$firstN": { "n": 1 } }), 5787907);
    assert_eq!(code(doc! { "$top": { "sortBy": { "a": 1 } } }), 5788004);
}
