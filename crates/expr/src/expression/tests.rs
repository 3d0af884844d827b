//! What the golden tables cannot say: paths, what is folded, variables of the caller, how expressions are shown.

use super::*;
use pando_doc::{Doc, doc};

fn parse(expression: &Doc) -> Expression {
    Expression::parse(Value::Document(expression.view()), &ParseContext::default()).unwrap()
}

#[test]
fn u6_constants_are_folded() {
    let folded = parse(&doc! { "$add": ["$a", { "$multiply": [2, 3] }] }).optimize().unwrap();
    assert_eq!(folded.to_value().to_string(), r#"{ $add: [ "$a", { $const: 6 } ] }"#);
    let whole = parse(&doc! { "$concat": ["x", "y"] }).optimize().unwrap();
    assert_eq!(whole.as_constant(), Some(Some(OwnedValue::from("xy").view())));
    assert!(parse(&doc! { "$divide": [1, 0] }).optimize().is_err());
    let chosen = parse(&doc! { "$cond": [true, "$a", "$b"] }).optimize().unwrap();
    assert_eq!(chosen.as_field().map(ToString::to_string).as_deref(), Some("a"));
}

#[test]
fn u6_paths_are_told() {
    let paths = |expression: Doc| {
        parse(&expression).paths().map(|paths| paths.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let some = |paths: &[&str]| Some(paths.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(paths(doc! { "$add": ["$a.b", "$c", "$a.b"] }), some(&["a.b", "c"]));
    assert_eq!(paths(doc! { "$map": { "input": "$x", "in": { "$add": ["$$this", "$y"] } } }), some(&["x", "y"]));
    assert_eq!(paths(doc! { "x": "$$ROOT" }), None);
    assert_eq!(paths(doc! { "$getField": "a" }), None);
}

#[test]
fn u6_variables_of_the_caller() {
    let context = ParseContext { variables: doc! { "limit": 5 }, ..ParseContext::default() };
    let expression = doc! { "$add": ["$$limit", "$$outer", "$a"] };
    let parsed = Expression::parse_with_variables(Value::Document(expression.view()), &["outer"], &context).unwrap();
    let root = doc! { "a": 1 };
    let mut scope = Scope::new(root.view(), &parsed);
    scope.set(0, Operand::from(10));
    assert_eq!(parsed.evaluate(&mut scope).unwrap().into_value(), Some(OwnedValue::Int32(16)));
}

#[test]
fn u6_variables_of_commands_are_evaluated_once() {
    let mut context = ParseContext::default();
    let variables = doc! { "two": { "$add": [1, 1] }, "four": { "$multiply": ["$$two", 2] }, "none": { "$getField": { "field": "x", "input": {} } } };
    context.bind(variables.view()).unwrap();
    let value = |expression: Doc| {
        let parsed = Expression::parse(Value::Document(expression.view()), &context).unwrap();
        parsed.evaluate_document(doc! {}.view()).unwrap().into_value()
    };
    assert_eq!(value(doc! { "$add": ["$$two", "$$four"] }), Some(OwnedValue::Int32(6)));
    // What has no value equals what is not there, and nothing else.
    assert_eq!(value(doc! { "$eq": ["$$none", "$missing"] }), Some(OwnedValue::Bool(true)));
    assert_eq!(value(doc! { "$eq": ["$$none", Value::Null] }), Some(OwnedValue::Bool(false)));
    let code = |variables: Doc| ParseContext::default().bind(variables.view()).unwrap_err().code().number();
    assert_eq!(code(doc! { "a": "$field" }), 4890500);
    assert_eq!(code(doc! { "A": 1 }), 9);
    assert_eq!([code(doc! { "NOW": 1 }), code(doc! { "CLUSTER_TIME": 1 })], [4738901; 2]);
}

#[test]
fn u6_what_is_current_can_be_something_else() {
    let mut context = ParseContext::default();
    context.bind(doc! { "CURRENT": { "x": { "y": 7 } }, "at": "$$NOW" }.view()).unwrap();
    let value = |expression: &str| {
        let parsed = Expression::parse(Value::String(expression.into()), &context).unwrap();
        parsed.evaluate_document(doc! { "x": 1 }.view()).unwrap().into_value()
    };
    assert_eq!(value("$$CURRENT.x.y"), Some(OwnedValue::Int32(7)));
    assert_eq!(value("$x.y"), Some(OwnedValue::Int32(7)));
    assert_eq!(value("$$ROOT.x"), Some(OwnedValue::Int32(1)));
    // A variable of an operator is nearer.
    let inner = doc! { "$let": { "vars": { "CURRENT": { "x": 3 } }, "in": "$x" } };
    let parsed = Expression::parse(Value::Document(inner.view()), &context).unwrap();
    assert_eq!(parsed.evaluate_document(DocRef::EMPTY).unwrap().into_value(), Some(OwnedValue::Int32(3)));
}

#[test]
fn u6_constants_that_are_no_sets_are_told_by_their_place() {
    let refused = |expression: Doc| parse(&expression).optimize().unwrap_err().code().number();
    assert_eq!(refused(doc! { "$setEquals": ["$a", 1] }), 5887502);
    assert_eq!(refused(doc! { "$setEquals": [Value::Null, [1]] }), 5887502);
    assert!(parse(&doc! { "$setEquals": ["$a", [1]] }).optimize().is_ok());
}

#[test]
fn u6_the_time_of_the_cluster_and_the_scope_of_a_map_reduce() {
    let context = ParseContext {
        cluster_time: Some(pando_base::Timestamp::new(7, 1)),
        javascript_scope: Some(doc! { "x": 5 }),
        ..ParseContext::default()
    };
    let value = |expression: Value<'_>, context: &ParseContext| {
        let parsed = Expression::parse(expression, context)?;
        Ok::<_, pando_base::Error>(parsed.evaluate_document(doc! {}.view())?.into_value())
    };
    let time = value(Value::String("$$CLUSTER_TIME".into()), &context).unwrap();
    assert_eq!(time, Some(OwnedValue::Timestamp(pando_base::Timestamp::new(7, 1))));
    let scope = value(Value::String("$$JS_SCOPE.x".into()), &context).unwrap();
    assert_eq!(scope, Some(OwnedValue::Int32(5)));
    for name in ["$$CLUSTER_TIME", "$$JS_SCOPE"] {
        let refused = value(Value::String(name.into()), &ParseContext::default()).unwrap_err();
        assert_eq!(refused.code().number(), 51144, "{name}");
    }
}

#[test]
fn u6_binary_literals_have_the_form_that_they_say() {
    let literal = |subtype: u8, bytes: &[u8]| {
        let expression = doc! { "$literal": { "x": [Value::Binary { subtype, bytes }] } };
        Expression::parse(Value::Document(expression.view()), &ParseContext::default()).map(|_| ())
    };
    let refused = |subtype, bytes: &[u8]| literal(subtype, bytes).unwrap_err().code().number() == 9;
    assert!(literal(4, &[1; 16]).is_ok() && literal(3, &[1; 16]).is_ok() && literal(0, &[]).is_ok());
    assert!(literal(2, &[1, 0, 0, 0, 7]).is_ok());
    assert!(refused(2, &[2, 0, 0, 0, 7]) && refused(3, &[1; 15]) && refused(5, &[]) && refused(7, &[0]));
}

#[test]
fn u6_all_values_of_a_path_are_found_once_and_in_order() {
    let values = |path: &str, document: Doc| {
        let expression = parse(&doc! { "$_internalFindAllValuesAtPath": path });
        assert_eq!(expression.to_value().to_string(), doc! { "$_internalFindAllValuesAtPath": path }.to_string());
        expression.evaluate_document(document.view()).unwrap().into_value().unwrap().to_string()
    };
    assert_eq!(values("a", doc! { "a": [3, 1, 3, [1]] }), "[ 1, 3, [ 1 ] ]");
    assert_eq!(values("a.b", doc! { "a": [{ "b": 2 }, { "b": [1, 2] }, { "c": 0 }] }), "[ 1, 2 ]");
    assert_eq!(values("a.1", doc! { "a": [5, 6] }), "[ 6 ]");
    assert_eq!(values("x", doc! { "a": 1 }), "[]");
}

#[test]
fn u6_null_bytes_in_patterns_have_codes_of_their_own() {
    let code = |regex: &str, options: &str| {
        let expression = doc! { "$regexMatch": { "input": "x", "regex": regex, "options": options } };
        parse(&expression).optimize().unwrap_err().code().number()
    };
    assert_eq!((code("a\0b", ""), code("a", "i\0")), (51109, 51110));
}

#[test]
fn u6_operators_for_tests_of_the_api_give_one() {
    let parsed = |specification: Doc| {
        let expression = doc! { "$_testApiVersion": specification };
        let parsed = Expression::parse(Value::Document(expression.view()), &ParseContext::default());
        parsed.map(|parsed| parsed.as_constant().flatten().map(|value| value.to_string()))
    };
    assert_eq!(parsed(doc! { "unstable": true }).unwrap().as_deref(), Some("1"));
    assert_eq!(parsed(doc! { "deprecated": 1 }).unwrap_err().code().number(), 5161703);
    assert_eq!(parsed(doc! { "other": true }).unwrap_err().code().number(), 5161704);
}

#[test]
fn u6_constants_of_the_server_are_not_set() {
    let bound = |name: &str| ParseContext::default().bind(doc! { (name): 1 }.view());
    assert_eq!(bound("NOW").unwrap_err().code().number(), 4738901);
    assert_eq!(bound("Other").unwrap_err().code().number(), 9);
    assert!(bound("own").is_ok());
}
