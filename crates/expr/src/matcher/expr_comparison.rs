//! What an index can do for `$expr`: comparisons of a field with a constant, as conditions on a path.
//!
//! Such a condition stands beside the expression that it was taken from and never in its place: it holds wherever the expression is true, and
//! wherever an array is on the path, since then the expression sees something else. So it bounds indexes without arrays, and changes no
//! result.
//!
//! In expressions values of all types have one order, and what is missing is the least of all. Constants that lie where keys and values
//! differ (null, undefined, arrays, the two ends) are left alone, but for equality with null.

use super::{Comparison, ComparisonOperator, Node, Predicate};
use crate::Expression;
use crate::expression::{Node as Tree, Variable};
use pando_doc::{CompareOptions, FieldPath, OwnedValue, StringComparator, Value, compare_with};
use std::cmp::Ordering;

/// The condition that an expression brings along, if there is one.
pub(super) fn condition_of(expression: &Expression) -> Option<Node> {
    of_tree(expression.root())
}

fn of_tree(tree: &Tree) -> Option<Node> {
    match tree {
        Tree::And(parts) => {
            let mut found: Vec<Node> = parts.iter().filter_map(of_tree).collect();
            match found.len() {
                0 => None,
                1 => found.pop(),
                _ => Some(Node::And(found)),
            }
        }
        Tree::Or(parts) => parts.iter().map(of_tree).collect::<Option<Vec<Node>>>().map(Node::Or),
        Tree::Call { function, operands } => {
            let operator = operator_of(function.name())?;
            match operands.as_slice() {
                [Tree::Path { variable: Variable::Root, path: Some(path) }, Tree::Constant(Some(value))] => {
                    leaf(path, operator, value)
                }
                [Tree::Constant(Some(value)), Tree::Path { variable: Variable::Root, path: Some(path) }] => {
                    leaf(path, flipped(operator), value)
                }
                [hashed, Tree::Constant(Some(OwnedValue::Int64(hash)))]
                | [Tree::Constant(Some(OwnedValue::Int64(hash))), hashed]
                    if operator == ComparisonOperator::Equal =>
                {
                    hash_leaf(hashed, *hash)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The hash of a field of the document itself: below it an expression would take arrays apart.
fn hash_leaf(hashed: &Tree, hash: i64) -> Option<Node> {
    let Tree::Call { function, operands } = hashed else { return None };
    match operands.as_slice() {
        [Tree::Path { variable: Variable::Root, path: Some(path) }]
            if function.name() == "$toHashedIndexKey" && path.part_count() == 1 =>
        {
            Some(Node::leaf(path.clone(), Predicate::EqualHash(hash)))
        }
        _ => None,
    }
}

fn operator_of(name: &str) -> Option<ComparisonOperator> {
    Some(match name {
        "$eq" => ComparisonOperator::Equal,
        "$lt" => ComparisonOperator::Less,
        "$lte" => ComparisonOperator::LessOrEqual,
        "$gt" => ComparisonOperator::Greater,
        "$gte" => ComparisonOperator::GreaterOrEqual,
        _ => return None,
    })
}

/// With the sides changed.
fn flipped(operator: ComparisonOperator) -> ComparisonOperator {
    match operator {
        ComparisonOperator::Equal => ComparisonOperator::Equal,
        ComparisonOperator::Less => ComparisonOperator::Greater,
        ComparisonOperator::LessOrEqual => ComparisonOperator::GreaterOrEqual,
        ComparisonOperator::Greater => ComparisonOperator::Less,
        ComparisonOperator::GreaterOrEqual => ComparisonOperator::LessOrEqual,
    }
}

fn leaf(path: &FieldPath, operator: ComparisonOperator, value: &OwnedValue) -> Option<Node> {
    let is_usable = match value {
        OwnedValue::Null => operator == ComparisonOperator::Equal,
        OwnedValue::Undefined
        | OwnedValue::Array(_)
        | OwnedValue::Regex(_)
        | OwnedValue::MinKey
        | OwnedValue::MaxKey => false,
        _ => true,
    };
    // In an expression a number is a name, in an index it may be a place.
    let has_number = path.parts().any(|part| part.iter().all(u8::is_ascii_digit));
    let comparison = Comparison { operator, value: value.clone() };
    (is_usable && !has_number).then(|| Node::leaf(path.clone(), Predicate::ExprComparison(comparison)))
}

/// As it is written in a filter.
pub(super) fn name_of(operator: ComparisonOperator) -> &'static str {
    match operator {
        ComparisonOperator::Equal => "$_internalExprEq",
        ComparisonOperator::Less => "$_internalExprLt",
        ComparisonOperator::LessOrEqual => "$_internalExprLte",
        ComparisonOperator::Greater => "$_internalExprGt",
        ComparisonOperator::GreaterOrEqual => "$_internalExprGte",
    }
}

/// True if the value, or its absence, may fulfil the comparison in an expression.
pub(super) fn may_hold(
    comparison: &Comparison,
    value: Option<Value<'_>>,
    strings: Option<&dyn StringComparator>,
) -> bool {
    let options = CompareOptions { strings, ..CompareOptions::default() };
    match value {
        Some(Value::Array(_)) => true,
        Some(value) => comparison.operator.accepts(compare_with(value, comparison.value.view(), &options)),
        None => comparison.operator.accepts(Ordering::Less),
    }
}
