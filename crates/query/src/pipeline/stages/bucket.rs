//! `$bucket`: documents by ranges that are given. It is a `$group` by a `$switch`, in order.

use super::ordering;
use crate::pipeline::parse::parse_stage;
use crate::pipeline::{PipelineParser, SharedStage};
use pando_base::{Error, Result};
use pando_doc::{ArrayBuilder, Doc, DocBuilder, OwnedValue, Value, compare_with, doc};
use pando_expr::{Expression, SharedCollator};

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, parser: &PipelineParser) -> Result<Vec<SharedStage>> {
    let Value::Document(options) = value else {
        let reason = format!("Argument to $bucket stage must be an object, but found type: {}.", value.value_type());
        return Err(Error::location(40201, reason));
    };
    let (mut group_by, mut default, mut output) = (None, None, None);
    let mut boundaries = Vec::new();
    for option in options.elements() {
        match &**option.name {
            b"groupBy" => group_by = Some(check_group_by(option.value)?),
            b"boundaries" => boundaries = parse_boundaries(option.value, parser)?,
            b"default" => {
                let refused = || {
                    let shown = option.value;
                    let reason =
                        format!("The $bucket 'default' field must be a constant expression, but found: {shown}.");
                    Error::location(40195, reason)
                };
                default = Some(constant(option.value, parser)?.ok_or_else(refused)?);
            }
            b"output" => match option.value {
                Value::Document(fields) => output = Some(fields),
                other => {
                    let reason = format!(
                        "The $bucket 'output' field must be an object, but found type: {}.",
                        other.value_type()
                    );
                    return Err(Error::location(40196, reason));
                }
            },
            _ => return Err(Error::location(40197, format!("Unrecognized option to $bucket: {}.", option.name))),
        }
    }
    let (Some(group_by), false) = (group_by, boundaries.is_empty()) else {
        return Err(Error::location(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified."));
    };
    if let Some(default) = &default {
        check_default(default, &boundaries, &parser.context.collator)?;
    }
    let mut group = DocBuilder::new();
    group.append("_id", switch(group_by, &boundaries, default.as_ref()));
    match output {
        Some(fields) => group.append_all(fields),
        None => group.document("count", |count| count.append("$sum", 1)),
    }
    let mut stages = parse_stage(doc! { "$group": group.finish() }.view(), parser)?;
    stages.extend(parse_stage(doc! { "$sort": { "_id": 1 } }.view(), parser)?);
    Ok(stages)
}

fn check_group_by(value: Value<'_>) -> Result<Value<'_>> {
    let is_expression = match value {
        Value::Document(doc) => doc.first().is_some_and(|first| first.name.starts_with(b"$")),
        Value::String(text) => text.starts_with(b"$"),
        _ => false,
    };
    if is_expression {
        return Ok(value);
    }
    let reason = format!(
        "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression, but found: {value}."
    );
    Err(Error::location(40202, reason))
}

fn constant(value: Value<'_>, parser: &PipelineParser) -> Result<Option<OwnedValue>> {
    let expression = Expression::parse(value, &parser.context)?.folded()?;
    Ok(expression.as_constant().flatten().map(|value| value.to_owned()))
}

fn compare(left: &OwnedValue, right: &OwnedValue, collator: &Option<SharedCollator>) -> std::cmp::Ordering {
    compare_with(left.view(), right.view(), &ordering::options(collator))
}

fn parse_boundaries(value: Value<'_>, parser: &PipelineParser) -> Result<Vec<OwnedValue>> {
    let Value::Array(array) = value else {
        let reason =
            format!("The $bucket 'boundaries' field must be an array, but found type: {}.", value.value_type());
        return Err(Error::location(40200, reason));
    };
    let mut boundaries: Vec<OwnedValue> = Vec::new();
    for written in array.values() {
        let boundary = constant(written, parser)?.ok_or_else(|| {
            let reason = format!(
                "The $bucket 'boundaries' field must be an array of constant values, but found value: {written}."
            );
            Error::location(40191, reason)
        })?;
        boundaries.push(boundary);
    }
    if boundaries.len() < 2 {
        let reason = format!(
            "The $bucket 'boundaries' field must have at least 2 values, but found {} value(s).",
            boundaries.len()
        );
        return Err(Error::location(40192, reason));
    }
    for (place, pair) in boundaries.windows(2).enumerate() {
        let [lower, upper] = pair else { continue };
        let (lower_type, upper_type) = (lower.view().value_type(), upper.view().value_type());
        if lower_type.canonical_order() != upper_type.canonical_order() {
            let reason = format!(
                "All values in the the 'boundaries' option to $bucket must have the same type. Found conflicting types \
                 {lower_type} and {upper_type}."
            );
            return Err(Error::location(40193, reason));
        }
        if !compare(lower, upper, &parser.context.collator).is_lt() {
            let reason = format!(
                "The 'boundaries' option to $bucket must be sorted, but elements {place} and {} are not in ascending order \
                 ({lower} is not less than {upper}).",
                place + 1
            );
            return Err(Error::location(40194, reason));
        }
    }
    Ok(boundaries)
}

fn check_default(default: &OwnedValue, boundaries: &[OwnedValue], collator: &Option<SharedCollator>) -> Result<()> {
    let (Some(least), Some(most)) = (boundaries.first(), boundaries.last()) else { return Ok(()) };
    let is_comparable = default.view().value_type().canonical_order() == least.view().value_type().canonical_order();
    let is_outside = compare(default, least, collator).is_lt() || compare(default, most, collator).is_ge();
    if is_comparable && !is_outside {
        let reason = "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the \
                      highest boundary.";
        return Err(Error::location(40199, reason));
    }
    Ok(())
}

fn switch(group_by: Value<'_>, boundaries: &[OwnedValue], default: Option<&OwnedValue>) -> Doc {
    let literal = |value: &OwnedValue| doc! { "$literal": value };
    let mut branches = ArrayBuilder::new();
    for pair in boundaries.windows(2) {
        let [lower, upper] = pair else { continue };
        let (from, to) = (literal(lower), literal(upper));
        let mut condition = ArrayBuilder::new();
        for (operator, end) in [("$gte", &from), ("$lt", &to)] {
            condition.document(|part| {
                part.array(operator, |operands| {
                    operands.push(group_by);
                    operands.push(end);
                });
            });
        }
        branches.push(doc! { "case": { "$and": condition.finish() }, "then": from });
    }
    let mut parts = DocBuilder::new();
    parts.append("branches", branches.finish());
    parts.append_some("default", default.map(literal));
    doc! { "$switch": parts.finish() }
}
