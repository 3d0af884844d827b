//! How large values may get: MongoDB's limits with its codes, and those that keep forty doublings from taking all memory.

#![allow(clippy::unwrap_used, reason = "a failed look-up fails the test that made it")]

use pando_base::{Error, Result};
use pando_doc::{Doc, OwnedValue, doc, doc_from_json, value_from_json};
use pando_expr::{Accumulator, AccumulatorKind, Expression, ExpressionLimits, ParseContext, Projection};

fn evaluate(text: &str, document: &Doc, limits: ExpressionLimits) -> Result<Option<OwnedValue>> {
    let parsed = value_from_json(text).unwrap();
    let context = ParseContext { limits, ..ParseContext::default() };
    let expression = Expression::parse(parsed.view(), &context)?.optimize()?;
    Ok(expression.evaluate_document(document.view())?.into_value())
}

fn code(outcome: Result<Option<OwnedValue>>) -> i32 {
    outcome.map_err(|error: Error| error.code().number()).unwrap_err()
}

/// Applies an `$addFields` again and again: the code it ends with, and after how many times.
fn doubled(fields: &str, first: Doc) -> (i32, usize) {
    let fields = doc_from_json(fields).unwrap();
    let projection = Projection::parse_add_fields(fields.view(), &ParseContext::default()).unwrap();
    let mut document = first;
    for times in 0..40 {
        match projection.apply(document.view(), None) {
            Ok(next) => document = next,
            Err(error) => return (error.code().number(), times),
        }
    }
    (0, 40)
}

#[test]
fn doubling_ends_with_an_error() {
    let (code, times) = doubled(r#"{"x": {"a": "$x", "b": "$x"}}"#, doc! { "x": "something of thirty bytes, so" });
    assert_eq!(code, 10334);
    assert!((15..25).contains(&times), "{times}");
    let (code, times) = doubled(r#"{"x": {"$concat": ["$x", "$x"]}}"#, doc! { "x": "sixteen letters." });
    assert_eq!((code, times), (16493, 19), "the twentieth would have sixteen megabytes");
    assert_eq!(doubled(r#"{"x": {"$concatArrays": ["$x", "$x"]}}"#, doc! { "x": ["text"] }).0, 10334);
    assert_eq!(doubled(r#"{"x": ["$x", "$x"]}"#, doc! { "x": "text" }).0, 10334);
    assert_eq!(doubled(r#"{"x": {"$mergeObjects": [{"a": "$x"}, {"b": "$x"}]}}"#, doc! { "x": "text" }).0, 10334);
    assert_eq!(doubled(r#"{"x": {"$zip": {"inputs": ["$x", "$x"]}}}"#, doc! { "x": ["text"] }).0, 10334);
}

#[test]
fn strings_have_sixteen_megabytes() {
    let large = doc! { "s": ("a".repeat(1 << 20).as_str()), "t": ("b".repeat(17).as_str()) };
    let run = |text: &str| evaluate(text, &large, ExpressionLimits::default());
    assert_eq!(code(run(r#"{"$replaceAll": {"input": "$s", "find": "a", "replacement": "$t"}}"#)), 16493);
    let list = r#""$s", "#.repeat(15);
    assert_eq!(code(run(&format!(r#"{{"$concat": [{list} "$s"]}}"#))), 16493);
    let fits = run(&format!(r#"{{"$strLenBytes": {{"$concat": [{list} "$t"]}}}}"#)).unwrap();
    assert_eq!(fits, Some(OwnedValue::Int32((15 << 20) + 17)));
    // One that came as a constant is no shorter.
    let constant = format!(r#"{{"$strLenBytes": "{}"}}"#, "a".repeat(16 << 20));
    assert_eq!(code(evaluate(&constant, &doc! {}, ExpressionLimits::default())), 16493);
}

#[test]
fn ranges_take_what_the_server_allows() {
    let small = ExpressionLimits { range_bytes_max: 24 + 16 * 101, ..ExpressionLimits::default() };
    // Where it begins counts, too.
    assert!(evaluate(r#"{"$range": [0, 99]}"#, &doc! {}, small).is_ok());
    assert_eq!(code(evaluate(r#"{"$range": [0, 100]}"#, &doc! {}, small)), 146);
    assert!(evaluate(r#"{"$range": [0, 198, 2]}"#, &doc! {}, small).is_ok());
    assert!(evaluate(r#"{"$range": [5, 0]}"#, &doc! {}, small).is_ok());
    assert_eq!(code(evaluate(r#"{"$range": [0, 7000000]}"#, &doc! {}, ExpressionLimits::default())), 146);
    let most = evaluate(r#"{"$size": {"$range": [0, 6000000]}}"#, &doc! {}, ExpressionLimits::default());
    assert_eq!(most.unwrap(), Some(OwnedValue::Int32(6_000_000)));
}

#[test]
fn matches_are_bounded_together() {
    let large = doc! { "s": ("a".repeat(3 << 20).as_str()) };
    let all = r#"{"$size": {"$regexFindAll": {"input": "$s", "regex": "a"}}}"#;
    assert_eq!(code(evaluate(all, &large, ExpressionLimits::default())), 51151);
}

#[test]
fn accumulated_arrays_take_what_the_server_allows() {
    let limits = ExpressionLimits { push_bytes_max: 10_000, set_bytes_max: 20_000, ..ExpressionLimits::default() };
    let taken = |kind: &AccumulatorKind| {
        let mut accumulator = Accumulator::new(kind, None, None).unwrap().within(limits);
        (0..10_000).take_while(|number: &i32| accumulator.add((*number).into()).is_ok()).count()
    };
    let (pushed, in_set) = (taken(&AccumulatorKind::Push), taken(&AccumulatorKind::AddToSet));
    assert!((100..1000).contains(&pushed), "{pushed}");
    assert!((pushed + 1..10_000).contains(&in_set), "{in_set} after {pushed}");
    assert_eq!(taken(&AccumulatorKind::Sum), 10_000);
}

/// Each of these compared every value with every other, or moved all others for each.
#[test]
fn many_values_are_no_squares_of_work() {
    let run = |text: &str| evaluate(text, &doc! {}, ExpressionLimits::default()).unwrap();
    let pairs = r#"{"$map": {"input": {"$range": [0, 300000]}, "in": {"k": {"$toString": "$$this"}, "v": 1}}}"#;
    let object = run(&format!(r#"{{"$size": {{"$objectToArray": {{"$arrayToObject": {pairs}}}}}}}"#));
    assert_eq!(object, Some(OwnedValue::Int32(300_000)));
    let merged = format!(r#"{{"$mergeObjects": [{{"$arrayToObject": {pairs}}}, {{"$arrayToObject": {pairs}}}]}}"#);
    assert_eq!(run(&format!(r#"{{"$size": {{"$objectToArray": {merged}}}}}"#)), Some(OwnedValue::Int32(300_000)));
    let difference = r#"{"$size": {"$setDifference": [{"$range": [300000, 0, -1]}, {"$range": [0, 10]}]}}"#;
    assert_eq!(run(difference), Some(OwnedValue::Int32(299_991)));
    let mut set = Accumulator::new(&AccumulatorKind::AddToSet, None, None).unwrap();
    (0..300_000).rev().for_each(|number: i32| set.add((number / 2).into()).unwrap());
    let Some(OwnedValue::Array(values)) = set.result() else { panic!("an array") };
    assert_eq!((values.len(), values.view().get(0).and_then(|value| value.to_i64_exact())), (150_000, Some(0)));
}
