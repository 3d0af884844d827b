//! `$redact`: parts of documents are kept, left out, or looked into.

use super::transform::transformed;
use crate::pipeline::{DocumentSource, SharedStage, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{Array, ArrayBuilder, ArrayRef, Doc, DocBuilder, DocRef, OwnedValue, Value, doc};
use pando_expr::{Expression, Operand, ParseContext, Scope};
use std::sync::Arc;

#[derive(Debug)]
struct RedactSpec {
    /// With the part that is looked at in the slot of `$$CURRENT`; `$$ROOT` stays the whole document.
    expression: Arc<Expression>,
    /// As it was written.
    shown: OwnedValue,
}

/// The slot of `$$CURRENT`.
const CURRENT: usize = 0;

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, context: &ParseContext) -> Result<SharedStage> {
    let mut context = context.clone();
    let mut variables = DocBuilder::new();
    variables.append_all(context.variables.view());
    for (name, verdict) in [("KEEP", "keep"), ("PRUNE", "prune"), ("DESCEND", "descend")] {
        variables.append(name, verdict);
    }
    context.variables = variables.finish();
    let shown = Expression::parse(value, &context)?.optimize()?.to_value();
    let expression = Expression::parse_with_variables(value, &["CURRENT"], &context)?.optimize()?;
    Ok(Arc::new(RedactSpec { expression: Arc::new(expression), shown }))
}

/// A document on its way through the expression.
struct Redaction<'r> {
    expression: &'r Expression,
    scope: Scope<'r>,
}

impl<'r> Redaction<'r> {
    /// What is left of a document, be it the whole or a part.
    fn redacted(&mut self, document: DocRef<'r>) -> Result<Option<Doc>> {
        self.scope.set(CURRENT, Operand::from(Value::Document(document)));
        let verdict = self.expression.evaluate(&mut self.scope)?;
        match verdict.view().and_then(|value| value.as_str()) {
            Some("keep") => Ok(Some(document.to_doc())),
            Some("prune") => Ok(None),
            Some("descend") => self.descend(document).map(Some),
            _ => Err(Error::location(
                17053,
                "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and \
                 $$PRUNE",
            )),
        }
    }

    fn descend(&mut self, document: DocRef<'r>) -> Result<Doc> {
        let mut builder = DocBuilder::with_capacity(document.size_bytes());
        for element in document.elements() {
            match element.value {
                Value::Document(nested) => {
                    if let Some(kept) = self.redacted(nested)? {
                        builder.append(element.name, kept);
                    }
                }
                Value::Array(array) => builder.append(element.name, self.in_array(array)?),
                value => builder.append(element.name, value),
            }
        }
        Ok(builder.finish())
    }

    /// Documents in arrays are looked into, however deep the arrays lie in each other.
    fn in_array(&mut self, array: ArrayRef<'r>) -> Result<Array> {
        let mut kept = ArrayBuilder::new();
        for value in array.values() {
            match value {
                Value::Document(nested) => {
                    if let Some(nested) = self.redacted(nested)? {
                        kept.push(nested);
                    }
                }
                Value::Array(nested) => kept.push(self.in_array(nested)?),
                other => kept.push(other),
            }
        }
        Ok(kept.finish())
    }
}

fn redacted(expression: &Expression, document: DocRef<'_>) -> Result<Option<Doc>> {
    Redaction { expression, scope: Scope::new(document, expression) }.redacted(document)
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
        doc! { "$redact": (&self.shown) }
    }
}
