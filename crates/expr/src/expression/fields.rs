//! The fields of a document that is put together from others: each name once, in the order in which
//! names came first.

use crate::limits::{check_value, value_bytes};
use bstr::{BStr, BString};
use pando_base::{Result, operation};
use pando_doc::{Doc, DocBuilder, DocRef, OwnedValue, Value};
use std::collections::HashMap;

/// One field is so many steps beside its bytes.
const FIELD_STEPS: u64 = 8;

/// Fields by name.
#[derive(Clone, Default)]
pub(crate) struct Fields {
    values: Vec<(BString, OwnedValue)>,
    places: HashMap<BString, usize>,
    size_bytes: usize,
}

impl Fields {
    /// Puts the fields of a document over those there are; a field that was there keeps its place.
    pub(crate) fn merge(&mut self, doc: DocRef<'_>) -> Result<()> {
        doc.elements().try_for_each(|element| self.set(element.name, element.value))
    }

    /// Sets a field.
    pub(crate) fn set(&mut self, name: &BStr, value: Value<'_>) -> Result<()> {
        let field_bytes = name.len() + value_bytes(value);
        operation::tick(FIELD_STEPS)?;
        operation::tick_bytes(field_bytes)?;
        let place = self.places.get(name).copied();
        match place.and_then(|place| self.values.get_mut(place)) {
            Some((_, known)) => {
                self.size_bytes = self.size_bytes.saturating_sub(value_bytes(known.view())) + value_bytes(value);
                *known = value.to_owned();
            }
            None => {
                self.size_bytes += field_bytes;
                self.places.insert(name.to_owned(), self.values.len());
                self.values.push((name.to_owned(), value.to_owned()));
            }
        }
        check_value(self.size_bytes)
    }

    /// About how much they take.
    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// The document of them.
    pub(crate) fn to_doc(&self) -> Doc {
        let mut builder = DocBuilder::with_capacity(self.size_bytes);
        for (name, value) in &self.values {
            operation::count(1);
            builder.append(name, value.view());
        }
        builder.finish()
    }
}
