//! `$unset`: fields are dropped.

use super::project::ProjectionSpec;
use crate::pipeline::SharedStage;
use pando_base::{Error, Result};
use pando_doc::{DocBuilder, FieldPath, Value};
use pando_expr::Projection;
use std::sync::Arc;

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>) -> Result<SharedStage> {
    let names: Vec<Value<'_>> = match value {
        Value::String(_) => vec![value],
        Value::Array(array) if !array.is_empty() => array.values().collect(),
        Value::Array(_) => {
            let reason = "$unset specification must be a string or an array with at least one field";
            return Err(Error::location(31119, reason));
        }
        _ => return Err(Error::location(31002, "$unset specification must be a string or an array")),
    };
    let mut paths = Vec::with_capacity(names.len());
    let mut specification = DocBuilder::new();
    for name in names {
        let Value::String(name) = name else {
            let reason = "$unset specification must be a string or an array containing only string values";
            return Err(Error::location(31120, reason));
        };
        paths.push(FieldPath::parse(name).map_err(|error| error.context("Invalid $unset"))?);
        specification.append(name, false);
    }
    let projection = Projection::exclude(&paths).map_err(|error| error.context("Invalid $unset"))?;
    let projection = Arc::new(projection);
    Ok(Arc::new(ProjectionSpec { name: "$project", projection, specification: specification.finish() }))
}
