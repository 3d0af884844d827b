//! Whether one filter says everything that another does: a partial index serves only filters that imply its own.
//!
//! "No" is always a safe answer.

use super::predicate_bounds::accepts_missing;
use pando_doc::{OwnedValue, compare};
use pando_expr::matcher::{Comparison, ComparisonOperator, InList, Leaf, Node, Predicate};

/// True if every document that `filter` matches is surely matched by `wanted`.
pub fn implies(filter: &Node, wanted: &Node) -> bool {
    if filter == wanted || wanted.is_trivially_true() {
        return true;
    }
    match (filter, wanted) {
        (_, Node::And(children)) => children.iter().all(|child| implies(filter, child)),
        (Node::Or(children), _) => children.iter().all(|child| implies(child, wanted)),
        (_, Node::Or(children)) if children.iter().any(|child| implies(filter, child)) => true,
        (Node::And(children), _) => children.iter().any(|child| implies(child, wanted)),
        (Node::Leaf(filter), Node::Leaf(wanted)) => leaf_implies(filter, wanted),
        _ => false,
    }
}

fn leaf_implies(filter: &Leaf, wanted: &Leaf) -> bool {
    if filter.path != wanted.path {
        return false;
    }
    match (&filter.predicate, &wanted.predicate) {
        (Predicate::Comparison(filter), Predicate::Comparison(wanted)) => comparison_implies(filter, wanted),
        (Predicate::In(list), Predicate::Comparison(wanted)) => {
            list_implies(list, |value| value_fulfils(value, wanted))
        }
        (Predicate::Comparison(filter), Predicate::In(wanted)) => {
            filter.operator == ComparisonOperator::Equal && contains(wanted, &filter.value)
        }
        (Predicate::In(list), Predicate::In(wanted)) => list_implies(list, |value| contains(wanted, value)),
        (Predicate::Type(filter), Predicate::Type(wanted)) => filter.types().all(|kind| wanted.contains(kind)),
        (predicate, Predicate::Exists) => requires_value(predicate),
        _ => false,
    }
}

fn requires_value(predicate: &Predicate) -> bool {
    !accepts_missing(predicate) && !matches!(predicate, Predicate::Not(_) | Predicate::And(_) | Predicate::Never)
}

fn list_implies(list: &InList, holds: impl Fn(&OwnedValue) -> bool) -> bool {
    list.regexes().is_empty() && list.values().iter().all(holds)
}

fn contains(list: &InList, value: &OwnedValue) -> bool {
    list.values().iter().any(|known| compare(known.view(), value.view()).is_eq())
}

fn value_fulfils(value: &OwnedValue, wanted: &Comparison) -> bool {
    !matches!(value, OwnedValue::Null | OwnedValue::Array(_)) && wanted.matches(Some(value.view()), None)
}

/// Within one type only, where the order of values is that of comparisons.
fn comparison_implies(filter: &Comparison, wanted: &Comparison) -> bool {
    use ComparisonOperator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    let (value, limit) = (filter.value.view(), wanted.value.view());
    let is_special = |value: &OwnedValue| {
        let is_nan = value.view().as_number().is_some_and(|number| number.is_nan());
        is_nan || matches!(value, OwnedValue::Array(_) | OwnedValue::MinKey | OwnedValue::MaxKey | OwnedValue::Null)
    };
    if is_special(&filter.value) || is_special(&wanted.value) {
        return false;
    }
    if value.value_type().canonical_order() != limit.value_type().canonical_order() {
        return false;
    }
    let order = compare(value, limit);
    match (filter.operator, wanted.operator) {
        (Equal, operator) => operator.accepts(order),
        (Less, Less) | (Less | LessOrEqual, LessOrEqual) => order.is_le(),
        (LessOrEqual, Less) => order.is_lt(),
        (Greater, Greater) | (Greater | GreaterOrEqual, GreaterOrEqual) => order.is_ge(),
        (GreaterOrEqual, Greater) => order.is_gt(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::{Doc, doc};
    use pando_expr::{MatchExpression, ParseContext};

    fn check(filter: Doc, wanted: Doc) -> bool {
        let parse = |doc: Doc| MatchExpression::parse(doc.view(), &ParseContext::default()).unwrap().optimize();
        implies(parse(filter).root(), parse(wanted).root())
    }

    #[test]
    fn u7_a_partial_index_serves_filters_that_imply_its_own() {
        assert!(check(doc! { "a": 5 }, doc! { "a": { "$gt": 3 } }));
        assert!(check(doc! { "a": { "$gt": 4 }, "b": 1 }, doc! { "a": { "$gt": 3 } }));
        assert!(!check(doc! { "a": { "$gt": 2 } }, doc! { "a": { "$gt": 3 } }));
        assert!(!check(doc! { "a": "x" }, doc! { "a": { "$gt": 3 } }));
        assert!(check(doc! { "a": "x" }, doc! { "a": { "$exists": true } }));
        assert!(!check(doc! { "a": null }, doc! { "a": { "$exists": true } }));
        assert!(check(doc! { "a": { "$in": [4, 5] } }, doc! { "a": { "$gte": 4 } }));
        assert!(check(doc! { "$or": [{ "a": 4 }, { "a": { "$gt": 7 } }] }, doc! { "a": { "$gte": 4 } }));
        assert!(!check(doc! {}, doc! { "a": 1 }));
        assert!(check(doc! { "a": 1 }, doc! {}));
    }
}
