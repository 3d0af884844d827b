//! Applying a diff to any version of a document.
//!
//! Where the document does not look as the diff expects, it is one that later entries have already changed, and they
//! will come again. So a missing field is passed over, an inner diff of what is no longer a document or array leaves
//! null, and an array that is too short is filled with null. Only a diff that contradicts itself is an error, and one
//! whose result would be larger than any document may be.

use super::format::{ArrayChange, ArrayDiff, DiffRef, Digits, DocumentDiff};
use bstr::BStr;
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, DocRef, INTERNAL_SIZE_BYTES_MAX, RawElement, Value, ValueType, too_large};

/// The document after the diff.
pub fn apply(pre: DocRef<'_>, diff: DocRef<'_>) -> Result<Doc> {
    let mut builder = DocBuilder::with_capacity(pre.size_bytes() + diff.size_bytes());
    apply_to_document(pre, DocumentDiff::read(diff)?, &mut builder)?;
    if builder.size_bytes() > INTERNAL_SIZE_BYTES_MAX {
        return Err(too_large(builder.size_bytes(), INTERNAL_SIZE_BYTES_MAX));
    }
    Ok(builder.finish())
}

/// What a diff does to one field.
#[derive(Clone, Copy)]
enum Modification<'a> {
    Delete,
    Update(RawElement<'a>),
    /// Removed where it is; written again at the end.
    Insert,
    Inner(DocRef<'a>),
}

/// The modifications by name.
struct Table<'a> {
    rows: Vec<(&'a BStr, Modification<'a>)>,
}

impl<'a> Table<'a> {
    fn of(diff: &DocumentDiff<'a>) -> Result<Table<'a>> {
        let fields = |section: Option<DocRef<'a>>| section.into_iter().flat_map(DocRef::raw_elements);
        let mut rows: Vec<(&'a BStr, Modification<'a>)> = Vec::new();
        rows.extend(fields(diff.deletes).map(|element| (element.name, Modification::Delete)));
        rows.extend(fields(diff.updates).map(|element| (element.name, Modification::Update(element))));
        rows.extend(fields(diff.inserts).map(|element| (element.name, Modification::Insert)));
        rows.extend(diff.inner.iter().map(|(name, inner)| (*name, Modification::Inner(*inner))));
        rows.sort_by_key(|(name, _)| *name);
        match rows.array_windows().find(|[(one, _), (next, _)]| one == next) {
            Some([(name, _), _]) => Err(Error::location(4728000, format!("duplicate field name in diff: {name}"))),
            None => Ok(Table { rows }),
        }
    }

    fn get(&self, name: &BStr) -> Option<Modification<'a>> {
        let place = self.rows.binary_search_by_key(&name, |(name, _)| *name).ok()?;
        self.rows.get(place).map(|(_, modification)| *modification)
    }
}

fn apply_to_document(pre: DocRef<'_>, diff: DocumentDiff<'_>, builder: &mut DocBuilder) -> Result<()> {
    let table = Table::of(&diff)?;
    let mut updated: Vec<&BStr> = Vec::new();
    for element in pre.raw_elements() {
        match table.get(element.name) {
            None => builder.append_raw(element),
            Some(Modification::Delete | Modification::Insert) => {}
            Some(Modification::Update(new)) => {
                builder.append_raw(new);
                updated.push(new.name);
            }
            Some(Modification::Inner(inner)) => apply_inner(element.name, Some(element), inner, builder)?,
        }
    }
    updated.sort_unstable();
    let updates = diff.updates.into_iter().flat_map(DocRef::raw_elements);
    updates.filter(|new| updated.binary_search(&new.name).is_err()).for_each(|new| builder.append_raw(new));
    diff.inserts.into_iter().flat_map(DocRef::raw_elements).for_each(|new| builder.append_raw(new));
    Ok(())
}

/// Applies an inner diff to a value, if it is there and of the kind that the diff is for; else null.
fn apply_inner(name: &BStr, value: Option<RawElement<'_>>, diff: DocRef<'_>, builder: &mut DocBuilder) -> Result<()> {
    match (DiffRef::read(diff)?, value) {
        (DiffRef::Document(diff), Some(value)) if value.value_type == ValueType::Document => {
            let open = builder.begin_document(name);
            apply_to_document(DocRef::trusted(value.value_bytes), diff, builder)?;
            builder.end(open);
        }
        (DiffRef::Array(diff), Some(value)) if value.value_type == ValueType::Array => {
            let open = builder.begin_array(name);
            apply_to_array(DocRef::trusted(value.value_bytes), diff, builder)?;
            builder.end(open);
        }
        _ => builder.append(name, Value::Null),
    }
    Ok(())
}

fn apply_to_array(pre: DocRef<'_>, mut diff: ArrayDiff<'_>, builder: &mut DocBuilder) -> Result<()> {
    let length = diff.length;
    let mut next = later_change(&mut diff, None)?;
    let mut old_values = pre.raw_elements();
    let mut index = 0;
    loop {
        let old = if length.is_none_or(|length| index < length) { old_values.next() } else { None };
        let change = next.take_if(|(place, _)| *place == index);
        match (change, old) {
            (Some((_, change)), old) => {
                apply_to_index(index, old, change, builder)?;
                next = later_change(&mut diff, Some(index))?;
            }
            (None, Some(old)) => builder.append_raw(old),
            (None, None) if next.is_some() || length.is_some_and(|length| index < length) => {
                builder.append(Digits::of(index).as_bstr(), Value::Null);
            }
            (None, None) => return Ok(()),
        }
        if builder.size_bytes() > INTERNAL_SIZE_BYTES_MAX {
            return Err(too_large(builder.size_bytes(), INTERNAL_SIZE_BYTES_MAX));
        }
        index += 1;
    }
}

fn apply_to_index(
    index: usize,
    old: Option<RawElement<'_>>,
    change: ArrayChange<'_>,
    builder: &mut DocBuilder,
) -> Result<()> {
    let digits = Digits::of(index);
    match change {
        ArrayChange::Set(new) => {
            builder.append_raw_as(digits.as_bstr(), new);
            Ok(())
        }
        ArrayChange::Inner(inner) => apply_inner(digits.as_bstr(), old, inner, builder),
    }
}

/// The change after this index, which has to be further on and within the new length.
fn later_change<'a>(diff: &mut ArrayDiff<'a>, index: Option<usize>) -> Result<Option<(usize, ArrayChange<'a>)>> {
    let next = diff.next_change()?;
    match &next {
        Some((place, _)) if index.is_some_and(|index| *place <= index) => {
            Err(Error::bad_value("Array indexes in a diff have to ascend"))
        }
        Some((place, _)) if diff.length.is_some_and(|length| *place >= length) => {
            Err(Error::bad_value("An array index in a diff is beyond the new length"))
        }
        _ => Ok(next),
    }
}
