//! The plan of a text search: there is at most one, since a collection has one text index.

use super::condition::conjuncts;
use super::{PlanNode, SharedFilter, plan::Planner};
use pando_base::{Error, ErrorCode, Result};
use pando_catalog::{Index, IndexKind};
use pando_doc::{FieldPath, OwnedValue};
use pando_expr::matcher::{ComparisonOperator, Node, Predicate, TextClause};
use pando_expr::metadata::Meta;
use pando_text::{TextQuery, TextSpec};
use std::sync::Arc;

/// A search in a text index.
#[derive(Clone, Debug)]
pub struct TextPlan {
    /// The index.
    pub index: Arc<Index>,
    /// What it has of documents.
    pub spec: Arc<TextSpec>,
    /// What is sought.
    pub query: Arc<TextQuery>,
    /// What the fields before the text have to be.
    pub prefix: Vec<OwnedValue>,
    /// What documents must match besides.
    pub filter: Option<SharedFilter>,
    /// The best come first.
    pub is_by_score: bool,
    /// Somebody asks for the score.
    pub wants_score: bool,
    /// Only how many there are is asked for.
    pub is_count: bool,
}

/// The error for a search without an index.
pub(crate) fn index_required(detail: &str) -> Error {
    Error::new(ErrorCode::IndexNotFound, format!("text index required for $text query{detail}"))
}

impl Planner<'_> {
    /// The plan of the filter's text search; none if it has none.
    pub(super) fn text_plan(&self) -> Result<Option<TextPlan>> {
        let root = self.query.filter.root();
        let parts = conjuncts(root);
        let mut clauses = parts.iter().filter_map(|part| match part {
            Node::Text(clause) => Some(clause),
            _ => None,
        });
        let Some(clause) = clauses.next() else {
            return Ok(None);
        };
        if clauses.next().is_some() {
            return Err(Error::bad_value("Too many text expressions"));
        }
        if self.is_hinted {
            return Err(Error::bad_value("$text query cannot be hinted"));
        }
        self.plan_of(clause, &parts).map(Some)
    }

    /// The plans of a filter whose search is one of several alternatives: those in which every alternative has an index.
    pub(super) fn plans_of_alternatives(&self) -> Result<Vec<PlanNode>> {
        if self.is_hinted {
            return Err(Error::bad_value("$text query cannot be hinted"));
        }
        let mut found = self.find_plans(self.query.filter.root(), self.limits.plans_max)?;
        found.retain(|plan| plan.any(&|node| matches!(node, PlanNode::Text(_))));
        if found.is_empty() {
            let reason = "Failed to produce a solution for TEXT under OR - other non-TEXT clauses under OR have to be indexed as well.";
            return Err(self.query.refused(reason).with_code(ErrorCode::NoQueryExecutionPlans));
        }
        Ok(found.into_iter().map(|plan| self.finished(plan)).collect())
    }

    /// The search among these conjuncts, as part of a plan; none if there is none.
    pub(super) fn text_part(&self, parts: &[&Node]) -> Result<Option<PlanNode>> {
        let clause = parts.iter().find_map(|part| match part {
            Node::Text(clause) => Some(clause),
            _ => None,
        });
        let plan = clause.map(|clause| self.plan_of(clause, parts)).transpose()?;
        // What else finds documents looks at them, so that these have to be there.
        Ok(plan.map(|plan| PlanNode::Text(Box::new(TextPlan { is_count: false, is_by_score: false, ..plan }))))
    }

    fn plan_of(&self, clause: &TextClause, parts: &[&Node]) -> Result<TextPlan> {
        let index = self.collection.ready_indexes().find(|index| index.descriptor.kind == IndexKind::Text);
        let index = Arc::clone(index.ok_or_else(|| index_required(""))?);
        if index.descriptor.hidden {
            let reason = "failed to use text index to satisfy $text query (the index is hidden)";
            return Err(self.query.refused(reason).with_code(ErrorCode::NoQueryExecutionPlans));
        }
        let spec = TextSpec::parse(index.descriptor.specification.view())?;
        let mut prefix = Vec::new();
        for field in index.descriptor.key_pattern.elements().take_while(|field| field.name != "_fts") {
            let path = FieldPath::lenient(field.name)?;
            let Some(value) = parts.iter().find_map(|part| equality(part, &path)) else {
                let reason = "failed to use text index to satisfy $text query (if text index is compound, are equality predicates given for all prefix fields?)";
                return Err(self.query.refused(reason).with_code(ErrorCode::NoQueryExecutionPlans));
            };
            prefix.push(value.clone());
        }
        let rest: Vec<&Node> = parts.iter().copied().filter(|part| !matches!(part, Node::Text(_))).collect();
        let query = Arc::new(clause.query(spec.default_language()));
        let filter = (!rest.is_empty()).then(|| self.filter_of(&rest));
        let is_by_score = self.query.sort.as_ref().is_some_and(|pattern| pattern.is_text_score());
        let sorts_by_score =
            self.query.sort.as_ref().is_some_and(|pattern| pattern.metadata().any(|kind| kind == Meta::TextScore));
        let wants_score = sorts_by_score || self.query.metadata.contains(Meta::TextScore);
        Ok(TextPlan {
            index,
            spec: Arc::new(spec),
            query,
            prefix,
            filter,
            is_by_score,
            wants_score,
            is_count: self.query.is_count,
        })
    }
}

/// The value that the path has to have, if the part of the filter says so.
fn equality<'n>(part: &'n Node, path: &FieldPath) -> Option<&'n OwnedValue> {
    let Node::Leaf(leaf) = part else { return None };
    match &leaf.predicate {
        Predicate::Comparison(comparison) if leaf.path == *path && comparison.operator == ComparisonOperator::Equal => {
            Some(&comparison.value)
        }
        _ => None,
    }
}
