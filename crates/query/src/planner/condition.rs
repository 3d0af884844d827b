//! A filter taken apart into what indexes may serve.
//!
//! The filter is a conjunction (of one, if it is something else). Each conjunct gives the conditions on paths that can bound an
//! index; a conjunct that bounds exactly need not be looked at again. Conditions inside one `$elemMatch` hold for one and the
//! same element, which is what lets them bound a multikey index together.

use super::predicate_bounds::accepts_missing;
use pando_doc::FieldPath;
use pando_expr::matcher::{Node, Predicate};

/// The `$elemMatch` that a condition stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementScope {
    /// Which one: the number of its conjunct.
    pub group: usize,
    /// How many components its array's path has.
    pub part_count: usize,
}

/// A condition on a path.
#[derive(Clone, Debug)]
pub struct Condition<'q> {
    /// The whole path.
    pub path: FieldPath,
    /// What has to hold.
    pub predicate: &'q Predicate,
    /// What must not hold, rather.
    pub negated: bool,
    /// The conjunct that it comes from.
    pub conjunct: usize,
    /// The `$elemMatch` that it stands in.
    pub scope: Option<ElementScope>,
}

/// The conjuncts of a filter.
pub fn conjuncts(root: &Node) -> Vec<&Node> {
    match root {
        Node::And(children) => children.iter().collect(),
        Node::AlwaysTrue => Vec::new(),
        other => vec![other],
    }
}

/// The conditions of these conjuncts.
pub fn conditions<'q>(conjuncts: &[&'q Node]) -> Vec<Condition<'q>> {
    let mut found = Vec::new();
    for (conjunct, node) in conjuncts.iter().enumerate() {
        collect(node, conjunct, &mut found);
    }
    found
}

fn collect<'q>(node: &'q Node, conjunct: usize, found: &mut Vec<Condition<'q>>) {
    let (leaf, negated) = match node {
        Node::Leaf(leaf) => (leaf, false),
        Node::BucketGeo(within) => (within.leaf(), false),
        Node::Not(child) => match &**child {
            Node::Leaf(leaf) => (leaf, true),
            _ => return,
        },
        _ => return,
    };
    match &leaf.predicate {
        Predicate::ElemMatchObject(child) if !negated => {
            let scope = ElementScope { group: conjunct, part_count: leaf.path.part_count() };
            collect_in_element(child, &leaf.path, scope, found);
        }
        // What a number leads to is also missing in the documents of the array, of which an index knows nothing.
        predicate if has_number(&leaf.path) && (negated || accepts_missing(predicate)) => {}
        // The array at a numbered place is a key as a whole.
        Predicate::ElemMatchValue(_) if has_number(&leaf.path) => {}
        predicate => {
            found.push(Condition { path: leaf.path.clone(), predicate, negated, conjunct, scope: None });
        }
    }
}

fn collect_in_element<'q>(node: &'q Node, prefix: &FieldPath, scope: ElementScope, found: &mut Vec<Condition<'q>>) {
    for child in conjuncts(node) {
        let (leaf, negated) = match child {
            Node::Leaf(leaf) => (leaf, false),
            Node::Not(child) => match &**child {
                Node::Leaf(leaf) => (leaf, true),
                _ => continue,
            },
            _ => continue,
        };
        if matches!(leaf.predicate, Predicate::ElemMatchObject(_)) || starts_with_number(&leaf.path) {
            continue;
        }
        // Nulls, and negations of all else, hold where the element has no such field at all; they are left to the document.
        if accepts_missing(&leaf.predicate) != negated {
            continue;
        }
        let Ok(path) = prefix.join(&leaf.path) else { continue };
        let predicate = &leaf.predicate;
        found.push(Condition { path, predicate, negated, conjunct: scope.group, scope: Some(scope) });
    }
}

/// True if a part behind the first may name a place in an array.
fn has_number(path: &FieldPath) -> bool {
    path.parts().skip(1).any(|part| part.iter().all(u8::is_ascii_digit))
}

/// A number names a place when an array is inside the array, which the index sees differently.
fn starts_with_number(path: &FieldPath) -> bool {
    path.parts().next().is_some_and(|part| part.iter().all(u8::is_ascii_digit))
}
