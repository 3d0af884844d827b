//! `$_internalInhibitOptimization`: does nothing, but no stage passes it.

use crate::pipeline::{DocumentSource, Needs, SharedStage, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{Doc, Value, doc};
use std::sync::Arc;

#[derive(Debug)]
struct InhibitOptimizationSpec;

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>) -> Result<SharedStage> {
    match value {
        Value::Document(options) if options.is_empty() => Ok(Arc::new(InhibitOptimizationSpec)),
        Value::Document(_) => {
            Err(Error::failed_to_parse("$_internalInhibitOptimization must have an empty specification"))
        }
        other => {
            let reason = format!("$_internalInhibitOptimization must be an object, found {}", other.value_type());
            Err(Error::failed_to_parse(reason))
        }
    }
}

impl StageSpec for InhibitOptimizationSpec {
    fn name(&self) -> &'static str {
        "$_internalInhibitOptimization"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(source)
    }

    fn needs(&self) -> Needs {
        Needs::These(Vec::new())
    }

    fn to_doc(&self) -> Doc {
        doc! { "$_internalInhibitOptimization": {} }
    }
}
