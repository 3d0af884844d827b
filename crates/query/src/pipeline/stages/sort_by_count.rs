//! `$sortByCount`: groups by an expression, the largest first.

use super::{group, sort};
use crate::pipeline::{PipelineParser, SharedStage};
use pando_base::{Error, Result};
use pando_doc::{Value, doc};

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, parser: &PipelineParser) -> Result<Vec<SharedStage>> {
    match value {
        Value::Document(doc) if !doc.first().is_some_and(|first| first.name.starts_with(b"$")) => {
            let reason = "the sortByCount field must be defined as a $-prefixed path or an expression inside an object";
            return Err(Error::location(40147, reason));
        }
        Value::String(path) if !path.starts_with(b"$") || path.len() == 1 => {
            let reason = "the sortByCount field must be defined as a $-prefixed path or an expression inside an object";
            return Err(Error::location(40148, reason));
        }
        Value::Document(_) | Value::String(_) => {}
        _ => {
            let reason = "the sortByCount field must be specified as a string or as an object";
            return Err(Error::location(40149, reason));
        }
    }
    let grouped = doc! { "_id": value, "count": { "$sum": 1 } };
    let sorted = doc! { "count": -1 };
    Ok(vec![
        group::parse(Value::Document(grouped.view()), parser)?,
        sort::parse(Value::Document(sorted.view()), parser)?,
    ])
}
