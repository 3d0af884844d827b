//! `$skip`: all but the first documents.

use super::transform::transformed;
use crate::pipeline::{DocumentSource, Needs, Pushdown, ShardSplit, SharedStage, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{Doc, Value, doc};
use std::sync::Arc;

#[derive(Debug)]
struct SkipSpec(u64);

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>) -> Result<SharedStage> {
    let refused =
        |why: &str| Error::location(5107200, format!("invalid argument to $skip stage: {why}: $skip: {value}"));
    let count = value.to_i64_exact().ok_or_else(|| refused("Expected an integer"))?;
    let count = u64::try_from(count).map_err(|_| refused("Expected a non-negative number in"))?;
    Ok(Arc::new(SkipSpec(count)))
}

/// All but the first so many.
pub(in crate::pipeline) fn of(count: u64) -> SharedStage {
    Arc::new(SkipSpec(count))
}

impl StageSpec for SkipSpec {
    fn name(&self) -> &'static str {
        "$skip"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let mut left = self.0;
        Ok(transformed(source, move |document| {
            if left == 0 {
                return Ok(Some(document));
            }
            left -= 1;
            Ok(None)
        }))
    }

    fn to_doc(&self) -> Doc {
        doc! { "$skip": i64::try_from(self.0).unwrap_or(i64::MAX) }
    }

    fn pushdown(&self) -> Pushdown<'_> {
        Pushdown::Skip(self.0)
    }

    fn needs(&self) -> Needs {
        Needs::These(Vec::new())
    }

    fn split(&self) -> ShardSplit {
        ShardSplit::OnMerger
    }
}
