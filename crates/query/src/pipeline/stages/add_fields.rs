//! `$addFields` and `$set`: fields are set to the values of expressions.

use super::project::ProjectionSpec;
use crate::pipeline::SharedStage;
use pando_base::{Error, Result};
use pando_doc::Value;
use pando_expr::{ParseContext, Projection};
use std::sync::Arc;

/// Reads it.
pub(in crate::pipeline) fn parse(name: &'static str, value: Value<'_>, context: &ParseContext) -> Result<SharedStage> {
    let Value::Document(fields) = value else {
        let reason = format!("{name} specification stage must be an object, got {}", value.value_type());
        return Err(Error::location(40272, reason));
    };
    let projection =
        Projection::parse_add_fields(fields, context).map_err(|error| error.context(format!("Invalid {name}")))?;
    Ok(Arc::new(ProjectionSpec { name, projection: Arc::new(projection), specification: fields.to_doc() }))
}
