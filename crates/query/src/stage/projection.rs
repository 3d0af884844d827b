//! Some of the fields of what was found.
//!
//! `PROJECTION_COVERED` makes the fields from the key that a result was found by; the document is never read.

use super::{IndexKey, Look, Member, Shown, SortKeyGenerator, Stage, StageNode, Step, one_child, show_result};
use crate::planner::{ProjectionKind, SharedFilter};
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, DocRef, FieldPath, Value};
use pando_expr::Projection;
use pando_expr::metadata::{MetaSet, without_metadata};
use pando_operation::Operation;
use std::sync::Arc;

/// Projects.
pub struct ProjectionStage {
    child: StageNode,
    projection: Arc<Projection>,
    kind: ProjectionKind,
    specification: Doc,
    /// Whoever takes the results looks at nothing else: what is there as a document need not be made smaller.
    is_advice: bool,
    /// The filter of the query, which tells what the positional operator means.
    filter: SharedFilter,
    /// What the projection asks for that is not in documents.
    metadata: MetaSet,
    /// Tells what documents were sorted by.
    sort: Option<SortKeyGenerator>,
}

impl ProjectionStage {
    /// Some of the fields of what the child finds.
    pub fn new(
        child: StageNode,
        projection: Arc<Projection>,
        kind: ProjectionKind,
        specification: Doc,
        filter: SharedFilter,
    ) -> ProjectionStage {
        ProjectionStage {
            child,
            projection,
            kind,
            specification,
            is_advice: false,
            filter,
            metadata: MetaSet::default(),
            sort: None,
        }
    }

    /// The same; with `is_advice` documents may go through whole.
    #[must_use]
    pub fn with_advice(mut self, is_advice: bool) -> ProjectionStage {
        self.is_advice = is_advice;
        self
    }

    /// The same, which asks for this too.
    #[must_use]
    pub fn with_metadata(mut self, metadata: MetaSet, sort: Option<SortKeyGenerator>) -> ProjectionStage {
        (self.metadata, self.sort) = (metadata, sort);
        self
    }

    fn project(&self, member: &Member) -> Result<Doc> {
        match (&member.document, &member.key) {
            (Some(document), _) => project(&self.projection, document.view(), &self.filter),
            (None, Some(key)) => self.projection.apply(from_key(key)?.view(), None),
            (None, None) => Err(Error::internal("a result without document and key cannot be projected")),
        }
    }
}

/// The document as projected.
pub(crate) fn project(projection: &Projection, document: DocRef<'_>, filter: &SharedFilter) -> Result<Doc> {
    if !projection.needs_match_details() {
        return projection.apply(document, None);
    }
    let details = filter.matches_with_details(document)?;
    projection.apply(document, details.as_ref())
}

/// The key's values as a document, nested as their paths are.
fn from_key(key: &IndexKey) -> Result<Doc> {
    let values = key.to_doc()?;
    let paths: Vec<&FieldPath> = key.layout().paths.iter().collect();
    let parts: Vec<(&FieldPath, Value<'_>)> =
        paths.into_iter().zip(values.elements().map(|element| element.value)).collect();
    let mut builder = DocBuilder::new();
    append_nested(&mut builder, &parts, 0);
    Ok(builder.finish())
}

/// Appends the values whose paths have been followed to this depth.
fn append_nested(builder: &mut DocBuilder, parts: &[(&FieldPath, Value<'_>)], depth: usize) {
    let mut done: Vec<&bstr::BStr> = Vec::new();
    for (path, value) in parts {
        let Some(name) = path.parts().nth(depth) else { continue };
        if done.contains(&name) {
            continue;
        }
        done.push(name);
        if path.part_count() == depth + 1 {
            builder.append(name, *value);
            continue;
        }
        let below: Vec<(&FieldPath, Value<'_>)> =
            parts.iter().filter(|(other, _)| other.parts().nth(depth) == Some(name)).copied().collect();
        builder.document(name, |nested| append_nested(nested, &below, depth + 1));
    }
}

impl Stage for ProjectionStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        let member = match self.child.work(operation)? {
            Step::Advanced(member) => member,
            other => return Ok(other),
        };
        if self.is_advice && member.document.is_some() {
            return Ok(Step::Advanced(member));
        }
        if self.metadata.is_empty() {
            let document = self.project(&member)?;
            return Ok(Step::Advanced(Member { document: Some(document), key: None, ..member }));
        }
        let carrying = member.with_metadata(self.metadata, self.sort.as_mut())?;
        let document = project(&self.projection, carrying.view(), &self.filter)?;
        let document = without_metadata(document.view()).unwrap_or(document);
        Ok(Step::Advanced(Member { document: Some(document), ..member }))
    }

    fn show(&mut self, operation: &mut Operation, look: &mut Look<'_>) -> Result<Shown> {
        if self.is_advice && self.kind != ProjectionKind::Covered {
            return self.child.show(operation, look);
        }
        show_result(self.work(operation)?, look)
    }

    fn name(&self) -> &'static str {
        match self.kind {
            ProjectionKind::Default => "PROJECTION_DEFAULT",
            ProjectionKind::Simple => "PROJECTION_SIMPLE",
            // Fields below others are put together, wherever they come from.
            ProjectionKind::Covered if self.specification.elements().any(|field| field.name.contains(&b'.')) => {
                "PROJECTION_DEFAULT"
            }
            ProjectionKind::Covered => "PROJECTION_COVERED",
        }
    }

    one_child!();

    fn describe(&self, out: &mut DocBuilder) {
        out.append("transformBy", &self.specification);
    }
}
