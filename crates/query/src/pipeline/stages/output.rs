//! `$out` and `$merge`: where results go. They are written by the caller; here they are only read.

use crate::pipeline::{DocumentSource, OutputStage, PipelineParser, ShardSplit, SharedStage, StageSpec};
use pando_base::{Error, Namespace, Result};
use pando_doc::{Doc, DocBuilder, DocRef, Value, doc};
use pando_timeseries::TimeseriesOptions;
use std::sync::Arc;

#[derive(Debug)]
struct OutputSpec {
    name: &'static str,
    output: OutputStage,
}

/// Reads `$out`.
pub(in crate::pipeline) fn parse_out(value: Value<'_>, parser: &PipelineParser) -> Result<SharedStage> {
    let (namespace, timeseries) = match value {
        Value::String(collection) => (parser.namespace.sibling(&collection.to_string())?, None),
        Value::Document(target) => {
            let part = |name: &str| target.get(name).and_then(|value| value.as_str());
            let missing = |name: &str| {
                Error::location(40414, format!("BSON field '$out.{name}' is missing but a required field"))
            };
            let database = part("db").ok_or_else(|| missing("db"))?;
            let namespace = Namespace::of(database, part("coll").ok_or_else(|| missing("coll"))?)?;
            (namespace, target.get("timeseries").map(parse_timeseries).transpose()?)
        }
        other => {
            let reason = format!("$out only supports a string or object argument, but found {}", other.value_type());
            return Err(Error::location(16990, reason));
        }
    };
    Ok(Arc::new(OutputSpec { name: "$out", output: OutputStage::Out { namespace, timeseries } }))
}

/// Reads what a time series is to be like.
fn parse_timeseries(value: Value<'_>) -> Result<Doc> {
    let Value::Document(options) = value else {
        let found = value.value_type();
        let reason = format!("BSON field '$out.timeseries' is the wrong type '{found}', expected type 'object'");
        return Err(Error::type_mismatch(reason));
    };
    TimeseriesOptions::parse(options)?;
    Ok(options.to_doc())
}

/// Reads `$merge`.
pub(in crate::pipeline) fn parse_merge(value: Value<'_>, parser: &PipelineParser) -> Result<SharedStage> {
    let specification = match value {
        Value::String(collection) => doc! { "into": collection },
        Value::Document(specification) => specification.to_doc(),
        other => {
            let reason = format!("$merge requires a string or object argument, but found {}", other.value_type());
            return Err(Error::location(51182, reason));
        }
    };
    let into = specification.get("into");
    let namespace = match into {
        Some(Value::String(collection)) => parser.namespace.sibling(&collection.to_string())?,
        Some(Value::Document(target)) => {
            let part = |name: &str| target.get(name).and_then(|value| value.as_str());
            let database = part("db").unwrap_or(parser.namespace.database());
            Namespace::of(database, part("coll").unwrap_or_default())?
        }
        _ => {
            let reason = "BSON field '$merge.into' is missing but a required field";
            return Err(Error::location(40414, reason));
        }
    };
    Ok(Arc::new(OutputSpec { name: "$merge", output: OutputStage::Merge { namespace, specification } }))
}

/// `$merge` with everything that was left out.
fn merge_shown(namespace: &Namespace, specification: &Doc) -> Doc {
    let mut shown = DocBuilder::new();
    shown.append("into", doc! { "db": namespace.database(), "coll": namespace.collection() });
    match specification.get("on") {
        None | Some(Value::Null) => shown.append("on", "_id"),
        Some(Value::Array(names)) if names.len() == 1 => shown.append_some("on", names.values().next()),
        Some(on) => shown.append("on", on),
    }
    let matched = specification.get("whenMatched").filter(|mode| !mode.is_nullish());
    shown.append("whenMatched", matched.unwrap_or(Value::String("merge".into())));
    if let Some(Value::Array(_)) = matched {
        shown.document("let", |variables| {
            let written = specification.get("let").and_then(|written| written.as_document()).unwrap_or(DocRef::EMPTY);
            variables.append_all(written);
            if written.get("new").is_none() {
                variables.append("new", "$$ROOT");
            }
        });
    }
    let not_matched = specification.get("whenNotMatched").filter(|mode| !mode.is_nullish());
    shown.append("whenNotMatched", not_matched.unwrap_or(Value::String("insert".into())));
    shown.finish()
}

impl StageSpec for OutputSpec {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(source)
    }

    fn to_doc(&self) -> Doc {
        match &self.output {
            OutputStage::Out { namespace, timeseries } => {
                let mut shown = DocBuilder::new();
                shown.append("coll", namespace.collection());
                shown.append("db", namespace.database());
                shown.append_some("timeseries", timeseries.as_ref());
                doc! { "$out": shown.finish() }
            }
            OutputStage::Merge { namespace, specification } => doc! { "$merge": merge_shown(namespace, specification) },
        }
    }

    fn split(&self) -> ShardSplit {
        ShardSplit::OnMerger
    }

    fn output(&self) -> Option<OutputStage> {
        Some(self.output.clone())
    }
}
