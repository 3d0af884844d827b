//! The walk of a filter over a document. The hottest code of this crate.

use super::comparison::regex_matches;
use super::expr_comparison;
use super::{Leaf, MatchDetails, Modulo, Node, Predicate};
use crate::expression::Scope;
use bstr::BStr;
use pando_base::{Error, Result, operation};
use pando_doc::{
    DocRef, HASH_SEED, LeafArrays, NonLeafArrays, Number, PathOptions, StringComparator, Value, doc, hash_element,
    hash_null, visit_path,
};
use std::ops::ControlFlow;

/// So many bytes of a document are gone over in a step when a field is looked for.
const FIELD_BYTES: usize = 256;

/// One walk.
pub(crate) struct Evaluation<'e> {
    strings: Option<&'e dyn StringComparator>,
    details: Option<MatchDetails>,
    error: Option<Error>,
}

impl<'e> Evaluation<'e> {
    pub(crate) fn new(strings: Option<&'e dyn StringComparator>) -> Evaluation<'e> {
        Evaluation { strings, details: None, error: None }
    }

    pub(crate) fn with_details(strings: Option<&'e dyn StringComparator>) -> Evaluation<'e> {
        Evaluation { strings, details: Some(MatchDetails::default()), error: None }
    }

    pub(crate) fn take_details(&mut self) -> MatchDetails {
        self.details.take().unwrap_or_default()
    }

    pub(crate) fn finish(self, is_match: bool) -> Result<bool> {
        operation::ended()?;
        self.error.map_or(Ok(is_match), Err)
    }

    pub(crate) fn node(&mut self, node: &Node, doc: DocRef<'_>) -> bool {
        // A field is looked for among all.
        if !operation::goes_on(1 + (doc.size_bytes() / FIELD_BYTES) as u64) {
            return false;
        }
        match node {
            Node::Leaf(leaf) => self.leaf(leaf, doc),
            Node::And(children) => children.iter().all(|child| self.node(child, doc)),
            // Which alternative it was is left open, so the place is, too.
            Node::Or(children) => self.quietly(|walk| children.iter().any(|child| walk.node(child, doc))),
            Node::Nor(children) => !self.quietly(|walk| children.iter().any(|child| walk.node(child, doc))),
            Node::Not(child) => !self.quietly(|walk| walk.node(child, doc)),
            Node::AlwaysTrue => true,
            Node::AlwaysFalse => false,
            Node::Expr(expression) => self.expr(expression, doc),
            Node::Schema(schema) => schema.matches(doc),
            Node::Text(clause) => clause.matches(doc),
            Node::BucketGeo(within) => within.may_hold(doc),
            Node::Where(clause) => self.told(clause.matches(doc)),
        }
    }

    /// What a negation or an alternative finds is no detail of the match.
    fn quietly(&mut self, walk: impl FnOnce(&mut Self) -> bool) -> bool {
        let details = self.details.take();
        let is_match = walk(self);
        self.details = details;
        is_match
    }

    fn expr(&mut self, expression: &crate::Expression, doc: DocRef<'_>) -> bool {
        self.told(expression.evaluate(&mut Scope::new(doc, expression)).map(|value| value.is_true()))
    }

    /// An error is kept for the end; until then it counts as no match.
    fn told(&mut self, outcome: Result<bool>) -> bool {
        match outcome {
            Ok(is_match) => is_match,
            Err(error) => {
                self.error.get_or_insert(error);
                false
            }
        }
    }

    #[inline]
    fn leaf(&mut self, leaf: &Leaf, doc: DocRef<'_>) -> bool {
        if leaf.path.part_count() > 1 {
            return self.deep_leaf(leaf, doc);
        }
        match doc.get(leaf.path.text()) {
            Some(Value::Array(array)) if leaf.predicate.expands_arrays() => {
                for element in array.as_doc().elements() {
                    if !operation::goes_on(1) {
                        return false;
                    }
                    if self.predicate(&leaf.predicate, Some(element.value)) {
                        self.found_at(element.name);
                        return true;
                    }
                }
                self.predicate(&leaf.predicate, Some(Value::Array(array)))
            }
            value => self.predicate(&leaf.predicate, value),
        }
    }

    fn deep_leaf(&mut self, leaf: &Leaf, doc: DocRef<'_>) -> bool {
        let arrays = if leaf.predicate.expands_arrays() { LeafArrays::Traverse } else { LeafArrays::NoTraversal };
        let non_leaf = match leaf.predicate {
            Predicate::ExprComparison(_) => NonLeafArrays::MatchSubpath,
            _ => NonLeafArrays::default(),
        };
        let options = PathOptions { leaf: arrays, non_leaf };
        let found = visit_path(doc, &leaf.path, options, &mut |visit| {
            if !operation::goes_on(1) {
                return ControlFlow::Break(());
            }
            if !self.predicate(&leaf.predicate, visit.value) {
                return ControlFlow::Continue(());
            }
            if let Some(index) = visit.array_index {
                self.found_at(index);
            }
            ControlFlow::Break(())
        });
        found.is_break()
    }

    fn found_at(&mut self, index: &BStr) {
        if let Some(details) = &mut self.details {
            details.set(index);
        }
    }

    #[inline]
    pub(crate) fn predicate(&mut self, predicate: &Predicate, value: Option<Value<'_>>) -> bool {
        match predicate {
            Predicate::Comparison(comparison) => comparison.matches(value, self.strings),
            Predicate::ExprComparison(comparison) => expr_comparison::may_hold(comparison, value, self.strings),
            Predicate::Schema(operator) => operator.matches(value),
            Predicate::EqualHash(hash) => index_hash(value) == *hash,
            Predicate::In(list) => list.matches(value, self.strings),
            Predicate::Exists => value.is_some(),
            Predicate::Type(types) => value.is_some_and(|value| types.contains(value.value_type())),
            Predicate::Size(size) => matches!(value, Some(Value::Array(array)) if array.len() == *size as usize),
            Predicate::Mod(modulo) => value.is_some_and(|value| modulo.matches(value)),
            Predicate::Regex(regex) => value.is_some_and(|value| regex_matches(regex, value)),
            Predicate::Bits(bits) => value.is_some_and(|value| bits.matches(value)),
            Predicate::ElemMatchObject(child) => self.some_document(child, value),
            Predicate::ElemMatchValue(child) => self.some_value(child, value),
            Predicate::Geo(geo) => value.is_some_and(|value| geo.matches(value)),
            Predicate::Near(_) => true,
            Predicate::Not(child) => !self.quietly(|walk| walk.predicate(child, value)),
            Predicate::And(children) => children.iter().all(|child| self.predicate(child, value)),
            Predicate::Never => false,
        }
    }

    fn some_document(&mut self, child: &Node, value: Option<Value<'_>>) -> bool {
        let Some(Value::Array(array)) = value else { return false };
        for element in array.as_doc().elements() {
            let Some(nested) = element.value.as_nested() else { continue };
            if !operation::goes_on(1) {
                return false;
            }
            if self.quietly(|walk| walk.node(child, nested)) {
                self.found_at(element.name);
                return true;
            }
        }
        false
    }

    fn some_value(&mut self, child: &Predicate, value: Option<Value<'_>>) -> bool {
        let Some(Value::Array(array)) = value else { return false };
        for element in array.as_doc().elements() {
            if !operation::goes_on(1) {
                return false;
            }
            if self.quietly(|walk| walk.predicate(child, Some(element.value))) {
                self.found_at(element.name);
                return true;
            }
        }
        false
    }
}

impl Modulo {
    /// True if the number leaves the remainder; fractions are cut off, and what is no int64 does not match.
    pub fn matches(&self, value: Value<'_>) -> bool {
        const BOUND: f64 = 9_223_372_036_854_775_808.0;
        let number = match value.as_number() {
            Some(Number::Double(number)) if !(-BOUND..BOUND).contains(&number) => return false,
            Some(Number::Decimal(number)) => {
                match number.round_to_whole(pando_doc::Rounding::TowardZero).to_i64_exact() {
                    Some(whole) => whole,
                    None => return false,
                }
            }
            Some(number) => number.truncated_i64(),
            None => return false,
        };
        number.wrapping_rem(self.divisor) == self.remainder
    }
}

/// The key that a hashed index has for the value, or for what is missing.
pub(super) fn index_hash(value: Option<Value<'_>>) -> i64 {
    let holder = value.map(|value| doc! { "": value });
    let element = holder.as_ref().and_then(|holder| holder.view().raw_elements().next());
    element.map_or_else(|| hash_null(HASH_SEED), |element| hash_element(element, HASH_SEED))
}
