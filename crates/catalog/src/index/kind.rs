//! The kinds of index: which access method makes the keys.

use pando_doc::{DocRef, Value};

/// What kind of index a key pattern asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IndexKind {
    /// Ascending and descending fields.
    Btree,
    /// One field by its hash, perhaps with others.
    Hashed,
    /// Words of text.
    Text,
    /// Points in the plane.
    TwoD,
    /// Shapes on the sphere.
    TwoDSphere,
    /// The same for the buckets of a time-series collection.
    TwoDSphereBucket,
    /// All fields below a path.
    Wildcard,
}

impl IndexKind {
    /// The kind of a plugin's name, as it stands in a key pattern.
    pub fn from_plugin(name: &[u8]) -> Option<IndexKind> {
        match name {
            b"" => Some(IndexKind::Btree),
            b"hashed" => Some(IndexKind::Hashed),
            b"text" => Some(IndexKind::Text),
            b"2d" => Some(IndexKind::TwoD),
            b"2dsphere" => Some(IndexKind::TwoDSphere),
            b"2dsphere_bucket" => Some(IndexKind::TwoDSphereBucket),
            b"wildcard" => Some(IndexKind::Wildcard),
            _ => None,
        }
    }

    /// The plugin's name; empty for an ordinary index.
    pub const fn plugin_name(self) -> &'static str {
        match self {
            IndexKind::Btree => "",
            IndexKind::Hashed => "hashed",
            IndexKind::Text => "text",
            IndexKind::TwoD => "2d",
            IndexKind::TwoDSphere => "2dsphere",
            IndexKind::TwoDSphereBucket => "2dsphere_bucket",
            IndexKind::Wildcard => "wildcard",
        }
    }

    /// The kind of a key pattern: its first plugin, or wildcard. None for a plugin that there is not.
    pub fn of_key_pattern(key: DocRef<'_>) -> Option<IndexKind> {
        for element in key.elements() {
            if let Value::String(plugin) = element.value {
                return IndexKind::from_plugin(plugin);
            }
            if is_wildcard_path(element.name) {
                return Some(IndexKind::Wildcard);
            }
        }
        Some(IndexKind::Btree)
    }

    /// True if it is kept for each path of the key which of its components were arrays.
    pub const fn tracks_multikey_paths(self) -> bool {
        matches!(self, IndexKind::Btree | IndexKind::TwoDSphere | IndexKind::TwoDSphereBucket)
    }
}

/// True for `$**` and paths that end with it.
pub fn is_wildcard_path(path: &[u8]) -> bool {
    path == b"$**" || path.ends_with(b".$**")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn a_key_pattern_has_the_kind_of_its_first_plugin() {
        let kind = |pattern: pando_doc::Doc| IndexKind::of_key_pattern(pattern.view());
        assert_eq!(kind(doc! { "a": 1, "b": -1 }), Some(IndexKind::Btree));
        assert_eq!(kind(doc! { "a": 1, "b": "hashed" }), Some(IndexKind::Hashed));
        assert_eq!(kind(doc! { "a.$**": 1 }), Some(IndexKind::Wildcard));
        assert_eq!(kind(doc! { "_fts": "text", "_ftsx": 1 }), Some(IndexKind::Text));
        assert_eq!(kind(doc! { "a": "2d" }), Some(IndexKind::TwoD));
        assert_eq!(kind(doc! { "a": "geoHaystack" }), None);
    }
}
