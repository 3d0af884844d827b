//! What stages make of options that are of a wrong type, or name what cannot be.

use super::aggregate::run;
use super::support::*;
use pando_base::Result;
use pando_doc::{Doc, Value, array, doc};

fn code(stage: Doc) -> i32 {
    let fixture = Fixture::new(&[]);
    let refused: Result<Vec<Doc>> = run(&fixture, vec![stage]);
    refused.unwrap_err().code().number()
}

#[test]
fn u6_targets_of_out_are_checked_before_anything_runs() {
    assert_eq!(code(doc! { "$out": { "db": 1, "coll": "x" } }), 14);
    assert_eq!(code(doc! { "$out": { "db": "d" } }), 40414);
    assert_eq!(code(doc! { "$out": { "db": "d", "coll": "x", "extra": 1 } }), 40415);
    assert_eq!(code(doc! { "$out": "system.x" }), 17385);
    assert_eq!(code(doc! { "$out": { "db": "admin", "coll": "x" } }), 31321);
    assert_eq!(code(doc! { "$out": 1 }), 16990);
}

#[test]
fn u6_options_of_merge_have_codes_of_their_own() {
    let merge = |name: &str, value: Value<'_>| code(doc! { "$merge": { "into": "x", (name): value } });
    assert_eq!(code(doc! { "$merge": 1 }), 14);
    assert_eq!(code(doc! { "$merge": { "on": "a" } }), 40414);
    assert_eq!(code(doc! { "$merge": { "into": Value::Null } }), 51178);
    assert_eq!(code(doc! { "$merge": { "into": "" } }), 5786800);
    assert_eq!(code(doc! { "$merge": { "into": { "db": "d" } } }), 5786801);
    assert_eq!(code(doc! { "$merge": { "into": { "coll": "x", "other": 1 } } }), 40415);
    assert_eq!(code(doc! { "$merge": { "into": { "db": "local", "coll": "x" } } }), 31320);
    assert_eq!(merge("on", Value::Int32(1)), 51186);
    assert_eq!(merge("on", Value::Array(array![1].view())), 51134);
    assert_eq!(merge("on", Value::Array(array![].view())), 51187);
    assert_eq!(merge("let", Value::Int32(1)), 14);
    assert_eq!(merge("whenMatched", Value::Int32(1)), 51191);
    assert_eq!(merge("whenMatched", Value::Array(array![1].view())), 14);
    assert_eq!(merge("whenNotMatched", Value::Int32(1)), 14);
    assert_eq!(merge("other", Value::Int32(1)), 40415);
}

#[test]
fn u6_names_of_results_are_names_of_fields() {
    let facet = |name: &str| code(doc! { "$facet": { (name): array![] } });
    assert_eq!([facet(""), facet("$a"), facet("a.b")], [15998, 16410, 16412]);
    assert_eq!(code(doc! { "$facet": { "f": array![{ "$search": {} }] } }), 6047401);
    assert_eq!(code(doc! { "$count": "a\0b" }), 40159);
    assert_eq!(code(doc! { "$count": "a\0.b" }), 40159);
    assert_eq!(code(doc! { "$count": "a.b" }), 40160);
}

#[test]
fn u6_unwind_leaves_alone_what_is_no_array() {
    let fixture = Fixture::new(&[]);
    fixture.insert(&[
        doc! { "_id": 1, "a": [{ "b": 1 }] },
        doc! { "_id": 2, "a": { "b": [] } },
        doc! { "_id": 3, "a": { "b": 7 } },
        doc! { "_id": 4 },
    ]);
    let unwind = |keeps: bool| {
        let options = doc! { "path": "$a.b", "preserveNullAndEmptyArrays": keeps, "includeArrayIndex": "i" };
        run(&fixture, vec![doc! { "$unwind": options }]).unwrap()
    };
    let kept = [
        doc! { "_id": 1, "a": [{ "b": 1 }], "i": Value::Null },
        doc! { "_id": 2, "a": {}, "i": Value::Null },
        doc! { "_id": 3, "a": { "b": 7 }, "i": Value::Null },
        doc! { "_id": 4, "i": Value::Null },
    ];
    assert_eq!(unwind(true), kept);
    assert_eq!(unwind(false), kept[2..3]);
}

#[test]
fn u6_windows_that_slide_forget_what_has_left() {
    let fixture = Fixture::new(&[]);
    fixture.insert(&[10, 20, 40].map(|x| doc! { "_id": x, "x": x, "y": x * 2 }));
    let window = doc! { "documents": [-1, 0] };
    let output = doc! {
        "d": { "$stdDevPop": "$x", "window": (&window) },
        "c": { "$covarianceSamp": ["$x", "$y"], "window": (&window) },
    };
    let stages = vec![
        doc! { "$setWindowFields": { "sortBy": { "x": 1 }, "output": output } },
        doc! { "$project": { "d": 1, "c": { "$round": ["$c", 6] } } },
    ];
    let expected = [
        doc! { "_id": 10, "d": 0, "c": Value::Null },
        doc! { "_id": 20, "d": 5.0, "c": 100.0 },
        doc! { "_id": 40, "d": 10.0, "c": 400.0 },
    ];
    assert_eq!(run(&fixture, stages).unwrap(), expected);
}

#[test]
fn u6_redact_keeps_the_root_and_looks_into_arrays_of_arrays() {
    let fixture = Fixture::new(&[]);
    let document = doc! {
        "_id": 1, "top": true,
        "child": { "top": false, "data": 1 },
        "m": [[{ "keep": 1 }, { "secret": true }], [{ "keep": 2 }]],
    };
    fixture.insert(&[document]);
    let redact = |expression: Doc| run(&fixture, vec![doc! { "$redact": expression }]).unwrap();
    let by_root = redact(doc! { "$cond": ["$$ROOT.top", "$$DESCEND", "$$PRUNE"] });
    assert_eq!(by_root.first().unwrap().get("child").unwrap().to_string(), "{ top: false, data: 1 }");
    let by_part = redact(doc! { "$cond": [{ "$eq": ["$secret", true] }, "$$PRUNE", "$$DESCEND"] });
    assert_eq!(by_part.first().unwrap().get("m").unwrap().to_string(), "[ [ { keep: 1 } ], [ { keep: 2 } ] ]");
}

#[test]
fn u6_variables_of_lookup_have_names_that_users_may_give() {
    let lookup = |variables: Doc, rest: Doc| {
        let mut options = pando_doc::DocBuilder::new();
        options.append("from", "c");
        options.append("as", "o");
        options.append("let", variables);
        options.append_all(rest.view());
        code(doc! { "$lookup": options.finish() })
    };
    for name in ["", "A", "1a", "_a", "a.b", "a-b"] {
        assert_eq!(lookup(doc! { (name): 1 }, doc! { "pipeline": array![] }), 9, "{name}");
    }
    assert_eq!(lookup(doc! { "a": 1 }, doc! { "localField": "a", "foreignField": "b" }), 9);
}

#[test]
fn u6_paths_that_exclude_each_other_are_refused() {
    for (fields, expected) in [
        (doc! { "a": 1, "a.b": 2 }, 40176),
        (doc! { "a.b": 1, "a": 2 }, 40176),
        (doc! { "a": { "b.c": 1 } }, 40183),
        (doc! { "a": { "$add": [1], "$sum": 1 } }, 40181),
    ] {
        assert_eq!(code(doc! { "$addFields": fields }), expected);
    }
    assert_eq!(code(doc! { "$group": { "_id": 1, "n": { "x": 1 } } }), 40234);
    assert_eq!(code(doc! { "$group": { "_id": 1, "n": { "$count": array![] } } }), 40237);
}

#[test]
fn u6_stages_are_refused_for_what_they_stand_in() {
    let facet = |stage: &Doc| doc! { "$facet": { "f": [stage] } };
    let lookup = |stage: &Doc| doc! { "$lookup": { "from": "b", "pipeline": [stage], "as": "x" } };
    let union = |stage: &Doc| doc! { "$unionWith": { "coll": "b", "pipeline": [stage] } };
    let out = doc! { "$out": "x" };
    assert_eq!([code(facet(&out)), code(lookup(&out)), code(union(&out))], [40600, 51047, 31441]);
    let merge = doc! { "$merge": "x" };
    assert_eq!([code(facet(&merge)), code(lookup(&merge)), code(union(&merge))], [40600, 51047, 31441]);
    // However deep, and where the other stages would allow it.
    let inner = doc! { "$facet": { "g": [{ "$match": {} }] } };
    assert_eq!([code(facet(&inner)), code(facet(&lookup(&inner))), code(facet(&union(&inner)))], [40600; 3]);
    let near = doc! { "$geoNear": { "near": [0, 0], "distanceField": "d" } };
    assert_eq!([code(facet(&near)), code(facet(&lookup(&near)))], [40600; 2]);
    let fixture = Fixture::new(&[]);
    fixture.insert(&[doc! { "_id": 1 }]);
    assert_eq!(run(&fixture, vec![facet(&lookup(&doc! { "$match": {} }))]).unwrap().len(), 1);
}

#[test]
fn u6_ids_of_groups_are_no_inclusions_and_stand_once() {
    let group = |id: Doc| code(doc! { "$group": { "_id": id } });
    assert_eq!([group(doc! { "a": 1 }), group(doc! { "a": true }), group(doc! { "a": "$a", "b": 1.5 })], [17390; 3]);
    assert_eq!(group(doc! { "": "$a" }), 15998);
    assert_eq!(code(doc! { "$group": { "_id": 1, "_id": 2 } }), 15948);
    assert_eq!(code(doc! { "$count": "_id" }), 15948);
    let bucket = doc! { "groupBy": "$a", "boundaries": [0, 1], "output": { "_id": { "$sum": 1 } } };
    assert_eq!(code(doc! { "$bucket": bucket }), 15948);
}

#[test]
fn u6_options_that_are_null_are_absent() {
    let fixture = Fixture::new(&[]);
    fixture.insert(&[doc! { "_id": 1, "v": 2 }]);
    let sum = || doc! { "s": { "$sum": "$v", "window": { "documents": [-1, 0] } } };
    let windows =
        |sort: Value<'_>| run(&fixture, vec![doc! { "$setWindowFields": { "sortBy": sort, "output": sum() } }]);
    // An order by nothing is an order, too.
    assert_eq!(windows(Value::Document(Doc::new().view())).unwrap(), [doc! { "_id": 1, "v": 2, "s": 2 }]);
    assert_eq!(windows(Value::Null).unwrap_err().code().number(), 5339901);
    let union = doc! { "$unionWith": { "coll": "none", "pipeline": (Value::Null) } };
    assert_eq!(run(&fixture, vec![union]).unwrap().len(), 1);
    assert_eq!(code(doc! { "$unionWith": { "coll": 1 } }), 14);
    assert_eq!(code(doc! { "$unionWith": { "coll": "x", "pipeline": 1 } }), 14);
}

#[test]
fn u6_what_is_wrong_first_is_told_first() {
    assert_eq!(code(doc! { "$sample": { "size": -1, "other": 1 } }), 28748);
    assert_eq!(code(doc! { "$sort": { "a": { "$meta": "randVal", "b": 1 } } }), 9);
    assert_eq!(code(doc! { "$geoNear": [1, 2] }), 5860400);
    assert_eq!(code(doc! { "$merge": "" }), 73);
    assert_eq!(code(doc! { "$merge": { "into": "system.x" } }), 31319);
    assert_eq!(code(doc! { "$replaceWith": "$$DESCEND" }), 17276);
    assert_eq!(code(doc! { "$replaceWith": { "a": { "": 1 } } }), 15998);
    let project = |spec: Doc| code(doc! { "$project": spec });
    assert_eq!([project(doc! { "a": 0, "b": "$a" }), project(doc! { "a": { "x": 0, "y": "$a" } })], [31310; 2]);
    assert_eq!(project(doc! { "a": 0, "b": { "$add": [1, 2] } }), 31252);
    assert_eq!(project(doc! { "_id": { "$add": [1, 2] }, "a": 0 }), 31254);
    assert_eq!(project(doc! { "a": { "$add": [1, 2], "$subtract": [1, 2] } }), 16410);
}
