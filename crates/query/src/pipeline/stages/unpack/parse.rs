//! Reading `$_internalUnpackBucket` and `$_unpackBucket`.

use super::Unpacking;
use crate::pipeline::SharedStage;
use pando_base::{Error, ErrorCode, Result, ensure};
use pando_doc::{ArrayRef, Value};
use pando_expr::{MatchExpression, ParseContext};
use pando_timeseries::{FieldSet, TimeseriesOptions};
use std::collections::HashSet;
use std::sync::Arc;

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, context: &ParseContext, is_short: bool) -> Result<SharedStage> {
    let name = if is_short { "$_unpackBucket" } else { "$_internalUnpackBucket" };
    let Value::Document(specification) = value else {
        let reason = format!("{name} specification must be an object, got: {}", value.value_type());
        return Err(Error::location(if is_short { 5_612_400 } else { 5_346_500 }, reason));
    };
    let mut unpacking = Unpacking {
        options: TimeseriesOptions {
            time_field: String::new(),
            meta_field: None,
            granularity: None,
            bucket_rounding_seconds: None,
            bucket_max_span_seconds: None,
        },
        fields: FieldSet::all(),
        event_filter: None,
        extremes: None,
        whole_filter: None,
        assumes_one_schema: false,
        is_out_of_range: false,
        is_short,
    };
    let mut has_fields = false;
    for element in specification.elements() {
        let value = element.value;
        match &**element.name {
            b"include" | b"exclude" if !is_short => {
                ensure!(
                    !has_fields,
                    ErrorCode::location(5_408_000),
                    "The $_internalUnpackBucket stage expects at most one of include/exclude parameters to be specified"
                );
                has_fields = true;
                let names = field_names(value)?;
                unpacking.fields =
                    if element.name == "include" { FieldSet::Only(names) } else { FieldSet::AllBut(names) };
            }
            b"timeField" => {
                let field = text(value, "timeField", if is_short { 5_612_401 } else { 5_346_504 })?;
                require_no_zero(&field, "timeField", if is_short { 9_568_703 } else { 9_568_701 })?;
                unpacking.options.time_field = field;
            }
            b"metaField" => {
                let field = text(value, "metaField", if is_short { 5_612_402 } else { 5_346_505 })?;
                ensure!(
                    !field.contains('.'),
                    ErrorCode::location(if is_short { 5_612_403 } else { 5_545_700 }),
                    "metaField field must be a single-element field path"
                );
                require_no_zero(&field, "metaField", if is_short { 9_568_704 } else { 9_568_702 })?;
                unpacking.options.meta_field = Some(field);
            }
            b"bucketMaxSpanSeconds" if !is_short => {
                let span = value.to_i64_exact().and_then(|span| i32::try_from(span).ok());
                let reason = "bucketMaxSpanSeconds field must be a positive integer";
                let span = span.filter(|span| *span > 0).ok_or_else(|| Error::location(5_510_600, reason))?;
                unpacking.options.bucket_max_span_seconds = Some(span);
            }
            b"assumeNoMixedSchemaData" => {
                unpacking.assumes_one_schema = flag(value, "assumeNoMixedSchemaData", 6_067_202)?;
            }
            b"eventFilter" if !is_short => {
                let Value::Document(filter) = value else {
                    return Err(Error::location(7_026_902, "eventFilter field must be an object"));
                };
                unpacking.event_filter = Some(Arc::new(MatchExpression::parse(filter, context)?.optimize()));
            }
            b"usesExtendedRange" if !is_short => {
                unpacking.is_out_of_range = flag(value, "usesExtendedRange", 6_646_901)?;
            }
            b"computedMetaProjFields" if !is_short => {
                let names = value.as_array().into_iter().flat_map(|names| names.values());
                for name in names.filter_map(|name| name.as_str().map(str::to_owned)) {
                    require_no_zero(&name, "computedMetaProjFields", 9_568_706)?;
                }
            }
            b"includeMinTimeAsMetadata" | b"includeMaxTimeAsMetadata" | b"wholeBucketFilter" | b"fixedBuckets"
                if !is_short => {}
            _ => {
                let reason = format!("unrecognized parameter to unpack stage: {}", element.name);
                return Err(Error::location(if is_short { 5_612_404 } else { 5_346_506 }, reason));
            }
        }
    }
    ensure!(
        !unpacking.options.time_field.is_empty(),
        ErrorCode::location(if is_short { 5_612_405 } else { 5_346_508 }),
        "The {name} stage requires a timeField parameter"
    );
    ensure!(
        is_short || unpacking.options.bucket_max_span_seconds.is_some(),
        ErrorCode::location(5_510_602),
        "The $_internalUnpackBucket stage requires a bucketMaxSpanSeconds parameter"
    );
    Ok(Arc::new(unpacking))
}

fn text(value: Value<'_>, name: &str, code: i32) -> Result<String> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| Error::location(code, format!("{name} field must be a string, got: {}", value.value_type())))
}

/// No field has a name with a zero byte in it.
fn require_no_zero(name: &str, option: &str, code: i32) -> Result<()> {
    ensure!(!name.contains('\0'), ErrorCode::location(code), "{option} must not contain an embedded null byte");
    Ok(())
}

fn flag(value: Value<'_>, name: &str, code: i32) -> Result<bool> {
    value
        .as_bool()
        .ok_or_else(|| Error::location(code, format!("{name} field must be a bool, got: {}", value.value_type())))
}

fn field_names(value: Value<'_>) -> Result<HashSet<String>> {
    let Value::Array(names) = value else {
        let reason = format!("include or exclude field must be an array, got: {}", value.value_type());
        return Err(Error::location(5_346_501, reason));
    };
    let read = |names: ArrayRef<'_>| -> Result<HashSet<String>> {
        names
            .values()
            .map(|name| {
                let reason = "include or exclude field element must be a string";
                let name = name.as_str().ok_or_else(|| Error::location(5_346_502, reason))?;
                ensure!(
                    !name.contains('.'),
                    ErrorCode::location(5_346_503),
                    "include or exclude field element must be a single-element field path"
                );
                require_no_zero(name, "include or exclude", 9_568_705)?;
                Ok(name.to_owned())
            })
            .collect()
    };
    read(names)
}
