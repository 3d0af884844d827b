//! The crate as a whole: bytes in, views, bytes out, next to the `bson` crate; and bytes that are no documents.

use crate::testing::{config, document};
use crate::{Doc, DocBuilder, DocRef, Element, Limits, ObjectId, OwnedValue, Value, array, doc};
use pando_base::ErrorCode;
use proptest::prelude::*;

/// Touches everything that a view shows.
fn walk(doc: DocRef<'_>) -> usize {
    doc.elements().map(|element| 1 + element.name.len() + walk_value(element.value)).sum()
}

fn walk_value(value: Value<'_>) -> usize {
    match value {
        Value::Document(doc) => walk(doc),
        Value::Array(array) => array.values().map(walk_value).sum(),
        Value::CodeWithScope { code, scope } => code.len() + walk(scope),
        Value::String(text) | Value::Symbol(text) | Value::Code(text) => text.len(),
        Value::Binary { bytes, .. } => bytes.len(),
        Value::Regex { pattern, options } => pattern.len() + options.len(),
        other => other.to_string().len(),
    }
}

/// The document written again, field by field and level by level.
fn rebuilt(doc: DocRef<'_>) -> Doc {
    let mut builder = DocBuilder::new();
    for Element { name, value } in doc.elements() {
        match value {
            Value::Document(nested) => builder.append(name, rebuilt(nested)),
            Value::Array(nested) => builder.array(name, |array| {
                for value in nested.values() {
                    match value {
                        Value::Document(nested) => array.document(|inner| inner.append_all(rebuilt(nested).view())),
                        value => array.push(value),
                    }
                }
            }),
            value => builder.append(name, value),
        }
    }
    builder.finish()
}

fn is_utf8_throughout(bytes: &[u8]) -> Option<bson::Document> {
    bson::Document::from_reader(bytes).ok()
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn documents_survive(doc in document()) {
        let parsed = Doc::parse(doc.shared_bytes().clone()).unwrap();
        prop_assert_eq!(&rebuilt(parsed.view()), &doc);
        let owned: Doc = parsed.elements().map(|element| (element.name, element.value.to_owned())).collect();
        prop_assert_eq!(&owned, &doc);
        let shared: Doc = parsed.elements().map(|element| (element.name, element.value.to_shared(&parsed))).collect();
        prop_assert_eq!(&shared, &doc);
    }

    #[test]
    fn the_bson_crate_reads_what_we_write_and_the_reverse(doc in document()) {
        if let Some(theirs) = is_utf8_throughout(doc.bytes()) {
            let written = theirs.to_vec().unwrap();
            let back = Doc::parse(written).unwrap();
            prop_assert_eq!(bson::Document::from_reader(back.bytes()).unwrap().to_vec().unwrap(), back.bytes());
            // Without repeated names, which their map folds together, the bytes are the same.
            let mut names: Vec<_> = doc.elements().map(|element| element.name).collect();
            names.sort();
            let count = names.len();
            names.dedup();
            if names.len() == count && !has_nested(doc.view()) {
                prop_assert_eq!(back, doc);
            }
        }
    }

    #[test]
    fn random_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), right_length: bool) {
        if right_length && bytes.len() >= 5 {
            let length = bytes.len() as u32;
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            *bytes.last_mut().unwrap() = 0;
        }
        if let Ok(doc) = DocRef::parse(&bytes) {
            walk(doc);
        }
        walk(DocRef::trusted(&bytes));
    }

    #[test]
    fn damaged_documents_never_panic(doc in document(), flips in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..4)) {
        let mut bytes = doc.bytes().to_vec();
        for (place, byte) in flips {
            let place = usize::from(place) % bytes.len();
            bytes[place] = byte;
        }
        if let Ok(parsed) = DocRef::parse(&bytes) {
            // What passes is sound: every byte belongs to an element.
            prop_assert_eq!(parsed.raw_elements().map(|element| element.bytes.len()).sum::<usize>() + 5, bytes.len());
            prop_assert_eq!(Doc::parse(rebuilt(parsed).into_bytes()).unwrap().elements().count(), parsed.field_count());
        }
    }

    #[test]
    fn cut_documents_are_refused(doc in document(), cut in 1_usize..200) {
        let bytes = doc.bytes();
        let kept = bytes.len().saturating_sub(cut);
        prop_assert!(DocRef::parse(&bytes[..kept]).is_err());
    }
}

fn has_nested(doc: DocRef<'_>) -> bool {
    doc.elements()
        .any(|element| matches!(element.value, Value::Document(_) | Value::Array(_) | Value::CodeWithScope { .. }))
}

fn refusal(bytes: &[u8]) -> (ErrorCode, String) {
    let error = DocRef::parse(bytes).unwrap_err();
    (error.code(), error.reason().to_owned())
}

#[test]
fn faults_are_named_with_their_place() {
    let whole = doc! { "_id": 1, "a": { "b": [true, "x"] } };
    let corrupted = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.bytes().to_vec();
        change(&mut bytes);
        refusal(&bytes)
    };
    let place = |needle: &[u8]| whole.bytes().windows(needle.len()).position(|window| window == needle).unwrap();
    let invalid = |reason: &str| (ErrorCode::InvalidBSON, reason.to_owned());
    assert_eq!(refusal(&[]), invalid("BSON data has to be at least 5 bytes"));
    assert_eq!(refusal(&[4, 0, 0, 0, 0]), invalid("BSON data has to be at least 5 bytes"));
    assert_eq!(refusal(&[6, 0, 0, 0, 0]), invalid("Incorrect BSON length 6 should be less or equal to 5"));
    let boolean = place(b"\x080\0") + 3;
    let reason = "BSON bool is neither false nor true in element with field name 'a.b.0' in object with _id: 1";
    assert_eq!(corrupted(&|bytes| bytes[boolean] = 2), invalid(reason));
    let reason = "Unrecognized BSON type 20 in element with field name 'a.b.0' in object with _id: 1";
    assert_eq!(corrupted(&|bytes| bytes[boolean - 3] = 20), invalid(reason));
    let string = place(b"\x021\0") + 3;
    let reason = "Not null terminated string in element with field name 'a.b.1' in object with _id: 1";
    assert_eq!(corrupted(&|bytes| bytes[string] = 1), invalid(reason));
    let reason = "BSON size is larger than buffer size in element with field name 'a.b.1' in object with _id: 1";
    assert_eq!(corrupted(&|bytes| bytes[string] = 200), invalid(reason));
    let nested = place(b"\x03a\0") + 3;
    let reason = "incorrect BSON length in element with field name 'a.1' in object with _id: 1";
    assert_eq!(corrupted(&|bytes| bytes[nested] += 1), invalid(reason));
    let reason = "Nested BSON object has to be at least 5 bytes (decoded length: 4) in element with field name 'a' in \
                  object with _id: 1";
    assert_eq!(corrupted(&|bytes| bytes[nested] = 4), invalid(reason));
    let reason = "BSON object not terminated with EOO in element with field name '?' in object with unknown _id";
    assert_eq!(corrupted(&|bytes| *bytes.last_mut().unwrap() = 1), invalid(reason));
}

fn nested(levels: usize) -> Doc {
    (0..levels).fold(doc! { "x": 1 }, |inner, level| {
        if level % 2 == 0 {
            doc! { "a": &inner }
        } else {
            doc! { "a": array![&inner] }
        }
    })
}

#[test]
fn nesting_and_size_are_bounded() {
    let levels = |doc: &Doc| {
        let (mut count, mut inner) = (0, doc.view());
        while let Some(next) = inner.elements().find_map(|element| element.value.as_nested()) {
            count += 1;
            inner = next;
        }
        count
    };
    let (mut accepted, mut refused) = (0, usize::MAX);
    for steps in 100..160 {
        let doc = nested(steps);
        match DocRef::parse(doc.bytes()) {
            Ok(_) => accepted = accepted.max(levels(&doc)),
            Err(error) => {
                assert_eq!(error.code(), ErrorCode::Overflow);
                refused = refused.min(levels(&doc));
            }
        }
    }
    assert!(accepted <= 200 && refused > 200 && refused - accepted <= 2, "{accepted} and {refused}");
    let small = Limits { size_bytes_max: 20, ..Limits::default() };
    let error = DocRef::parse_with(doc! { "a": "a long text, too long" }.bytes(), &small).unwrap_err();
    assert_eq!(error.code(), ErrorCode::BSONObjectTooLarge);
    // Far deeper than any stack: the pass does not call itself.
    let mut bytes = Vec::new();
    let depth = 1_000_000_u32;
    for level in 0..depth {
        bytes.extend_from_slice(&((depth - level) * 8 - 3).to_le_bytes());
        bytes.extend_from_slice(if level + 1 < depth { &[3, b'a', 0] } else { &[] });
    }
    bytes.resize(depth as usize * 8 - 3, 0);
    let deep = Limits { depth_max: usize::MAX, ..Limits::default() };
    assert!(DocRef::parse_with(&bytes, &deep).is_ok());
    assert_eq!(DocRef::parse(&bytes).unwrap_err().code(), ErrorCode::Overflow);
}

#[test]
fn what_others_refuse_survives() {
    let odd = doc! {
        "a": Value::String(b"\xFF\xFE"[..].into()), "a": Value::Undefined, "a": Value::Symbol("s".into()),
        "p": Value::DbPointer { namespace: "x.y".into(), id: ObjectId::default() },
    };
    let parsed = Doc::parse(odd.shared_bytes().clone()).unwrap();
    assert_eq!(parsed, odd);
    assert_eq!(parsed.elements().filter(|element| element.name == "a").count(), 3);
    assert_eq!(parsed.get("a"), Some(Value::String(b"\xFF\xFE"[..].into())));
}

#[test]
fn macros_and_builders() {
    let n = 3_i32;
    let name = "dynamic";
    let written = doc! { "ok": 1.0, "n": n, "a": [1, "two", null, { "x": [] }], "sub": { "y": { } }, (name): -n, };
    assert_eq!(
        written.to_string(),
        "{ ok: 1.0, n: 3, a: [ 1, \"two\", null, { x: [] } ], sub: { y: {} }, dynamic: -3 }"
    );
    assert_eq!(Doc::parse(written.shared_bytes().clone()).unwrap(), written);
    let mut builder = DocBuilder::behind(b"header".to_vec());
    let open = builder.begin_document("d");
    builder.append("x", true);
    builder.end(open);
    let open = builder.begin_array("l");
    builder.append_indexed(0, 5_i64);
    let inner = builder.begin_document_indexed(1);
    builder.end(inner);
    builder.end(open);
    let kept = builder.size_bytes();
    builder.append("gone", "x");
    builder.truncate(kept);
    builder.append_raw_as("m", written.view().get_raw("n").unwrap());
    builder.append_some("none", None::<i32>);
    let size_bytes = builder.size_bytes();
    let buffer = builder.finish_buffer();
    assert_eq!((&buffer[..6], buffer.len()), (&b"header"[..], size_bytes + 6));
    assert_eq!(DocRef::parse(&buffer[6..]).unwrap().to_string(), "{ d: { x: true }, l: [ 5, {} ], m: 3 }");
    let (first, rest) = DocRef::parse_prefix(&[doc! { "a": 1 }.bytes(), b"rest"].concat(), &Limits::default())
        .map(|(doc, rest)| (doc.to_doc(), rest.to_vec()))
        .unwrap();
    assert_eq!((first, &rest[..]), (doc! { "a": 1 }, &b"rest"[..]));
    let many = array![].view().to_array();
    assert!(many.is_empty() && (0..1000).map(OwnedValue::from).collect::<crate::Array>().view().get(999).is_some());
    assert_eq!(doc! { "a\0b": 1 }, doc! { "a": 1 }, "a name is cut at NUL, so that the document stays sound");
}

#[test]
fn names_of_every_length_are_walked_over() {
    for length in 0..40 {
        let name: String = "\u{e9}nameof".chars().cycle().take(length).collect();
        for behind in 0..10 {
            let mut builder = DocBuilder::new();
            builder.append(name.as_str(), "x".repeat(behind));
            builder.append("last", behind as i32);
            let written = builder.finish();
            let names: Vec<String> = written.elements().map(|element| element.name.to_string()).collect();
            assert_eq!(names, [name.as_str(), "last"]);
            assert_eq!(written.get("last"), Some(Value::Int32(behind as i32)));
        }
    }
}
