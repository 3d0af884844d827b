//! `$limit`: the first documents.

use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::{DocumentSource, Needs, PipelineContext, Pulled, Pushdown, ShardSplit, SharedStage, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{Doc, Value, doc};
use std::sync::Arc;

#[derive(Debug)]
struct LimitSpec(u64);

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>) -> Result<SharedStage> {
    let refused =
        |why: &str| Error::location(5107201, format!("invalid argument to $limit stage: {why}: $limit: {value}"));
    let count = value.to_i64_exact().ok_or_else(|| refused("Expected an integer"))?;
    match u64::try_from(count) {
        Ok(0) => Err(Error::location(15958, "the limit must be positive")),
        Ok(count) => Ok(Arc::new(LimitSpec(count))),
        Err(_) => Err(refused("Expected a non-negative number in")),
    }
}

/// The first so many.
pub(in crate::pipeline) fn of(count: u64) -> SharedStage {
    Arc::new(LimitSpec(count))
}

struct LimitSource {
    source: Box<dyn DocumentSource>,
    left: u64,
}

impl DocumentSource for LimitSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        if self.left == 0 {
            return Ok(Pulled::Exhausted);
        }
        let pulled = self.source.next(context)?;
        if matches!(pulled, Pulled::Document(_)) {
            self.left -= 1;
        }
        Ok(pulled)
    }

    pass_on_to_source!();
}

impl StageSpec for LimitSpec {
    fn name(&self) -> &'static str {
        "$limit"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(LimitSource { source, left: self.0 }))
    }

    fn to_doc(&self) -> Doc {
        doc! { "$limit": i64::try_from(self.0).unwrap_or(i64::MAX) }
    }

    fn pushdown(&self) -> Pushdown<'_> {
        Pushdown::Limit(self.0)
    }

    fn needs(&self) -> Needs {
        Needs::These(Vec::new())
    }

    fn split(&self) -> ShardSplit {
        ShardSplit::Both
    }
}
