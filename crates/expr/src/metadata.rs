//! What a query knows of a document beside its fields: what `$meta` asks for.
//!
//! While a document is on its way through a query that asks for it, it is carried in front of the document's own fields,
//! under names that begin with a control character. Whoever gives documents away takes it off again ([`without_metadata`]);
//! `$$ROOT` does not show it. A document that was made anew, as by `$group`, has none.

use bstr::BStr;
use pando_doc::{Doc, DocBuilder, DocRef, OwnedValue};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What the names of hidden fields begin with.
const MARK: u8 = 1;

/// One thing that can be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meta {
    /// How well a text search fits.
    TextScore,
    /// A number by chance, from `$sample`.
    RandomValue,
    /// The distance that a `$geoNear` found.
    GeoNearDistance,
    /// The point that it measured to.
    GeoNearPoint,
    /// Where the document is.
    RecordId,
    /// The key of the index that it was found by.
    IndexKey,
    /// What it was sorted by.
    SortKey,
    /// Of searches that only a hosted service has.
    Search(&'static str),
}

/// Names, the names of their fields, and what they are.
const TABLE: &[(&str, &str, Meta)] = &[
    ("textScore", "\u{1}textScore", Meta::TextScore),
    ("randVal", "\u{1}randVal", Meta::RandomValue),
    ("geoNearDistance", "\u{1}geoNearDistance", Meta::GeoNearDistance),
    ("geoNearPoint", "\u{1}geoNearPoint", Meta::GeoNearPoint),
    ("recordId", "\u{1}recordId", Meta::RecordId),
    ("indexKey", "\u{1}indexKey", Meta::IndexKey),
    ("sortKey", "\u{1}sortKey", Meta::SortKey),
    ("searchScore", "\u{1}searchScore", Meta::Search("searchScore")),
    ("searchHighlights", "\u{1}searchHighlights", Meta::Search("searchHighlights")),
    ("searchScoreDetails", "\u{1}searchScoreDetails", Meta::Search("searchScoreDetails")),
    ("searchSequenceToken", "\u{1}searchSequenceToken", Meta::Search("searchSequenceToken")),
    ("vectorSearchScore", "\u{1}vectorSearchScore", Meta::Search("vectorSearchScore")),
    ("timeseriesBucketMinTime", "\u{1}timeseriesBucketMinTime", Meta::Search("timeseriesBucketMinTime")),
    ("timeseriesBucketMaxTime", "\u{1}timeseriesBucketMaxTime", Meta::Search("timeseriesBucketMaxTime")),
];

impl Meta {
    /// The kind of this name.
    pub fn from_name(name: &[u8]) -> Option<Meta> {
        TABLE.iter().find(|(known, ..)| known.as_bytes() == name).map(|(.., kind)| *kind)
    }

    /// The name of the field that carries it.
    pub fn field(self) -> &'static str {
        TABLE.iter().find(|(.., kind)| *kind == self).map_or("\u{1}", |(_, field, _)| field)
    }

    fn bit(self) -> u32 {
        1 << TABLE.iter().position(|(.., kind)| *kind == self).unwrap_or(31)
    }
}

/// True for the name of a hidden field.
pub fn is_metadata(name: &[u8]) -> bool {
    name.first() == Some(&MARK)
}

/// What `$meta` calls the hidden field.
pub(crate) fn name_of(field: &BStr) -> Option<&'static str> {
    TABLE.iter().find(|(_, known, _)| known.as_bytes() == &**field).map(|(name, ..)| *name)
}

/// Several of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaSet(u32);

impl MetaSet {
    /// True without any.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if it is among them.
    pub fn contains(self, kind: Meta) -> bool {
        self.0 & kind.bit() != 0
    }

    /// The same with one more.
    #[must_use]
    pub fn with(self, kind: Meta) -> MetaSet {
        MetaSet(self.0 | kind.bit())
    }
}

/// What the expressions of one request have asked for so far; shared by all that read a part of it.
#[derive(Clone, Debug, Default)]
pub struct MetaNeeds(Arc<AtomicU32>);

impl MetaNeeds {
    /// Says that it is asked for.
    pub fn add(&self, kind: Meta) {
        self.0.fetch_or(kind.bit(), Ordering::Relaxed);
    }

    /// All that was asked for.
    pub fn get(&self) -> MetaSet {
        MetaSet(self.0.load(Ordering::Relaxed))
    }
}

/// The document with what is known of it.
pub fn with_metadata(document: DocRef<'_>, known: &[(Meta, OwnedValue)]) -> Doc {
    let mut builder = DocBuilder::with_capacity(document.size_bytes() + 64);
    known.iter().for_each(|(kind, value)| builder.append(kind.field(), value));
    let own = document.raw_elements().filter(|field| !is_metadata(field.name));
    own.for_each(|field| builder.append_raw(field));
    builder.finish()
}

/// The document without what is known of it; none if there is nothing to take off.
pub fn without_metadata(document: DocRef<'_>) -> Option<Doc> {
    document.raw_elements().next().filter(|first| is_metadata(first.name))?;
    Some(with_metadata(document, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn u6_metadata_is_carried_and_taken_off() {
        let plain = doc! { "a": 1 };
        let carrying = with_metadata(plain.view(), &[(Meta::TextScore, OwnedValue::Double(1.5))]);
        assert_eq!(carrying.get(Meta::TextScore.field()).and_then(|value| value.to_double()), Some(1.5));
        assert_eq!(without_metadata(carrying.view()), Some(plain.clone()));
        assert_eq!(without_metadata(plain.view()), None);
        assert_eq!(Meta::from_name(b"sortKey"), Some(Meta::SortKey));
        assert!(MetaSet::default().with(Meta::RecordId).contains(Meta::RecordId));
    }
}
