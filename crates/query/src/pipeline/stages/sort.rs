//! `$sort`: all documents in order; with a `$limit` behind it only the first are kept.

use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::{
    DocumentSource, PipelineContext, PipelineParser, Pulled, Pushdown, ShardSplit, SharedStage, StageSpec,
};
use crate::request::SortPattern;
use crate::stage::SortKeyGenerator;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{Doc, DocBuilder, Value, doc};
use pando_expr::SharedCollator;
use std::sync::Arc;

#[derive(Clone)]
pub(super) struct SortSpec {
    pub(super) pattern: SortPattern,
    pub(super) limit: Option<u64>,
    pub(super) collator: Option<SharedCollator>,
    pub(super) memory_bytes_max: u64,
}

impl std::fmt::Debug for SortSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.to_doc())
    }
}

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, parser: &PipelineParser) -> Result<SharedStage> {
    let Value::Document(sort) = value else {
        return Err(Error::location(15973, "the $sort key specification must be an object"));
    };
    let pattern = SortPattern::parse(sort)?
        .ok_or_else(|| Error::location(15976, "$sort stage must have at least one sort key"))?;
    Ok(Arc::new(SortSpec {
        pattern,
        limit: None,
        collator: parser.context.collator.clone(),
        memory_bytes_max: parser.memory_bytes_max,
    }))
}

struct SortSource {
    source: Box<dyn DocumentSource>,
    generator: SortKeyGenerator,
    spec: SortSpec,
    incoming: Vec<(Box<[u8]>, u64, Doc)>,
    count: u64,
    size_bytes: u64,
    /// What goes out, last first.
    outgoing: Option<Vec<Doc>>,
}

impl SortSource {
    fn take_in(&mut self, document: Doc) -> Result<()> {
        let key = self.generator.of_document(document.view())?;
        self.size_bytes += (key.len() + document.size_bytes()) as u64;
        self.incoming.push((key, self.count, document));
        self.count += 1;
        // Now and then everything beyond the limit is thrown away.
        if let Some(limit) = self.spec.limit
            && self.incoming.len() as u64 >= limit.saturating_mul(2).max(1024)
        {
            self.shorten(limit);
        }
        if self.size_bytes > self.spec.memory_bytes_max {
            let reason = format!(
                "Sort exceeded memory limit of {} bytes, but did not opt in to external sorting.",
                self.spec.memory_bytes_max
            );
            return Err(Error::new(ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed, reason));
        }
        Ok(())
    }

    fn shorten(&mut self, limit: u64) {
        self.incoming.sort_unstable_by(|left, right| (&left.0, left.1).cmp(&(&right.0, right.1)));
        self.incoming.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        self.size_bytes =
            self.incoming.iter().map(|(key, _, document)| (key.len() + document.size_bytes()) as u64).sum();
    }

    fn turn_around(&mut self) {
        self.shorten(self.spec.limit.unwrap_or(u64::MAX));
        let sorted = std::mem::take(&mut self.incoming);
        self.outgoing = Some(sorted.into_iter().rev().map(|(_, _, document)| document).collect());
    }
}

impl DocumentSource for SortSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        loop {
            if let Some(outgoing) = &mut self.outgoing {
                return Ok(outgoing.pop().map_or(Pulled::Exhausted, Pulled::Document));
            }
            match self.source.next(context)? {
                Pulled::Document(document) => self.take_in(document)?,
                Pulled::Exhausted => self.turn_around(),
                Pulled::Yield(cause) => return Ok(Pulled::Yield(cause)),
            }
        }
    }

    pass_on_to_source!();
}

impl StageSpec for SortSpec {
    fn name(&self) -> &'static str {
        "$sort"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(SortSource {
            source,
            generator: SortKeyGenerator::new(&self.pattern, self.collator.clone())?,
            spec: self.clone(),
            incoming: Vec::new(),
            count: 0,
            size_bytes: 0,
            outgoing: None,
        }))
    }

    fn to_doc(&self) -> Doc {
        let mut builder = DocBuilder::new();
        builder.document("sortKey", |key| key.append_all(self.pattern.to_doc().view()));
        builder.append_some("limit", self.limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX)));
        doc! { "$sort": builder.finish() }
    }

    fn pushdown(&self) -> Pushdown<'_> {
        if self.pattern.needs_metadata() { Pushdown::None } else { Pushdown::Sort(&self.pattern) }
    }

    fn split(&self) -> ShardSplit {
        ShardSplit::Both
    }

    fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    fn with_limit(&self, limit: u64) -> Option<SharedStage> {
        Some(Arc::new(SortSpec { limit: Some(limit), ..self.clone() }))
    }
}
