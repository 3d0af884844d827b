//! `$documents`: documents that the command brings along.

use crate::pipeline::{DocumentSource, ListSource, SharedStage, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{Doc, DocRef, OwnedValue, Value, doc};
use pando_expr::{Expression, ParseContext};
use std::sync::Arc;

#[derive(Debug)]
struct DocumentsSpec {
    expression: Expression,
}

/// Reads it. Inside a look-up the expression may be one of its variables: it is evaluated when the stage starts.
pub(in crate::pipeline) fn parse(value: Value<'_>, context: &ParseContext) -> Result<SharedStage> {
    let expression = Expression::parse(value, context)?.optimize()?;
    Ok(Arc::new(DocumentsSpec { expression }))
}

/// True for a pipeline that brings its documents along.
pub(super) fn begin(first_stage: Option<DocRef<'_>>) -> bool {
    first_stage.and_then(|stage| stage.first()).is_some_and(|stage| stage.name == "$documents")
}

impl StageSpec for DocumentsSpec {
    fn name(&self) -> &'static str {
        "$documents"
    }

    fn start(&self, _source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let evaluated = self.expression.evaluate_document(DocRef::EMPTY)?.into_value();
        let Some(OwnedValue::Array(documents)) = evaluated else {
            return Err(Error::location(5858203, "an array is expected"));
        };
        if documents.values().any(|value| value.as_document().is_none()) {
            return Err(Error::location(40228, "'newRoot' expression  must evaluate to an object"));
        }
        let documents = documents.values().filter_map(|value| value.as_document()).map(DocRef::to_doc);
        Ok(Box::new(ListSource(documents.collect())))
    }

    fn to_doc(&self) -> Doc {
        doc! { "$documents": self.expression.to_value() }
    }

    fn is_initial(&self) -> bool {
        true
    }
}
