//! `$redact`: parts of documents are kept, left out, or looked into.

use super::transform::transformed;
use crate::pipeline::{DocumentSource, SharedStage, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{ArrayBuilder, Doc, DocBuilder, DocRef, Value, doc};
use pando_expr::{Expression, ParseContext};
use std::sync::Arc;

#[derive(Debug)]
struct RedactSpec {
    expression: Arc<Expression>,
}

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, context: &ParseContext) -> Result<SharedStage> {
    let mut context = context.clone();
    let mut variables = DocBuilder::new();
    variables.append_all(context.variables.view());
    for (name, verdict) in [("KEEP", "keep"), ("PRUNE", "prune"), ("DESCEND", "descend")] {
        variables.append(name, verdict);
    }
    context.variables = variables.finish();
    let expression = Expression::parse(value, &context)?.optimize()?;
    Ok(Arc::new(RedactSpec { expression: Arc::new(expression) }))
}

fn redacted(expression: &Expression, document: DocRef<'_>) -> Result<Option<Doc>> {
    let verdict = expression.evaluate_document(document)?;
    match verdict.view().and_then(|value| value.as_str()) {
        Some("keep") => Ok(Some(document.to_doc())),
        Some("prune") => Ok(None),
        Some("descend") => descend(expression, document).map(Some),
        _ => Err(Error::location(
            17053,
            "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE",
        )),
    }
}

fn descend(expression: &Expression, document: DocRef<'_>) -> Result<Doc> {
    let mut builder = DocBuilder::with_capacity(document.size_bytes());
    for element in document.elements() {
        match element.value {
            Value::Document(nested) => {
                if let Some(kept) = redacted(expression, nested)? {
                    builder.append(element.name, kept);
                }
            }
            Value::Array(array) => {
                let mut kept = ArrayBuilder::new();
                for value in array.values() {
                    match value {
                        Value::Document(nested) => {
                            if let Some(nested) = redacted(expression, nested)? {
                                kept.push(nested);
                            }
                        }
                        other => kept.push(other),
                    }
                }
                builder.append(element.name, kept.finish());
            }
            value => builder.append(element.name, value),
        }
    }
    Ok(builder.finish())
}

impl StageSpec for RedactSpec {
    fn name(&self) -> &'static str {
        "$redact"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let expression = Arc::clone(&self.expression);
        Ok(transformed(source, move |document| redacted(&expression, document.view())))
    }

    fn to_doc(&self) -> Doc {
        doc! { "$redact": self.expression.to_value() }
    }
}
