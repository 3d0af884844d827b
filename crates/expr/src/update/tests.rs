//! What the golden tables cannot say: which paths changed.

use super::*;
use pando_doc::doc;

#[test]
fn u5_changed_paths_are_told() {
    let changed = |update: Doc, doc: Doc| {
        let update = Update::parse(Value::Document(update.view()), &[], &ParseContext::default()).unwrap();
        let outcome = update.apply(doc.view(), &UpdateContext::default()).unwrap();
        outcome.changed_paths.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let doc = || doc! { "_id": 1, "a": 1, "b": { "c": [1, 2] } };
    assert_eq!(changed(doc! { "$set": { "b.d": 1, "a": 1 }, "$inc": { "b.c.0": 1 } }, doc()), ["b.c.0", "b.d"]);
    assert_eq!(changed(doc! { "$rename": { "a": "x.y" } }, doc()), ["a", "x.y"]);
    assert_eq!(changed(doc! { "$mul": { "b.c.$[]": 2 } }, doc()), ["b.c.0", "b.c.1"]);
    assert_eq!(changed(doc! { "$unset": { "b.c": 1, "zz": 1 } }, doc()), ["b.c"]);
    assert!(changed(doc! { "$set": { "a": 1 } }, doc()).is_empty());
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
