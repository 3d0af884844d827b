//! How much the planner may do for one query.
//!
//! Alternatives inside of alternatives can be combined in more ways than there is time for: each
//! level may be served by itself or together with what stands beside it. So the planner has an
//! allowance that grows with the filter, not with the ways to combine it. When it is spent, what
//! was found has to do; without any plan that is the scan of the collection, which is always right.

use pando_expr::matcher::{Node, Predicate};
use std::cell::Cell;

/// What a small query may take.
const EFFORT_MIN: usize = 20_000;
/// What each part of the filter adds.
const EFFORT_FOR_PART: usize = 16;

/// What is left of the allowance.
pub(super) struct Effort(Cell<usize>);

impl Effort {
    /// The allowance of a filter.
    pub(super) fn for_filter(root: &Node) -> Effort {
        Effort(Cell::new(weight(root).saturating_mul(EFFORT_FOR_PART).saturating_add(EFFORT_MIN)))
    }

    /// Takes so much; false if there is not that much left, and from then on.
    pub(super) fn spend(&self, parts: usize) -> bool {
        let left = self.0.get().checked_sub(parts.max(1));
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }
}

/// How many parts a filter has, constants of lists included.
pub(super) fn weight(node: &Node) -> usize {
    let own = match node {
        Node::Leaf(leaf) => weight_of_predicate(&leaf.predicate),
        _ => 1,
    };
    node.children().iter().map(weight).fold(own, usize::saturating_add)
}

fn weight_of_predicate(predicate: &Predicate) -> usize {
    match predicate {
        Predicate::In(list) => 1 + list.values().len() + list.regexes().len(),
        Predicate::ElemMatchObject(child) => 1 + weight(child),
        Predicate::ElemMatchValue(child) | Predicate::Not(child) => 1 + weight_of_predicate(child),
        Predicate::And(children) => 1 + children.iter().map(weight_of_predicate).sum::<usize>(),
        _ => 1,
    }
}
