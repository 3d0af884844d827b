//! The walk along a path.

use super::FieldPath;
use crate::{ArrayRef, DocRef, Element, Value};
use bstr::BStr;
use std::ops::ControlFlow;

/// What to do with an array at the end of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LeafArrays {
    /// Report each of its values and then the array itself.
    #[default]
    Traverse,
    /// Report each of its values only.
    TraverseOmitArray,
    /// Report the array itself only.
    NoTraversal,
}

/// What to do with the first array before the end of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NonLeafArrays {
    /// Go on in each of its documents, and at the place that the next part names if that is a number.
    #[default]
    Traverse,
    /// Report nothing.
    NoTraversal,
    /// Report the array in place of what the path leads to.
    MatchSubpath,
}

/// How a walk treats arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct PathOptions {
    pub leaf: LeafArrays,
    pub non_leaf: NonLeafArrays,
}

/// What the walk came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visit<'a> {
    /// The value; none where the path leads nowhere.
    pub value: Option<Value<'a>>,
    /// The index in the outermost array that the path did not name; what `$` in an update means.
    pub array_index: Option<&'a BStr>,
}

/// Reports everything that the path leads to, until the visitor breaks off.
pub fn visit_path<'a, B>(
    doc: DocRef<'a>,
    path: &FieldPath,
    options: PathOptions,
    visitor: &mut impl FnMut(Visit<'a>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    Walk { path, leaf: options.leaf, visitor }.document(doc, 0, None, options.non_leaf)
}

/// The value at the path through documents only; an array in between ends the search.
pub fn get_path<'a>(doc: DocRef<'a>, path: &FieldPath) -> Option<Value<'a>> {
    let mut value = Value::Document(doc);
    for part in path.parts() {
        value = value.as_document()?.get(part)?;
    }
    Some(value)
}

/// The value at the path, where numbers name places in arrays, as in updates.
pub fn get_path_with_indexes<'a>(doc: DocRef<'a>, path: &FieldPath) -> Option<Value<'a>> {
    let mut value = Value::Document(doc);
    for part in path.parts() {
        value = match value {
            Value::Document(doc) => doc.get(part)?,
            Value::Array(array) => array.get(array_index(part)?)?,
            _ => return None,
        };
    }
    Some(value)
}

/// The place that the part names: digits only, and no zero in front of others.
fn array_index(part: &BStr) -> Option<usize> {
    let is_index = is_all_digits(part) && (part.len() == 1 || part.first() != Some(&b'0'));
    if is_index { std::str::from_utf8(part).ok()?.parse().ok() } else { None }
}

fn is_all_digits(part: &BStr) -> bool {
    !part.is_empty() && part.iter().all(u8::is_ascii_digit)
}

struct Walk<'w, 'a, B> {
    path: &'w FieldPath,
    leaf: LeafArrays,
    visitor: &'w mut dyn FnMut(Visit<'a>) -> ControlFlow<B>,
}

impl<'a, B> Walk<'_, 'a, B> {
    fn report(&mut self, value: Option<Value<'a>>, array_index: Option<&'a BStr>) -> ControlFlow<B> {
        (self.visitor)(Visit { value, array_index })
    }

    /// Follows the path from this part on, through documents until its end or an array.
    fn document(
        &mut self,
        doc: DocRef<'a>,
        first: usize,
        index: Option<&'a BStr>,
        non_leaf: NonLeafArrays,
    ) -> ControlFlow<B> {
        let mut current = doc;
        let mut part = first;
        loop {
            let is_last = part + 1 >= self.path.part_count();
            match current.get(self.path.part(part)) {
                Some(Value::Array(array)) => return self.array(array, part + 1, index, non_leaf),
                Some(Value::Document(nested)) if !is_last => current = nested,
                value if is_last => return self.report(value, index),
                _ => return self.report(None, index),
            }
            part += 1;
        }
    }

    /// At an array; the path goes on with this part, if it has it.
    fn array(
        &mut self,
        array: ArrayRef<'a>,
        next: usize,
        index: Option<&'a BStr>,
        non_leaf: NonLeafArrays,
    ) -> ControlFlow<B> {
        let is_leaf = next >= self.path.part_count();
        match (is_leaf, self.leaf, non_leaf) {
            (false, _, NonLeafArrays::Traverse) => self.values(array, next, index),
            (false, _, NonLeafArrays::NoTraversal) => ControlFlow::Continue(()),
            (false, _, NonLeafArrays::MatchSubpath) | (true, LeafArrays::NoTraversal, _) => {
                self.report(Some(Value::Array(array)), index)
            }
            (true, leaf, _) => {
                for element in array.as_doc().elements() {
                    self.report(Some(element.value), index.or(Some(element.name)))?;
                }
                if leaf == LeafArrays::Traverse {
                    self.report(Some(Value::Array(array)), index)
                } else {
                    ControlFlow::Continue(())
                }
            }
        }
    }

    /// Follows the path from this part on in each value of an array.
    fn values(&mut self, array: ArrayRef<'a>, next: usize, index: Option<&'a BStr>) -> ControlFlow<B> {
        let path = self.path;
        let part = path.part(next);
        let is_number = is_all_digits(part);
        for element in array.as_doc().elements() {
            if let Value::Document(nested) = element.value {
                self.document(nested, next, index.or(Some(element.name)), NonLeafArrays::Traverse)?;
            }
            if is_number && element.name == part {
                self.named_place(element, next + 1, index)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// At the place of an array that the path names itself.
    fn named_place(&mut self, element: Element<'a>, next: usize, index: Option<&'a BStr>) -> ControlFlow<B> {
        match element.value {
            value if next >= self.path.part_count() => self.report(Some(value), index),
            Value::Document(nested) => self.document(nested, next, index, NonLeafArrays::Traverse),
            Value::Array(nested) => self.values(nested, next, index),
            _ => ControlFlow::Continue(()),
        }
    }
}
