//! `$out` and `$merge`: where results go. They are written by the caller; here they are only read.

use super::options;
use crate::pipeline::{DocumentSource, MergeOutput, OutputStage, PipelineParser, ShardSplit, SharedStage, StageSpec};
use pando_base::{Error, ErrorCode, Namespace, Result, ensure};
use pando_doc::{Array, ArrayRef, Doc, DocBuilder, DocRef, Value, doc};
use pando_timeseries::TimeseriesOptions;
use std::sync::Arc;

/// What becomes of a document that is there.
#[derive(Clone, Debug)]
pub enum WhenMatched {
    /// It gets the result's fields.
    Merge,
    /// It becomes the result.
    Replace,
    /// It stays.
    Keep,
    /// That is an error.
    Fail,
    /// A pipeline decides.
    Pipeline(Array),
}

/// What becomes of a result that finds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNotMatched {
    /// It is inserted.
    Insert,
    /// It is thrown away.
    Discard,
    /// That is an error.
    Fail,
}

#[derive(Debug)]
struct OutputSpec {
    name: &'static str,
    output: OutputStage,
}

/// Reads `$out`.
pub(in crate::pipeline) fn parse_out(value: Value<'_>, parser: &PipelineParser) -> Result<SharedStage> {
    Ok(Arc::new(OutputSpec { name: "$out", output: read_out(value, &parser.namespace)? }))
}

/// Where an `$out` writes, in a pipeline on this collection.
pub(in crate::pipeline) fn read_out(value: Value<'_>, source: &Namespace) -> Result<OutputStage> {
    let (namespace, timeseries) = match value {
        Value::String(collection) => (source.sibling(&collection.to_string())?, None),
        Value::Document(target) => parse_out_target(target)?,
        other => {
            let reason = format!("$out only supports a string or object argument, but found {}", other.value_type());
            return Err(Error::location(16990, reason));
        }
    };
    let shown = namespace.collection();
    ensure!(!namespace.is_system(), ErrorCode::location(17385), "Can't $out to special collection: {shown}");
    let database = namespace.database();
    ensure!(!namespace.is_internal(), ErrorCode::location(31321), "Can't $out to internal database: {database}");
    Ok(OutputStage::Out { namespace, timeseries })
}

/// Reads `{db, coll, timeseries}`.
fn parse_out_target(target: DocRef<'_>) -> Result<(Namespace, Option<Doc>)> {
    let (mut database, mut collection, mut timeseries) = (None, None, None);
    for option in target.elements().filter(|option| !option.value.is_nullish()) {
        match &**option.name {
            b"db" => database = Some(options::string("$out", option)?),
            b"coll" => collection = Some(options::string("$out", option)?),
            b"timeseries" => timeseries = Some(parse_timeseries(option.value)?),
            _ => return Err(options::unknown("$out", option)),
        }
    }
    let collection = collection.ok_or_else(|| options::missing("$out", "coll"))?;
    let database = database.ok_or_else(|| options::missing("$out", "db"))?;
    Ok((Namespace::of(&database, &collection)?, timeseries))
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
    Ok(Arc::new(OutputSpec { name: "$merge", output: read_merge(value, &parser.namespace)? }))
}

/// Where a `$merge` writes, in a pipeline on this collection, and what it does there.
pub(in crate::pipeline) fn read_merge(value: Value<'_>, source: &Namespace) -> Result<OutputStage> {
    let specification = match value {
        Value::String(collection) if collection.is_empty() => {
            let reason = format!("Invalid $merge target namespace: '{}.'", source.database());
            return Err(Error::new(ErrorCode::InvalidNamespace, reason));
        }
        Value::String(collection) => doc! { "into": collection },
        Value::Document(specification) => specification.to_doc(),
        other => {
            let reason = format!("$merge requires a string or object argument, but found {}", other.value_type());
            return Err(Error::type_mismatch(reason));
        }
    };
    check_merge_options(specification.view())?;
    let into = specification.get("into").ok_or_else(|| options::missing("$merge", "into"))?;
    let namespace = merge_target(into, source)?;
    let database = namespace.database();
    let collection = namespace.collection();
    ensure!(!namespace.is_system(), ErrorCode::location(31319), "Cannot $merge to special collection: {collection}");
    ensure!(!namespace.is_internal(), ErrorCode::location(31320), "Cannot $merge to internal database: {database}");
    let (matched, not_matched) = (when_matched(&specification)?, when_not_matched(&specification)?);
    let keeps_or_fails = matches!(matched, WhenMatched::Keep | WhenMatched::Fail);
    ensure!(
        !keeps_or_fails || not_matched == WhenNotMatched::Insert,
        ErrorCode::location(51181),
        "Combination of $merge modes is not supported"
    );
    Ok(OutputStage::Merge(MergeOutput { namespace, matched, not_matched, specification }))
}

fn when_matched(specification: &Doc) -> Result<WhenMatched> {
    match specification.get("whenMatched") {
        None | Some(Value::Null) => Ok(WhenMatched::Merge),
        Some(Value::Array(pipeline)) => Ok(WhenMatched::Pipeline(pipeline.to_array())),
        Some(value) => match value.as_str() {
            Some("merge") => Ok(WhenMatched::Merge),
            Some("replace") => Ok(WhenMatched::Replace),
            Some("keepExisting") => Ok(WhenMatched::Keep),
            Some("fail") => Ok(WhenMatched::Fail),
            other => Err(no_such_mode("whenMatched", other)),
        },
    }
}

fn when_not_matched(specification: &Doc) -> Result<WhenNotMatched> {
    let mode = specification.get("whenNotMatched").filter(|mode| !mode.is_nullish());
    match mode.map(|mode| mode.as_str()) {
        None | Some(Some("insert")) => Ok(WhenNotMatched::Insert),
        Some(Some("discard")) => Ok(WhenNotMatched::Discard),
        Some(Some("fail")) => Ok(WhenNotMatched::Fail),
        Some(other) => Err(no_such_mode("whenNotMatched", other)),
    }
}

fn no_such_mode(field: &str, mode: Option<&str>) -> Error {
    let mode = mode.unwrap_or_default();
    Error::bad_value(format!("Enumeration value '{mode}' for field '$merge.{field}' is not a valid value."))
}

/// Options of unknown names, or of types that they cannot have.
fn check_merge_options(specification: DocRef<'_>) -> Result<()> {
    for option in specification.elements() {
        let found = option.value.value_type();
        let refused = |code, what: &str| {
            let reason = format!("$merge '{}' field  must be either {what}, but found {found}", option.name);
            Err(Error::location(code, reason))
        };
        match (&**option.name, option.value) {
            (b"into", Value::String(_) | Value::Document(_)) => {}
            (b"into", _) => return refused(51178, "a string or an object"),
            (b"on", Value::String(_)) | (b"whenMatched", Value::String(_)) => {}
            (b"on", Value::Array(names)) => check_on(names)?,
            (b"on", _) => return refused(51186, "a string or an array of strings"),
            (b"whenMatched", Value::Array(stages)) => check_stages(stages)?,
            (b"whenMatched", _) => return refused(51191, "a string or an array"),
            (b"let" | b"whenNotMatched", value) if value.is_nullish() => {}
            (b"let", _) => options::document("$merge", option).map(|_| ())?,
            (b"whenNotMatched", _) => options::string("$merge", option).map(|_| ())?,
            _ => return Err(options::unknown("$merge", option)),
        }
    }
    Ok(())
}

fn check_on(names: ArrayRef<'_>) -> Result<()> {
    if let Some(wrong) = names.values().find(|name| !matches!(name, Value::String(_))) {
        let reason = format!("$merge 'on' array elements must be strings, but found {}", wrong.value_type());
        return Err(Error::location(51134, reason));
    }
    ensure!(
        !names.is_empty(),
        ErrorCode::location(51187),
        "If explicitly specifying $merge 'on', must include at least one field"
    );
    Ok(())
}

fn check_stages(stages: ArrayRef<'_>) -> Result<()> {
    let are_documents = stages.values().all(|stage| matches!(stage, Value::Document(_)));
    ensure!(are_documents, ErrorCode::TypeMismatch, "Each element of the 'pipeline' array must be an object");
    Ok(())
}

/// Where a `$merge` leads: a name beside the pipeline's collection, or `{db, coll}`.
fn merge_target(into: Value<'_>, source: &Namespace) -> Result<Namespace> {
    let target = match into {
        Value::Document(target) => target,
        into => {
            let name = into.as_str().unwrap_or_default();
            ensure!(!name.is_empty(), ErrorCode::location(5786800), "$merge 'into' field cannot be an empty string");
            return source.sibling(name);
        }
    };
    let (mut database, mut collection) = (None, None);
    for option in target.elements().filter(|option| !option.value.is_nullish()) {
        match &**option.name {
            b"db" => database = Some(options::string("into", option)?),
            b"coll" => collection = Some(options::string("into", option)?),
            _ => return Err(options::unknown("into", option)),
        }
    }
    let Some(collection) = collection.filter(|name| !name.is_empty()) else {
        let reason = "$merge 'into' field must specify a 'coll' that is not empty, null or undefined";
        return Err(Error::location(5786801, reason));
    };
    let database = database.filter(|name| !name.is_empty());
    Namespace::of(database.as_deref().unwrap_or(source.database()), &collection)
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
            OutputStage::Merge(merge) => doc! { "$merge": merge_shown(&merge.namespace, &merge.specification) },
        }
    }

    fn split(&self) -> ShardSplit {
        ShardSplit::OnMerger
    }

    fn output(&self) -> Option<OutputStage> {
        Some(self.output.clone())
    }
}
