//! `$documents`: documents that the command brings along.

use crate::pipeline::{DocumentSource, ListSource, SharedStage, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{Array, Doc, DocRef, OwnedValue, Value, doc};
use pando_expr::{Expression, ParseContext};
use std::sync::Arc;

#[derive(Debug)]
struct DocumentsSpec {
    documents: Array,
}

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, context: &ParseContext) -> Result<SharedStage> {
    let expression = Expression::parse(value, context)?.optimize()?;
    let evaluated = expression.evaluate_document(DocRef::EMPTY)?.into_value();
    let refused = || Error::location(5858203, "an array is expected");
    let Some(OwnedValue::Array(documents)) = evaluated else { return Err(refused()) };
    if documents.values().any(|value| value.as_document().is_none()) {
        return Err(Error::location(40228, "'newRoot' expression  must evaluate to an object"));
    }
    Ok(Arc::new(DocumentsSpec { documents }))
}

impl StageSpec for DocumentsSpec {
    fn name(&self) -> &'static str {
        "$documents"
    }

    fn start(&self, _source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let documents = self.documents.values().filter_map(|value| value.as_document()).map(DocRef::to_doc);
        Ok(Box::new(ListSource(documents.collect())))
    }

    fn to_doc(&self) -> Doc {
        doc! { "$documents": &self.documents }
    }

    fn is_initial(&self) -> bool {
        true
    }
}
