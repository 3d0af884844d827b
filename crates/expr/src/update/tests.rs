//! What the golden tables cannot say: which fields changed, and that both ways of applying agree.

use super::*;
use crate::MatchExpression;
use pando_doc::{OwnedValue, array, doc};
use std::ops::Range;

/// The changed fields of both versions, or none if that is not known.
fn changed(update: &Doc, doc: &Doc) -> Option<Vec<(String, String)>> {
    let update = Update::parse(Value::Document(update.view()), &[], &ParseContext::default()).unwrap();
    let outcome = update.apply(doc.view(), &UpdateContext::default()).unwrap();
    let field = |doc: &Doc, place: Range<usize>| {
        let mut builder = pando_doc::DocBuilder::new();
        builder.append_element_bytes(&doc.bytes()[place]);
        builder.finish().to_string()
    };
    let fields = outcome.changed_fields?.into_iter();
    let old = |place: Option<Range<usize>>| place.map_or_else(String::new, |place| field(doc, place));
    Some(fields.map(|changed| (old(changed.old), field(&outcome.doc, changed.new))).collect())
}

#[test]
fn u5_changed_fields_are_told() {
    let doc = doc! { "_id": 1, "a": 1, "b": { "c": [1, 2] }, "d": "text" };
    let shown = |fields: &[(Doc, Doc)]| {
        let text = |doc: &Doc| if doc.is_empty() { String::new() } else { doc.to_string() };
        Some(fields.iter().map(|(old, new)| (text(old), text(new))).collect::<Vec<_>>())
    };
    let update = doc! { "$set": { "z": 1, "d": 5, "y": 2 }, "$inc": { "a": 1 } };
    let expected = [
        (doc! { "a": 1 }, doc! { "a": 2 }),
        (doc! { "d": "text" }, doc! { "d": 5 }),
        (doc! {}, doc! { "y": 2 }),
        (doc! {}, doc! { "z": 1 }),
    ];
    assert_eq!(changed(&update, &doc), shown(&expected));
    assert_eq!(changed(&doc! { "$set": { "a": 1, "d": "other" } }, &doc).unwrap().len(), 1);
    // Where comparing is left to others.
    assert_eq!(changed(&doc! { "$unset": { "a": 1 } }, &doc), None);
    assert_eq!(changed(&doc! { "$set": { "b.d": 1 } }, &doc), None);
    assert_eq!(changed(&doc! { "$rename": { "a": "x" } }, &doc), None);
    assert_eq!(changed(&doc! { "x": 1 }, &doc), None);
}

/// The short way and the long way lead to the same document.
#[test]
fn u5_operators_on_bytes_do_what_they_do_on_values() {
    let documents = [
        doc! {},
        doc! { "_id": 1, "a": 1, "b": [1, 2, 3], "c": { "d": 1 }, "e": "text" },
        doc! { "b": [3], "a": 2.5, "_id": 2, "e": null },
        doc! { "a": 7i64, "z": 1, "_id": 3 },
    ];
    let updates = [
        doc! { "$set": { "a": 1, "e": "longer than it was" } },
        doc! { "$inc": { "a": 2 }, "$push": { "b": 4 }, "$unset": { "e": 1, "missing": 1 } },
        doc! { "$set": { "new2": 1, "new10": 2, "new1": { "x": 1 } }, "$min": { "a": 0 } },
        doc! { "$mul": { "a": 3 }, "$setOnInsert": { "s": 1 }, "$set": { "c": { "d": 2 } } },
        doc! { "$unset": { "a": 1, "b": 1, "c": 1, "e": 1 } },
        doc! { "$addToSet": { "b": 9 }, "$bit": { "a": { "or": 8 } }, "$pull": { "e": 1 } },
        doc! { "$currentDate": { "now": true }, "$pop": { "b": 1 }, "$max": { "a": 100 } },
    ];
    for is_insert in [false, true] {
        let context = UpdateContext { now: 5, is_insert, ..UpdateContext::default() };
        for (update, doc) in updates.iter().flat_map(|update| documents.iter().map(move |doc| (update, doc))) {
            let parsed = Update::parse(Value::Document(update.view()), &[], &ParseContext::default());
            let Form::Operators(operators) = parsed.unwrap().form else { panic!("{update} has operators") };
            let short = splice::apply(&operators, doc.view(), &context).map(|spliced| {
                let spliced = spliced.expect("fields at the top are taken");
                spliced.doc.unwrap_or_else(|| doc.clone())
            });
            let long = apply::apply(&operators, doc.view(), &context);
            assert_eq!(
                short.map_err(|error| error.to_string()),
                long.map_err(|error| error.to_string()),
                "{update} {doc}"
            );
        }
    }
}

#[test]
fn u5_immutable_paths_beside_the_id() {
    let update = doc! { "$set": { "shard.key": 2 } };
    let update = Update::parse(Value::Document(update.view()), &[], &ParseContext::default()).unwrap();
    let immutable = [FieldPath::parse("shard.key").unwrap()];
    let context = UpdateContext { immutable_paths: &immutable, ..UpdateContext::default() };
    let refused = update.apply(doc! { "shard": { "key": 1 } }.view(), &context).unwrap_err();
    assert_eq!(refused.code().number(), 66);
    assert!(update.apply(doc! { "shard": { "key": 2 } }.view(), &context).unwrap().is_noop);
}

#[test]
fn u5_results_that_are_too_large_are_refused() {
    let text = "x".repeat(9 * 1024 * 1024);
    let update = doc! { "$set": { "b": text.as_str() } };
    let update = Update::parse(Value::Document(update.view()), &[], &ParseContext::default()).unwrap();
    let refused = update.apply(doc! { "a": text.as_str() }.view(), &UpdateContext::default()).unwrap_err();
    assert_eq!(refused.code().number(), 17419);
}

#[test]
fn u4_changes_of_others_are_applied_by_whoever_knows_them() {
    fn apply(document: DocRef<'_>, update: DocRef<'_>) -> Result<Doc> {
        let mut builder = pando_doc::DocBuilder::new();
        builder.append_all(document);
        builder.append_all(update);
        Ok(builder.finish())
    }
    let updates = OplogUpdates { check: |_| Ok(()), apply };
    let context = ParseContext { oplog_updates: Some(updates), ..ParseContext::default() };
    let stages = pando_doc::array![{ "$_internalApplyOplogUpdate": { "oplogUpdate": { "b": 2 } } }, { "$unset": "a" }];
    let parse = |context: &ParseContext| Update::parse(Value::Array(stages.view()), &[], context);
    let outcome = parse(&context).unwrap().apply(doc! { "_id": 1, "a": 1 }.view(), &UpdateContext::default()).unwrap();
    assert_eq!(outcome.doc, doc! { "_id": 1, "b": 2 });
    assert_eq!(parse(&ParseContext::default()).unwrap_err().code().number(), 40324);
}

#[test]
fn u4_array_filters_beside_a_replacement_do_not_matter() {
    let filter = doc! { "x.a": 1 };
    let update = doc! { "a": 1 };
    let parsed = Update::parse(Value::Document(update.view()), &[filter.view()], &ParseContext::default());
    assert!(parsed.is_ok());
}

#[test]
fn u4_what_references_have_inside_may_come_from_the_filter() {
    let filter = MatchExpression::parse(doc! { "x.$id": 1 }.view(), &ParseContext::default()).unwrap();
    let update = doc! { "$set": { "y": 1 } };
    let update = Update::parse(Value::Document(update.view()), &[], &ParseContext::default()).unwrap();
    let made = update
        .upsert_document(&filter, &UpdateContext::default(), || pando_doc::ObjectId::from_bytes([0; 12]))
        .unwrap();
    assert_eq!(made.get("x").unwrap().to_string(), doc! { "$id": 1 }.to_string());
}

/// The document after an update by operators or by a pipeline, or the code of its refusal.
fn updated(update: &OwnedValue, filters: &[Doc], doc: &Doc) -> std::result::Result<Doc, i32> {
    let filters: Vec<DocRef<'_>> = filters.iter().map(Doc::view).collect();
    let update = Update::parse(update.view(), &filters, &ParseContext::default());
    let outcome = update.and_then(|update| update.apply(doc.view(), &UpdateContext::default()));
    outcome.map(|outcome| outcome.doc).map_err(|error| error.code().number())
}

#[test]
fn u5_zeros_of_either_sign_are_the_same_to_arithmetic() {
    let doc = doc! { "a": (-0.0) };
    for update in [doc! { "$inc": { "a": 0.0 } }, doc! { "$mul": { "a": (-1.0) } }] {
        let after = updated(&OwnedValue::Document(update), &[], &doc).unwrap();
        assert!(after.get("a").and_then(|a| a.to_double()).is_some_and(f64::is_sign_negative), "{after}");
    }
    // Another type is another value.
    let after = updated(&OwnedValue::Document(doc! { "$inc": { "a": 0.5 } }), &[], &doc! { "a": 1 }).unwrap();
    assert_eq!(after, doc! { "a": 1.5 });
}

#[test]
fn u5_pipelines_fill_with_values_alone() {
    let fill = |output: Doc| OwnedValue::Array(array![{ "$fill": { "output": output } }]);
    let doc = doc! { "x": 1, "y": (Value::Null) };
    let by_value = fill(doc! { "y": { "value": { "$add": ["$x", 1] } } });
    assert_eq!(updated(&by_value, &[], &doc), Ok(doc! { "x": 1, "y": 2 }));
    assert_eq!(updated(&fill(doc! { "y": { "method": "locf" } }), &[], &doc), Err(72));
    assert_eq!(updated(&fill(doc! {}), &[], &doc), Err(6050203));
    assert_eq!(updated(&fill(doc! { "y": 1 }), &[], &doc), Err(6050200));
    assert_eq!(updated(&fill(doc! { "y": { "method": "locf", "value": 1 } }), &[], &doc), Err(6050201));
}

#[test]
fn u5_an_identifier_without_a_filter_is_told_before_a_filter_without_use() {
    let update = OwnedValue::Document(doc! { "$set": { "a.$[x]": 1 } });
    let doc = doc! { "a": [1] };
    assert_eq!(updated(&update, &[doc! { "y": 1 }], &doc), Err(2));
    assert_eq!(updated(&update, &[doc! { "x": 1 }, doc! { "y": 1 }], &doc), Err(9));
}
