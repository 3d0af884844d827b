//! A document that can be changed: taken apart only where an update reaches.

use bstr::BStr;
use pando_doc::{ArrayBuilder, Doc, DocBuilder, OwnedValue, Value};
use std::borrow::Cow;

/// A value that may have been taken apart.
#[derive(Clone, Debug)]
pub(super) enum Mutable<'d> {
    /// As it was in the document.
    Raw(Value<'d>),
    /// New.
    Owned(OwnedValue),
    /// Taken apart.
    Document(Vec<(Cow<'d, BStr>, Mutable<'d>)>),
    /// Taken apart.
    Array(Vec<Mutable<'d>>),
}

impl<'d> Mutable<'d> {
    /// Takes a document or array apart, one level.
    pub(super) fn expand(&mut self) {
        let expanded = match self {
            Mutable::Raw(Value::Document(doc)) => {
                let fields = doc.elements().map(|field| (Cow::Borrowed(field.name), Mutable::Raw(field.value)));
                Mutable::Document(fields.collect())
            }
            Mutable::Raw(Value::Array(array)) => Mutable::Array(array.values().map(Mutable::Raw).collect()),
            Mutable::Owned(OwnedValue::Document(doc)) => {
                let own = |value: Value<'_>| Mutable::Owned(value.to_shared(doc));
                Mutable::Document(
                    doc.elements().map(|field| (Cow::Owned(field.name.to_owned()), own(field.value))).collect(),
                )
            }
            Mutable::Owned(OwnedValue::Array(array)) => {
                let own = |value: Value<'_>| Mutable::Owned(value.to_shared(array.as_doc()));
                Mutable::Array(array.values().map(own).collect())
            }
            _ => return,
        };
        *self = expanded;
    }

    /// The value as it is now.
    pub(super) fn to_owned_value(&self) -> OwnedValue {
        match self {
            Mutable::Raw(value) => (*value).to_owned(),
            Mutable::Owned(value) => value.clone(),
            Mutable::Document(fields) => OwnedValue::Document(write_document(fields, 64)),
            Mutable::Array(values) => {
                let mut builder = ArrayBuilder::new();
                values.iter().for_each(|value| push(value, &mut builder));
                OwnedValue::Array(builder.finish())
            }
        }
    }

    /// True if it is an array.
    pub(super) fn is_array(&self) -> bool {
        match self {
            Mutable::Raw(value) => matches!(value, Value::Array(_)),
            Mutable::Owned(value) => matches!(value, OwnedValue::Array(_)),
            Mutable::Array(_) => true,
            Mutable::Document(_) => false,
        }
    }
}

pub(super) fn find<'m, 'd>(fields: &'m mut [(Cow<'d, BStr>, Mutable<'d>)], name: &BStr) -> Option<&'m mut Mutable<'d>> {
    fields.iter_mut().find(|(field, _)| **field == *name).map(|(_, value)| value)
}

/// The document, with room for this many bytes.
pub(super) fn write_document(fields: &[(Cow<'_, BStr>, Mutable<'_>)], size_bytes: usize) -> Doc {
    let mut builder = DocBuilder::with_capacity(size_bytes);
    fields.iter().for_each(|(name, value)| append(name, value, &mut builder));
    builder.finish()
}

fn append(name: &BStr, value: &Mutable<'_>, builder: &mut DocBuilder) {
    match value {
        Mutable::Raw(value) => builder.append(name, *value),
        Mutable::Owned(value) => builder.append(name, value),
        Mutable::Document(fields) => {
            builder.document(name, |nested| fields.iter().for_each(|(name, value)| append(name, value, nested)));
        }
        Mutable::Array(values) => {
            builder.array(name, |nested| values.iter().for_each(|value| push(value, nested)));
        }
    }
}

fn push(value: &Mutable<'_>, builder: &mut ArrayBuilder) {
    match value {
        Mutable::Raw(value) => builder.push(*value),
        Mutable::Owned(value) => builder.push(value),
        Mutable::Document(fields) => {
            builder.document(|nested| fields.iter().for_each(|(name, value)| append(name, value, nested)));
        }
        Mutable::Array(values) => builder.array(|nested| values.iter().for_each(|value| push(value, nested))),
    }
}
