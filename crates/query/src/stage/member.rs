//! What stages hand to each other: a found record, with as much of it as is known.

use super::SortKeyGenerator;
use pando_base::{Error, RecordId, Result};
use pando_doc::{Doc, DocBuilder, FieldPath, OwnedValue, Value};
use pando_expr::metadata::{Meta, MetaSet, with_metadata};
use pando_keystring::{Decoder, KeyOrdering, TypeBitsReader, Version};
use pando_storage::SnapshotId;
use std::sync::Arc;

/// How the keys of an index are read.
#[derive(Debug)]
pub struct KeyLayout {
    /// The paths of its fields.
    pub paths: Vec<FieldPath>,
    /// Their directions.
    pub ordering: KeyOrdering,
    /// The format.
    pub version: Version,
}

/// A key of an index, as it is stored.
#[derive(Clone, Debug)]
pub struct IndexKey {
    layout: Arc<KeyLayout>,
    /// The key without its record id, then the type bits.
    bytes: Box<[u8]>,
    key_length: usize,
}

impl IndexKey {
    /// A copy of what a cursor stands on.
    pub fn new(layout: &Arc<KeyLayout>, key: &[u8], type_bits: &[u8]) -> IndexKey {
        let bytes = [key, type_bits].concat().into_boxed_slice();
        IndexKey { layout: Arc::clone(layout), bytes, key_length: key.len() }
    }

    /// How it is read, the length of the key in the bytes, and the bytes.
    pub(crate) fn into_parts(self) -> (Arc<KeyLayout>, usize, Box<[u8]>) {
        (self.layout, self.key_length, self.bytes)
    }

    /// A key of its parts.
    pub(crate) fn of_parts(layout: &Arc<KeyLayout>, key_length: usize, bytes: Box<[u8]>) -> IndexKey {
        IndexKey { layout: Arc::clone(layout), key_length: key_length.min(bytes.len()), bytes }
    }

    /// How it is read.
    pub fn layout(&self) -> &KeyLayout {
        &self.layout
    }

    /// The values under the paths of the index.
    pub fn to_doc(&self) -> Result<Doc> {
        let mut builder = DocBuilder::new();
        self.append_to(&mut builder)?;
        Ok(builder.finish())
    }

    /// Appends the values under the paths of the index.
    pub fn append_to(&self, builder: &mut DocBuilder) -> Result<()> {
        let (key, type_bits) = self.bytes.split_at(self.key_length);
        let reader = TypeBitsReader::new(type_bits)?;
        let mut decoder = Decoder::new(key, self.layout.ordering, reader, self.layout.version);
        for path in &self.layout.paths {
            decoder.append_next(builder, path.text())?;
        }
        Ok(())
    }

    /// The values, in the order of the index's fields.
    pub fn values(&self) -> Result<Vec<OwnedValue>> {
        let doc = self.to_doc()?;
        Ok(doc.elements().map(|element| element.value.to_owned()).collect())
    }
}

/// A found record.
#[derive(Clone, Debug, Default)]
pub struct Member {
    /// Where it is.
    pub record_id: Option<RecordId>,
    /// The document.
    pub document: Option<Doc>,
    /// The snapshot that the document was read under.
    pub snapshot: Option<SnapshotId>,
    /// The key that it was found by, if somebody wants it.
    pub key: Option<IndexKey>,
    /// What the query knows of it beside its fields.
    pub metadata: Metadata,
}

/// What a query knows of a record beside its fields: what `$meta` asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// How well it fits a text search.
    pub text_score: Option<f64>,
    /// How far it is.
    pub geo_near: Option<Arc<GeoNearMetadata>>,
}

/// What a search by distance knows of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct GeoNearMetadata {
    /// The distance, in the units of the query.
    pub distance: f64,
    /// The place that is nearest.
    pub point: OwnedValue,
}

impl Member {
    /// A document that is in no collection.
    pub fn of_document(document: Doc) -> Member {
        Member { document: Some(document), ..Member::default() }
    }

    /// The document with what is asked for beside its fields. What is not known of it is left out.
    pub(crate) fn with_metadata(&self, wanted: MetaSet, sort: Option<&mut SortKeyGenerator>) -> Result<Doc> {
        let empty = Doc::new();
        let document = self.document.as_ref().unwrap_or(&empty);
        let mut known: Vec<(Meta, OwnedValue)> = Vec::new();
        if wanted.contains(Meta::TextScore) {
            let score = self.metadata.text_score.ok_or_else(text_score_missing)?;
            known.push((Meta::TextScore, OwnedValue::Double(score)));
        }
        let by_distance = wanted.contains(Meta::GeoNearDistance) || wanted.contains(Meta::GeoNearPoint);
        if by_distance {
            let near = self.metadata.geo_near.as_ref().ok_or_else(distance_missing)?;
            known.push((Meta::GeoNearDistance, OwnedValue::Double(near.distance)));
            known.push((Meta::GeoNearPoint, near.point.clone()));
        }
        if wanted.contains(Meta::RecordId)
            && let Some(record_id) = &self.record_id
        {
            known.push((Meta::RecordId, record_id_value(record_id)));
        }
        if wanted.contains(Meta::IndexKey)
            && let Some(key) = &self.key
        {
            known.push((Meta::IndexKey, OwnedValue::Document(key.to_doc()?)));
        }
        if wanted.contains(Meta::SortKey)
            && let Some(sort) = sort
        {
            let scored = match self.metadata.text_score {
                Some(score) => with_metadata(document.view(), &[(Meta::TextScore, OwnedValue::Double(score))]),
                None => document.clone(),
            };
            let values = sort.values(scored.view())?;
            known.push((Meta::SortKey, OwnedValue::Array(values.iter().collect())));
        }
        Ok(with_metadata(document.view(), &known))
    }

    /// About how much memory it takes.
    pub fn size_bytes(&self) -> usize {
        let document = self.document.as_ref().map_or(0, Doc::size_bytes);
        document + self.key.as_ref().map_or(0, |key| key.bytes.len()) + size_of::<Member>()
    }
}

/// A record's id as clients see it.
pub(crate) fn record_id_value(record_id: &RecordId) -> OwnedValue {
    match record_id {
        RecordId::Long(number) => OwnedValue::Int64(*number),
        RecordId::Bytes(bytes) => Value::Binary { subtype: 0, bytes }.to_owned(),
    }
}

/// The error of a query that asks for distances without a search by them.
pub(crate) fn distance_missing() -> Error {
    Error::location(40218, "query requires geoNear distance metadata, but it is not available")
}

/// The error of a query that asks for the score of a search that it does not have.
pub(crate) fn text_score_missing() -> Error {
    Error::location(40218, "query requires text score metadata, but it is not available")
}
