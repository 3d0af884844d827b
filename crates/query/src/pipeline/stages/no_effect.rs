//! Stages that leave documents as they are, and that only tests and other servers send: `$_internalInhibitOptimization`, which no stage
//! passes, `$_internalSplitPipeline`, which says where a sharded pipeline is divided, and `$_internalShredDocuments`, which changes how
//! documents are held in memory.

use crate::pipeline::{DocumentSource, Needs, SharedStage, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{Doc, DocRef, Value, doc};
use std::sync::Arc;

#[derive(Debug)]
struct NoEffectSpec {
    name: &'static str,
    options: Doc,
}

fn of(name: &'static str, options: DocRef<'_>) -> SharedStage {
    Arc::new(NoEffectSpec { name, options: options.to_doc() })
}

/// Reads `$_internalInhibitOptimization`.
pub(in crate::pipeline) fn parse_inhibit_optimization(value: Value<'_>) -> Result<SharedStage> {
    const NAME: &str = "$_internalInhibitOptimization";
    match value {
        Value::Document(options) if options.is_empty() => Ok(of(NAME, options)),
        Value::Document(_) => Err(Error::failed_to_parse(format!("{NAME} must have an empty specification"))),
        other => Err(Error::failed_to_parse(format!("{NAME} must be an object, found {}", other.value_type()))),
    }
}

/// Reads `$_internalSplitPipeline`.
pub(in crate::pipeline) fn parse_split_pipeline(value: Value<'_>) -> Result<SharedStage> {
    const NAME: &str = "$_internalSplitPipeline";
    let Value::Document(options) = value else {
        let reason = format!("{NAME} must take a nested object but found: {value}");
        return Err(Error::type_mismatch(reason));
    };
    for option in options.elements() {
        match (&**option.name, option.value) {
            (b"mergeType", Value::String(_)) => {}
            (b"mergeType", other) => {
                return Err(Error::bad_value(format!("'mergeType' must be a string, found {}", other.value_type())));
            }
            _ => return Err(Error::bad_value(format!("unrecognized field while parsing {NAME}: '{}'", option.name))),
        }
    }
    Ok(of(NAME, options))
}

/// Reads `$_internalShredDocuments`.
pub(in crate::pipeline) fn parse_shred_documents(value: Value<'_>) -> Result<SharedStage> {
    const NAME: &str = "$_internalShredDocuments";
    match value {
        Value::Document(options) if options.is_empty() => Ok(of(NAME, options)),
        Value::Document(_) => Err(Error::location(7997501, format!("{NAME} specification must be an empty object"))),
        other => {
            let reason = format!("{NAME} specification must be an object, found {}", other.value_type());
            Err(Error::location(7997500, reason))
        }
    }
}

impl StageSpec for NoEffectSpec {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(source)
    }

    fn needs(&self) -> Needs {
        Needs::These(Vec::new())
    }

    fn to_doc(&self) -> Doc {
        doc! { (self.name): &self.options }
    }
}
