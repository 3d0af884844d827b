//! The diff of an update of which is known what it has touched: operators log the values that they have set, as a whole, however
//! little of them is new, and in a diff however small the document is. Readers of change streams see which fields were set.

use super::compute::{ArrayNode, Change, DocumentNode, Node};
use super::format::{self, Digits};
use bstr::{BStr, BString};
use pando_doc::{Doc, DocRef, RawElement, ValueType};
use std::collections::BTreeMap;

/// What an update touches of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Touched {
    /// All of it.
    Value,
    /// Values are put to the end of an array, unless something else happens to it as well.
    End,
    /// What is inside.
    Inside(TouchedInside),
}

/// What an update touches inside a document or an array.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TouchedInside {
    /// Fields or places by name.
    pub named: BTreeMap<BString, Touched>,
    /// Any place of an array.
    pub each: Option<Box<Touched>>,
}

impl Touched {
    /// What either touches.
    #[must_use]
    pub fn union(self, other: Touched) -> Touched {
        match (self, other) {
            (Touched::Inside(mut own), Touched::Inside(other)) => {
                for (name, touched) in other.named {
                    let merged = match own.named.remove(&name) {
                        Some(before) => before.union(touched),
                        None => touched,
                    };
                    own.named.insert(name, merged);
                }
                own.each = match (own.each, other.each) {
                    (Some(one), Some(two)) => Some(Box::new(one.union(*two))),
                    (one, two) => one.or(two),
                };
                Touched::Inside(own)
            }
            _ => Touched::Value,
        }
    }
}

/// The diff of two versions, of which nothing but what was touched differs. None if they are the same, or if a diff cannot say it.
pub(crate) fn of_touched(pre: DocRef<'_>, post: DocRef<'_>, touched: &TouchedInside) -> Option<Doc> {
    let node = document(pre, post, touched)?;
    (!node.is_empty()).then(|| format::write(&node))
}

fn document<'a>(pre: DocRef<'a>, post: DocRef<'a>, touched: &TouchedInside) -> Option<DocumentNode<'a>> {
    if touched.each.is_some() {
        return None;
    }
    let mut old: BTreeMap<&BStr, RawElement<'a>> = BTreeMap::new();
    for field in pre.raw_elements().filter(|field| touched.named.contains_key(field.name)) {
        if old.insert(field.name, field).is_some() {
            return None;
        }
    }
    let mut node = DocumentNode::new(0);
    for new in post.raw_elements() {
        let Some(touched) = touched.named.get(new.name) else { continue };
        match old.remove(new.name) {
            None => node.insert(new),
            Some(old) if old.bytes == new.bytes => {}
            Some(old) => match inner(old, new, touched) {
                Some(inner) => node.push_inner(new.name, inner),
                None => node.update(new),
            },
        }
    }
    old.into_keys().for_each(|name| node.delete(name));
    Some(node)
}

/// What happened inside a value; none if it is to be logged as a whole.
fn inner<'a>(old: RawElement<'a>, new: RawElement<'a>, touched: &Touched) -> Option<Node<'a>> {
    let versions = (DocRef::trusted(old.value_bytes), DocRef::trusted(new.value_bytes));
    match (touched, old.value_type, new.value_type) {
        (Touched::Inside(inside), ValueType::Document, ValueType::Document) => {
            document(versions.0, versions.1, inside).map(Node::Document)
        }
        (Touched::Inside(inside), ValueType::Array, ValueType::Array) => {
            array(versions.0, versions.1, Some(inside)).map(Node::Array)
        }
        (Touched::End, ValueType::Array, ValueType::Array) => array(versions.0, versions.1, None).map(Node::Array),
        _ => None,
    }
}

/// What happened to the places of an array. Without anything inside, only its end may have changed, and it must have been there.
fn array<'a>(pre: DocRef<'a>, post: DocRef<'a>, inside: Option<&TouchedInside>) -> Option<ArrayNode<'a>> {
    if pre.is_empty() && inside.is_none() {
        return None;
    }
    let mut node = ArrayNode::new();
    let mut old_values = pre.raw_elements();
    for (index, new) in post.raw_elements().enumerate() {
        let digits = Digits::of(index);
        if new.name != digits.as_bstr() {
            return None;
        }
        match old_values.next() {
            None => node.push(index, Change::Set(new)),
            Some(old) if old.bytes == new.bytes => {}
            Some(old) => {
                let inside = inside?;
                let touched = match (inside.named.get(digits.as_bstr()), &inside.each) {
                    (Some(touched), None) => touched,
                    (None, Some(touched)) => touched,
                    _ => return None,
                };
                match inner(old, new, touched) {
                    Some(inner) => node.push(index, Change::Inner(inner)),
                    None => node.push(index, Change::Set(new)),
                }
            }
        }
    }
    old_values.next().is_none().then_some(node)
}

/// The diff of a value whose end alone may have changed; none if it is to be logged as a whole.
pub(crate) fn end<'a>(old: RawElement<'a>, new: RawElement<'a>) -> Option<Node<'a>> {
    inner(old, new, &Touched::End)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::apply;
    use pando_doc::doc;

    fn inside(named: Vec<(&str, Touched)>) -> TouchedInside {
        TouchedInside { named: named.into_iter().map(|(name, touched)| (name.into(), touched)).collect(), each: None }
    }

    #[track_caller]
    fn check(pre: Doc, post: Doc, touched: TouchedInside, expected: Option<Doc>) {
        let diff = of_touched(pre.view(), post.view(), &touched);
        assert_eq!(diff, expected, "{pre} {post}");
        if let Some(diff) = diff {
            assert_eq!(apply(pre.view(), diff.view()).unwrap(), post);
        }
    }

    #[test]
    fn x9_operators_log_what_they_set() {
        use Touched::{End, Inside, Value};
        let set = inside(vec![("a", Value), ("z", Value)]);
        check(doc! { "_id": 1, "a": 1 }, doc! { "_id": 1, "a": 2 }, set.clone(), Some(doc! { "u": { "a": 2 } }));
        check(
            doc! { "a": { "b": 1, "c": 1 } },
            doc! { "a": { "b": 2, "c": 1 } },
            set.clone(),
            Some(doc! { "u": { "a": { "b": 2, "c": 1 } } }),
        );
        check(doc! { "a": 1 }, doc! { "a": 1, "z": 2 }, set.clone(), Some(doc! { "i": { "z": 2 } }));
        check(doc! { "a": 1, "z": 2 }, doc! { "z": 2 }, set.clone(), Some(doc! { "d": { "a": false } }));
        check(doc! { "a": 1 }, doc! { "a": 1 }, set, None);
        let below = inside(vec![("a", Inside(inside(vec![("b", Value)])))]);
        check(
            doc! { "a": { "b": 1, "c": 1 } },
            doc! { "a": { "b": 2, "c": 1 } },
            below.clone(),
            Some(doc! { "sa": { "u": { "b": 2 } } }),
        );
        check(doc! {}, doc! { "a": { "b": 2 } }, below, Some(doc! { "i": { "a": { "b": 2 } } }));
        let push = inside(vec![("a", End)]);
        check(
            doc! { "a": [1] },
            doc! { "a": [1, 2, 3] },
            push.clone(),
            Some(doc! { "sa": { "a": true, "u1": 2, "u2": 3 } }),
        );
        check(doc! { "a": [1] }, doc! { "a": [2] }, push.clone(), Some(doc! { "u": { "a": [2] } }));
        check(doc! { "a": [] }, doc! { "a": [2] }, push, Some(doc! { "u": { "a": [2] } }));
    }

    #[test]
    fn x9_places_of_arrays() {
        use Touched::{Inside, Value};
        let third = inside(vec![("a", Inside(inside(vec![("2", Value)])))]);
        check(
            doc! { "a": [1] },
            doc! { "a": [1, null, 5] },
            third.clone(),
            Some(doc! { "sa": { "a": true, "u1": null, "u2": 5 } }),
        );
        check(doc! { "a": [1, 2, 3] }, doc! { "a": [1, 2, 5] }, third, Some(doc! { "sa": { "a": true, "u2": 5 } }));
        let each =
            TouchedInside { each: Some(Box::new(Inside(inside(vec![("b", Value)])))), ..TouchedInside::default() };
        let each = inside(vec![("a", Inside(each))]);
        let (pre, post) = (doc! { "a": [{ "b": 1 }, { "b": 2 }] }, doc! { "a": [{ "b": 1 }, { "b": 3 }] });
        check(pre, post, each, Some(doc! { "sa": { "a": true, "s1": { "u": { "b": 3 } } } }));
    }
}
