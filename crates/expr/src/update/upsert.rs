//! The document that an upsert inserts.

use super::mutable::{Mutable, find, write_document};
use super::{Form, Update, UpdateContext};
use crate::MatchExpression;
use bstr::BStr;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{Doc, DocBuilder, FieldPath, ObjectId, OwnedValue};
use std::borrow::Cow;

impl Update {
    /// The document that is inserted if none matched the filter: what the filter says it has, then updated. It gets an
    /// `_id` if it has none.
    pub fn upsert_document(
        &self,
        filter: &MatchExpression,
        context: &UpdateContext<'_>,
        new_id: impl FnOnce() -> ObjectId,
    ) -> Result<Doc> {
        let start = start_of(match self.form {
            Form::Replacement(_) => exact_id(filter)?,
            _ => filter.equalities()?,
        })?;
        let context = UpdateContext { is_insert: true, ..*context };
        let updated = self.apply(start.view(), &context)?.doc;
        Ok(with_new_id(updated, new_id))
    }
}

/// A replacement says everything but the `_id`, which the filter has to say as a whole, if it does.
fn exact_id(filter: &MatchExpression) -> Result<Vec<(FieldPath, OwnedValue)>> {
    let equalities = filter.equalities_within("_id")?;
    if let Some((path, _)) = equalities.iter().find(|(path, _)| path.part_count() > 1) {
        let reason = format!("field at '_id' must be exactly specified, field at sub-path '{path}'found");
        return Err(Error::new(ErrorCode::NotExactValueField, reason));
    }
    Ok(equalities)
}

fn with_new_id(doc: Doc, new_id: impl FnOnce() -> ObjectId) -> Doc {
    if doc.get("_id").is_some() {
        return pando_doc::with_id_first(doc.view()).unwrap_or(doc);
    }
    let mut builder = DocBuilder::with_capacity(doc.size_bytes() + 17);
    builder.append("_id", new_id());
    builder.append_all(doc.view());
    builder.finish()
}

/// A document with these values at these paths.
fn start_of(equalities: Vec<(FieldPath, OwnedValue)>) -> Result<Doc> {
    let mut fields: Vec<(Cow<'_, BStr>, Mutable<'_>)> = Vec::new();
    for (path, value) in equalities {
        put(&mut fields, &path, 0, value)?;
    }
    Ok(write_document(&fields, 64))
}

fn put<'d>(
    fields: &mut Vec<(Cow<'d, BStr>, Mutable<'d>)>,
    path: &FieldPath,
    part: usize,
    value: OwnedValue,
) -> Result<()> {
    let name = path.part(part);
    // What a reference has inside of a document is left to whoever stores the whole.
    let is_of_reference = part > 0 && matches!(&**name, b"$ref" | b"$id" | b"$db");
    if name.starts_with(b"$") && !is_of_reference {
        let reason = format!("The dollar ($) prefixed field '{name}' in '{path}' is not valid for storage.");
        return Err(Error::new(ErrorCode::DollarPrefixedFieldName, reason));
    }
    if part + 1 >= path.part_count() {
        fields.push((Cow::Owned(name.to_owned()), Mutable::Owned(value)));
        return Ok(());
    }
    if find(fields, name).is_none() {
        fields.push((Cow::Owned(name.to_owned()), Mutable::Document(Vec::new())));
    }
    match find(fields, name) {
        Some(Mutable::Document(nested)) => put(nested, path, part + 1, value),
        _ => Err(Error::internal("equalities do not overlap")),
    }
}
