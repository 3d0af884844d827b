//! What the planner has to know about an index.
//!
//! The multikey state is read when the plan is made, after the snapshot was opened: the state of an index covers every
//! document that the snapshot sees.

use super::PlaceField;
use super::wildcard::Wildcard;
use pando_base::Result;
use pando_catalog::{Index, IndexDescriptor, IndexKind, MultikeyPaths};
use pando_doc::{Doc, DocRef, FieldPath};
use pando_expr::{Features, MatchExpression, ParseContext};
use pando_keystring::{KeyOrdering, Version};
use std::sync::Arc;

/// One field of a key pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexField {
    /// The path whose values are the keys.
    pub path: FieldPath,
    /// Greatest first.
    pub is_descending: bool,
    /// By hash or by cell: keys are not the values.
    pub is_hashed: bool,
    /// By these cells.
    pub place: Option<PlaceField>,
}

/// An index as the planner sees it.
#[derive(Clone, Debug)]
pub struct IndexInfo {
    /// The index.
    pub index: Arc<Index>,
    /// The fields of its key.
    pub fields: Vec<IndexField>,
    /// The directions of its fields.
    pub ordering: KeyOrdering,
    /// The format of its keys.
    pub version: Version,
    /// Documents outside have no keys.
    pub partial_filter: Option<Arc<MatchExpression>>,
    /// Some document had several keys.
    pub is_multikey: bool,
    /// Through which components of which fields; empty if not known.
    pub multikey_paths: MultikeyPaths,
    /// Documents without its fields have no keys.
    pub is_sparse: bool,
    /// A scan may find a record several times, arrays or not.
    pub repeats: bool,
    /// The key pattern as it is shown, where it is not the index's own.
    pub shown_pattern: Option<Doc>,
    /// What a wildcard index is beside that.
    pub wildcard: Option<Wildcard>,
}

impl IndexInfo {
    /// Reads an index; none if it is of a kind that plain conditions cannot use.
    pub fn of(index: &Arc<Index>) -> Result<Option<IndexInfo>> {
        match index.descriptor.kind {
            IndexKind::Text => Ok(None),
            _ => IndexInfo::of_any(index),
        }
    }

    /// The same of an index of words, for a scan of all its keys: each word of a document leads to it.
    pub fn of_words(index: &Arc<Index>) -> Result<Option<IndexInfo>> {
        let info = IndexInfo::of_any(index)?.filter(|info| info.index.descriptor.kind == IndexKind::Text);
        Ok(info.map(|info| IndexInfo { is_sparse: true, repeats: true, ..info }))
    }

    fn of_any(index: &Arc<Index>) -> Result<Option<IndexInfo>> {
        let descriptor = &index.descriptor;
        let is_known = matches!(
            descriptor.kind,
            IndexKind::Btree
                | IndexKind::Hashed
                | IndexKind::TwoD
                | IndexKind::TwoDSphere
                | IndexKind::TwoDSphereBucket
                | IndexKind::Wildcard
                | IndexKind::Text
        );
        if !is_known {
            return Ok(None);
        }
        let is_wildcard = descriptor.kind == IndexKind::Wildcard;
        let wildcard =
            is_wildcard.then(|| Wildcard::of(&descriptor.key_pattern, descriptor.wildcard_projection.as_ref()));
        let pattern = descriptor.key_pattern.view();
        let Some(fields) = fields_of(pattern, descriptor)? else { return Ok(None) };
        let context = ParseContext::default().with_features(Features::NONE);
        let partial_filter = match &descriptor.partial_filter {
            Some(filter) => Some(Arc::new(MatchExpression::parse(filter.view(), &context)?.optimize())),
            None => None,
        };
        let is_multikey = index.multikey.is_multikey();
        Ok(Some(IndexInfo {
            index: Arc::clone(index),
            fields,
            ordering: KeyOrdering::from_pattern(pattern)
                .map_err(|error| pando_base::Error::internal(error.to_string()))?,
            // Indexes of version 1 refuse decimals, and are written as others are.
            version: Version::V1,
            partial_filter,
            is_multikey,
            multikey_paths: if is_multikey { index.multikey.paths() } else { MultikeyPaths::new() },
            is_sparse: descriptor.sparse || is_wildcard,
            repeats: false,
            shown_pattern: None,
            wildcard: wildcard.transpose()?,
        }))
    }

    /// True if it is an index of places.
    pub fn is_for_places(&self) -> bool {
        matches!(self.index.descriptor.kind, IndexKind::TwoD | IndexKind::TwoDSphere | IndexKind::TwoDSphereBucket)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.index.name()
    }

    /// The key pattern, for people.
    pub fn key_pattern(&self) -> &Doc {
        self.shown_pattern.as_ref().unwrap_or(&self.index.descriptor.key_pattern)
    }

    /// True if this component of this field's path may be an array.
    pub fn is_component_multikey(&self, field: usize, component: usize) -> bool {
        if !self.is_multikey {
            return false;
        }
        // Without paths, any component may be one.
        self.multikey_paths.is_empty()
            || self.multikey_paths.get(field).is_some_and(|components| components.contains(component))
    }

    /// True if some component of this field's path may be an array.
    pub fn is_field_multikey(&self, field: usize) -> bool {
        let Some(info) = self.fields.get(field) else { return false };
        (0..info.path.part_count()).any(|component| self.is_component_multikey(field, component))
    }

    /// How many leading components two fields share up to the last shared one that may be an array; zero if none may.
    pub fn shared_multikey_prefix(&self, one: usize, two: usize) -> usize {
        let (Some(left), Some(right)) = (self.fields.get(one), self.fields.get(two)) else { return 0 };
        let shared = left.path.parts().zip(right.path.parts()).take_while(|(left, right)| left == right).count();
        (0..shared)
            .rev()
            .find(|component| {
                self.is_component_multikey(one, *component) || self.is_component_multikey(two, *component)
            })
            .map_or(0, |component| component + 1)
    }
}

/// None for fields that plain conditions cannot use.
fn fields_of(pattern: DocRef<'_>, descriptor: &IndexDescriptor) -> Result<Option<Vec<IndexField>>> {
    let mut fields = Vec::new();
    let is_plane = descriptor.kind == IndexKind::TwoD;
    let is_text = descriptor.kind == IndexKind::Text;
    let ordering =
        KeyOrdering::from_pattern(pattern).map_err(|error| pando_base::Error::internal(error.to_string()))?;
    for (index, element) in pattern.elements().enumerate() {
        let place = PlaceField::of(element.value.as_str(), descriptor)?;
        // What stands behind a point of the plane is a set of values.
        let is_hashed = element.value.as_str() == Some("hashed") || place.is_some() || is_plane || is_text;
        if !is_hashed && !element.value.is_number() {
            return Ok(None);
        }
        let is_descending = ordering.is_descending(index);
        fields.push(IndexField { path: FieldPath::lenient(element.name)?, is_descending, is_hashed, place });
    }
    Ok(Some(fields))
}
