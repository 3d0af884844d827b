//! What the field `o` of an update says: a diff, or the whole new document.

use crate::diff::{self, Difference, TouchedInside};
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, DocRef, RawElement, Value};

/// The version of the format of changes, in the field `$v`.
const DELTA_VERSION: i32 = 2;

/// A change to a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UpdateChange<'a> {
    /// `{$v: 2, diff}`.
    Delta(DocRef<'a>),
    /// The whole document, `_id` included.
    Replacement(DocRef<'a>),
}

impl<'a> UpdateChange<'a> {
    /// Reads the field `o` of an update.
    pub fn parse(object: DocRef<'a>) -> Result<UpdateChange<'a>> {
        if object.contains("_id") {
            return Ok(UpdateChange::Replacement(object));
        }
        let version = object.get("$v");
        let is_delta = version.is_some_and(|version| version.to_i64_exact() == Some(i64::from(DELTA_VERSION)));
        if !is_delta {
            let found = version.map_or_else(|| "nothing".to_owned(), |version| version.to_string());
            return Err(Error::location(4772600, format!("Expected _id field or $v:2, but got: {found}")));
        }
        match object.get("diff") {
            Some(Value::Document(diff)) => Ok(UpdateChange::Delta(diff)),
            other => {
                let found = other.map_or("missing", |value| value.value_type().name());
                let reason = format!("Expected 'diff' field to be an object, instead got type: {found}");
                Err(Error::location(4772601, reason))
            }
        }
    }

    /// The document after the change. Changing the result again gives the same.
    pub fn apply(self, document: DocRef<'_>) -> Result<Doc> {
        match self {
            UpdateChange::Delta(diff) => diff::apply(document, diff),
            UpdateChange::Replacement(whole) => Ok(whole.to_doc()),
        }
    }
}

/// The field `o` for an update from one version to the next; none if nothing changed.
pub fn update_object(pre: DocRef<'_>, post: DocRef<'_>) -> Option<Doc> {
    match diff::compute(pre, post) {
        Difference::None => None,
        Difference::Diff(diff) => Some(delta_object(diff.view())),
        Difference::Whole => Some(post.to_doc()),
    }
}

/// The same for an update by operators of which is known which fields they have set: those of the old version, none for a new one,
/// with those of the new version, in its order, and whether only the end of an array may have changed. Each name must be that of
/// one field only, and no field may be gone.
pub fn update_object_of_fields<'a>(
    mut fields: impl Iterator<Item = (Option<RawElement<'a>>, RawElement<'a>, bool)>,
) -> Doc {
    let (first, second) = (fields.next(), fields.next());
    if let (Some((Some(_), new, false)), None) = (first, second) {
        return update_object_of_one(new);
    }
    let diff = diff::of_fields(first.into_iter().chain(second).chain(fields));
    let mut builder = DocBuilder::with_capacity(diff.size_bytes() + 32);
    builder.append("$v", DELTA_VERSION);
    let open = builder.begin_document("diff");
    diff::write_document(&diff, &mut builder);
    builder.end(open);
    builder.finish()
}

/// The same where one field alone has got another value, as by most updates.
fn update_object_of_one(new: RawElement<'_>) -> Doc {
    /// What is around the field: so there is room for all of it and none is left over.
    const AROUND_BYTES: usize = 32;
    let mut builder = DocBuilder::with_capacity(AROUND_BYTES + new.bytes.len());
    builder.append("$v", DELTA_VERSION);
    let diff = builder.begin_document("diff");
    let updates = builder.begin_document(diff::UPDATES);
    builder.append_raw(new);
    builder.end(updates);
    builder.end(diff);
    debug_assert_eq!(builder.size_bytes(), AROUND_BYTES + new.bytes.len());
    builder.finish()
}

/// The same for an update by operators of which is known where they are.
pub fn update_object_of_touched(pre: DocRef<'_>, post: DocRef<'_>, touched: &TouchedInside) -> Option<Doc> {
    match diff::of_touched(pre, post, touched) {
        Some(diff) => Some(delta_object(diff.view())),
        None => update_object(pre, post),
    }
}

/// Wraps a diff for the field `o`.
pub fn delta_object(diff: DocRef<'_>) -> Doc {
    let mut builder = DocBuilder::with_capacity(diff.size_bytes() + 32);
    builder.append("$v", DELTA_VERSION);
    builder.append("diff", diff);
    builder.finish()
}
