//! Wildcard indexes: one index stands for an index on every path below its wildcard.
//!
//! For each path that the filter has conditions on there is an index as the planner knows them, with that path in the
//! wildcard's place; bounds are made for it as for any other. Then the path itself gets its bounds in front of the value's.
//! Keys have values only, no documents: a condition that documents may fulfil (that something is there at all) needs the
//! keys of everything below the path, too, and finds a record several times.
//!
//! A compound index can also serve conditions on the fields before its wildcard alone, if it looks at all paths.
//!
//! The index knows whether any array is in it, not where; so each component of a path may be one once there was one.

use super::access::Access;
use super::condition::Condition;
use super::{FieldBounds, IndexField, IndexInfo, Interval, IntervalList, type_range};
use bstr::{BString, ByteSlice};
use bytes::Bytes;
use pando_base::Result;
use pando_catalog::{MultikeyComponents, MultikeyPaths, is_wildcard_path};
use pando_doc::{Doc, DocBuilder, FieldPath, OwnedValue, ValueType};
use pando_expr::matcher::{ComparisonOperator, Predicate};
use pando_index::{WILDCARD_PATH_FIELD, WildcardFields, wildcard_key_pattern};
use pando_keystring::KeyOrdering;
use std::sync::Arc;

/// A path may lead through so many arrays by places in them.
const ARRAY_PLACES_MAX: usize = 8;

/// What a wildcard index is beside its fields.
#[derive(Clone, Debug)]
pub struct Wildcard {
    /// What it takes in.
    pub fields: Arc<WildcardFields>,
    /// Where its value is among the fields.
    pub place: usize,
    /// No single path stands in the wildcard's place: all do.
    pub is_for_all_paths: bool,
    /// Places in arrays on the path, by their components.
    array_places: Vec<usize>,
}

impl Wildcard {
    /// Reads a wildcard index.
    pub(super) fn of(pattern: &Doc, projection: Option<&Doc>) -> Result<Wildcard> {
        let place = pattern.elements().position(|field| is_wildcard_path(field.name)).unwrap_or(0);
        let fields = WildcardFields::parse(pattern.view(), projection.map(Doc::view))?;
        Ok(Wildcard { fields: Arc::new(fields), place, is_for_all_paths: false, array_places: Vec::new() })
    }

    /// True if bounds on the value never say everything.
    pub(super) fn needs_fetch(&self) -> bool {
        !self.array_places.is_empty()
    }
}

/// True if the keys of values can answer the condition: documents and arrays have no keys of their own, but empty ones.
pub(super) fn is_answerable(predicate: &Predicate) -> bool {
    use ComparisonOperator::{Equal, LessOrEqual};
    let fits = |value: &OwnedValue, operator: ComparisonOperator| match value {
        OwnedValue::Document(document) => document.is_empty() && matches!(operator, Equal | LessOrEqual),
        OwnedValue::Array(array) => array.values().next().is_none() && operator == Equal,
        _ => true,
    };
    match predicate {
        Predicate::Comparison(comparison) => fits(&comparison.value, comparison.operator),
        // In an expression documents, which have no keys of their own, are greater than numbers.
        Predicate::ExprComparison(comparison) => {
            let is_value = !matches!(comparison.value, OwnedValue::Null | OwnedValue::Document(_));
            comparison.operator == Equal && is_value
        }
        Predicate::In(list) => list.values().iter().all(|value| fits(value, Equal)),
        Predicate::ElemMatchValue(child) | Predicate::Not(child) => is_answerable(child),
        Predicate::And(children) => children.iter().all(is_answerable),
        _ => true,
    }
}

/// The indexes that a wildcard index stands for, as far as these conditions go.
pub(super) fn expansions(info: &IndexInfo, conditions: &[Condition<'_>]) -> Vec<IndexInfo> {
    let Some(wildcard) = &info.wildcard else { return Vec::new() };
    let mut paths: Vec<&FieldPath> = conditions.iter().map(|condition| &condition.path).collect();
    paths.sort_by_key(|path| path.text());
    paths.dedup();
    let mut found: Vec<IndexInfo> = paths
        .iter()
        .filter(|path| wildcard.fields.takes(path) && !info.fields.iter().any(|field| field.path == ***path))
        .filter_map(|path| on_path(info, wildcard, path))
        .collect();
    let is_on = |field: &IndexField| paths.iter().any(|path| **path == field.path);
    if info.fields.iter().take(wildcard.place).any(is_on) {
        found.extend(on_all_paths(info, wildcard));
    }
    found
}

/// The index with this path in the wildcard's place; none if the keys do not tell what lies there.
fn on_path(info: &IndexInfo, wildcard: &Wildcard, path: &FieldPath) -> Option<IndexInfo> {
    let is_number = |part: usize| path.parts().nth(part).is_some_and(|part| part.iter().all(u8::is_ascii_digit));
    let places: Vec<usize> = (1..path.part_count()).filter(|part| info.is_multikey && is_number(*part)).collect();
    let is_clear = |place: &usize| !is_number(place + 1) && !wildcard.fields.names_part(path, *place);
    if places.len() > ARRAY_PLACES_MAX || !places.iter().all(is_clear) {
        return None;
    }
    let mut on_path = info.clone();
    on_path.fields.get_mut(wildcard.place)?.path = path.clone();
    if info.is_multikey {
        let components: MultikeyComponents = (0..path.part_count()).collect();
        let at = |place: usize| if place == wildcard.place { components } else { MultikeyComponents::NONE };
        on_path.multikey_paths = (0..info.fields.len()).map(at).collect();
    }
    on_path.wildcard = Some(Wildcard { array_places: places, ..wildcard.clone() });
    Some(on_path)
}

fn on_all_paths(info: &IndexInfo, wildcard: &Wildcard) -> Option<IndexInfo> {
    let mut on_all = info.clone();
    on_all.fields.get_mut(wildcard.place)?.path = FieldPath::lenient(WILDCARD_PATH_FIELD).ok()?;
    // Nothing behind the wildcard is bounded: keys of different paths lie between.
    on_all.multikey_paths = MultikeyPaths::from_elem(MultikeyComponents::NONE, info.fields.len());
    on_all.wildcard = Some(Wildcard { is_for_all_paths: true, ..wildcard.clone() });
    Some(on_all)
}

/// An access of such an index as the keys have it, with the bounds of the path; none if it would not find everything.
pub(super) fn finished(info: &IndexInfo, access: Access) -> Option<(IndexInfo, Access)> {
    let wildcard = info.wildcard.as_ref()?;
    let place = wildcard.place;
    let has_condition = access.used_fields.contains(&place);
    if has_condition == wildcard.is_for_all_paths {
        return None;
    }
    let mut access = access;
    let value = access.bounds.fields.get(place)?;
    let (paths, looks_below) = if wildcard.is_for_all_paths {
        (all_paths(), true)
    } else {
        let looks_below = may_be_documents(&value.intervals);
        (path_intervals(info, wildcard, looks_below)?, looks_below)
    };
    let bounds = FieldBounds { name: BString::from(WILDCARD_PATH_FIELD), intervals: paths };
    access.bounds.fields.insert(place, bounds);
    Some((as_stored(info, wildcard, looks_below)?, access))
}

/// The index with the path as a field of its own.
fn as_stored(info: &IndexInfo, wildcard: &Wildcard, looks_below: bool) -> Option<IndexInfo> {
    let place = wildcard.place;
    let name = info.fields.get(place)?.path.text().to_owned();
    let (pattern, value_place) = wildcard_key_pattern(info.index.descriptor.key_pattern.view(), name.as_bstr());
    let mut stored = info.clone();
    let path = FieldPath::lenient(WILDCARD_PATH_FIELD).ok()?;
    stored.fields.insert(place, IndexField { path, is_descending: false, is_hashed: false, place: None });
    stored.ordering = KeyOrdering::from_pattern(pattern.view()).ok()?;
    if !stored.multikey_paths.is_empty() {
        stored.multikey_paths.insert(place, MultikeyComponents::NONE);
    }
    stored.repeats = looks_below;
    stored.shown_pattern = Some(match wildcard.is_for_all_paths {
        true => each_name_once(&pattern),
        false => pattern,
    });
    stored.wildcard = Some(Wildcard { place: value_place, ..wildcard.clone() });
    Some(stored)
}

fn each_name_once(pattern: &Doc) -> Doc {
    let mut shown = DocBuilder::new();
    for (place, field) in pattern.elements().enumerate() {
        if !pattern.elements().take(place).any(|before| before.name == field.name) {
            shown.append_element(field);
        }
    }
    shown.finish()
}

/// True if a document that is not empty lies inside.
fn may_be_documents(list: &IntervalList) -> bool {
    let (end, end_inclusive) = type_range::greatest(ValueType::Document);
    let documents = Interval::new(type_range::least(ValueType::Document), false, end, end_inclusive);
    !list.intersect(&IntervalList::of([documents])).is_nothing()
}

/// Bounds on the value that documents may lie in say nothing, since documents have no keys.
pub(super) fn without_documents(list: IntervalList) -> (IntervalList, bool) {
    if !list.is_everything() && may_be_documents(&list) { (IntervalList::everything(), true) } else { (list, false) }
}

/// The path, also without the parts that may be places in arrays; with all paths below, if those are wanted.
fn path_intervals(info: &IndexInfo, wildcard: &Wildcard, looks_below: bool) -> Option<IntervalList> {
    let path = &info.fields.get(wildcard.place)?.path;
    let mut intervals = Vec::new();
    for choice in 0..1_usize << wildcard.array_places.len() {
        let is_left_out = |part: usize| {
            wildcard.array_places.iter().position(|place| *place == part).is_some_and(|bit| choice >> bit & 1 == 1)
        };
        let parts: Vec<&[u8]> =
            path.parts().enumerate().filter(|(part, _)| !is_left_out(*part)).map(|(_, part)| &**part).collect();
        let text = parts.join(&b'.');
        if looks_below {
            let (first, end) = ([&text[..], b"."].concat(), [&text[..], b"/"].concat());
            intervals.push(Interval::new(string(first), true, string(end), false));
        }
        intervals.push(Interval::point(string(text)));
    }
    Some(IntervalList::of(intervals))
}

fn all_paths() -> IntervalList {
    let none = Interval::point(OwnedValue::MinKey);
    IntervalList::of([none, Interval::new(string(Vec::new()), true, OwnedValue::Document(Doc::new()), false)])
}

fn string(text: Vec<u8>) -> OwnedValue {
    OwnedValue::String(Bytes::from(text))
}
