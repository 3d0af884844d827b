//! What a filter says that every matching document has: where an upsert starts from.
//!
//! Equalities count through `$and`, and through an `$or`, `$in` or `$all` with one alternative as it was written (alternatives that
//! turn out to be the same are still several). Two of them on the same
//! path, or one inside the other, contradict: the new document could not have both.

use super::{ComparisonOperator, Node, Predicate};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{FieldPath, OwnedValue};

type Equalities = Vec<(FieldPath, OwnedValue)>;

/// Those on the paths that count.
pub(super) fn of(root: &Node, counts: &dyn Fn(&FieldPath) -> bool) -> Result<Equalities> {
    let mut found = Vec::new();
    collect(root, counts, &mut found)?;
    Ok(found)
}

fn collect(node: &Node, counts: &dyn Fn(&FieldPath) -> bool, found: &mut Equalities) -> Result<()> {
    match node {
        Node::And(children) => children.iter().try_for_each(|child| collect(child, counts, found)),
        Node::Or(children) => match children.as_slice() {
            [only] => collect(only, counts, found),
            _ => Ok(()),
        },
        Node::Leaf(leaf) => match equality(&leaf.predicate) {
            Some(value) if counts(&leaf.path) => add(&leaf.path, value, found),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn equality(predicate: &Predicate) -> Option<&OwnedValue> {
    match predicate {
        Predicate::Comparison(comparison) if comparison.operator == ComparisonOperator::Equal => {
            Some(&comparison.value)
        }
        Predicate::In(list) => match (list.values(), list.regexes()) {
            ([value], []) => Some(value),
            _ => None,
        },
        _ => None,
    }
}

fn add(path: &FieldPath, value: &OwnedValue, found: &mut Equalities) -> Result<()> {
    for (other, _) in found.iter() {
        if other == path {
            let reason = format!("cannot infer query fields to set, path '{path}' is matched twice");
            return Err(Error::new(ErrorCode::NotSingleValueField, reason));
        }
        if other.is_prefix_of(path) || path.is_prefix_of(other) {
            let (outer, inner) = if other.is_prefix_of(path) { (other, path) } else { (path, other) };
            let reason = format!("cannot infer query fields to set, both paths '{inner}' and '{outer}' are matched");
            return Err(Error::new(ErrorCode::NotSingleValueField, reason));
        }
    }
    found.push((path.clone(), value.clone()));
    Ok(())
}
