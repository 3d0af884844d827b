//! Replacement documents, and what no update may change.

use pando_base::{Error, ErrorCode, Result};
use pando_doc::{Doc, DocBuilder, DocRef, FieldPath, compare, get_path};

pub(super) fn parse(doc: DocRef<'_>) -> Result<Doc> {
    match doc.elements().find(|element| element.name.starts_with(b"$")) {
        None => Ok(doc.to_doc()),
        Some(element) => {
            let name = element.name;
            let reason = format!(
                "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an update's replacement document. Consider using an aggregation pipeline with $replaceWith."
            );
            Err(Error::new(ErrorCode::DollarPrefixedFieldName, reason))
        }
    }
}

/// The replacement with its `_id` first, or the old `_id` if it has none.
pub(super) fn apply(replacement: &Doc, doc: DocRef<'_>) -> Doc {
    with_id_of(replacement, doc)
}

/// The document with its own `_id`, or the other's, in front.
pub(super) fn with_id_of(doc: &Doc, other: DocRef<'_>) -> Doc {
    let Some(id) = doc.view().get_raw("_id").or_else(|| other.get_raw("_id")) else { return doc.clone() };
    if doc.view().raw_elements().next().is_some_and(|first| first.name == "_id") {
        return doc.clone();
    }
    let mut builder = DocBuilder::with_capacity(doc.size_bytes() + id.bytes.len());
    builder.append_raw(id);
    doc.view().raw_elements().filter(|element| element.name != "_id").for_each(|element| builder.append_raw(element));
    builder.finish()
}

/// Checks that `_id` and the other immutable fields are what they were.
pub(super) fn check_immutable(
    old: DocRef<'_>,
    new: DocRef<'_>,
    immutable: &[FieldPath],
    is_replacement: bool,
) -> Result<()> {
    let id = FieldPath::lenient("_id")?;
    for path in std::iter::once(&id).chain(immutable) {
        let (before, after) = (get_path(old, path), get_path(new, path));
        let is_same = match (before, after) {
            (Some(before), Some(after)) => compare(before, after).is_eq(),
            (None, _) => true,
            _ => false,
        };
        if is_same {
            continue;
        }
        let reason = match after {
            Some(after) if is_replacement => {
                format!(
                    "After applying the update, the (immutable) field '{path}' was found to have been altered to {path}: {after}"
                )
            }
            None if is_replacement => format!(
                "After applying the update to the document {{{path}: ...}} , the (immutable) field '{path}' was found to have been removed"
            ),
            _ => format!("Performing an update on the path '{path}' would modify the immutable field '{path}'"),
        };
        return Err(Error::new(ErrorCode::ImmutableField, reason));
    }
    Ok(())
}
