//! `$count`: how many documents there are, as a document; a `$group` and a `$project`.

use super::{group, project};
use crate::pipeline::{PipelineParser, SharedStage};
use pando_base::{Error, Result};
use pando_doc::{Value, doc};

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, parser: &PipelineParser) -> Result<Vec<SharedStage>> {
    let Some(name) = value.as_bytes() else {
        return Err(Error::location(40156, "the count field must be a non-empty string"));
    };
    if name.is_empty() {
        return Err(Error::location(40157, "the count field must be a non-empty string"));
    }
    if name.starts_with(b"$") {
        return Err(Error::location(40158, "the count field cannot be a $-prefixed path"));
    }
    if name.contains(&0) {
        return Err(Error::location(40159, "the count field cannot contain a null byte"));
    }
    if name.contains(&b'.') {
        return Err(Error::location(40160, "the count field cannot contain '.'"));
    }
    let grouped = doc! { "_id": null, (name): { "$sum": 1 } };
    let projected = doc! { "_id": false };
    Ok(vec![
        group::parse(Value::Document(grouped.view()), parser)?,
        project::parse(Value::Document(projected.view()), &parser.context)?,
    ])
}
