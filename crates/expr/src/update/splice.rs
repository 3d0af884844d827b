//! Operators on fields of the document itself, applied without taking the document apart.
//!
//! Most updates set, increment or push to a few fields at the top. One look over the document finds these; the new version is
//! then the old one's bytes with the changed fields put in their places. What was changed is known at the end, so nobody has
//! to compare the two versions.
//!
//! Invariants: everything that this path does not take is left to `apply`, and what it takes comes out as it would there:
//! operators run in the order of their names, new fields go to the end in that order. It does not take positional operators,
//! `$rename`, paths with dots, the `_id`, and documents in which a name of the update stands twice.

use super::apply::is_identical;
use super::node::Node;
use super::operation::{Change, Operation, Surroundings};
use super::{Operators, UpdateContext};
use crate::context::strings;
use bstr::BString;
use pando_base::Result;
use pando_doc::{CompareOptions, Doc, DocBuilder, DocRef, OwnedValue, RawElement};
use smallvec::SmallVec;
use std::ops::Range;

/// A field that got another value, by the places of its encoded forms in the two versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedField {
    /// In the old document; none for a field that is new.
    pub old: Option<Range<usize>>,
    /// In the new one.
    pub new: Range<usize>,
    /// Values were pushed to the end of an array; unless they went elsewhere, nothing else has changed.
    pub is_push: bool,
}

/// What became of a document.
pub(super) struct Spliced {
    /// The new version; none if it is the old one.
    pub(super) doc: Option<Doc>,
    /// What changed, in the order of the new version; none if fields were taken out.
    pub(super) fields: Option<Vec<ChangedField>>,
    /// True if a new value has values inside.
    pub(super) has_nested: bool,
}

/// A field to be replaced, removed (no value) or, without a place, added.
struct Edit<'u> {
    name: &'u BString,
    place: Option<Range<usize>>,
    value: Option<OwnedValue>,
    is_push: bool,
}

type Edits<'u> = SmallVec<[Edit<'u>; 4]>;

/// Applies the operators, if they are of the kind that is taken here.
pub(super) fn apply(operators: &Operators, doc: DocRef<'_>, context: &UpdateContext<'_>) -> Result<Option<Spliced>> {
    let around = |name| Surroundings {
        options: CompareOptions { strings: strings(&operators.collator), ..CompareOptions::default() },
        now: context.now,
        timestamp: context.timestamp,
        is_insert: context.is_insert,
        original: doc,
        path: std::slice::from_ref(name),
    };
    if let Some((name, operation)) = single(operators) {
        let Some(found) = find_once(name, doc) else { return Ok(None) };
        let found = found.map(|element| (element, place_in(doc, element)));
        return Ok(Some(match edit(name, operation, found, &around(name))? {
            Some(edit) => write_one(doc, edit),
            None => Spliced { doc: None, fields: Some(Vec::new()), has_nested: false },
        }));
    }
    let Some(leaves) = leaves(operators) else { return Ok(None) };
    let Some(found) = find(&leaves, doc) else { return Ok(None) };
    let mut edits = Edits::new();
    for ((name, operation), element) in leaves.iter().zip(&found) {
        let place = element.map(|element| (element, place_in(doc, element)));
        edits.extend(edit(name, operation, place, &around(*name))?);
    }
    Ok(Some(write(doc, edits)))
}

/// The operator, if there is one alone and it is of the kind that is taken here: what most updates have.
fn single(operators: &Operators) -> Option<(&BString, &Operation)> {
    let root = &operators.root;
    if root.matched.is_some() || root.fields.len() != 1 {
        return None;
    }
    root.fields.iter().next().and_then(|(name, node)| leaf(&name.0, node))
}

/// The field of this name, if there is one; none if it stands twice.
fn find_once<'d>(name: &BString, doc: DocRef<'d>) -> Option<Option<RawElement<'d>>> {
    let mut found = None;
    for element in doc.raw_elements() {
        let is_named = element.name.len() == name.len() && *element.name == **name;
        if is_named && found.replace(element).is_some() {
            return None;
        }
    }
    Some(found)
}

/// The operators by the fields they are for, if all of them are for fields at the top.
fn leaves(operators: &Operators) -> Option<SmallVec<[(&BString, &Operation); 4]>> {
    if operators.root.matched.is_some() {
        return None;
    }
    operators.root.fields.iter().map(|(name, node)| leaf(&name.0, node)).collect()
}

fn leaf<'n>(name: &'n BString, node: &'n Node) -> Option<(&'n BString, &'n Operation)> {
    match node {
        Node::Leaf(Operation::RenameTo(_) | Operation::RenameFrom) | Node::Object(_) | Node::Array(_) => None,
        Node::Leaf(_) if name == "_id" => None,
        Node::Leaf(operation) => Some((name, operation)),
    }
}

/// The fields with these names; none if one stands twice.
fn find<'d>(leaves: &[(&BString, &Operation)], doc: DocRef<'d>) -> Option<SmallVec<[Option<RawElement<'d>>; 4]>> {
    let mut found: SmallVec<[Option<RawElement<'d>>; 4]> = leaves.iter().map(|_| None).collect();
    for element in doc.raw_elements() {
        let Some(place) = leaves.iter().position(|(name, _)| *element.name == ***name) else { continue };
        if found.get_mut(place)?.replace(element).is_some() {
            return None;
        }
    }
    Some(found)
}

/// Where an element of a document lies in its bytes.
fn place_in(doc: DocRef<'_>, element: RawElement<'_>) -> Range<usize> {
    let start = element.bytes.as_ptr().addr() - doc.bytes().as_ptr().addr();
    start..start + element.bytes.len()
}

fn edit<'u>(
    name: &'u BString,
    operation: &Operation,
    found: Option<(RawElement<'_>, Range<usize>)>,
    around: &Surroundings<'_>,
) -> Result<Option<Edit<'u>>> {
    let Some((element, place)) = found else {
        if !operation.creates(around.is_insert) {
            return Ok(None);
        }
        return Ok(match operation.apply(None, around)? {
            Change::Set(value) => Some(Edit { name, place: None, value: Some(value), is_push: false }),
            Change::Nothing | Change::Remove => None,
        });
    };
    let Some(current) = element.value() else { return Ok(None) };
    let value = match operation.apply(Some(current), around)? {
        Change::Nothing => return Ok(None),
        Change::Set(value) if is_identical(current, value.view()) => return Ok(None),
        Change::Set(value) => Some(value),
        Change::Remove => None,
    };
    Ok(Some(Edit { name, place: Some(place), value, is_push: matches!(operation, Operation::Push(_)) }))
}

/// The document with one edit made.
fn write_one(doc: DocRef<'_>, edit: Edit<'_>) -> Spliced {
    let Edit { name, place, value, is_push } = edit;
    let bytes = doc.bytes();
    let end = bytes.len().saturating_sub(1);
    let (kept_to, goes_on) = place.as_ref().map_or((end, end), |place| (place.start, place.end));
    // A number in place of another mostly has the same length: then nothing is left over, and nothing has to be given back.
    let room = if value.as_ref().is_some_and(|value| value.view().is_number()) && place.is_some() { 0 } else { 64 };
    let mut builder = DocBuilder::with_capacity(bytes.len() + room);
    builder.append_element_bytes(bytes.get(4..kept_to).unwrap_or_default());
    let start = builder.size_bytes() - 1;
    let has_nested = value.as_ref().is_some_and(|value| value.view().as_nested().is_some());
    let is_set = value.is_some();
    if let Some(value) = &value {
        builder.append(name, value);
    }
    let new = start..builder.size_bytes() - 1;
    builder.append_element_bytes(bytes.get(goes_on..end).unwrap_or_default());
    let fields = is_set.then(|| vec![ChangedField { old: place, new, is_push }]);
    Spliced { doc: Some(builder.finish()), fields, has_nested }
}

/// The document with the edits made.
fn write(doc: DocRef<'_>, mut edits: Edits<'_>) -> Spliced {
    let has_nested =
        edits.iter().any(|edit| edit.value.as_ref().is_some_and(|value| value.view().as_nested().is_some()));
    if edits.is_empty() {
        return Spliced { doc: None, fields: Some(Vec::new()), has_nested };
    }
    // New fields stay behind all others, in the order of their names.
    edits.sort_by_key(|edit| edit.place.as_ref().map_or(usize::MAX, |place| place.start));
    let bytes = doc.bytes();
    let end = bytes.len().saturating_sub(1);
    let mut builder = DocBuilder::with_capacity(bytes.len() + 64);
    let mut fields = Some(Vec::with_capacity(edits.len()));
    let mut copied = 4;
    for Edit { name, place, value, is_push } in edits {
        let (kept_to, goes_on) = place.as_ref().map_or((end, end), |place| (place.start, place.end));
        builder.append_element_bytes(bytes.get(copied..kept_to).unwrap_or_default());
        copied = goes_on;
        let start = builder.size_bytes() - 1;
        match &value {
            Some(value) => builder.append(name, value),
            None => fields = None,
        }
        let new = start..builder.size_bytes() - 1;
        if let Some(fields) = &mut fields {
            fields.push(ChangedField { old: place, new, is_push });
        }
    }
    builder.append_element_bytes(bytes.get(copied..end).unwrap_or_default());
    Spliced { doc: Some(builder.finish()), fields, has_nested }
}
