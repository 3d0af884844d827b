//! The fields of `$addFields` and `$set`: paths and what they are set to.

use super::tree::{Branch, Child};
use super::{Projection, ProjectionKind};
use crate::{Expression, ParseContext};
use bstr::BStr;
use pando_base::{Error, Result};
use pando_doc::{DocRef, Element, FieldPath, Value};

pub(super) fn parse(spec: DocRef<'_>, context: &ParseContext) -> Result<Projection> {
    let mut paths = Vec::new();
    spec.elements().try_for_each(|element| add_path(&mut paths, None, element))?;
    let mut root = Branch::default();
    for element in spec.elements() {
        add_field(&mut root, None, element, context)?;
    }
    Ok(Projection { kind: ProjectionKind::AddFields, root, positional: None })
}

fn joined(prefix: Option<&FieldPath>, name: &BStr) -> Result<FieldPath> {
    let path = FieldPath::parse(name)?;
    prefix.map_or(Ok(path.clone()), |prefix| prefix.join(&path))
}

/// True if the document is an operator: its first name begins with a dollar and is not one of those
/// that references have.
fn is_operator(doc: DocRef<'_>) -> bool {
    let is_name = |name: &BStr| name.starts_with(b"$") && !["$ref", "$id", "$db"].iter().any(|known| name == *known);
    doc.raw_elements().next().is_some_and(|first| is_name(first.name))
}

/// Notes the paths that are set. None may be another, or lead to it.
fn add_path(seen: &mut Vec<FieldPath>, prefix: Option<&FieldPath>, element: Element<'_>) -> Result<()> {
    let path = joined(prefix, element.name)?;
    if let Value::Document(doc) = element.value
        && !doc.is_empty()
    {
        for nested in doc.elements() {
            if nested.name.starts_with(b"$") {
                let count = doc.field_count();
                if count != 1 {
                    let reason = format!(
                        "an expression specification must contain exactly one field, the name of the expression. Found \
                         {count} fields in {doc}"
                    );
                    return Err(Error::location(40181, reason));
                }
                return note_path(seen, path);
            }
            if nested.name.contains(&b'.') {
                let reason = format!("cannot use dotted field name '{}' in a sub object", nested.name);
                return Err(Error::location(40183, reason));
            }
            add_path(seen, Some(&path), nested)?;
        }
        return Ok(());
    }
    note_path(seen, path)
}

fn note_path(seen: &mut Vec<FieldPath>, path: FieldPath) -> Result<()> {
    // In order, those that lead to others stand directly before one of them.
    let place = match seen.binary_search_by(|other| other.parts().cmp(path.parts())) {
        Ok(place) => return Err(conflicting(&path, seen.get(place))),
        Err(place) => place,
    };
    let (before, after) = (place.checked_sub(1).and_then(|before| seen.get(before)), seen.get(place));
    if before.is_some_and(|before| before.is_prefix_of(&path)) {
        return Err(conflicting(&path, before));
    }
    if after.is_some_and(|after| path.is_prefix_of(after)) {
        return Err(conflicting(&path, after));
    }
    seen.insert(place, path);
    Ok(())
}

fn conflicting(path: &FieldPath, other: Option<&FieldPath>) -> Error {
    let other = other.unwrap_or(path);
    let reason = format!("specification contains two conflicting paths. Cannot specify both '{path}' and '{other}'");
    Error::location(40176, reason)
}

fn add_field(
    root: &mut Branch,
    prefix: Option<&FieldPath>,
    element: Element<'_>,
    context: &ParseContext,
) -> Result<()> {
    let path = joined(prefix, element.name)?;
    match element.value {
        Value::Document(doc) if !doc.is_empty() && !is_operator(doc) => {
            doc.elements().try_for_each(|element| add_field(root, Some(&path), element, context))
        }
        value => root.insert(&path, 0, Child::Computed(Expression::parse(value, context)?.optimize()?)),
    }
}
