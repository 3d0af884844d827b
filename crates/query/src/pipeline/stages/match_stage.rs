//! `$match`: the documents that fulfil a filter.

use super::transform::transformed;
use crate::pipeline::dependencies::without_places;
use crate::pipeline::{DocumentSource, Needs, Pushdown, SharedStage, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{Doc, Value, doc};
use pando_expr::{Features, MatchExpression, ParseContext};
use std::sync::Arc;

#[derive(Debug)]
struct MatchSpec {
    filter: Arc<MatchExpression>,
}

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, context: &ParseContext) -> Result<SharedStage> {
    let Value::Document(filter) = value else {
        return Err(Error::location(15959, "the match filter must be an expression in an object"));
    };
    // Only a mapReduce may filter by JavaScript.
    let features = Features { javascript: context.is_map_reduce, geo_near: false, ..context.features };
    let context = context.clone().with_features(features);
    let filter = MatchExpression::parse(filter, &context)?.optimize();
    Ok(Arc::new(MatchSpec { filter: Arc::new(filter) }))
}

/// A stage with this filter.
pub(in crate::pipeline) fn of(filter: Arc<MatchExpression>) -> SharedStage {
    Arc::new(MatchSpec { filter })
}

impl StageSpec for MatchSpec {
    fn name(&self) -> &'static str {
        "$match"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let filter = Arc::clone(&self.filter);
        Ok(transformed(source, move |document| Ok(filter.try_matches(document.view())?.then_some(document))))
    }

    fn to_doc(&self) -> Doc {
        doc! { "$match": self.filter.to_document() }
    }

    fn pushdown(&self) -> Pushdown<'_> {
        Pushdown::Match(&self.filter)
    }

    fn needs(&self) -> Needs {
        let paths = self.filter.paths();
        Needs::these(paths.map(|paths| paths.iter().map(without_places).collect()))
    }
}
