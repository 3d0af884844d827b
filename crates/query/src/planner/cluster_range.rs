//! The part of a clustered collection that a filter can match: conditions on the cluster key bound the scan, since a record's id is made of it.
//!
//! Comparisons keep to the type of what they compare with, so one of them bounds the scan at both ends. The filter still decides about
//! every document; a bound that cannot be used, e.g. a string where the query compares strings in another way, is left out.

use super::condition::conjuncts;
use super::predicate_bounds::collated_value;
use super::type_range::{greatest, least};
use pando_base::{Error, RecordId, Result};
use pando_collection::cluster_key;
use pando_doc::{Collator, Doc, OwnedValue, Value, ValueType};
use pando_expr::matcher::{ComparisonOperator, Node, Predicate};

/// One end of the part.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterEdge {
    /// The record.
    pub id: RecordId,
    /// The value that it is made of, strings as they are compared.
    pub value: OwnedValue,
    /// It belongs to the part itself.
    pub is_inclusive: bool,
}

/// The part; without an end there is no bound there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterRange {
    /// Where it begins.
    pub min: Option<ClusterEdge>,
    /// Where it ends.
    pub max: Option<ClusterEdge>,
}

impl ClusterRange {
    /// True if there is a bound.
    pub fn is_bounded(&self) -> bool {
        self.min.is_some() || self.max.is_some()
    }

    /// True if nothing in the part has strings in its key, so that it does not matter how they are compared; the part may be empty.
    pub(super) fn leaves_out_strings(&self) -> bool {
        let (Some(min), Some(max)) = (&self.min, &self.max) else { return false };
        let order = |edge: &ClusterEdge| edge.value.view().value_type().canonical_order();
        min.id >= max.id
            || order(max) < ValueType::String.canonical_order()
            || order(min) > ValueType::Array.canonical_order()
    }

    fn raise_min(&mut self, edge: Option<ClusterEdge>) {
        let Some(edge) = edge else { return };
        let is_tighter = |min: &ClusterEdge| edge.id > min.id || (edge.id == min.id && !edge.is_inclusive);
        if self.min.as_ref().is_none_or(is_tighter) {
            self.min = Some(edge);
        }
    }

    fn lower_max(&mut self, edge: Option<ClusterEdge>) {
        let Some(edge) = edge else { return };
        let is_tighter = |max: &ClusterEdge| edge.id < max.id || (edge.id == max.id && !edge.is_inclusive);
        if self.max.as_ref().is_none_or(is_tighter) {
            self.max = Some(edge);
        }
    }
}

/// How the query compares strings, beside how the collection does.
#[derive(Clone, Copy)]
pub(super) struct ClusterCollation<'c> {
    /// Both do it alike.
    pub(super) is_same: bool,
    /// How, if not byte by byte.
    pub(super) collator: Option<&'c dyn Collator>,
}

impl ClusterCollation<'_> {
    fn edge(&self, value: &OwnedValue, is_inclusive: bool) -> Option<ClusterEdge> {
        if !self.is_same && holds_strings(value.view()) {
            return None;
        }
        edge(collated_value(value, self.collator.filter(|_| self.is_same))?, is_inclusive)
    }
}

/// True if there are strings in it. Compared with what has none, nothing depends on how strings are compared.
fn holds_strings(value: Value<'_>) -> bool {
    match value {
        Value::String(_) | Value::Symbol(_) => true,
        Value::Document(document) => document.elements().any(|element| holds_strings(element.value)),
        Value::Array(values) => values.values().any(holds_strings),
        _ => false,
    }
}

/// An end, unless no record can have such an id.
fn edge(value: OwnedValue, is_inclusive: bool) -> Option<ClusterEdge> {
    let id = cluster_key(value.view(), None).ok()?;
    Some(ClusterEdge { id, value, is_inclusive })
}

/// The part that a filter can match.
pub(super) fn cluster_range(root: &Node, field: &str, collation: ClusterCollation<'_>) -> ClusterRange {
    let mut range = ClusterRange::default();
    for node in conjuncts(root) {
        let Node::Leaf(leaf) = node else { continue };
        if leaf.path.text() != field {
            continue;
        }
        match &leaf.predicate {
            Predicate::Comparison(comparison) => compare(&mut range, comparison.operator, &comparison.value, collation),
            // Those of expressions compare with values of all types.
            Predicate::ExprComparison(comparison) => {
                bound(&mut range, comparison.operator, &comparison.value, collation)
            }
            Predicate::In(list) if list.regexes().is_empty() => any_of(&mut range, list.values(), collation),
            _ => {}
        }
    }
    range
}

fn compare(
    range: &mut ClusterRange,
    operator: ComparisonOperator,
    value: &OwnedValue,
    collation: ClusterCollation<'_>,
) {
    if narrow_to_type(range, value.view()) {
        bound(range, operator, value, collation);
    }
}

fn bound(range: &mut ClusterRange, operator: ComparisonOperator, value: &OwnedValue, collation: ClusterCollation<'_>) {
    let (is_from, is_to, is_inclusive) = match operator {
        ComparisonOperator::Equal => (true, true, true),
        ComparisonOperator::Less => (false, true, false),
        ComparisonOperator::LessOrEqual => (false, true, true),
        ComparisonOperator::Greater => (true, false, false),
        ComparisonOperator::GreaterOrEqual => (true, false, true),
    };
    // Null stands for what is undefined as well, which lies before it.
    if is_from && !matches!(value, OwnedValue::Null) {
        range.raise_min(collation.edge(value, is_inclusive));
    }
    if is_to {
        range.lower_max(collation.edge(value, is_inclusive));
    }
}

/// Keeps to the values of a type; false for the two ends of all values, which are compared with everything.
fn narrow_to_type(range: &mut ClusterRange, value: Value<'_>) -> bool {
    let value_type = value.value_type();
    if matches!(value, Value::MinKey | Value::MaxKey) {
        return false;
    }
    let first = if matches!(value, Value::Null) { OwnedValue::Undefined } else { least(value_type) };
    let (last, is_inclusive) = greatest(value_type);
    range.raise_min(edge(first, true));
    range.lower_max(edge(last, is_inclusive));
    true
}

fn any_of(range: &mut ClusterRange, values: &[OwnedValue], collation: ClusterCollation<'_>) {
    let mut hull: Option<(ClusterEdge, ClusterEdge)> = None;
    for value in values {
        let mut own = ClusterRange::default();
        compare(&mut own, ComparisonOperator::Equal, value, collation);
        let (Some(min), Some(max)) = (own.min, own.max) else { return };
        hull = Some(match hull {
            None => (min, max),
            Some((least, most)) => (
                if min.id < least.id { min } else { least },
                if max.id > most.id || (max.id == most.id && max.is_inclusive) { max } else { most },
            ),
        });
    }
    if let Some((min, max)) = hull {
        range.raise_min(Some(min));
        range.lower_max(Some(max));
    }
}

/// Narrows the part to what a client gave with `min` and `max`, of which the second is left out.
pub(super) fn narrow_to_keys(
    range: &mut ClusterRange,
    field: &str,
    min: &Doc,
    max: &Doc,
    collation: ClusterCollation<'_>,
) -> Result<()> {
    let only = |keys: &Doc| -> Result<Option<OwnedValue>> {
        let mut elements = keys.elements();
        match (elements.next(), elements.next()) {
            (None, _) => Ok(None),
            (Some(element), None) if element.name == field => Ok(Some(element.value.to_owned())),
            _ => Err(Error::location(51174, "The index chosen is not compatible with min/max")),
        }
    };
    if let Some(value) = only(min)? {
        range.raise_min(collation.edge(&value, true));
    }
    if let Some(value) = only(max)? {
        range.lower_max(collation.edge(&value, false));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;
    use pando_expr::{MatchExpression, ParseContext};

    fn shown(filter: Doc) -> String {
        let parsed = MatchExpression::parse(filter.view(), &ParseContext::default()).unwrap().optimize();
        let range = cluster_range(parsed.root(), "_id", ClusterCollation { is_same: true, collator: None });
        let side = |edge: &Option<ClusterEdge>| {
            let told =
                |edge: &ClusterEdge| format!("{}{}", edge.value.view(), if edge.is_inclusive { "" } else { "!" });
            edge.as_ref().map_or("-".to_owned(), told)
        };
        format!("{} .. {}", side(&range.min), side(&range.max))
    }

    #[test]
    fn x28_conditions_on_the_key_bound_the_scan() {
        assert_eq!(shown(doc! { "_id": 5 }), "5 .. 5");
        assert_eq!(shown(doc! { "_id": { "$lt": 5 } }), "nan.0 .. 5!");
        assert_eq!(shown(doc! { "_id": { "$gte": 5 } }), "5 .. inf.0");
        assert_eq!(shown(doc! { "_id": { "$gt": 5, "$lte": 9 }, "a": 1 }), "5! .. 9");
        assert_eq!(shown(doc! { "_id": { "$in": [30, 10, 20] } }), "10 .. 30");
        assert_eq!(shown(doc! { "_id": { "$in": [1, "a"] } }), "1 .. \"a\"");
        assert_eq!(shown(doc! { "_id": { "$_internalExprLt": 5 } }), "- .. 5!");
        assert_eq!(shown(doc! { "_id": { "$_internalExprGte": 5 } }), "5 .. -");
        assert_eq!(shown(doc! { "a": 5 }), "- .. -");
        assert_eq!(shown(doc! { "_id": { "$ne": 5 } }), "- .. -");
        assert_eq!(shown(doc! { "$or": [{ "_id": 1 }, { "a": 1 }] }), "- .. -");
        assert_eq!(shown(doc! { "_id.a": 5 }), "- .. -");
        assert_eq!(shown(doc! { "_id": { "$gt": (Value::MinKey) } }), "- .. -");
        // A key that no record can have bounds nothing by itself.
        assert_eq!(shown(doc! { "_id": { "$gt": ("x".repeat(9 << 20)) } }), "\"\" .. {}!");
    }

    #[test]
    fn x28_strings_that_are_compared_in_another_way_bound_by_their_type() {
        let parsed = MatchExpression::parse(doc! { "_id": "a" }.view(), &ParseContext::default()).unwrap();
        let range = cluster_range(parsed.root(), "_id", ClusterCollation { is_same: false, collator: None });
        assert_eq!(range.min.unwrap().value, OwnedValue::String(Default::default()));
        assert_eq!(range.max.unwrap().value, OwnedValue::Document(Doc::new()));
    }
}
