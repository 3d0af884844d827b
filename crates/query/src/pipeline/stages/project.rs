//! `$project`: which fields documents have.

use super::transform::transformed;
use crate::pipeline::{DocumentSource, SharedStage, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{Doc, Value, doc};
use pando_expr::{ParseContext, Projection, ProjectionPolicies};
use std::sync::Arc;

/// A stage that applies a projection.
#[derive(Debug)]
pub(super) struct ProjectionSpec {
    pub(super) name: &'static str,
    pub(super) projection: Arc<Projection>,
    pub(super) specification: Doc,
}

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, context: &ParseContext) -> Result<SharedStage> {
    let Value::Document(specification) = value else {
        return Err(Error::location(15969, "$project specification must be an object"));
    };
    if specification.is_empty() {
        return Err(Error::location(
            51272,
            "Invalid $project :: caused by :: projection specification must have at least one field",
        ));
    }
    let projection = Projection::parse(specification, ProjectionPolicies::AGGREGATE, context)
        .map_err(|error| error.context("Invalid $project"))?;
    let specification = specification.to_doc();
    Ok(Arc::new(ProjectionSpec { name: "$project", projection: Arc::new(projection), specification }))
}

impl StageSpec for ProjectionSpec {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let projection = Arc::clone(&self.projection);
        Ok(transformed(source, move |document| projection.apply(document.view(), None).map(Some)))
    }

    fn to_doc(&self) -> Doc {
        doc! { (self.name): &self.specification }
    }
}
