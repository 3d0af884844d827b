//! Updates by pipeline: `$set`, `$addFields`, `$unset`, `$project`, `$replaceRoot`, `$replaceWith`.

use super::fill;
use super::oplog_update::{OplogUpdates, parse_oplog_update};
use super::replacement::with_id_of;
use crate::{Expression, ParseContext, Projection, ProjectionPolicies};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{ArrayRef, Doc, DocRef, Element, FieldPath, OwnedValue, Value};

/// One stage.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Project(Projection),
    Replace(Expression),
    /// A change as the oplog has it, and what applies it.
    OplogUpdate(Doc, OplogUpdates),
}

pub(super) fn parse(stages: ArrayRef<'_>, context: &ParseContext) -> Result<Vec<Step>> {
    stages.values().map(|stage| parse_step(stage, context)).collect()
}

/// Checks that each is a stage at all, also of those that no update may have. A command is refused for it as a whole, before
/// its first statement runs.
pub(super) fn check_names(stages: ArrayRef<'_>) -> Result<()> {
    for stage in stages.values() {
        let element = only_field(stage)?;
        let name = std::str::from_utf8(element.name).unwrap_or_default();
        if !is_step(name) && !is_stage(name) {
            return Err(unrecognized(element));
        }
    }
    Ok(())
}

fn only_field(stage: Value<'_>) -> Result<Element<'_>> {
    let stage = stage
        .as_document()
        .ok_or_else(|| Error::type_mismatch("Each element of the 'pipeline' array must be an object"))?;
    stage
        .first()
        .filter(|_| stage.field_count() == 1)
        .ok_or_else(|| Error::location(40323, "A pipeline stage specification object must contain exactly one field."))
}

fn unrecognized(element: Element<'_>) -> Error {
    Error::location(40324, format!("Unrecognized pipeline stage name: '{}'", element.name))
}

fn parse_step(stage: Value<'_>, context: &ParseContext) -> Result<Step> {
    let element = only_field(stage)?;
    let name = std::str::from_utf8(element.name).unwrap_or_default();
    match name {
        "$set" | "$addFields" => {
            let fields = document(element, 40272, "specification stage must be an object")?;
            Ok(Step::Project(Projection::parse_add_fields(fields, context)?))
        }
        "$project" => {
            let spec = document(element, 15969, "$project specification must be an object")?;
            Ok(Step::Project(Projection::parse(spec, ProjectionPolicies::AGGREGATE, context)?))
        }
        "$unset" => Ok(Step::Project(Projection::exclude(&unset_paths(element.value)?)?)),
        "$replaceWith" => Ok(Step::Replace(Expression::parse(element.value, context)?.optimize()?)),
        "$replaceRoot" => replace_root(element, context),
        "$_internalApplyOplogUpdate" => {
            let updates = context.oplog_updates.ok_or_else(|| unrecognized(element))?;
            let update = parse_oplog_update(element)?;
            (updates.check)(update)?;
            Ok(Step::OplogUpdate(update.to_doc(), updates))
        }
        "$fill" => Ok(Step::Project(Projection::parse_add_fields(fill::added(element)?.view(), context)?)),
        _ if !is_stage(name) => Err(unrecognized(element)),
        _ => {
            let reason = format!("{name} is not allowed to be used within an update");
            Err(Error::new(ErrorCode::InvalidOptions, reason))
        }
    }
}

/// Stages that updates may have.
fn is_step(name: &str) -> bool {
    matches!(
        name,
        "$set" | "$addFields" | "$project" | "$unset" | "$replaceWith" | "$replaceRoot" | "$_internalApplyOplogUpdate"
    )
}

/// Stages that there are, but not in updates.
fn is_stage(name: &str) -> bool {
    const STAGES: &[&str] = &[
        "$match",
        "$group",
        "$sort",
        "$limit",
        "$skip",
        "$unwind",
        "$lookup",
        "$graphLookup",
        "$facet",
        "$bucket",
        "$bucketAuto",
        "$count",
        "$sortByCount",
        "$sample",
        "$out",
        "$merge",
        "$redact",
        "$geoNear",
        "$collStats",
        "$indexStats",
        "$currentOp",
        "$changeStream",
        "$unionWith",
        "$setWindowFields",
        "$densify",
        "$fill",
        "$documents",
        "$listSessions",
        "$planCacheStats",
    ];
    STAGES.contains(&name)
}

fn document<'a>(element: Element<'a>, code: i32, reason: &str) -> Result<DocRef<'a>> {
    element
        .value
        .as_document()
        .ok_or_else(|| Error::location(code, format!("{} {reason}, got {}", element.name, element.value.value_type())))
}

fn unset_paths(value: Value<'_>) -> Result<Vec<FieldPath>> {
    let path = |value: Value<'_>| match value {
        Value::String(text) => FieldPath::parse(text),
        _ => Err(Error::location(
            31120,
            "$unset specification must be a string or an array containing only string values",
        )),
    };
    match value {
        Value::Array(array) if array.is_empty() => {
            let reason = "$unset specification must be a string or an array with at least one field";
            Err(Error::location(31119, reason))
        }
        Value::Array(array) => array.values().map(path).collect(),
        Value::String(_) => Ok(vec![path(value)?]),
        _ => Err(Error::location(31002, "$unset specification must be a string or an array")),
    }
}

fn replace_root(element: Element<'_>, context: &ParseContext) -> Result<Step> {
    let Value::Document(doc) = element.value else {
        let reason =
            format!("expected an object as specification for $replaceRoot stage, got {}", element.value.value_type());
        return Err(Error::location(40229, reason));
    };
    let mut new_root = None;
    for field in doc.elements() {
        if field.name != "newRoot" {
            let reason = format!("BSON field '$replaceRoot.{}' is an unknown field.", field.name);
            return Err(Error::location(40415, reason));
        }
        new_root = Some(Expression::parse(field.value, context)?.optimize()?);
    }
    let missing = || Error::location(40414, "BSON field '$replaceRoot.newRoot' is missing but a required field");
    Ok(Step::Replace(new_root.ok_or_else(missing)?))
}

pub(super) fn apply(steps: &[Step], doc: DocRef<'_>) -> Result<Doc> {
    let mut current = doc.to_doc();
    for step in steps {
        current = match step {
            Step::Project(projection) => projection.apply(current.view(), None)?,
            Step::OplogUpdate(update, updates) => (updates.apply)(current.view(), update.view())?,
            Step::Replace(expression) => {
                let value = expression.evaluate_document(current.view())?.into_value();
                match value {
                    Some(OwnedValue::Document(doc)) => doc,
                    other => {
                        let found = other.as_ref().map_or("missing", |value| value.value_type().name());
                        let shown = other.as_ref().map_or("MISSING".to_owned(), ToString::to_string);
                        let reason = format!(
                            "'replacement document' must evaluate to an object, but resulting value was: {shown}. Type of resulting value: '{found}'. Input document: {current}"
                        );
                        return Err(Error::location(40228, reason));
                    }
                }
            }
        };
    }
    Ok(with_id_of(&current, doc))
}
