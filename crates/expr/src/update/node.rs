//! The operators of an update as a tree by path.

use super::operation::Operation;
use super::path::{Part, array_index};
use bstr::{BStr, BString, ByteSlice};
use pando_base::{Error, ErrorCode, Result};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// What is done at a path.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// An operator.
    Leaf(Operation),
    /// Operators on fields or places.
    Object(Object),
    /// Operators on the values of an array, by identifier; the empty one is `$[]`.
    Array(BTreeMap<BString, Node>),
}

/// Operators by name, and those behind `$`.
#[derive(Clone, Debug, Default)]
pub(super) struct Object {
    pub(super) fields: BTreeMap<Name, Node>,
    pub(super) matched: Option<Box<Node>>,
}

/// A name; numbers come first, by value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name(pub(super) BString);

impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        match (array_index(self.0.as_bstr()), array_index(other.0.as_bstr())) {
            (Some(left), Some(right)) => left.cmp(&right),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => self.0.cmp(&other.0),
        }
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A part of the path of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathPart<'n> {
    /// A field, or a place of an array.
    Name(&'n BStr),
    /// A place of an array that depends on the document.
    Each,
}

impl Node {
    fn visit<'n>(&'n self, path: &mut Vec<PathPart<'n>>, visit: &mut dyn FnMut(&[PathPart<'_>], bool)) {
        match self {
            Node::Leaf(operation) => visit(path, matches!(operation, Operation::Push(_))),
            Node::Object(object) => object.visit(path, visit),
            Node::Array(places) => places.values().for_each(|node| node.visit_at(PathPart::Each, path, visit)),
        }
    }

    fn visit_at<'n>(
        &'n self,
        part: PathPart<'n>,
        path: &mut Vec<PathPart<'n>>,
        visit: &mut dyn FnMut(&[PathPart<'_>], bool),
    ) {
        path.push(part);
        self.visit(path, visit);
        path.pop();
    }
}

impl Object {
    /// Tells of every operator below where it is and whether it pushes.
    pub(super) fn visit<'n>(&'n self, path: &mut Vec<PathPart<'n>>, visit: &mut dyn FnMut(&[PathPart<'_>], bool)) {
        for (name, node) in &self.fields {
            node.visit_at(PathPart::Name(name.0.as_bstr()), path, visit);
        }
        if let Some(node) = &self.matched {
            node.visit_at(PathPart::Each, path, visit);
        }
    }
}

fn conflict(path: &BStr, place: &[&Part]) -> Error {
    let texts: Vec<BString> = place.iter().map(|part| shown(part)).collect();
    let place = BString::from(bstr::join(".", texts));
    let reason = format!("Updating the path '{path}' would create a conflict at '{place}'");
    Error::new(ErrorCode::ConflictingUpdateOperators, reason)
}

fn shown(part: &Part) -> BString {
    match part {
        Part::Name(name) => name.clone(),
        Part::Matched => BString::from("$"),
        Part::Filtered(identifier) => BString::from(format!("$[{identifier}]")),
    }
}

impl Object {
    /// Adds an operator on a field of the object itself; nothing may be there.
    pub(super) fn insert_named(&mut self, name: &BStr, operation: Operation) -> Result<()> {
        match self.fields.entry(Name(name.to_owned())) {
            Entry::Vacant(place) => {
                place.insert(Node::Leaf(operation));
                Ok(())
            }
            Entry::Occupied(_) => Err(conflict(name, &[&Part::Name(name.to_owned())])),
        }
    }

    /// Adds an operator; nothing may be at its path, nor on the way to it.
    pub(super) fn insert(&mut self, path: &BStr, parts: &[Part], operation: Operation) -> Result<()> {
        let mut walked: Vec<&Part> = Vec::new();
        let mut current = Place::Object(self);
        let Some((last, way)) = parts.split_last() else { return Err(Error::internal("a path has parts")) };
        for (index, part) in way.iter().enumerate() {
            walked.push(part);
            let next_is_array = matches!(parts.get(index + 1), Some(Part::Filtered(_)));
            let node = current.child(part, || Node::empty(next_is_array)).ok_or_else(|| conflict(path, &walked))?;
            current = match node {
                Node::Object(object) if !next_is_array => Place::Object(object),
                Node::Array(array) if next_is_array => Place::Array(array),
                _ => return Err(conflict(path, &walked)),
            };
        }
        walked.push(last);
        let mut is_new = false;
        let node = current.child(last, || {
            is_new = true;
            Node::Leaf(operation)
        });
        if node.is_none() || !is_new { Err(conflict(path, &walked)) } else { Ok(()) }
    }
}

enum Place<'n> {
    Object(&'n mut Object),
    Array(&'n mut BTreeMap<BString, Node>),
}

impl<'n> Place<'n> {
    /// The node below; none if such a part cannot be here.
    fn child(self, part: &Part, make: impl FnOnce() -> Node) -> Option<&'n mut Node> {
        match (self, part) {
            (Place::Object(object), Part::Name(name)) => {
                Some(object.fields.entry(Name(name.clone())).or_insert_with(make))
            }
            (Place::Object(object), Part::Matched) => Some(object.matched.get_or_insert_with(|| Box::new(make()))),
            (Place::Array(array), Part::Filtered(identifier)) => {
                Some(array.entry(identifier.clone()).or_insert_with(make))
            }
            _ => None,
        }
    }
}

impl Node {
    fn empty(is_array: bool) -> Node {
        if is_array { Node::Array(BTreeMap::new()) } else { Node::Object(Object::default()) }
    }

    /// Both, if they do not overlap.
    pub(super) fn merge(left: &Node, right: &Node, path: &str) -> Result<Node> {
        match (left, right) {
            (Node::Object(left), Node::Object(right)) => {
                let mut merged = left.clone();
                for (name, node) in &right.fields {
                    let node = match merged.fields.get(name) {
                        Some(other) => Node::merge(other, node, &format!("{path}.{}", name.0))?,
                        None => node.clone(),
                    };
                    merged.fields.insert(name.clone(), node);
                }
                merged.matched = match (merged.matched.take(), &right.matched) {
                    (Some(left), Some(right)) => Some(Box::new(Node::merge(&left, right, &format!("{path}.$"))?)),
                    (left, right) => left.or_else(|| right.clone()),
                };
                Ok(Node::Object(merged))
            }
            (Node::Array(left), Node::Array(right)) => {
                let mut merged = left.clone();
                for (identifier, node) in right {
                    let node = match merged.get(identifier) {
                        Some(other) => Node::merge(other, node, &format!("{path}.$[{identifier}]"))?,
                        None => node.clone(),
                    };
                    merged.insert(identifier.clone(), node);
                }
                Ok(Node::Array(merged))
            }
            _ => {
                let reason = format!("Update created a conflict at '{path}'");
                Err(Error::new(ErrorCode::ConflictingUpdateOperators, reason))
            }
        }
    }

    /// The names below this node that lead to an operator which neither makes its path nor ignores that it cannot be made.
    pub(super) fn way_to_strict(&self) -> Option<Vec<&BStr>> {
        match self {
            Node::Leaf(Operation::Pop(_) | Operation::Pull(_)) => Some(Vec::new()),
            Node::Object(object) => object.fields.iter().find_map(|(name, node)| {
                let mut way = node.way_to_strict()?;
                way.insert(0, name.0.as_bstr());
                Some(way)
            }),
            Node::Leaf(_) | Node::Array(_) => None,
        }
    }

    /// True if it makes its path if that is missing.
    pub(super) fn creates(&self, is_insert: bool) -> bool {
        match self {
            Node::Leaf(operation) => operation.creates(is_insert),
            Node::Object(object) => {
                object.matched.is_some() || object.fields.values().any(|node| node.creates(is_insert))
            }
            Node::Array(_) => true,
        }
    }
}
