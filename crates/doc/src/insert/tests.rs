//! What is stored as it is, what is mended, what is refused.

use super::*;
use crate::{array, doc};

const ID: ObjectId = ObjectId::from_bytes([7; 12]);

fn prepare(doc: &Doc) -> Result<Option<Doc>> {
    let mut seconds = 0;
    prepare_for_insert(
        doc.view(),
        || ID,
        Some(|| {
            seconds += 1;
            Timestamp::new(seconds, 1)
        }),
    )
}

#[test]
fn a_document_with_its_id_in_front_is_left_alone() {
    assert_eq!(prepare(&doc! { "_id": 1, "a.b": 2, "$c": { "$d": 3 }, "": 4 }).unwrap(), None);
}

#[test]
fn the_id_moves_to_the_front_or_is_made() {
    assert_eq!(prepare(&doc! { "a": 1, "_id": 2, "b": 3 }).unwrap(), Some(doc! { "_id": 2, "a": 1, "b": 3 }));
    assert_eq!(prepare(&doc! { "a": 1, "a": 2 }).unwrap(), Some(doc! { "_id": ID, "a": 1, "a": 2 }));
    assert_eq!(with_id_first(doc! { "a": 1, "_id": 2 }.view()), Some(doc! { "_id": 2, "a": 1 }));
    assert_eq!(with_id_first(doc! { "_id": 2, "a": 1 }.view()), None);
    assert_eq!(with_id_first(doc! { "a": 1 }.view()), None);
}

#[test]
fn empty_timestamps_at_the_top_are_filled() {
    let empty = Timestamp::NONE;
    let found = prepare(&doc! { "_id": 1, "t": empty, "sub": { "t": empty }, "u": empty }).unwrap().unwrap();
    let filled = doc! { "_id": 1, "t": Timestamp::new(1, 1), "sub": { "t": empty }, "u": Timestamp::new(2, 1) };
    assert_eq!(found, filled);
    assert_eq!(prepare(&doc! { "_id": empty }).unwrap(), None);
    let never = None::<fn() -> Timestamp>;
    assert_eq!(prepare_for_insert(doc! { "_id": 1, "t": empty }.view(), || ID, never).unwrap(), None);
    assert_eq!(
        prepare_for_insert(doc! { "t": empty }.view(), || ID, never).unwrap(),
        Some(doc! { "_id": ID, "t": empty })
    );
    let one = || Timestamp::new(1, 1);
    assert_eq!(fill_empty_timestamps(doc! { "_id": empty, "t": 1 }.view(), one), None);
    let filled = doc! { "_id": empty, "t": Timestamp::new(1, 1) };
    assert_eq!(fill_empty_timestamps(doc! { "_id": empty, "t": empty }.view(), one), Some(filled));
}

#[test]
fn ids_that_cannot_be() {
    let refused = |doc: &Doc| prepare(doc).map_err(|error| (error.code(), error.reason().to_owned())).unwrap_err();
    let regex = Value::Regex { pattern: "x".into(), options: "".into() };
    for (doc, type_name) in [
        (doc! { "_id": [1] }, "array"),
        (doc! { "_id": Value::Undefined }, "undefined"),
        (doc! { "_id": regex }, "regex"),
    ] {
        let reason = format!("The '_id' value cannot be of type {type_name}");
        assert_eq!(refused(&doc), (ErrorCode::InvalidIdField, reason));
    }
    let reason = "can't have multiple _id fields in one document".to_owned();
    assert_eq!(refused(&doc! { "_id": 1, "_id": 1 }), (ErrorCode::BadValue, reason));
    let reason = "_id fields may not contain '$'-prefixed fields: $x is not valid for storage.".to_owned();
    for doc in [
        doc! { "_id": { "$x": 1 } },
        doc! { "_id": { "a": [{ "$x": 1 }] } },
        doc! { "_id": { "$ref": "c", "$id": 1, "$x": 1 } },
        doc! { "_id": { "$ref": "c", "$id": 1, "$db": "d", "$x": 1 } },
    ] {
        assert_eq!(refused(&doc), (ErrorCode::DollarPrefixedFieldName, reason.clone()));
    }
    assert!(prepare(&doc! { "_id": { "$ref": 1, "$id": 1 } }).is_err());
    assert!(prepare(&doc! { "_id": { "a": 1, "$ref": "c", "$id": 1 } }).is_err());
    for doc in
        [doc! { "_id": { "$ref": "c", "$id": 1, "x": 1 } }, doc! { "_id": { "$ref": "c", "$id": 1, "$db": "d" } }]
    {
        assert_eq!(prepare(&doc).unwrap(), None);
    }
}

#[test]
fn nesting_ends_at_180_levels() {
    let nested = |levels: usize| {
        let mut doc = doc! { "_id": 1 };
        for level in 1..levels {
            doc = if level % 2 == 0 {
                doc! { "_id": 1, "a": &doc }
            } else {
                doc! { "_id": 1, "a": array![&doc].as_doc() }
            };
        }
        doc
    };
    let levels = |doc: &Doc| {
        let (mut count, mut inner) = (1, doc.view());
        while let Some(next) = inner.elements().find_map(|element| element.value.as_nested()) {
            count += 1;
            inner = next;
        }
        count
    };
    let (mut depth, mut last) = (1, 0);
    while levels(&nested(depth)) <= USER_DEPTH_MAX {
        assert!(check_user_depth(nested(depth).view()).is_ok());
        last = levels(&nested(depth));
        depth += 1;
    }
    assert!(last >= USER_DEPTH_MAX - 1);
    let error = check_user_depth(nested(depth).view()).unwrap_err();
    assert_eq!(
        (error.code(), error.reason()),
        (ErrorCode::Overflow, "cannot insert document because it exceeds 180 levels of nesting",)
    );
}

#[test]
fn too_large() {
    let text = "x".repeat(USER_SIZE_BYTES_MAX);
    let error = prepare(&doc! { "_id": 1, "t": text }).unwrap_err();
    assert_eq!(error.code(), ErrorCode::BSONObjectTooLarge);
    assert_eq!(error.reason(), "object to insert too large. size in bytes: 16777238, max size: 16777216");
}
