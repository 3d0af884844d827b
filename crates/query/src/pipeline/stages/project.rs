//! `$project`: which fields documents have.

use super::transform::transformed;
use crate::pipeline::{DocumentSource, Modified, Needs, Pushdown, Rename, SharedStage, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{Doc, Element, FieldPath, Value, doc};
use pando_expr::projection::{Child, ProjectionKind};
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
        doc! { (self.name): self.projection.to_doc() }
    }

    fn pushdown(&self) -> Pushdown<'_> {
        match self.projection.kind() {
            ProjectionKind::AddFields => Pushdown::None,
            ProjectionKind::Inclusion | ProjectionKind::Exclusion => Pushdown::Project(&self.projection),
        }
    }

    fn needs(&self) -> Needs {
        match self.projection.kind() {
            ProjectionKind::Inclusion => Needs::only(self.projection.looked_at()),
            _ => Needs::these(self.projection.looked_at()),
        }
    }

    fn modified(&self) -> Modified {
        modified(self.name, &self.specification)
    }

    fn renames(&self) -> Vec<Rename> {
        let computed = self.projection.root().children().iter().filter_map(|(name, child)| match child {
            Child::Computed(expression) => Some((FieldPath::parse(name).ok()?, expression)),
            _ => None,
        });
        computed.filter_map(|(name, expression)| Rename::of(name, expression)).collect()
    }

    fn keeps_count(&self) -> bool {
        true
    }
}

/// Of a projection that names what stays, everything else is changed; of others what they name.
fn modified(stage: &str, specification: &Doc) -> Modified {
    let is_plain = |field: &Element<'_>| field.value.is_number() || matches!(field.value, Value::Bool(_));
    let paths = |keep: &dyn Fn(&Element<'_>) -> bool| {
        let named = specification.elements().filter(|field| keep(field));
        named.map(|field| FieldPath::parse(field.name)).collect::<Result<Vec<_>>>().ok()
    };
    let stays = |field: &Element<'_>| is_plain(field) && field.value.is_true();
    let drops = |field: &Element<'_>| is_plain(field) && !field.value.is_true();
    let is_exclusion = specification.elements().all(|field| drops(&field)) && specification.elements().next().is_some();
    let found = match (stage, is_exclusion) {
        ("$project", false) => paths(&stays).map(|mut kept| {
            if specification.get("_id").is_none() {
                kept.extend(FieldPath::parse("_id"));
            }
            Modified::AllBut(kept)
        }),
        _ => paths(&|_| true).map(Modified::Paths),
    };
    found.unwrap_or(Modified::Everything)
}
