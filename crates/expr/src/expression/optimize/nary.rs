//! Operators that may be reckoned in parts: constants that stand together become one, and an
//! operator right below one of its own kind goes up into it. What may be reckoned in any order has
//! its constants at the end, as one.

use super::{constant, constants, is_constant};
use crate::expression::evaluate::Environment;
use crate::expression::function::Function;
use crate::expression::places::Places;
use crate::expression::tree::Node;
use pando_base::{Result, operation};
use pando_doc::OwnedValue;
use std::collections::VecDeque;

/// How operands may be put together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grouping {
    /// Not at all.
    None,
    /// From the left only, as rounding depends on the order.
    Left,
    /// Neighbours.
    Neighbours,
    /// Any.
    Any,
}

fn grouping(function: Function, count: usize, environment: &Environment<'_>) -> Grouping {
    match function.name {
        "$add" | "$multiply" => Grouping::Left,
        "$concat" | "$concatArrays" => Grouping::Neighbours,
        // With a collation it depends on the order which of equal values stays.
        "$setUnion" if environment.options().strings.is_some() => Grouping::Neighbours,
        "$setUnion" | "$setIntersection" | "$bitAnd" | "$bitOr" | "$bitXor" => Grouping::Any,
        // A single operand may be an array of values.
        "$sum" | "$min" | "$max" if count != 1 => Grouping::Any,
        _ => Grouping::None,
    }
}

/// The operator with its operands put together, which are optimised.
pub(super) fn call(function: Function, operands: Vec<Node>, environment: &Environment<'_>) -> Result<Node> {
    let fold = |operands: &[Node]| -> Result<Node> {
        let values = constants(operands).unwrap_or_default();
        Ok(constant(function.evaluate.call(&values, environment, &mut Places::default())?))
    };
    if operands.iter().all(is_constant) {
        return fold(&operands);
    }
    let grouping_here = grouping(function, operands.len(), environment);
    let open = |node: Node| match node {
        Node::Call { function: below, operands }
            if below == function
                && matches!(grouping(below, operands.len(), environment), Grouping::Neighbours | Grouping::Any) =>
        {
            Ok(operands)
        }
        other => Err(other),
    };
    let operands = grouped(operands, grouping_here, &open, &fold)?;
    Ok(Node::Call { function, operands })
}

/// `$and` and `$or`: constants decide, or are left out.
pub(super) fn logical(operands: Vec<Node>, deciding: bool) -> Result<Node> {
    let fold = |operands: &[Node]| -> Result<Node> {
        let is_decided = operands.iter().any(|operand| super::value_of(operand).is_true() == deciding);
        Ok(Node::Constant(Some(OwnedValue::Bool(is_decided == deciding))))
    };
    if operands.iter().all(is_constant) {
        return fold(&operands);
    }
    let open = |node: Node| match (node, deciding) {
        (Node::And(operands), false) | (Node::Or(operands), true) => Ok(operands),
        (other, _) => Err(other),
    };
    let mut operands = grouped(operands, Grouping::Any, &open, &fold)?;
    if let Some(last) = operands.last().filter(|last| is_constant(last)) {
        if super::value_of(last).is_true() == deciding {
            return Ok(Node::Constant(Some(OwnedValue::Bool(deciding))));
        }
        operands.pop();
    }
    Ok(if deciding { Node::Or(operands) } else { Node::And(operands) })
}

type Open<'f> = &'f dyn Fn(Node) -> std::result::Result<Vec<Node>, Node>;
type Fold<'f> = &'f dyn Fn(&[Node]) -> Result<Node>;

/// Operands of which some are not constant, put together. `open` gives the operands of one of the
/// same kind.
fn grouped(operands: Vec<Node>, grouping: Grouping, open: Open<'_>, fold: Fold<'_>) -> Result<Vec<Node>> {
    if grouping == Grouping::None {
        return Ok(operands);
    }
    let folded = |constants: &mut Vec<Node>| -> Result<Vec<Node>> {
        let constants = std::mem::take(constants);
        if constants.len() > 1 { Ok(vec![fold(&constants)?]) } else { Ok(constants) }
    };
    let mut left = VecDeque::from(operands);
    let (mut made, mut constants) = (Vec::new(), Vec::new());
    while let Some(operand) = left.pop_front() {
        operation::tick(1)?;
        if is_constant(&operand) {
            constants.push(operand);
            continue;
        }
        let operand = match open(operand) {
            Ok(below) => {
                below.into_iter().rev().for_each(|operand| left.push_front(operand));
                continue;
            }
            Err(operand) => operand,
        };
        if grouping != Grouping::Any {
            made.extend(folded(&mut constants)?);
        }
        made.push(operand);
        if grouping == Grouping::Left {
            made.extend(left.drain(..));
        }
    }
    made.extend(folded(&mut constants)?);
    Ok(made)
}
