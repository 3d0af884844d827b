//! What an index is, read from its specification.
//!
//! The specification is kept as it was stored; the fields are its meaning. Specifications of clients are checked and
//! brought into form by [`crate::index_spec`] before they get here; what is on disk was checked by whatever version
//! wrote it, so reading is lenient about everything that is not needed.

use super::IndexKind;
use pando_base::{Error, ErrorCode, Result, bail};
use pando_doc::{Doc, DocRef, Value};
use std::sync::Arc;

/// The name of the index on `_id`.
pub const ID_INDEX_NAME: &str = "_id_";

/// `{_id: 1}`, encoded.
const ID_KEY_PATTERN: &[u8] = b"\x0e\0\0\0\x10_id\0\x01\0\0\0\0";

/// What an index is.
#[derive(Clone, Debug)]
pub struct IndexDescriptor {
    /// Its name, unique in the collection.
    pub name: Arc<str>,
    /// The fields and their directions or plugins.
    pub key_pattern: Doc,
    /// Which access method makes its keys.
    pub kind: IndexKind,
    /// The format of its keys: 1 or 2.
    pub version: i32,
    /// No two documents may have one key.
    pub unique: bool,
    /// Documents without the fields have no key.
    pub sparse: bool,
    /// The planner does not see it.
    pub hidden: bool,
    /// New duplicates are refused, so that it can become unique.
    pub prepare_unique: bool,
    /// Documents expire so long after their date.
    pub expire_after_seconds: Option<i64>,
    /// Only documents that match have keys.
    pub partial_filter: Option<Doc>,
    /// How strings are compared; none for bytes.
    pub collation: Option<Doc>,
    /// The fields that a wildcard index takes in or leaves out.
    pub wildcard_projection: Option<Doc>,
    /// Everything, as stored: options of plugins (weights, bits, bucket sizes…) are read from here.
    pub specification: Doc,
}

impl IndexDescriptor {
    /// Reads a specification.
    pub fn parse(specification: DocRef<'_>) -> Result<IndexDescriptor> {
        let missing = |field: &str| Error::failed_to_parse(format!("an index specification has no '{field}'"));
        let name = specification.get("name").and_then(|name| name.as_str()).ok_or_else(|| missing("name"))?;
        let key = specification.get("key").and_then(|key| key.as_document()).ok_or_else(|| missing("key"))?;
        let Some(kind) = IndexKind::of_key_pattern(key) else {
            bail!(ErrorCode::CannotCreateIndex, "Unknown index plugin in the key pattern of '{name}'");
        };
        let document = |field: &str| specification.get(field).and_then(|value| value.as_document()).map(DocRef::to_doc);
        Ok(IndexDescriptor {
            name: Arc::from(name),
            key_pattern: key.to_doc(),
            kind,
            version: specification
                .get("v")
                .and_then(|value| value.to_i64_exact())
                .map_or(1, |version| i32::try_from(version).unwrap_or(1)),
            unique: is_true(specification, "unique"),
            sparse: is_true(specification, "sparse"),
            hidden: is_true(specification, "hidden"),
            prepare_unique: is_true(specification, "prepareUnique"),
            expire_after_seconds: expire_after_seconds(specification),
            partial_filter: document("partialFilterExpression"),
            collation: document("collation")
                .filter(|collation| collation.get("locale").is_some_and(|locale| locale.as_str() != Some("simple"))),
            wildcard_projection: document("wildcardProjection"),
            specification: specification.to_doc(),
        })
    }

    /// True for the index on `_id`.
    pub fn is_id_index(&self) -> bool {
        // Asked for at every write; nearly always it is written so.
        self.key_pattern.bytes() == ID_KEY_PATTERN || is_id_key_pattern(self.key_pattern.view())
    }

    /// True if the planner, the client and the oplog may see it used: not hidden.
    pub fn is_visible(&self) -> bool {
        !self.hidden
    }

    /// True if new documents must not make duplicates.
    pub fn enforces_uniqueness(&self) -> bool {
        self.unique || self.prepare_unique || self.is_id_index()
    }

    /// Fields of the key.
    pub fn field_count(&self) -> usize {
        self.key_pattern.view().field_count()
    }

    /// How many fields have their array components tracked: all or none.
    pub fn tracked_field_count(&self) -> usize {
        if self.kind.tracks_multikey_paths() { self.field_count() } else { 0 }
    }
}

/// True for `{_id: 1}`, in any number type; `{_id: -1}` is another index.
pub fn is_id_key_pattern(key: DocRef<'_>) -> bool {
    let mut elements = key.elements();
    let first = elements.next();
    first.is_some_and(|first| first.name == "_id" && first.value.to_double() == Some(1.0)) && elements.next().is_none()
}

fn is_true(specification: DocRef<'_>, field: &str) -> bool {
    specification.get(field).is_some_and(|value| value.is_true())
}

/// Fractions are cut off; what is no number or NaN means no expiry that could be computed, which is told as zero elsewhere.
fn expire_after_seconds(specification: DocRef<'_>) -> Option<i64> {
    specification.get("expireAfterSeconds").filter(Value::is_number).map(|value| value.to_i64_or_zero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn a_specification_is_read() {
        let specification = doc! {
            "v": 2, "key": { "a": 1, "b": -1 }, "name": "a_1_b_-1", "unique": true, "expireAfterSeconds": 10.5,
            "partialFilterExpression": { "a": { "$gt": 3 } }, "collation": { "locale": "simple" },
        };
        let descriptor = IndexDescriptor::parse(specification.view()).unwrap();
        assert_eq!(&*descriptor.name, "a_1_b_-1");
        assert_eq!((descriptor.version, descriptor.field_count()), (2, 2));
        assert!(descriptor.unique && !descriptor.sparse && !descriptor.hidden && !descriptor.is_id_index());
        assert_eq!(descriptor.expire_after_seconds, Some(10));
        assert!(descriptor.partial_filter.is_some() && descriptor.collation.is_none());
        assert_eq!(descriptor.tracked_field_count(), 2);
    }

    #[test]
    fn what_is_no_specification_is_an_error() {
        for specification in
            [doc! {}, doc! { "name": "x" }, doc! { "name": "x", "key": 1 }, doc! { "name": 1, "key": {} }]
        {
            assert!(IndexDescriptor::parse(specification.view()).is_err());
        }
        let unknown = doc! { "name": "x", "key": { "a": "geoHaystack" } };
        assert_eq!(IndexDescriptor::parse(unknown.view()).unwrap_err().code(), ErrorCode::CannotCreateIndex);
    }

    #[test]
    fn the_id_index_is_known_by_its_key() {
        assert!(is_id_key_pattern(doc! { "_id": 1 }.view()) && is_id_key_pattern(doc! { "_id": 1.0 }.view()));
        for other in [doc! { "_id": -1 }, doc! { "_id": 1, "a": 1 }, doc! { "_id": "hashed" }, doc! {}] {
            assert!(!is_id_key_pattern(other.view()));
        }
    }
}
