//! What the golden tables cannot say: details of matches, paths, equality, and that optimising changes nothing.

use super::*;
use pando_doc::{OwnedValue, Value, doc};
use proptest::prelude::*;

fn parse(filter: &Doc) -> MatchExpression {
    MatchExpression::parse(filter.view(), &ParseContext::default()).unwrap()
}

fn index_of(filter: Doc, doc: Doc) -> Option<String> {
    let details = parse(&filter).matches_with_details(doc.view()).unwrap()?;
    Some(details.array_index().map_or("-".to_owned(), ToString::to_string))
}

#[test]
fn u4_details_name_the_place_that_matched() {
    let at = |place: &str| Some(place.to_owned());
    assert_eq!(index_of(doc! { "a": 2 }, doc! { "a": [1, 2] }), at("1"));
    assert_eq!(index_of(doc! { "a": 2 }, doc! { "a": 2 }), at("-"));
    assert_eq!(index_of(doc! { "a.b": 2 }, doc! { "a": [{ "b": 1 }, { "b": [5, 2] }] }), at("1"));
    assert_eq!(index_of(doc! { "a": { "$elemMatch": { "b": 2 } } }, doc! { "a": [{ "b": 1 }, { "b": 2 }] }), at("1"));
    // The last condition wins; what a negation finds does not count.
    assert_eq!(index_of(doc! { "a": 1, "b": 7 }, doc! { "a": [1], "b": [5, 6, 7] }), at("2"));
    assert_eq!(index_of(doc! { "a": 1, "b": { "$ne": 9 } }, doc! { "a": [0, 1], "b": [5] }), at("1"));
    assert_eq!(index_of(doc! { "a": 3 }, doc! { "a": [1] }), None);
    // Alternatives tell nothing, unless they are a list.
    let row = doc! { "a": [1, 2], "b": [5] };
    assert_eq!(index_of(doc! { "$or": [{ "a": 2 }, { "b": 5 }] }, row.clone()), at("-"));
    assert_eq!(index_of(doc! { "a": { "$in": [2, 9] } }, row), at("1"));
}

#[test]
fn u4_regex_operators_are_shown_with_options() {
    let filter = parse(&doc! { "a": { "$regex": "x", "$options": "im" }, "b": { "$options": "s", "$regex": "y" } });
    assert_eq!(
        filter.optimize().to_document().to_string(),
        r#"{ $and: [ { a: { $regex: "x", $options: "im" } }, { b: { $regex: "y", $options: "s" } } ] }"#
    );
}

#[test]
fn u4_paths_are_told_once() {
    let filter = parse(&doc! {
        "a": 1, "b.c": { "$gt": 1, "$lt": 5 }, "d": { "$elemMatch": { "e": 1 } }, "$expr": { "$eq": ["$x", "$a"] }
    });
    let paths: Vec<String> = filter.paths().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(paths, ["a", "b.c", "d.e", "d", "x"]);
    assert_eq!(parse(&doc! { "$expr": "$$ROOT" }).paths(), None);
}

#[test]
fn u4_equal_filters_are_equal() {
    let left = parse(&doc! { "b": 1, "a": { "$in": [2, 1, 2] } }).optimize();
    let right = parse(&doc! { "$and": [{ "a": { "$in": [1, 2] } }, { "b": 1 }] }).optimize();
    assert_eq!(left, right);
    assert_ne!(left, parse(&doc! { "b": 1 }).optimize());
}

fn why(filter: Doc, document: Doc) -> Doc {
    explain_failure(filter.view(), document.view(), &ParseContext::default()).unwrap()
}

#[test]
fn u9_failed_validations_tell_why() {
    let positive = doc! { "a": { "$gt": 0 } };
    let told = |reason: &str| doc! { "operatorName": "$gt", "specifiedAs": &positive, "reason": reason };
    let failed = |value: i32| {
        let mut told = pando_doc::DocBuilder::new();
        told.append_all(told_of(&positive, "comparison failed").view());
        told.append("consideredValue", value);
        told.finish()
    };
    assert_eq!(why(positive.clone(), doc! { "a": -1 }), failed(-1));
    assert_eq!(why(positive.clone(), doc! {}), told("field was missing"));
    assert_eq!(why(positive.clone(), doc! { "a": 1 }), doc! {});
    let implicit = why(doc! { "b": 1, "a": { "$gt": 0 } }, doc! { "a": -1, "b": 1 });
    let clauses = doc! { "operatorName": "$and", "clausesNotSatisfied": [{ "index": 1, "details": failed(-1) }] };
    assert_eq!(implicit, clauses);
    let none = why(doc! { "$nor": [{ "a": 5 }] }, doc! { "a": 5 });
    let details = doc! {
        "operatorName": "$eq", "specifiedAs": { "a": 5 }, "reason": "comparison succeeded", "consideredValue": 5
    };
    assert_eq!(none, doc! { "operatorName": "$nor", "clausesSatisfied": [{ "index": 0, "details": &details }] });
    assert_eq!(
        why(doc! { "a": { "$not": { "$eq": 5 } } }, doc! { "a": 5 }).get("operatorName"),
        Some(Value::String("$not".into()))
    );
}

fn told_of(filter: &Doc, reason: &str) -> Doc {
    doc! { "operatorName": "$gt", "specifiedAs": filter, "reason": reason }
}

#[test]
fn u9_failed_validations_name_types_values_and_errors() {
    let wrong = why(doc! { "a": { "$type": "int" } }, doc! { "a": ["x", "y"] });
    let expected = doc! {
        "operatorName": "$type", "specifiedAs": { "a": { "$type": "int" } }, "reason": "type did not match",
        "consideredValues": ["x", "y"], "consideredType": "string",
    };
    assert_eq!(wrong, expected);
    let remainder = why(doc! { "a": { "$mod": [2, 1] } }, doc! { "a": "two" });
    assert_eq!(remainder.get("reason"), Some(Value::String("type did not match".into())));
    assert_eq!(remainder.get("consideredType"), Some(Value::String("string".into())));
    assert_eq!(
        why(doc! { "a": { "$exists": false } }, doc! { "a": 1 }).get("reason").unwrap().as_str(),
        Some("path does exist")
    );
    let divided = why(doc! { "$expr": { "$divide": [10, 0] } }, doc! {});
    assert_eq!(divided.get("reason").unwrap().as_str(), Some("failed to evaluate aggregation expression"));
    let size = why(doc! { "a": { "$size": 2 } }, doc! { "a": [1] });
    assert_eq!(size.get("reason").unwrap().as_str(), Some("array length was not equal to given size"));
    assert!(matches!(size.get("consideredValue"), Some(Value::Array(_))));
    let empty = why(doc! { "a": { "$gte": 3 } }, doc! { "a": [] });
    assert!(matches!(empty.get("consideredValues"), Some(Value::Array(values)) if values.is_empty()));
}

#[test]
fn u4_null_in_a_list_matches_undefined() {
    let filter = parse(&doc! { "a": { "$in": [Value::Null, 4] } });
    assert!(filter.matches(doc! { "a": Value::Undefined }.view()) && filter.matches(doc! {}.view()));
    assert!(!parse(&doc! { "a": { "$in": [4] } }).matches(doc! { "a": Value::Undefined }.view()));
}

#[test]
fn u4_equals_keep_their_order() {
    // The last of them tells the positional operators where.
    let place = |filter: Doc| {
        let details = parse(&filter).optimize().matches_with_details(doc! { "a": [1, 2, 3] }.view()).unwrap().unwrap();
        details.array_index().unwrap().to_string()
    };
    assert_eq!(place(doc! { "$and": [{ "a": 1 }, { "a": 2 }, { "a": 3 }] }), "2");
    assert_eq!(place(doc! { "$and": [{ "a": 3 }, { "a": 2 }, { "a": 1 }] }), "0");
}

fn value() -> impl Strategy<Value = OwnedValue> {
    let scalar = prop_oneof![
        (-2..3_i32).prop_map(OwnedValue::Int32),
        (-2..3_i32).prop_map(|number| OwnedValue::Double(f64::from(number) / 2.0)),
        Just(OwnedValue::Null),
        "[ab]{0,2}".prop_map(OwnedValue::from),
    ];
    scalar.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|values| OwnedValue::Array(values.iter().collect())),
            document(inner).prop_map(OwnedValue::Document),
        ]
    })
}

fn document(value: impl Strategy<Value = OwnedValue>) -> impl Strategy<Value = Doc> {
    prop::collection::btree_map(prop::sample::select(vec!["a", "b", "c"]), value, 0..3)
        .prop_map(|fields| fields.into_iter().collect())
}

fn filter() -> impl Strategy<Value = Doc> {
    let path = prop::sample::select(vec!["a", "b", "a.b", "b.0", "c.a"]);
    let operator = prop::sample::select(vec!["$eq", "$gt", "$lte", "$ne"]);
    let leaf = prop_oneof![
        (path.clone(), operator, value()).prop_map(|(path, operator, value)| doc! { (path): { (operator): value } }),
        (path.clone(), prop::collection::vec(value(), 0..3)).prop_map(|(path, values)| {
            doc! { (path): { "$in": values.iter().collect::<pando_doc::Array>() } }
        }),
        path.prop_map(|path| doc! { (path): { "$exists": false } }),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            (prop::sample::select(vec!["$and", "$or", "$nor"]), list)
                .prop_map(|(name, filters)| doc! { (name): filters.iter().collect::<pando_doc::Array>() }),
            inner.prop_map(|filter| doc! { "c": { "$elemMatch": filter } }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn u4_optimising_keeps_the_meaning(filter in filter(), doc in document(value())) {
        let plain = parse(&filter);
        let optimized = plain.clone().optimize();
        prop_assert_eq!(plain.matches(doc.view()), optimized.matches(doc.view()));
        // What explain shows is a filter that means the same.
        let shown = optimized.to_document();
        prop_assert_eq!(parse(&shown).matches(doc.view()), optimized.matches(doc.view()), "{}", shown);
    }
}

#[test]
fn u9_failed_schemas_tell_which_rules_are_broken() {
    let schema = doc! {
        "title": "people",
        "required": ["name", "age"],
        "properties": {
            "age": { "bsonType": "int", "minimum": 0, "description": "in years" },
            "tags": { "items": { "bsonType": "string" } },
        },
    };
    let told = why(doc! { "$jsonSchema": &schema }, doc! { "age": -1, "tags": ["a", 2] });
    let age = doc! {
        "operatorName": "minimum", "specifiedAs": { "minimum": 0 }, "reason": "comparison failed",
        "consideredValue": -1,
    };
    let tag = doc! {
        "operatorName": "bsonType", "specifiedAs": { "bsonType": "string" }, "reason": "type did not match",
        "consideredValue": 2, "consideredType": "int",
    };
    let tags = doc! {
        "operatorName": "items", "reason": "At least one item did not match the sub-schema", "itemIndex": 1,
        "details": [tag],
    };
    let required = doc! {
        "operatorName": "required", "specifiedAs": { "required": ["name", "age"] }, "missingProperties": ["name"],
    };
    let properties = doc! {
        "operatorName": "properties",
        "propertiesNotSatisfied": [
            { "propertyName": "age", "description": "in years", "details": [age] },
            { "propertyName": "tags", "details": [tags] },
        ],
    };
    let expected = doc! {
        "operatorName": "$jsonSchema", "title": "people", "schemaRulesNotSatisfied": [required, properties],
    };
    assert_eq!(told, expected);
    let negated = why(doc! { "$nor": [{ "$jsonSchema": { "required": ["a"] } }] }, doc! { "a": 1 });
    let reason = "schema matched";
    let details = doc! {
        "operatorName": "$jsonSchema", "specifiedAs": { "$jsonSchema": { "required": ["a"] } }, "reason": reason,
    };
    assert_eq!(negated, doc! { "operatorName": "$nor", "clausesSatisfied": [{ "index": 0, "details": details }] });
}

#[test]
fn u4_operators_that_schemas_come_down_to() {
    let fits = |filter: Doc, document: Doc| {
        let filter = parse(&filter);
        let again = parse(&filter.to_document());
        assert_eq!(again.matches(document.view()), filter.matches(document.view()), "{filter:?}");
        filter.optimize().matches(document.view())
    };
    let on = |name: &str, argument: Value<'_>| doc! { "a": { (name): argument } };
    let row = || doc! { "a": [1, 2, 2], "b": 1 };
    assert!(fits(on("$_internalSchemaMinItems", Value::Int32(3)), row()));
    assert!(!fits(on("$_internalSchemaMaxItems", Value::Int32(2)), row()));
    assert!(!fits(on("$_internalSchemaMaxItems", Value::Int32(2)), doc! { "a": 1 }), "made for arrays");
    assert!(!fits(on("$_internalSchemaUniqueItems", Value::Bool(true)), row()));
    assert!(fits(on("$_internalSchemaMaxLength", Value::Int32(1)), doc! { "a": "\u{e9}" }));
    assert!(fits(on("$_internalSchemaEq", Value::Int32(1)), doc! { "a": 1.0 }));
    assert!(!fits(on("$_internalSchemaEq", Value::Int32(1)), row()), "arrays are looked at as a whole");
    let all_from = doc! { "a": { "$_internalSchemaAllElemMatchFromIndex": [1, { "i": { "$gt": 1 } }] } };
    assert!(fits(all_from.clone(), row()) && !fits(all_from, doc! { "a": [1, 1] }));
    let object = doc! { "a": { "$_internalSchemaObjectMatch": { "b": 1 } } };
    assert!(fits(object.clone(), doc! { "a": { "b": 1 } }) && !fits(object, doc! { "a": [{ "b": 1 }] }));
    let conditional = doc! { "$_internalSchemaCond": [{ "b": 1 }, { "c": 1 }, { "c": 2 }] };
    assert!(fits(conditional.clone(), doc! { "b": 1, "c": 1 }) && fits(conditional.clone(), doc! { "b": 2, "c": 2 }));
    assert!(!fits(conditional, doc! { "b": 2, "c": 1 }));
    let one_of = doc! { "$_internalSchemaXor": [{ "b": 1 }, { "c": 1 }] };
    assert!(fits(one_of.clone(), doc! { "b": 1 }) && !fits(one_of, doc! { "b": 1, "c": 1 }));
    assert!(fits(doc! { "$_internalSchemaMinProperties": 2 }, row()));
    assert!(!fits(doc! { "$_internalSchemaMaxProperties": 1 }, row()));
    let code =
        |filter: Doc| MatchExpression::parse(filter.view(), &ParseContext::default()).unwrap_err().code().number();
    assert_eq!(code(on("$_internalSchemaMinItems", Value::Int32(-1))), 9);
    assert_eq!(code(doc! { "$_internalSchemaCond": [{ "$text": { "$search": "x" } }, { "a": 1 }, { "b": 1 }] }), 2);
}

#[test]
fn u4_hashes_of_values_are_conditions() {
    let hash = pando_doc::hash_element(doc! { "": 7 }.view().raw_elements().next().unwrap(), pando_doc::HASH_SEED);
    let filter = parse(&doc! { "a": { "$_internalEqHash": hash } });
    assert!(filter.matches(doc! { "a": 7.0 }.view()) && !filter.matches(doc! { "a": 8 }.view()));
    let expression = parse(&doc! { "$expr": { "$eq": [{ "$toHashedIndexKey": "$a" }, hash] } }).optimize();
    assert!(expression.to_document().to_string().contains("$_internalEqHash"), "{expression:?}");
    assert!(expression.matches(doc! { "a": 7 }.view()) && !expression.matches(doc! {}.view()));
    let wrong = doc! { "a": { "$_internalEqHash": 1 } };
    assert_eq!(MatchExpression::parse(wrong.view(), &ParseContext::default()).unwrap_err().code().number(), 2);
}
