//! `$fill`: values for what is null or missing. By a method it is a `$setWindowFields`, by a value an `$addFields`.

use super::set_field::with_parts;
use super::{options, window};
use crate::pipeline::parse::parse_stage;
use crate::pipeline::{PipelineParser, SharedStage};
use pando_base::{Error, Result};
use pando_doc::{ArrayBuilder, Doc, DocBuilder, DocRef, FieldPath, Value, doc};

const STAGE: &str = "$fill";

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, parser: &PipelineParser) -> Result<Vec<SharedStage>> {
    let Value::Document(specification) = value else {
        let reason = format!("The {STAGE} stage specification must be an object, found {}", value.value_type());
        return Err(Error::failed_to_parse(reason));
    };
    let (mut sort_by, mut partition_by, mut partition_fields, mut output) = (None, None, None, None);
    for option in specification.elements() {
        match &**option.name {
            b"sortBy" | b"partitionByFields" | b"output" if option.value.is_nullish() => {}
            b"sortBy" => sort_by = Some(options::document(STAGE, option)?),
            b"partitionBy" => match option.value {
                Value::String(_) | Value::Document(_) => partition_by = Some(option.value),
                _ => return Err(options::wrong_type(STAGE, option, "types '[object, string]'")),
            },
            b"partitionByFields" => partition_fields = Some(options::strings(STAGE, option)?),
            b"output" => output = Some(options::document(STAGE, option)?),
            _ => return Err(options::unknown(STAGE, option)),
        }
    }
    let output = output.ok_or_else(|| options::missing(STAGE, "output"))?;
    if output.is_empty() {
        let reason = "The output field in '$fill' must contain an object with at least one element";
        return Err(Error::location(6050203, reason));
    }
    let (windows, added) = parse_output(output)?;
    if partition_by.is_some() && partition_fields.is_some() {
        let reason = "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'";
        return Err(Error::location(6050204, reason));
    }
    for field in partition_fields.iter().flatten() {
        FieldPath::parse(field)?;
    }
    let mut stages = Vec::new();
    if !windows.is_empty() {
        let mut all = DocBuilder::new();
        all.append_some("sortBy", sort_by.map(Value::Document));
        all.append_some("partitionBy", partition_by);
        all.append_some("partitionBy", partition_fields.as_deref().map(nested));
        all.append("output", windows);
        stages.extend(window::parse(Value::Document(all.finish().view()), parser)?);
    }
    if !added.is_empty() {
        stages.extend(parse_stage(doc! { "$addFields": added }.view(), parser)?);
    }
    Ok(stages)
}

/// What windows fill, and what values fill.
fn parse_output(output: DocRef<'_>) -> Result<(Doc, Doc)> {
    let (mut windows, mut added) = (DocBuilder::new(), DocBuilder::new());
    for field in output.elements() {
        let Value::Document(specification) = field.value else {
            let reason = "Each fill output specification must be an object with exactly one field";
            return Err(Error::location(6050200, reason));
        };
        let (mut method, mut value) = (None, None);
        for option in specification.elements() {
            match &**option.name {
                b"method" if option.value.is_nullish() => {}
                b"method" => method = Some(options::string(STAGE, option)?),
                b"value" => value = Some(option.value),
                _ => return Err(options::unknown(STAGE, option)),
            }
        }
        let path = format!("${}", field.name);
        match (method.as_deref(), value) {
            (Some(_), Some(_)) => {
                let reason =
                    "Each fill output specification must have exactly one of 'method' or 'value' fields, not both";
                return Err(Error::location(6050201, reason));
            }
            (Some("linear"), None) => windows.append(field.name, doc! { "$linearFill": path.as_str() }),
            (Some("locf"), None) => windows.append(field.name, doc! { "$locf": path.as_str() }),
            (Some(_), None) => return Err(Error::location(6050202, "Method must be either locf or linear")),
            (None, Some(value)) => {
                let mut operands = ArrayBuilder::new();
                operands.push(path.as_str());
                operands.push(value);
                added.append(field.name, doc! { "$ifNull": operands.finish() });
            }
            (None, None) => {}
        }
    }
    Ok((windows.finish(), added.finish()))
}

/// A document in which every path holds the expression that reads it.
pub(super) fn nested(paths: &[String]) -> Doc {
    let mut all = Doc::new();
    for path in paths {
        let parts: Vec<&[u8]> = path.split('.').map(str::as_bytes).collect();
        let expression = format!("${path}");
        all = with_parts(all.view(), &parts, Some(Value::String(expression.as_str().into())));
    }
    all
}
