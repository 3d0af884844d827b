//! `$replaceRoot` and `$replaceWith`: a document that an expression gives takes the place of the whole.

use super::transform::transformed;
use crate::pipeline::{DocumentSource, Needs, SharedStage, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{Doc, OwnedValue, Value, doc};
use pando_expr::{Expression, ParseContext};
use std::sync::Arc;

#[derive(Debug)]
struct ReplaceRootSpec {
    expression: Arc<Expression>,
}

/// Reads `$replaceRoot`.
pub(in crate::pipeline) fn parse_root(value: Value<'_>, context: &ParseContext) -> Result<SharedStage> {
    let Value::Document(options) = value else {
        let reason = format!("expected an object as specification for $replaceRoot stage, got {}", value.value_type());
        return Err(Error::location(40229, reason));
    };
    if let Some(unknown) = options.elements().find(|option| option.name != "newRoot") {
        let reason =
            format!("unrecognized option to $replaceRoot stage: {}, only valid option is 'newRoot'.", unknown.name);
        return Err(Error::location(40230, reason));
    }
    let root = options.get("newRoot");
    parse_with(root.ok_or_else(|| Error::location(40231, "no newRoot specified for the $replaceRoot stage"))?, context)
}

/// Reads `$replaceWith`.
pub(in crate::pipeline) fn parse_with(value: Value<'_>, context: &ParseContext) -> Result<SharedStage> {
    let expression = Expression::parse(value, context)?.optimize()?;
    Ok(Arc::new(ReplaceRootSpec { expression: Arc::new(expression) }))
}

impl StageSpec for ReplaceRootSpec {
    fn name(&self) -> &'static str {
        "$replaceRoot"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let expression = Arc::clone(&self.expression);
        Ok(transformed(source, move |document| {
            let value = expression.evaluate_document(document.view())?.into_value();
            match value {
                Some(OwnedValue::Document(root)) => Ok(Some(root)),
                other => {
                    let shown = other.as_ref().map_or_else(|| "MISSING".to_owned(), |value| value.view().to_string());
                    let kind = other.as_ref().map_or("missing", |value| value.value_type().name());
                    let reason = format!(
                        "'newRoot' expression  must evaluate to an object, but resulting value was: {shown}. Type of \
                         resulting value: '{kind}'. Input document: {document}"
                    );
                    Err(Error::location(40228, reason))
                }
            }
        }))
    }

    fn to_doc(&self) -> Doc {
        doc! { "$replaceRoot": { "newRoot": self.expression.to_value() } }
    }

    fn needs(&self) -> Needs {
        Needs::only(self.expression.paths())
    }
}
