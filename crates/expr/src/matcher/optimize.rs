//! The smallest form of a filter.
//!
//! Lists in lists of the same kind are flattened, lists of one are replaced by it, constants are folded, an `$in` of one is an
//! equality, an `$or` of equalities on one path is an `$in`. Children are put into a canonical order, so that filters of
//! the same shape have one plan cache entry and look alike in `explain`.

use super::expr_comparison::condition_of;
use super::{Comparison, ComparisonOperator, InList, Leaf, Node, Predicate};
use crate::context::{SharedCollator, strings};
use pando_base::operation;
use pando_doc::FieldPath;
use std::collections::HashMap;

pub(super) fn optimize(node: Node, collator: &Option<SharedCollator>) -> Node {
    operation::count(4);
    let node = match node {
        Node::And(children) => and(children, collator),
        Node::Or(children) => or(children, collator),
        Node::Nor(children) => nor(children, collator),
        Node::Not(child) => match optimize(*child, collator) {
            Node::AlwaysTrue => Node::AlwaysFalse,
            Node::AlwaysFalse => Node::AlwaysTrue,
            // One of another stays: what is behind a negation tells nothing of the value that
            // matched.
            child => Node::negate(child),
        },
        Node::Leaf(leaf) => optimize_leaf(leaf, collator),
        Node::Expr(expression) => match expression.as_constant() {
            Some(constant) if constant.is_some_and(|value| value.is_true()) => Node::AlwaysTrue,
            Some(_) => Node::AlwaysFalse,
            None => match condition_of(&expression) {
                Some(condition) => {
                    let mut both = vec![Node::Expr(expression)];
                    match condition {
                        Node::And(parts) => both.extend(parts),
                        only => both.push(only),
                    }
                    Node::And(both)
                }
                None => Node::Expr(expression),
            },
        },
        Node::Schema(schema) => Node::Schema(schema),
        Node::Where(clause) => Node::Where(clause),
        Node::Text(clause) => Node::Text(clause),
        Node::BucketGeo(within) => Node::BucketGeo(within),
        constant @ (Node::AlwaysTrue | Node::AlwaysFalse) => constant,
    };
    // The empty conjunction is how "everything" is written.
    if node == Node::AlwaysTrue { Node::And(Vec::new()) } else { node }
}

fn and(children: Vec<Node>, collator: &Option<SharedCollator>) -> Node {
    let mut flat = Vec::with_capacity(children.len());
    for child in children {
        match optimize(child, collator) {
            Node::AlwaysFalse => return Node::AlwaysFalse,
            Node::AlwaysTrue => {}
            // What an expression brings along may have been brought along before.
            Node::And(inner) => flat.extend(inner),
            other => flat.push(other),
        }
    }
    let mut known: Vec<Node> = Vec::new();
    flat.retain(|child| {
        let is_again = is_from_expression(child) && known.contains(child);
        if is_from_expression(child) && !is_again {
            known.push(child.clone());
        }
        !is_again
    });
    one_or(flat, Node::And)
}

/// True for a condition that an expression has brought along.
fn is_from_expression(node: &Node) -> bool {
    match node {
        Node::Leaf(leaf) => matches!(leaf.predicate, Predicate::ExprComparison(_)),
        Node::Or(children) | Node::And(children) => !children.is_empty() && children.iter().all(is_from_expression),
        _ => false,
    }
}

fn or(children: Vec<Node>, collator: &Option<SharedCollator>) -> Node {
    let mut flat = Vec::with_capacity(children.len());
    for child in children {
        match optimize(child, collator) {
            Node::AlwaysFalse => {}
            child if child.is_trivially_true() => return Node::AlwaysTrue,
            Node::Or(inner) => flat.extend(inner),
            other => flat.push(other),
        }
    }
    if flat.is_empty() {
        return Node::AlwaysFalse;
    }
    one_or(merge_equalities(flat, collator), Node::Or)
}

fn nor(children: Vec<Node>, collator: &Option<SharedCollator>) -> Node {
    let mut kept = Vec::with_capacity(children.len());
    for child in children {
        match optimize(child, collator) {
            Node::AlwaysFalse => {}
            child if child.is_trivially_true() => return Node::AlwaysFalse,
            other => kept.push(other),
        }
    }
    if kept.is_empty() {
        return Node::AlwaysTrue;
    }
    kept.sort_by(canonical_order);
    Node::Nor(kept)
}

fn one_or(mut children: Vec<Node>, list: impl FnOnce(Vec<Node>) -> Node) -> Node {
    if children.len() == 1 {
        return children.swap_remove(0);
    }
    children.sort_by(canonical_order);
    list(children)
}

/// Alternatives that are equalities or patterns on one path become one list.
fn merge_equalities(children: Vec<Node>, collator: &Option<SharedCollator>) -> Vec<Node> {
    let mut merged: Vec<Node> = Vec::with_capacity(children.len());
    let mut groups: Vec<(FieldPath, Vec<Predicate>)> = Vec::new();
    let mut places: HashMap<FieldPath, usize> = HashMap::new();
    for child in children {
        match child {
            Node::Leaf(Leaf { path, predicate }) if is_mergeable(&predicate) => {
                operation::count(1);
                let place = places.get(&path).copied();
                match place.and_then(|place| groups.get_mut(place)) {
                    Some(group) => group.1.push(predicate),
                    None => {
                        places.insert(path.clone(), groups.len());
                        groups.push((path, vec![predicate]));
                    }
                }
            }
            other => merged.push(other),
        }
    }
    for (path, predicates) in groups {
        match list_of(&predicates, collator) {
            // Alternatives that are all the same stay several: an upsert must not take them for an equality.
            list if predicates.len() > 1 && list.values().len() + list.regexes().len() > 1 => {
                merged.push(Node::leaf(path, Predicate::In(list)));
            }
            _ => merged.extend(predicates.into_iter().map(|predicate| Node::leaf(path.clone(), predicate))),
        }
    }
    merged
}

fn is_mergeable(predicate: &Predicate) -> bool {
    match predicate {
        // A list takes a pattern for something to match, an equality for a value.
        Predicate::Comparison(comparison) => {
            comparison.operator == ComparisonOperator::Equal
                && !matches!(comparison.value, pando_doc::OwnedValue::Regex(_))
        }
        Predicate::In(_) | Predicate::Regex(_) => true,
        _ => false,
    }
}

fn list_of(predicates: &[Predicate], collator: &Option<SharedCollator>) -> InList {
    let (mut values, mut regexes) = (Vec::new(), Vec::new());
    for predicate in predicates {
        match predicate {
            Predicate::Comparison(comparison) => values.push(comparison.value.clone()),
            Predicate::Regex(regex) => regexes.push(regex.clone()),
            Predicate::In(list) => {
                values.extend_from_slice(list.values());
                regexes.extend_from_slice(list.regexes());
            }
            other => debug_assert!(false, "not mergeable: {other:?}"),
        }
    }
    InList::new(values, regexes, strings(collator))
}

fn optimize_leaf(leaf: Leaf, collator: &Option<SharedCollator>) -> Node {
    let Leaf { path, predicate } = leaf;
    match predicate {
        Predicate::In(list) => match (list.values(), list.regexes()) {
            ([], []) => Node::AlwaysFalse,
            ([value], []) => {
                let comparison = Comparison { operator: ComparisonOperator::Equal, value: value.clone() };
                Node::leaf(path, Predicate::Comparison(comparison))
            }
            ([], [regex]) => Node::leaf(path, Predicate::Regex(regex.clone())),
            _ => Node::leaf(path, Predicate::In(list)),
        },
        Predicate::ElemMatchObject(child) => {
            let child = optimize(*child, collator);
            if child == Node::AlwaysFalse {
                return Node::AlwaysFalse;
            }
            Node::leaf(path, Predicate::ElemMatchObject(Box::new(child)))
        }
        predicate => Node::leaf(path, predicate),
    }
}

/// Kind, path and shape decide; among equals the order of the request stays, since the last of them to match in an array tells
/// the positional operators where.
fn canonical_order(left: &Node, right: &Node) -> std::cmp::Ordering {
    rank(left)
        .cmp(&rank(right))
        .then_with(|| left.path().map(FieldPath::text).cmp(&right.path().map(FieldPath::text)))
        .then_with(|| left.children().len().cmp(&right.children().len()))
        .then_with(|| by_children(left, right))
}

fn by_children(left: &Node, right: &Node) -> std::cmp::Ordering {
    left.children()
        .iter()
        .zip(right.children())
        .map(|(left, right)| canonical_order(left, right))
        .find(|order| order.is_ne())
        .unwrap_or(std::cmp::Ordering::Equal)
}

/// The order of kinds that MongoDB shows.
fn rank(node: &Node) -> u8 {
    match node {
        Node::And(_) => 0,
        Node::Or(_) => 1,
        Node::Leaf(leaf) => rank_of_predicate(&leaf.predicate),
        Node::Not(_) => 30,
        Node::Nor(_) => 31,
        Node::Expr(_) | Node::Schema(_) | Node::Where(_) | Node::Text(_) | Node::BucketGeo(_) => 40,
        Node::AlwaysFalse => 42,
        Node::AlwaysTrue => 43,
    }
}

fn rank_of_predicate(predicate: &Predicate) -> u8 {
    match predicate {
        Predicate::ElemMatchObject(_) => 2,
        Predicate::ElemMatchValue(_) => 3,
        Predicate::Size(_) => 4,
        Predicate::Comparison(comparison) => match comparison.operator {
            ComparisonOperator::Equal => 5,
            ComparisonOperator::LessOrEqual => 6,
            ComparisonOperator::Less => 7,
            ComparisonOperator::Greater => 8,
            ComparisonOperator::GreaterOrEqual => 9,
        },
        Predicate::Regex(_) => 10,
        Predicate::Mod(_) => 11,
        Predicate::Exists => 12,
        Predicate::In(_) => 13,
        Predicate::Bits(_) => 14,
        Predicate::Type(_) => 32,
        Predicate::Geo(_) => 34,
        Predicate::Near(_) => 44,
        Predicate::ExprComparison(_) | Predicate::EqualHash(_) | Predicate::Schema(_) => 41,
        Predicate::Not(_) | Predicate::And(_) | Predicate::Never => 33,
    }
}
