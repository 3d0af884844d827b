//! What a result is sorted by.
//!
//! A sort looks at every value that a path leads to: ascending by the least, descending by the greatest. What is missing
//! sorts as null, an empty array below it.

use pando_base::{Error, ErrorCode, Result};
use pando_doc::{Doc, DocBuilder, DocRef, FieldPath, Value};
use pando_expr::metadata::Meta;

/// As many parts as an index has.
const PART_COUNT_MAX: usize = 32;

/// One part of a sort.
#[derive(Clone, Debug, PartialEq)]
pub struct SortPart {
    /// What is looked at.
    pub key: SortKey,
    /// Greatest first.
    pub descending: bool,
}

/// What a part of a sort looks at.
#[derive(Clone, Debug, PartialEq)]
pub enum SortKey {
    /// The values at a path.
    Path(FieldPath),
    /// What the query knows about the document, e.g. `textScore`.
    Meta(String),
}

/// A whole sort.
#[derive(Clone, Debug, PartialEq)]
pub struct SortPattern {
    parts: Vec<SortPart>,
}

impl SortPattern {
    /// An order in which nothing is before anything else.
    pub fn by_nothing() -> SortPattern {
        SortPattern { parts: Vec::new() }
    }

    /// Reads a sort; none if it is empty.
    pub fn parse(sort: DocRef<'_>) -> Result<Option<SortPattern>> {
        let mut parts: Vec<SortPart> = Vec::new();
        for element in sort.elements() {
            let part = parse_part(element.name, element.value)?;
            // A path that is there twice says nothing new the second time.
            if !parts.iter().any(|known| known.key == part.key) {
                parts.push(part);
            }
        }
        if parts.len() > PART_COUNT_MAX {
            return Err(Error::location(13103, "too many compound keys"));
        }
        Ok((!parts.is_empty()).then_some(SortPattern { parts }))
    }

    /// A sort of these parts.
    pub fn from_parts(parts: Vec<SortPart>) -> SortPattern {
        SortPattern { parts }
    }

    /// The other way round.
    pub fn reversed(&self) -> SortPattern {
        let reversed = |part: &SortPart| SortPart { key: part.key.clone(), descending: !part.descending };
        SortPattern { parts: self.parts.iter().map(reversed).collect() }
    }

    /// Its parts, the most important first.
    pub fn parts(&self) -> &[SortPart] {
        &self.parts
    }

    /// True if it is by text score and by nothing else.
    pub fn is_text_score(&self) -> bool {
        matches!(&*self.parts, [SortPart { key: SortKey::Meta(name), .. }] if name == "textScore")
    }

    /// True if it is by distance and by nothing else.
    pub fn is_by_distance(&self) -> bool {
        matches!(&*self.parts, [SortPart { key: SortKey::Meta(name), .. }] if name == "geoNearDistance")
    }

    /// True if some part is not in the document.
    pub fn needs_metadata(&self) -> bool {
        self.parts.iter().any(|part| matches!(part.key, SortKey::Meta(_)))
    }

    /// The paths it looks at.
    pub fn paths(&self) -> impl Iterator<Item = &FieldPath> {
        self.parts.iter().filter_map(|part| match &part.key {
            SortKey::Path(path) => Some(path),
            SortKey::Meta(_) => None,
        })
    }

    /// What it asks for that is not in the document.
    pub fn metadata(&self) -> impl Iterator<Item = Meta> {
        self.parts.iter().filter_map(|part| match &part.key {
            SortKey::Path(_) => None,
            SortKey::Meta(name) => Meta::from_name(name.as_bytes()),
        })
    }

    /// As a pattern of keys. What is not in the document has the name of the hidden field that carries it.
    pub fn to_key_pattern(&self) -> Doc {
        let mut builder = DocBuilder::new();
        for part in &self.parts {
            let direction = if part.descending { -1 } else { 1 };
            match &part.key {
                SortKey::Path(path) => builder.append(path.text(), direction),
                SortKey::Meta(name) => builder.append(meta_field(name), direction),
            }
        }
        builder.finish()
    }

    /// As it was written, with plain numbers.
    pub fn to_doc(&self) -> Doc {
        let mut builder = DocBuilder::new();
        for part in &self.parts {
            match &part.key {
                SortKey::Path(path) => builder.append(path.text(), if part.descending { -1_i32 } else { 1_i32 }),
                SortKey::Meta(name) => builder.document("$computed0", |meta| meta.append("$meta", name.as_str())),
            }
        }
        builder.finish()
    }
}

fn meta_field(name: &str) -> &'static str {
    Meta::from_name(name.as_bytes()).map_or("", Meta::field)
}

fn parse_part(name: &bstr::BStr, value: Value<'_>) -> Result<SortPart> {
    if let Value::Document(doc) = value {
        return parse_meta(doc);
    }
    let key = SortKey::Path(FieldPath::parse(name)?);
    match value.to_double() {
        Some(1.0) => Ok(SortPart { key, descending: false }),
        Some(-1.0) => Ok(SortPart { key, descending: true }),
        Some(_) => Err(Error::location(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)")),
        None => Err(Error::location(15974, format!("Illegal key in $sort specification: {name}: {value}"))),
    }
}

fn parse_meta(doc: DocRef<'_>) -> Result<SortPart> {
    let Some(meta) = doc.first().filter(|first| first.name == "$meta") else {
        return Err(Error::location(17312, "$meta is the only expression supported by $sort right now"));
    };
    if doc.field_count() != 1 {
        return Err(Error::failed_to_parse("Cannot have additional keys in a $meta sort specification"));
    }
    match meta.value.as_str() {
        Some("searchScore") => Err(Error::location(31218, "$meta sort by 'searchScore' metadata is not supported")),
        Some("searchHighlights") => {
            Err(Error::location(31219, "$meta sort by 'searchHighlights' metadata is not supported"))
        }
        Some(name @ ("textScore" | "randVal" | "geoNearDistance")) => {
            // The best first, and for the sake of one rule also the farthest.
            Ok(SortPart { key: SortKey::Meta(name.to_owned()), descending: true })
        }
        _ => Err(Error::new(ErrorCode::location(31138), format!("Illegal $meta sort: {meta}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn sorts_are_read_and_refused() {
        let sort = SortPattern::parse(doc! { "a": 1, "b.c": -1.0, "a": -1 }.view()).unwrap().unwrap();
        assert_eq!(sort.to_doc(), doc! { "a": 1, "b.c": -1 });
        assert!(SortPattern::parse(doc! {}.view()).unwrap().is_none());
        let code = |doc: Doc| SortPattern::parse(doc.view()).unwrap_err().code().number();
        assert_eq!(code(doc! { "a": 2 }), 15975);
        assert_eq!(code(doc! { "a": "x" }), 15974);
        assert_eq!(code(doc! { "a": { "$foo": 1 } }), 17312);
    }
}
