//! The order of values by a pattern such as `{a: 1, "b.c": -1}`, or by `1` or `-1` as a whole: `$sortArray`, `$push` with
//! `$sort`, `$top` and `$bottom`.
//!
//! `$top` and `$bottom` compare documents by what the paths lead to in arrays, too: of an array the
//! least value ascending, the greatest descending; an empty array sorts below null, what is missing
//! as null. For the others an array is one value, and a number in a path a place in it.

use bstr::{BStr, ByteSlice};
use pando_base::{Error, ErrorCode, Result, operation};
use pando_doc::{CompareOptions, DocRef, FieldPath, LeafArrays, PathOptions, Value, compare_with, visit_path};
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// An order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pattern {
    /// Of whole values; true if descending.
    Whole(bool),
    /// By paths, each with true if descending.
    Fields(Vec<(FieldPath, bool)>),
}

impl Pattern {
    pub(crate) fn parse(value: Value<'_>) -> Result<Pattern> {
        match value {
            Value::Document(doc) => Pattern::parse_fields(doc),
            value => match value.to_i64_exact() {
                Some(1) => Ok(Pattern::Whole(false)),
                Some(-1) => Ok(Pattern::Whole(true)),
                _ => Err(Error::bad_value("The $sort element value must be either 1 or -1")),
            },
        }
    }

    pub(crate) fn parse_fields(doc: DocRef<'_>) -> Result<Pattern> {
        if doc.is_empty() {
            return Err(Error::bad_value("The $sort pattern is empty when it should be a set of fields."));
        }
        let mut fields = Vec::new();
        for element in doc.elements() {
            let is_descending = match element.value.to_i64_exact() {
                Some(1) => false,
                Some(-1) => true,
                _ => return Err(Error::bad_value("The $sort element value must be either 1 or -1")),
            };
            if element.name.is_empty() {
                return Err(Error::bad_value("The $sort field cannot be empty"));
            }
            let path = FieldPath::lenient(element.name)?;
            if path.parts().any(|part| part.is_empty()) {
                let reason = format!("The $sort field is a dotted field but has an empty part: {path}");
                return Err(Error::new(ErrorCode::BadValue, reason));
            }
            fields.push((path, is_descending));
        }
        Ok(Pattern::Fields(fields))
    }

    /// The order of two values of an array.
    pub(crate) fn compare(&self, left: Value<'_>, right: Value<'_>, options: &CompareOptions<'_>) -> Ordering {
        match self {
            Pattern::Whole(is_descending) => directed(compare_with(left, right, options), *is_descending),
            Pattern::Fields(fields) => {
                compare_fields(fields, left, right, options, |value, path, _| value_at(value, path.text()))
            }
        }
    }

    /// The order of two documents, as `$sort` has it.
    pub(crate) fn compare_documents(
        &self,
        left: Value<'_>,
        right: Value<'_>,
        options: &CompareOptions<'_>,
    ) -> Ordering {
        match self {
            Pattern::Whole(_) => self.compare(left, right, options),
            Pattern::Fields(fields) => compare_fields(fields, left, right, options, |value, path, is_descending| {
                key(value, path, is_descending, options)
            }),
        }
    }
}

fn compare_fields(
    fields: &[(FieldPath, bool)],
    left: Value<'_>,
    right: Value<'_>,
    options: &CompareOptions<'_>,
    key: impl for<'v> Fn(Value<'v>, &FieldPath, bool) -> Value<'v>,
) -> Ordering {
    fields
        .iter()
        .map(|(path, is_descending)| {
            let (left, right) = (key(left, path, *is_descending), key(right, path, *is_descending));
            directed(compare_with(left, right, options), *is_descending)
        })
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// What a path leads to if arrays are not gone through. A field may have the whole path for its
/// name.
fn value_at<'a>(value: Value<'a>, path: &BStr) -> Value<'a> {
    let Value::Document(mut doc) = value else { return Value::Null };
    let mut path = path;
    loop {
        operation::count(1);
        if let Some(value) = doc.get(path) {
            return value;
        }
        let Some(dot) = path.find_byte(b'.') else { return Value::Null };
        doc = match doc.get(path.get(..dot).unwrap_or_default().as_bstr()) {
            Some(Value::Document(nested)) => nested,
            Some(Value::Array(nested)) => nested.as_doc(),
            _ => return Value::Null,
        };
        path = path.get(dot + 1..).unwrap_or_default().as_bstr();
    }
}

fn directed(order: Ordering, is_descending: bool) -> Ordering {
    if is_descending { order.reverse() } else { order }
}

/// What a document is sorted by.
fn key<'a>(value: Value<'a>, path: &FieldPath, is_descending: bool, options: &CompareOptions<'_>) -> Value<'a> {
    let Value::Document(doc) = value else { return Value::Null };
    let mut best: Option<Value<'a>> = None;
    let arrays = PathOptions { leaf: LeafArrays::TraverseOmitArray, ..PathOptions::default() };
    let walk = visit_path(doc, path, arrays, &mut |visit| {
        operation::count(1);
        let candidate = visit.value.unwrap_or(Value::Null);
        let is_better = best.is_none_or(|best| directed(compare_with(candidate, best, options), is_descending).is_lt());
        if is_better {
            best = Some(candidate);
        }
        ControlFlow::<()>::Continue(())
    });
    debug_assert!(walk.is_continue(), "the walk goes to the end");
    // An empty array has the place of undefined, below null.
    best.unwrap_or(Value::Undefined)
}
