//! `$groupByDistinctScan`: what a `$group` becomes whose first documents a scan finds by skipping from value to value. Each document is
//! a whole group.

use super::group::GroupField;
use super::transform::transformed;
use crate::pipeline::{DocumentSource, SharedStage, StageSpec};
use pando_base::Result;
use pando_doc::{Doc, DocBuilder, FieldPath, doc};
use pando_expr::Expression;
use std::sync::Arc;

/// A `$group` that needs one document of each group.
pub struct DistinctGroup {
    /// What is grouped by.
    pub path: FieldPath,
    /// The last document of each group is wanted, not the first.
    pub is_last: bool,
    /// The stage that takes the place of the `$group`.
    pub stage: SharedStage,
}

/// What each document becomes.
struct GroupByDistinctScanSpec(Arc<Vec<(String, Expression)>>);

impl std::fmt::Debug for GroupByDistinctScanSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.to_doc())
    }
}

/// The stage for these fields.
pub(super) fn of<'f>(id: &Expression, fields: impl Iterator<Item = &'f GroupField>) -> SharedStage {
    let id = std::iter::once(("_id".to_owned(), id.clone()));
    let fields = id.chain(fields.map(|field| (field.name.clone(), field.input.clone())));
    Arc::new(GroupByDistinctScanSpec(Arc::new(fields.collect())))
}

impl StageSpec for GroupByDistinctScanSpec {
    fn name(&self) -> &'static str {
        "$groupByDistinctScan"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let fields = Arc::clone(&self.0);
        Ok(transformed(source, move |document| {
            let mut group = DocBuilder::new();
            for (name, expression) in fields.iter() {
                // What is missing is null here.
                group.append(name, expression.evaluate_document(document.view())?.or_null());
            }
            Ok(Some(group.finish()))
        }))
    }

    fn to_doc(&self) -> Doc {
        let mut shown = DocBuilder::new();
        self.0.iter().for_each(|(name, expression)| shown.append(name, expression.to_value()));
        doc! { "$groupByDistinctScan": { "newRoot": (shown.finish()) } }
    }
}
