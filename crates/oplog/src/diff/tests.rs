//! Known diffs, refused diffs, and the two laws on generated documents.

use super::*;
use pando_doc::{Array, Doc, DocBuilder, ObjectId, OwnedValue, Value, doc};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const LONG: &str = "a text that is longer than any diff that is made in these tests, so that a diff always pays";

/// Expects this diff, and that it leads from one to the other, once and twice.
fn check(pre: Doc, post: Doc, expected: Doc) {
    let Difference::Diff(diff) = compute(pre.view(), post.view()) else {
        panic!("a diff pays for {pre:?}");
    };
    assert_eq!(diff, expected);
    check_laws(&pre, &post, &diff);
}

fn check_laws(pre: &Doc, post: &Doc, diff: &Doc) {
    let once = apply(pre.view(), diff.view()).expect("a computed diff applies");
    assert_eq!(&once, post, "from {pre:?} by {diff:?}");
    assert_eq!(apply(once.view(), diff.view()).expect("and again"), once);
}

#[test]
fn r1_fields_are_set_inserted_and_deleted() {
    check(
        doc! { "_id": 1, "a": 1, "b": 2, "text": LONG },
        doc! { "_id": 1, "a": 5, "text": LONG, "new": true },
        doc! { "d": { "b": false }, "u": { "a": 5 }, "i": { "new": true } },
    );
    check(
        doc! { "_id": 1, "a": 1, "text": LONG },
        doc! { "_id": 1, "a": "1", "text": LONG },
        doc! { "u": { "a": "1" } },
    );
}

#[test]
fn r1_inner_documents_and_arrays_have_diffs_of_their_own() {
    check(
        doc! { "_id": 1, "s": { "x": 1, "t": LONG }, "l": [1, 2, 3, LONG] },
        doc! { "_id": 1, "s": { "x": 2, "t": LONG }, "l": [1, 9, 3, LONG, 5] },
        doc! { "ss": { "u": { "x": 2 } }, "sl": { "a": true, "u1": 9, "u4": 5 } },
    );
    check(
        doc! { "_id": 1, "l": [LONG, { "x": 1, "t": LONG }, [1, 2, LONG], 4, 5] },
        doc! { "_id": 1, "l": [LONG, { "x": 2, "t": LONG }, [1, 3, LONG], 4] },
        doc! { "sl": { "a": true, "l": 4, "s1": { "u": { "x": 2 } }, "s2": { "a": true, "u1": 3 } } },
    );
}

#[test]
fn r1_a_field_that_moves_goes_to_the_end() {
    check(
        doc! { "_id": 1, "text": LONG, "a": 1, "b": 2, "c": 3 },
        doc! { "_id": 1, "text": LONG, "b": 2, "c": 3, "a": 1 },
        doc! { "i": { "a": 1 } },
    );
    check(
        doc! { "_id": 1, "text": LONG, "a": 1, "b": 2 },
        doc! { "_id": 1, "text": LONG, "x": 0, "a": 1, "b": 2 },
        doc! { "i": { "x": 0, "a": 1, "b": 2 } },
    );
}

#[test]
fn r1_deleted_names_are_in_order() {
    check(
        doc! { "_id": 1, "z": 1, "m": 1, "b": 1, "text": LONG, "y": 1, "c": 1 },
        doc! { "_id": 1, "text": LONG },
        doc! { "d": { "y": false, "c": false, "b": false, "m": false, "z": false } },
    );
}

#[test]
fn r1_what_does_not_pay_is_logged_whole() {
    let whole = |pre: Doc, post: Doc| assert_eq!(compute(pre.view(), post.view()), Difference::Whole);
    whole(doc! { "_id": 1, "a": 1 }, doc! { "_id": 1, "a": 2 });
    whole(doc! { "_id": 1, "a": LONG }, doc! { "_id": 1, "b": LONG });
    whole(doc! { "text": LONG, "_id": 1 }, doc! { "_id": 1, "text": LONG });
    let same = doc! { "_id": 1, "a": LONG };
    assert_eq!(compute(same.view(), same.view()), Difference::None);
    check(
        doc! { "_id": 1, "text": LONG, "s": { "a": 1, "b": 2 } },
        doc! { "_id": 1, "text": LONG, "s": { "c": 3, "d": 4 } },
        doc! { "u": { "s": { "c": 3, "d": 4 } } },
    );
}

#[test]
fn r1_a_name_that_occurs_twice_is_logged_whole() {
    let twice = |first: i32, second: i32| doc! { "_id": 1, "a": first, "text": LONG, "a": second };
    let once = doc! { "_id": 1, "a": 1, "text": LONG };
    let whole = |pre: &Doc, post: &Doc| assert_eq!(compute(pre.view(), post.view()), Difference::Whole);
    whole(&twice(1, 2), &twice(1, 3));
    whole(&twice(1, 2), &twice(3, 4));
    whole(&once, &twice(1, 2));
    whole(&twice(1, 2), &once);
    let inside = |inner: Doc| doc! { "_id": 1, "text": LONG, "text2": LONG, "s": inner };
    let set = doc! { "u": { "s": twice(1, 3) } };
    check(inside(twice(1, 2)), inside(twice(1, 3)), set);
}

#[test]
fn r1_an_array_with_odd_names_is_set_whole() {
    let odd = |name: &str| {
        let mut inner = DocBuilder::new();
        inner.append("0", LONG);
        inner.append(name, 7);
        doc! { "_id": 1, "text": LONG, "l": Array::from_doc(inner.finish()) }
    };
    let pre = doc! { "_id": 1, "text": LONG, "l": [LONG, 6] };
    for name in ["1", "x", "01"] {
        let post = odd(name);
        let Difference::Diff(diff) = compute(pre.view(), post.view()) else { panic!("a diff pays") };
        assert_eq!(diff.get("sl").is_some(), name == "1");
        check_laws(&pre, &post, &diff);
    }
}

/// A diff that was made for another version.
fn check_applied(pre: Doc, diff: Doc, expected: Doc) {
    let once = apply(pre.view(), diff.view()).expect("it applies to any document");
    assert_eq!(once, expected);
    assert_eq!(apply(once.view(), diff.view()).expect("and again"), expected);
}

#[test]
fn r1_a_diff_applies_to_newer_versions() {
    check_applied(doc! { "_id": 1 }, doc! { "d": { "a": false }, "u": { "b": 1 } }, doc! { "_id": 1, "b": 1 });
    check_applied(doc! { "i": 0, "_id": 1 }, doc! { "i": { "i": 2 } }, doc! { "_id": 1, "i": 2 });
    check_applied(doc! { "s": 5 }, doc! { "ss": { "u": { "x": 1 } } }, doc! { "s": null });
    check_applied(doc! { "s": [5] }, doc! { "ss": { "u": { "x": 1 } } }, doc! { "s": null });
    check_applied(doc! { "x": 5 }, doc! { "ss": { "u": { "x": 1 } } }, doc! { "x": 5 });
    check_applied(doc! { "l": [1] }, doc! { "sl": { "a": true, "u3": 4 } }, doc! { "l": [1, null, null, 4] });
    check_applied(doc! { "l": [1] }, doc! { "sl": { "a": true, "l": 3 } }, doc! { "l": [1, null, null] });
    check_applied(
        doc! { "l": [1, 2] },
        doc! { "sl": { "a": true, "s1": { "d": { "x": false } } } },
        doc! {
            "l": [1, null]
        },
    );
    check_applied(
        doc! { "l": [] },
        doc! { "sl": { "a": true, "s1": { "d": { "x": false } } } },
        doc! {
            "l": [null, null]
        },
    );
    check_applied(doc! { "l": [1, 2, 3] }, doc! { "sl": { "a": true, "l": 1, "u0": 7 } }, doc! { "l": [7] });
    check_applied(doc! { "a": 1, "a": 2 }, doc! { "u": { "a": 3 } }, doc! { "a": 3, "a": 3 });
}

#[test]
fn r1_diffs_that_contradict_themselves_are_refused() {
    let refused = |diff: Doc, code: i32| {
        let pre = doc! { "s": { "x": 1 }, "l": [1, 2, 3] };
        let error = apply(pre.view(), diff.view()).expect_err("it is no diff");
        assert_eq!(error.code().number(), code, "{diff:?}: {}", error.reason());
    };
    refused(doc! { "x": {} }, 4770503);
    refused(doc! { "u": {}, "d": {} }, 4770503);
    refused(doc! { "u": {}, "u": {} }, 4770503);
    refused(doc! { "ss": { "u": {} }, "u": {} }, 4770503);
    refused(doc! { "ux": {} }, 4770503);
    refused(doc! { "u": 1 }, 4770507);
    refused(doc! { "": {} }, 4770505);
    refused(doc! { "ss": {} }, 4770500);
    refused(doc! { "d": { "a": false }, "u": { "a": 1 } }, 4728000);
    refused(doc! { "u": { "s": 1 }, "ss": { "u": { "x": 1 } } }, 4728000);
    refused(doc! { "sl": { "a": false } }, 4770520);
    refused(doc! { "sl": { "a": true, "l": "x" } }, 4770507);
    refused(doc! { "sl": { "a": true, "l": (-1) } }, 2);
    refused(doc! { "sl": { "a": true, "u": 1 } }, 4770521);
    refused(doc! { "sl": { "a": true, "ux": 1 } }, 4770512);
    refused(doc! { "sl": { "a": true, "u+1": 1 } }, 4770512);
    refused(doc! { "sl": { "a": true, "x1": 1 } }, 4770502);
    refused(doc! { "sl": { "a": true, "s1": 1 } }, 4770501);
    refused(doc! { "sl": { "a": true, "u1": 1, "u0": 1 } }, 2);
    refused(doc! { "sl": { "a": true, "l": 1, "u1": 1 } }, 2);
}

#[test]
fn r1_a_diff_cannot_grow_a_document_without_bound() {
    let pre = doc! { "l": [1] };
    for diff in [doc! { "sl": { "a": true, "u2000000000": 1 } }, doc! { "sl": { "a": true, "l": i32::MAX } }] {
        let error = apply(pre.view(), diff.view()).expect_err("too many nulls");
        assert_eq!(error.code(), pando_base::ErrorCode::BSONObjectTooLarge);
    }
}

/// Values of many types; documents and arrays to this depth.
fn value(depth: u32) -> BoxedStrategy<OwnedValue> {
    let leaf = prop_oneof![
        (0..4_i32).prop_map(OwnedValue::Int32),
        (0..3_i64).prop_map(OwnedValue::Int64),
        Just(OwnedValue::Double(0.5)),
        Just(OwnedValue::Null),
        any::<bool>().prop_map(OwnedValue::Bool),
        Just(OwnedValue::ObjectId(ObjectId::from_bytes([7; 12]))),
        "[a-c]{0,20}".prop_map(OwnedValue::from),
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    let documents = document(depth - 1).prop_map(OwnedValue::from);
    let arrays = prop::collection::vec(value(depth - 1), 0..6).prop_map(array_of);
    prop_oneof![3 => leaf, 2 => documents, 2 => arrays].boxed()
}

fn array_of(values: Vec<OwnedValue>) -> OwnedValue {
    let mut builder = pando_doc::ArrayBuilder::new();
    values.iter().for_each(|value| builder.push(value));
    OwnedValue::from(builder.finish())
}

/// Documents whose names often agree, and sometimes occur twice.
fn document(depth: u32) -> BoxedStrategy<Doc> {
    let field = ("[a-e]", value(depth));
    prop::collection::vec(field, 0..7)
        .prop_map(|fields| {
            let mut builder = DocBuilder::new();
            fields.iter().for_each(|(name, value)| builder.append(name, value));
            builder.finish()
        })
        .boxed()
}

/// Two versions that are related: some fields kept, some changed, some moved, at any level.
fn versions() -> impl Strategy<Value = (Doc, Doc)> {
    let related = (document(2), document(2), prop::collection::vec(0..6_u8, 16)).prop_map(|(one, other, choices)| {
        let post = blend(one.view(), other.view(), &mut choices.iter().copied().cycle());
        (one, post)
    });
    prop_oneof![4 => related, 1 => (document(2), document(2))]
}

fn blend(one: pando_doc::DocRef<'_>, other: pando_doc::DocRef<'_>, choices: &mut impl Iterator<Item = u8>) -> Doc {
    let mut builder = DocBuilder::new();
    let mut moved = Vec::new();
    let mut others = other.elements();
    for element in one.elements() {
        match (choices.next().unwrap_or(0), element.value) {
            (0, _) => moved.push(element),
            (1, _) => builder.append(element.name, others.next().map_or(Value::Null, |other| other.value)),
            (2, _) => {}
            (3, Value::Document(inner)) => builder.append(element.name, blend(inner, other, choices)),
            (3 | 4, Value::Array(array)) => builder.append(element.name, blend_array(array, other, choices)),
            _ => builder.append_element(element),
        }
    }
    others.chain(moved).for_each(|element| builder.append_element(element));
    builder.finish()
}

fn blend_array(
    array: pando_doc::ArrayRef<'_>,
    other: pando_doc::DocRef<'_>,
    choices: &mut impl Iterator<Item = u8>,
) -> Array {
    let mut builder = pando_doc::ArrayBuilder::new();
    for value in array.values() {
        match (choices.next().unwrap_or(0), value) {
            (0, _) => break,
            (1, _) => builder.push("changed"),
            (2, Value::Document(inner)) => builder.push(blend(inner, other, &mut std::iter::once(1).cycle())),
            _ => builder.push(value),
        }
    }
    if choices.next() == Some(5) {
        other.elements().for_each(|element| builder.push(element.value));
    }
    builder.finish()
}

/// A document that is large enough for diffs of the other to pay.
fn padded(doc: &Doc, text: &str) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append("_id", text);
    builder.append_all(doc.view());
    builder.finish()
}

fn cases(usual: u64) -> ProptestConfig {
    ProptestConfig {
        cases: crate::tests::seeds(usual) as u32,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn r1_a_diff_leads_from_one_version_to_the_other((pre, post) in versions(), third in document(2)) {
        for text in ["", &LONG.repeat(20)] {
            let (pre, post, third) = (padded(&pre, text), padded(&post, text), padded(&third, text));
            let Difference::Diff(diff) = compute(pre.view(), post.view()) else { continue };
            prop_assert!(diff.size_bytes() < post.size_bytes());
            check_laws(&pre, &post, &diff);
            let elsewhere = apply(third.view(), diff.view()).expect("a diff applies to any document");
            prop_assert_eq!(apply(elsewhere.view(), diff.view()).expect("and again"), elsewhere);
        }
    }
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn r1_any_document_is_a_diff_or_refused(pre in document(2), diff in likely_diff(1)) {
        if let Ok(once) = apply(pre.view(), diff.view()) {
            prop_assert_eq!(Doc::parse(once.bytes().to_vec()).expect("the result is valid"), once.clone());
            prop_assert_eq!(apply(once.view(), diff.view()).expect("and again"), once);
        }
    }
}

/// Documents that look like diffs.
fn likely_diff(depth: u32) -> BoxedStrategy<Doc> {
    let section = document(1).prop_map(OwnedValue::from);
    let inner =
        if depth == 0 { section.clone().boxed() } else { likely_diff(depth - 1).prop_map(OwnedValue::from).boxed() };
    let parts = (
        prop::option::of(Just("d").prop_flat_map(move |name| (Just(name.to_owned()), section.clone()))),
        prop::option::of(("[ui]", document(1).prop_map(OwnedValue::from))),
        prop::collection::vec(("s[a-e]", inner.clone()), 0..3),
        prop::collection::vec(("[us][0-4]", prop_oneof![inner, value(1)]), 0..3),
        any::<bool>(),
    );
    parts
        .prop_map(|(deletes, updates, inner, indexed, is_array)| {
            let mut builder = DocBuilder::new();
            if is_array {
                builder.append("a", true);
                indexed.iter().for_each(|(name, value)| builder.append(name, value));
            } else {
                deletes.iter().chain(&updates).chain(&inner).for_each(|(name, value)| builder.append(name, value));
            }
            builder.finish()
        })
        .boxed()
}
