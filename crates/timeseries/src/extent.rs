//! The least or the greatest value of each field of a bucket: `control.min` and `control.max`.
//!
//! Documents are compared field by field and arrays place by place, so that `min` of `{a: {b: 1, c: 5}}` and `{a: {b: 2, c: 3}}` is
//! `{a: {b: 1, c: 3}}`. Values of different kinds have MongoDB's order. While the kinds of all values at a path are the same, `min` and
//! `max` tell that kind: a measurement of another kind opens a new bucket, so that a query may trust both.

use pando_doc::{
    ArrayRef, CompareOptions, DocBuilder, DocRef, OwnedValue, RawElement, StringComparator, Value, ValueType,
    compare_with,
};
use std::cmp::Ordering;
use std::collections::HashMap;

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Least,
    Greatest,
}

/// Fields are looked up by name from so many on.
const LINEAR_MAX: usize = 16;

/// The extreme values of the fields of documents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extent {
    fields: Vec<(Vec<u8>, Extreme)>,
    places: HashMap<Vec<u8>, usize>,
}

#[derive(Clone, Debug)]
enum Extreme {
    Scalar(OwnedValue),
    Document(Extent),
    Array(Extent),
}

impl Extent {
    /// Reads a stored one.
    pub(crate) fn parse(doc: DocRef<'_>) -> Extent {
        let mut extent = Extent::default();
        for element in doc.elements() {
            extent.push(element.name, Extreme::of(element.value));
        }
        extent
    }

    fn push(&mut self, name: &[u8], value: Extreme) {
        let place = self.fields.len();
        self.fields.push((name.to_vec(), value));
        if place == LINEAR_MAX {
            self.places = self.fields.iter().enumerate().map(|(place, (name, _))| (name.clone(), place)).collect();
        } else if place > LINEAR_MAX {
            self.places.entry(name.to_vec()).or_insert(place);
        }
    }

    /// Where the field is; most documents have the same order.
    fn place(&self, name: &[u8], guess: usize) -> Option<usize> {
        if self.fields.get(guess).is_some_and(|(field, _)| field == name) {
            return Some(guess);
        }
        if self.fields.len() > LINEAR_MAX {
            return self.places.get(name).copied();
        }
        self.fields.iter().position(|(field, _)| field == name)
    }

    /// Where the field is, if it is there.
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        self.place(name, usize::MAX)
    }

    /// True if the kind of the value is the one that is known of this place.
    pub(crate) fn fits_at(&self, place: usize, element: RawElement<'_>) -> bool {
        self.fields.get(place).is_none_or(|(_, extreme)| extreme.fits(element))
    }

    /// Takes the value of the field at this place.
    pub(crate) fn update_at(
        &mut self,
        place: usize,
        value: Value<'_>,
        end: End,
        strings: Option<&dyn StringComparator>,
    ) {
        if let Some((_, extreme)) = self.fields.get_mut(place) {
            extreme.update(value, end, strings);
        }
    }

    /// Takes a measurement's fields, but for those left out.
    pub(crate) fn update(
        &mut self,
        doc: DocRef<'_>,
        end: End,
        strings: Option<&dyn StringComparator>,
        is_left_out: impl Fn(&[u8]) -> bool,
    ) {
        for (guess, element) in doc.elements().filter(|element| !is_left_out(element.name)).enumerate() {
            match self.place(element.name, guess) {
                None => self.push(element.name, Extreme::of(element.value)),
                Some(place) => {
                    if let Some((_, extreme)) = self.fields.get_mut(place) {
                        extreme.update(element.value, end, strings);
                    }
                }
            }
        }
    }

    /// True if the kind of each value is the one that is known of its path.
    pub(crate) fn fits(&self, doc: DocRef<'_>, is_left_out: impl Fn(&[u8]) -> bool) -> bool {
        doc.raw_elements().filter(|element| !is_left_out(element.name)).enumerate().all(|(guess, element)| {
            let known = self.place(element.name, guess).and_then(|place| self.fields.get(place));
            known.is_none_or(|(_, extreme)| extreme.fits(element))
        })
    }

    fn write(&self, out: &mut DocBuilder) {
        for (name, extreme) in &self.fields {
            match extreme {
                Extreme::Scalar(value) => out.append(name, value.view()),
                Extreme::Document(fields) => out.document(name, |nested| fields.write(nested)),
                Extreme::Array(values) => {
                    let mut array = DocBuilder::new();
                    values.write(&mut array);
                    let array = array.finish();
                    out.append(name, Value::Array(ArrayRef::from_doc(array.view())));
                }
            }
        }
    }

    /// Writes it as a field.
    pub(crate) fn append_to(&self, name: &str, out: &mut DocBuilder) {
        out.document(name, |nested| self.write(nested));
    }
}

impl Extreme {
    fn of(value: Value<'_>) -> Extreme {
        match value {
            Value::Document(doc) => Extreme::Document(Extent::parse(doc)),
            Value::Array(array) => Extreme::Array(Extent::parse(array.as_doc())),
            scalar => Extreme::Scalar(scalar.to_owned()),
        }
    }

    fn value_type(&self) -> ValueType {
        match self {
            Extreme::Scalar(value) => value.value_type(),
            Extreme::Document(_) => ValueType::Document,
            Extreme::Array(_) => ValueType::Array,
        }
    }

    fn update(&mut self, value: Value<'_>, end: End, strings: Option<&dyn StringComparator>) {
        match (&mut *self, value) {
            (Extreme::Document(extent), Value::Document(doc)) => extent.update(doc, end, strings, |_| false),
            (Extreme::Array(extent), Value::Array(array)) => extent.update(array.as_doc(), end, strings, |_| false),
            (Extreme::Scalar(current), value) if !matches!(value, Value::Document(_) | Value::Array(_)) => {
                let order = simple_order(value, current.view()).unwrap_or_else(|| {
                    let options = CompareOptions { strings, ..CompareOptions::default() };
                    compare_with(value, current.view(), &options)
                });
                if order == end.wins() {
                    *current = value.to_owned();
                }
            }
            (current, value) => {
                let order = |value_type: ValueType| value_type.canonical_order();
                if order(value.value_type()).cmp(&order(current.value_type())) == end.wins() {
                    *self = Extreme::of(value);
                }
            }
        }
    }

    fn fits(&self, element: RawElement<'_>) -> bool {
        let is_same = self.value_type().canonical_order() == element.value_type.canonical_order();
        is_same
            && match self {
                Extreme::Scalar(_) => true,
                Extreme::Document(extent) | Extreme::Array(extent) => {
                    extent.fits(DocRef::trusted(element.value_bytes), |_| false)
                }
            }
    }
}

/// How two numbers of one type, two dates or two ids compare: what most measurements consist of.
fn simple_order(left: Value<'_>, right: Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(&right),
        (Value::Int32(left), Value::Int32(right)) => Some(left.cmp(&right)),
        (Value::Int64(left), Value::Int64(right)) | (Value::DateTime(left), Value::DateTime(right)) => {
            Some(left.cmp(&right))
        }
        (Value::ObjectId(left), Value::ObjectId(right)) => Some(left.bytes().cmp(right.bytes())),
        _ => None,
    }
}

impl End {
    /// How a value compares that takes the place of another.
    fn wins(self) -> Ordering {
        match self {
            End::Least => Ordering::Less,
            End::Greatest => Ordering::Greater,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::{Doc, doc};

    fn extent(end: End, docs: &[Doc]) -> Doc {
        let mut extent = Extent::default();
        docs.iter().for_each(|doc| extent.update(doc.view(), end, None, |name| name == b"m"));
        let mut out = DocBuilder::new();
        extent.write(&mut out);
        out.finish()
    }

    #[test]
    fn x29_extremes_go_into_documents_and_arrays() {
        let docs = [
            doc! { "m": 1, "a": { "b": 1, "c": 5 }, "x": [1, 9], "y": 3 },
            doc! { "a": { "b": 2, "c": 3 }, "x": [4, 2, 7], "z": "s" },
        ];
        let least = doc! { "a": { "b": 1, "c": 3 }, "x": [1, 2, 7], "y": 3, "z": "s" };
        let greatest = doc! { "a": { "b": 2, "c": 5 }, "x": [4, 9, 7], "y": 3, "z": "s" };
        assert_eq!(extent(End::Least, &docs), least);
        assert_eq!(extent(End::Greatest, &docs), greatest);
    }

    #[test]
    fn x29_kinds_have_their_order() {
        let docs = [doc! { "a": 5 }, doc! { "a": { "b": 1 } }, doc! { "a": "text" }];
        assert_eq!(extent(End::Least, &docs), doc! { "a": 5 });
        assert_eq!(extent(End::Greatest, &docs), doc! { "a": { "b": 1 } });
        let known = Extent::parse(doc! { "a": 5, "b": { "c": [1] } }.view());
        assert!(known.fits(doc! { "a": 7.5, "d": "new" }.view(), |_| false));
        assert!(!known.fits(doc! { "a": "text" }.view(), |_| false));
        assert!(!known.fits(doc! { "b": { "c": ["text"] } }.view(), |_| false));
    }
}
