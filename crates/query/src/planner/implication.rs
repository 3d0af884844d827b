//! Whether one filter says everything that another does: a partial index serves only filters that imply its own.
//!
//! "No" is always a safe answer. Filters whose collations differ say nothing about each other's strings.

use super::CollationMatch;
use super::predicate_bounds::{accepts_missing, may_hold_strings};
use pando_doc::{CompareOptions, OwnedValue, StringComparator, compare_with};
use pando_expr::matcher::{Comparison, ComparisonOperator, InList, Leaf, Node, Predicate};
use pando_geo::{GeoPredicate, Relation};
use std::cmp::Ordering;

/// True if every document that `filter` matches is surely matched by `wanted`.
pub fn implies(filter: &Node, wanted: &Node, collation: CollationMatch<'_>) -> bool {
    Implication { collation }.node(filter, wanted)
}

struct Implication<'a> {
    collation: CollationMatch<'a>,
}

impl Implication<'_> {
    fn node(&self, filter: &Node, wanted: &Node) -> bool {
        if (self.collation.is_same && filter == wanted) || wanted.is_trivially_true() {
            return true;
        }
        match (filter, wanted) {
            (_, Node::And(children)) => children.iter().all(|child| self.node(filter, child)),
            (Node::Or(children), _) => children.iter().all(|child| self.node(child, wanted)),
            (_, Node::Or(children)) if children.iter().any(|child| self.node(filter, child)) => true,
            (Node::And(children), _) => children.iter().any(|child| self.node(child, wanted)),
            (Node::Leaf(filter), Node::Leaf(wanted)) => self.leaf(filter, wanted),
            (Node::BucketGeo(filter), Node::BucketGeo(wanted)) => self.leaf(filter.leaf(), wanted.leaf()),
            _ => false,
        }
    }

    fn leaf(&self, filter: &Leaf, wanted: &Leaf) -> bool {
        if filter.path != wanted.path {
            return false;
        }
        match (&filter.predicate, &wanted.predicate) {
            (Predicate::Comparison(filter), Predicate::Comparison(wanted)) => self.comparison(filter, wanted),
            (Predicate::In(list), Predicate::Comparison(wanted)) => {
                list_implies(list, |value| self.value_fulfils(value, wanted))
            }
            (Predicate::Comparison(filter), Predicate::In(wanted)) => {
                filter.operator == ComparisonOperator::Equal && self.contains(wanted, &filter.value)
            }
            (Predicate::In(list), Predicate::In(wanted)) => list_implies(list, |value| self.contains(wanted, value)),
            (Predicate::Type(filter), Predicate::Type(wanted)) => filter.types().all(|kind| wanted.contains(kind)),
            (Predicate::Geo(filter), Predicate::Geo(wanted)) => {
                let is_within = |geo: &GeoPredicate| geo.relation() == Relation::Within;
                let is_alike = filter.geometry().is_flat() == wanted.geometry().is_flat();
                filter == wanted
                    || (is_within(filter)
                        && is_within(wanted)
                        && is_alike
                        && wanted.geometry().contains(filter.geometry()))
            }
            (predicate, Predicate::Exists) => requires_value(predicate),
            _ => false,
        }
    }

    fn contains(&self, list: &InList, value: &OwnedValue) -> bool {
        self.is_comparable(value) && list.values().iter().any(|known| self.order(known, value).is_eq())
    }

    fn value_fulfils(&self, value: &OwnedValue, wanted: &Comparison) -> bool {
        !matches!(value, OwnedValue::Null | OwnedValue::Array(_))
            && self.is_comparable(value)
            && wanted.matches(Some(value.view()), self.strings())
    }

    fn strings(&self) -> Option<&dyn StringComparator> {
        self.collation.collator.map(|collator| collator as &dyn StringComparator)
    }

    fn is_comparable(&self, value: &OwnedValue) -> bool {
        self.collation.is_same || !may_hold_strings(value.view())
    }

    fn order(&self, left: &OwnedValue, right: &OwnedValue) -> Ordering {
        let options = CompareOptions { strings: self.strings(), ..CompareOptions::default() };
        compare_with(left.view(), right.view(), &options)
    }

    /// Within one type only, where the order of values is that of comparisons.
    fn comparison(&self, filter: &Comparison, wanted: &Comparison) -> bool {
        use ComparisonOperator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
        let (value, limit) = (filter.value.view(), wanted.value.view());
        let is_special = |value: &OwnedValue| {
            let is_nan = value.view().as_number().is_some_and(|number| number.is_nan());
            is_nan || matches!(value, OwnedValue::Array(_) | OwnedValue::MinKey | OwnedValue::MaxKey | OwnedValue::Null)
        };
        if is_special(&filter.value) || is_special(&wanted.value) || !self.is_comparable(&filter.value) {
            return false;
        }
        if value.value_type().canonical_order() != limit.value_type().canonical_order() {
            return false;
        }
        let order = self.order(&filter.value, &wanted.value);
        match (filter.operator, wanted.operator) {
            (Equal, operator) => operator.accepts(order),
            (Less, Less) | (Less | LessOrEqual, LessOrEqual) => order.is_le(),
            (LessOrEqual, Less) => order.is_lt(),
            (Greater, Greater) | (Greater | GreaterOrEqual, GreaterOrEqual) => order.is_ge(),
            (GreaterOrEqual, Greater) => order.is_gt(),
            _ => false,
        }
    }
}

fn requires_value(predicate: &Predicate) -> bool {
    // Where an array is on the path, a comparison inside an expression sees another value.
    let is_vague =
        matches!(predicate, Predicate::Not(_) | Predicate::And(_) | Predicate::Never | Predicate::ExprComparison(_));
    !accepts_missing(predicate) && !is_vague
}

fn list_implies(list: &InList, holds: impl Fn(&OwnedValue) -> bool) -> bool {
    list.regexes().is_empty() && list.values().iter().all(holds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::{Doc, doc};
    use pando_expr::{MatchExpression, ParseContext};

    fn check(filter: Doc, wanted: Doc) -> bool {
        let parse = |doc: Doc| MatchExpression::parse(doc.view(), &ParseContext::default()).unwrap().optimize();
        implies(parse(filter).root(), parse(wanted).root(), CollationMatch { is_same: true, collator: None })
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

    #[test]
    fn u7_another_collation_says_nothing_about_strings() {
        let parse = |doc: Doc| MatchExpression::parse(doc.view(), &ParseContext::default()).unwrap().optimize();
        let other = CollationMatch { is_same: false, collator: None };
        let check = |filter: Doc, wanted: Doc| implies(parse(filter).root(), parse(wanted).root(), other);
        assert!(!check(doc! { "a": "x" }, doc! { "a": "x" }));
        assert!(!check(doc! { "a": "x" }, doc! { "a": { "$gt": "b" } }));
        assert!(check(doc! { "a": 5 }, doc! { "a": { "$gt": 3 } }));
        assert!(check(doc! { "a": "x" }, doc! { "a": { "$exists": true } }));
    }
}
