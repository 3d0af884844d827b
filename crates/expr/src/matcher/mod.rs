//! Filters: which documents they match.
//!
//! `parse` reads the operators, `optimize` makes the tree smaller, `evaluate` walks it for a document, `serialize` shows
//! it as `explain` does, `dependencies` tells which paths it looks at, `failure` why a document does not match. The tree is public: the planner takes it apart.
//!
//! Invariants: a comparison sees values of its own type only (but for MinKey and MaxKey); null matches what is missing;
//! the values of an array are looked at one by one and then the array as a whole; the list of an `$in` is sorted and has no two
//! equal values. Evaluation allocates nothing, but for `$expr`.

mod bits;
mod bucket_geo;
mod comparison;
mod dependencies;
mod details;
mod equalities;
mod evaluate;
mod expr_comparison;
mod failure;
mod node;
mod optimize;
mod parse;
mod plain_texts;
mod schema;
mod serialize;
mod text_clause;
mod type_set;
mod where_clause;

#[cfg(test)]
mod tests;

pub use bits::{BitTest, Bits};
pub use bucket_geo::BucketGeoWithin;
pub use comparison::{Comparison, ComparisonOperator, InList};
pub use details::MatchDetails;
pub use failure::explain_failure;
pub use node::{Leaf, Modulo, Node, Predicate};
pub use schema::{Schema, SchemaOperator};
pub use text_clause::TextClause;
pub use type_set::TypeSet;
pub use where_clause::WhereClause;

pub(crate) use evaluate::Evaluation;
pub(crate) use parse::is_condition;

use crate::context::{ParseContext, SharedCollator, strings};
use pando_base::{Result, operation};
use pando_doc::{Doc, DocRef};
use std::fmt;

/// A parsed filter.
#[derive(Clone)]
pub struct MatchExpression {
    root: Node,
    collator: Option<SharedCollator>,
}

impl MatchExpression {
    /// Reads a filter, as it was written.
    pub fn parse(filter: DocRef<'_>, context: &ParseContext) -> Result<MatchExpression> {
        let root = parse::parse_filter(filter, context)?;
        Ok(MatchExpression { root, collator: context.collator.clone() })
    }

    /// Reads what stands behind a field (`{$gt: 3}`) as a filter on single values, such as `$pull` and array filters use.
    pub fn parse_value_predicate(condition: DocRef<'_>, context: &ParseContext) -> Result<ValuePredicate> {
        let predicate = parse::parse_predicate(condition, context)?;
        Ok(ValuePredicate { predicate, collator: context.collator.clone() })
    }

    /// The filter in its smallest form, children in canonical order.
    #[must_use]
    pub fn optimize(mut self) -> MatchExpression {
        if !crate::DISABLE_MATCH_OPTIMIZATION.should_fail() {
            self.root = optimize::optimize(self.root, &self.collator);
        }
        self
    }

    /// A filter of this tree.
    pub fn from_node(root: Node, collator: Option<SharedCollator>) -> MatchExpression {
        MatchExpression { root, collator }
    }

    /// The tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The tree, given away.
    pub fn into_root(self) -> Node {
        self.root
    }

    /// The collation of its comparisons.
    pub fn collator(&self) -> Option<&SharedCollator> {
        self.collator.as_ref()
    }

    /// True if the document matches. An `$expr` that fails counts as no match.
    ///
    /// The answer holds whatever becomes of the operation that asks (an index has an entry or not), and it may be asked for under locks.
    #[inline]
    pub fn matches(&self, doc: DocRef<'_>) -> bool {
        operation::unstopped(|| Evaluation::new(strings(&self.collator)).node(&self.root, doc))
    }

    /// True if the document matches; the error of an `$expr` that fails.
    pub fn try_matches(&self, doc: DocRef<'_>) -> Result<bool> {
        let mut evaluation = Evaluation::new(strings(&self.collator));
        let is_match = evaluation.node(&self.root, doc);
        evaluation.finish(is_match)
    }

    /// As `try_matches`, and which place of an array matched: what `$` means in an update or a projection.
    pub fn matches_with_details(&self, doc: DocRef<'_>) -> Result<Option<MatchDetails>> {
        let mut evaluation = Evaluation::with_details(strings(&self.collator));
        let is_match = evaluation.node(&self.root, doc);
        let details = evaluation.take_details();
        Ok(evaluation.finish(is_match)?.then_some(details))
    }

    /// The filter as `explain` shows it.
    pub fn to_document(&self) -> Doc {
        serialize::to_document(&self.root)
    }

    /// True if the filter may decide otherwise the next time, as with `$rand`.
    pub fn is_random(&self) -> bool {
        fn is_random(node: &Node) -> bool {
            match node {
                Node::Expr(expression) => expression.is_random(),
                other => other.children().iter().any(is_random),
            }
        }
        is_random(&self.root)
    }

    /// True if it has a text search, which only the stage that reads the text index can decide.
    pub fn has_text(&self) -> bool {
        self.root.has_text()
    }

    /// The paths that the filter looks at, each once; none if it may look at the whole document.
    pub fn paths(&self) -> Option<Vec<pando_doc::FieldPath>> {
        dependencies::paths(&self.root)
    }

    /// What every matching document has at which path, as an upsert starts from: the equalities that must hold.
    pub fn equalities(&self) -> Result<Vec<(pando_doc::FieldPath, pando_doc::OwnedValue)>> {
        equalities::of(&self.root, &|_| true)
    }

    /// Those of them that are about a field of the document, or about something inside it; what is said of others does not matter.
    pub fn equalities_within(&self, field: &str) -> Result<Vec<(pando_doc::FieldPath, pando_doc::OwnedValue)>> {
        equalities::of(&self.root, &|path| path.part(0) == field)
    }
}

impl PartialEq for MatchExpression {
    fn eq(&self, other: &MatchExpression) -> bool {
        self.root == other.root
    }
}

impl fmt::Debug for MatchExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to_document())
    }
}

/// A condition on a single value.
#[derive(Clone)]
pub struct ValuePredicate {
    predicate: Predicate,
    collator: Option<SharedCollator>,
}

impl ValuePredicate {
    /// True if the value fulfils the condition; arrays are not expanded.
    pub fn matches(&self, value: pando_doc::Value<'_>) -> bool {
        Evaluation::new(strings(&self.collator)).predicate(&self.predicate, Some(value))
    }
}

impl fmt::Debug for ValuePredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.predicate)
    }
}
