//! `$slice`, `$elemMatch` and the positional operator of `find`.

use crate::MatchExpression;
use crate::matcher::MatchDetails;
use pando_base::{Error, Result};
use pando_doc::{ArrayBuilder, ArrayRef, Doc, DocBuilder, DocRef, FieldPath, Value, doc};

/// Which values of an array are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// How many to skip; from the end if negative.
    pub skip: Option<i32>,
    /// How many to keep; without `skip` a negative number counts from the end.
    pub limit: i32,
}

impl Slice {
    /// The kept values; anything but an array is kept as it is.
    pub fn apply(self, value: Value<'_>) -> Option<pando_doc::OwnedValue> {
        let Value::Array(array) = value else { return None };
        let length = array.len();
        let from_end = |count: i32| length.saturating_sub(count.unsigned_abs() as usize);
        let (start, count) = match self.skip {
            None if self.limit < 0 => (from_end(self.limit), length),
            None => (0, self.limit as usize),
            Some(skip) if skip < 0 => (from_end(skip), self.limit.unsigned_abs() as usize),
            Some(skip) => (skip as usize, self.limit.unsigned_abs() as usize),
        };
        let mut builder = ArrayBuilder::new();
        array.values().skip(start).take(count).for_each(|value| builder.push(value));
        Some(builder.finish().into())
    }
}

/// An array with the first value that matches; none without one.
pub(super) fn elem_match(expression: &MatchExpression, value: Value<'_>) -> Result<Option<pando_doc::OwnedValue>> {
    let Value::Array(array) = value else { return Ok(None) };
    let whole = doc! { "x": array };
    let Some(details) = expression.matches_with_details(whole.view())? else { return Ok(None) };
    let found = details.array_index().and_then(|index| array.as_doc().get(index));
    Ok(found.map(|value| {
        let mut builder = ArrayBuilder::new();
        builder.push(value);
        builder.finish().into()
    }))
}

/// The projected document with the positional array cut down to the value that matched.
pub(super) fn positional(
    original: DocRef<'_>,
    projected: DocRef<'_>,
    path: &FieldPath,
    details: Option<&MatchDetails>,
) -> Result<Doc> {
    let index = details.and_then(MatchDetails::array_index);
    let cut = |array: ArrayRef<'_>| -> Result<pando_doc::OwnedValue> {
        let Some(index) = index else {
            let reason = "Executor error during find command :: caused by :: positional operator '.$' couldn't find a matching element in the array";
            return Err(Error::location(51246, reason));
        };
        let Some(value) = array.as_doc().get(index) else {
            let reason = "Executor error during find command :: caused by :: positional operator '.$' element mismatch";
            return Err(Error::location(51247, reason));
        };
        let mut builder = ArrayBuilder::new();
        builder.push(value);
        Ok(builder.finish().into())
    };
    rewrite(original, projected, path, 0, &cut)
}

/// Replaces the first array along the path.
fn rewrite(
    original: DocRef<'_>,
    projected: DocRef<'_>,
    path: &FieldPath,
    part: usize,
    cut: &dyn Fn(ArrayRef<'_>) -> Result<pando_doc::OwnedValue>,
) -> Result<Doc> {
    let mut builder = DocBuilder::with_capacity(projected.size_bytes());
    for element in projected.elements() {
        if element.name != path.part(part) {
            builder.append_element(element);
            continue;
        }
        match (element.value, original.get(element.name)) {
            (Value::Array(array), _) => builder.append(element.name, cut(array)?),
            (Value::Document(nested), Some(Value::Document(source))) if part + 1 < path.part_count() => {
                builder.append(element.name, rewrite(source, nested, path, part + 1, cut)?);
            }
            (value, _) => builder.append(element.name, value),
        }
    }
    Ok(builder.finish())
}
