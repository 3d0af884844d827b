//! Whatever takes long ends with the operation it is done for: killed, or past its deadline.
//!
//! Nothing is timed. Every case counts more steps than lie between two looks at the operation, so a loop that does not count
//! gives a result where an error is expected.

#![allow(clippy::unwrap_used, reason = "a failed look-up fails the test that made it")]

use pando_base::operation::during;
use pando_base::{ErrorCode, OperationContext, Result};
use pando_doc::{Doc, DocBuilder, Value, doc, doc_from_json, value_from_json};
use pando_expr::{
    Accumulator, AccumulatorKind, Expression, MatchExpression, ParseContext, Projection, ProjectionPolicies, Update,
    UpdateContext,
};

const COUNT: i32 = 60_000;

/// Arrays of numbers and documents, a text of many lines, a document of many fields.
fn large() -> Doc {
    let mut builder = DocBuilder::new();
    builder.array("n", |values| (0..COUNT).for_each(|number| values.push(number)));
    builder.array("d", |values| (0..COUNT).for_each(|number| values.push(doc! { "k": number, "v": (number % 7) })));
    builder.array("p", |values| {
        (0..COUNT).for_each(|number| values.push(doc! { "k": (number.to_string().as_str()), "v": 1 }));
    });
    builder.append("s", "some words, and more\n".repeat(COUNT as usize / 4).as_str());
    builder.document("o", |fields| (0..COUNT).for_each(|number| fields.append(format!("f{number}"), number)));
    builder.append("x", 1);
    builder.finish()
}

/// Runs it for an operation that was killed, and for one whose time is over.
fn check(name: &str, work: impl Fn() -> Result<()>) {
    work().unwrap_or_else(|error| panic!("{name} by itself: {error}"));
    let killed = OperationContext::detached();
    killed.kill(ErrorCode::Interrupted);
    let late = OperationContext::detached();
    late.set_deadline(0);
    for (operation, expected) in [(killed, ErrorCode::Interrupted), (late, ErrorCode::MaxTimeMSExpired)] {
        let outcome = during(&operation, &work);
        assert_eq!(outcome.map_err(|error| error.code()), Err(expected), "{name}");
    }
}

const EXPRESSIONS: &[&str] = &[
    r#"{"$map": {"input": "$n", "in": {"$add": ["$$this", 1]}}}"#,
    r#"{"$filter": {"input": "$n", "cond": {"$gt": ["$$this", 5]}}}"#,
    r#"{"$reduce": {"input": "$n", "initialValue": 0, "in": {"$add": ["$$this", "$$value"]}}}"#,
    r#"{"$range": [0, 60000, "$x"]}"#,
    r#"{"$zip": {"inputs": ["$n", "$n"]}}"#,
    r#"{"$concatArrays": ["$n", "$n"]}"#,
    r#"{"$reverseArray": "$n"}"#,
    r#"{"$slice": ["$n", 50000]}"#,
    r#"{"$arrayElemAt": ["$n", 59999]}"#,
    r#"{"$size": "$d"}"#,
    r#"{"$in": [-1, "$n"]}"#,
    r#"{"$indexOfArray": ["$n", -1]}"#,
    r#"{"$sortArray": {"input": "$n", "sortBy": -1}}"#,
    r#"{"$sortArray": {"input": "$d", "sortBy": {"v": 1, "k": -1}}}"#,
    r#"{"$maxN": {"input": "$n", "n": 3}}"#,
    r#"{"$firstN": {"input": "$n", "n": 3}}"#,
    r#"{"$setUnion": ["$n", "$n"]}"#,
    r#"{"$setIntersection": ["$n", "$n"]}"#,
    r#"{"$setDifference": ["$n", "$d"]}"#,
    r#"{"$setEquals": ["$n", "$n"]}"#,
    r#"{"$setIsSubset": ["$n", "$n"]}"#,
    r#"{"$anyElementTrue": [{"$literal": [false]}, "$n"]}"#,
    r#"{"$objectToArray": "$o"}"#,
    r#"{"$arrayToObject": "$p"}"#,
    r#"{"$mergeObjects": ["$o", "$o"]}"#,
    r#"{"$mergeObjects": "$d"}"#,
    r#"{"$sum": "$n"}"#,
    r#"{"$max": "$n"}"#,
    r#"{"$stdDevPop": "$n"}"#,
    r#"{"$median": {"input": "$n", "method": "approximate"}}"#,
    r#"{"$split": ["$s", " "]}"#,
    r#"{"$replaceAll": {"input": "$s", "find": " ", "replacement": ""}}"#,
    r#"{"$concat": ["$s", "$s"]}"#,
    r#"{"$toUpper": "$s"}"#,
    r#"{"$strLenCP": "$s"}"#,
    r#"{"$substrCP": ["$s", 5, 100000]}"#,
    r#"{"$indexOfCP": ["$s", "absent"]}"#,
    r#"{"$indexOfBytes": ["$s", "absent"]}"#,
    r#"{"$trim": {"input": "$s", "chars": "abcdefghijklmnopqrstuvwxyz, \n"}}"#,
    r#"{"$regexMatch": {"input": "$s", "regex": "abs.nt"}}"#,
    r#"{"$regexFind": {"input": "$s", "regex": "w.*abs.nt"}}"#,
    r#"{"$regexFindAll": {"input": "$s", "regex": "\\w+"}}"#,
    r#"{"$eq": ["$o", {"$getField": {"field": "o", "input": "$$ROOT"}}]}"#,
    r#"{"$map": {"input": {"$range": [0, 2000]}, "in": {"$arrayElemAt": ["$n", "$$this"]}}}"#,
];

#[test]
fn expressions_end_with_their_operation() {
    let large = large();
    for text in EXPRESSIONS {
        // $anyElementTrue takes one array.
        let text = text.replace(r#"[{"$literal": [false]}, "$n"]"#, r#"[{"$map": {"input": "$n", "in": false}}]"#);
        let parsed = value_from_json(&text).unwrap();
        let expression = Expression::parse(parsed.view(), &ParseContext::default()).unwrap().optimize().unwrap();
        check(&text, || expression.evaluate_document(large.view())?.into_value().map_or(Ok(()), |_| Ok(())));
    }
}

const FILTERS: &[&str] = &[
    r#"{"n": -1}"#,
    r#"{"n": {"$gt": 100000}}"#,
    r#"{"d.k": -1}"#,
    r#"{"d": {"$elemMatch": {"k": -1}}}"#,
    r#"{"n": {"$elemMatch": {"$gt": 100000}}}"#,
    r#"{"n": {"$in": [-1, -2]}}"#,
    r#"{"n": {"$all": [-1, -2]}}"#,
    r#"{"$nor": [{"n": -1}]}"#,
    r#"{"n": {"$not": {"$gt": 100000}}}"#,
    r#"{"s": {"$regex": "w[a-z]*ab[s]ent"}}"#,
    r#"{"$expr": {"$in": [-1, "$n"]}}"#,
    r#"{"$jsonSchema": {"properties": {"n": {"items": {"minimum": -5}}}}}"#,
    r#"{"$jsonSchema": {"properties": {"d": {"uniqueItems": true}}}}"#,
    r#"{"n": {"$mod": [100000, 99999]}}"#,
];

#[test]
fn filters_end_with_their_operation() {
    let large = large();
    for text in FILTERS {
        let filter = doc_from_json(text).unwrap();
        let filter = MatchExpression::parse(filter.view(), &ParseContext::default()).unwrap().optimize();
        let is_match = filter.try_matches(large.view()).unwrap();
        check(text, || filter.try_matches(large.view()).map(|_| ()));
        // An index asks whether it has a document, whatever becomes of the operation.
        let killed = OperationContext::detached();
        killed.kill(ErrorCode::Interrupted);
        assert_eq!(during(&killed, || filter.matches(large.view())), is_match, "{text}");
    }
}

#[test]
fn a_filter_of_many_parts_ends_with_its_operation() {
    let parts: Vec<Doc> = (0..COUNT).map(|number| doc! { "x": { "$gt": number, "$lt": number } }).collect();
    let filter = doc! { "$or": (parts.into_iter().collect::<pando_doc::Array>()) };
    let filter = MatchExpression::parse(filter.view(), &ParseContext::default()).unwrap();
    let one = doc! { "x": 1 };
    check("$or", || filter.try_matches(one.view()).map(|_| ()));
    let patterns: Vec<String> = (0..COUNT / 10).map(|number| format!("^{number}$")).collect();
    let mut list = pando_doc::ArrayBuilder::new();
    patterns.iter().for_each(|pattern| {
        list.push(Value::Regex { pattern: pattern.as_str().into(), options: "".into() });
    });
    let filter = doc! { "x": { "$in": (list.finish()) } };
    check("$in of patterns, read", || MatchExpression::parse(filter.view(), &ParseContext::default()).map(|_| ()));
    let filter = MatchExpression::parse(filter.view(), &ParseContext::default()).unwrap();
    let text = doc! { "x": "none of them" };
    check("$in of patterns", || filter.try_matches(text.view()).map(|_| ()));
}

const UPDATES: &[&str] = &[
    r#"{"$pull": {"n": {"$gt": 100000}}}"#,
    r#"{"$pull": {"d": {"k": -1}}}"#,
    r#"{"$pullAll": {"n": [-1, -2]}}"#,
    r#"{"$push": {"n": {"$each": [1], "$sort": -1}}}"#,
    r#"{"$addToSet": {"n": -1}}"#,
    r#"{"$inc": {"n.$[]": 1}}"#,
    r#"{"$set": {"d.$[].v": 1}}"#,
];

#[test]
fn updates_end_with_their_operation() {
    let large = large();
    for text in UPDATES {
        let update = doc_from_json(text).unwrap();
        let update = Update::parse(Value::Document(update.view()), &[], &ParseContext::default()).unwrap();
        check(text, || update.apply(large.view(), &UpdateContext::default()).map(|_| ()));
    }
}

#[test]
fn projections_end_with_their_operation() {
    let large = large();
    for text in [r#"{"d.k": 1}"#, r#"{"o.f1": 0}"#, r#"{"d": {"$elemMatch": {"k": -1}}}"#] {
        let specification = doc_from_json(text).unwrap();
        let projection =
            Projection::parse(specification.view(), ProjectionPolicies::FIND, &ParseContext::default()).unwrap();
        check(text, || projection.apply(large.view(), None).map(|_| ()));
    }
}

#[test]
fn accumulators_end_with_their_operation() {
    for kind in [AccumulatorKind::Sum, AccumulatorKind::Push, AccumulatorKind::AddToSet, AccumulatorKind::Max] {
        check(kind.name(), || {
            let mut accumulator = Accumulator::new(&kind, None, None)?;
            (0..COUNT).try_for_each(|number| accumulator.add(number.into()))
        });
    }
}
