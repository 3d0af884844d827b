//! `$sort`: all documents in order; with a `$limit` behind it only the first are kept. What does not fit into memory goes to disk, if that is
//! allowed.

use crate::memory::Held;
use crate::pipeline::dependencies::without_places;
use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::{
    DocumentSource, Needs, PipelineContext, PipelineParser, Pulled, Pushdown, ShardSplit, SharedStage, SortParts,
    StageFacts, StageSpec,
};
use crate::request::SortPattern;
use crate::spill::{SpillCounters, SpilledDocument, StageResources};
use crate::stage::SortKeyGenerator;
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, Value, doc};
use pando_expr::SharedCollator;
use pando_operation::Operation;
use pando_sorter::{Sorted, Sorter};
use std::sync::Arc;

#[derive(Clone)]
pub(super) struct SortSpec {
    pub(super) pattern: SortPattern,
    pub(super) limit: Option<u64>,
    pub(super) collator: Option<SharedCollator>,
    pub(super) resources: StageResources,
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
    pattern.metadata().for_each(|kind| parser.context.metadata.add(kind));
    Ok(of(pattern, parser))
}

/// A stage with this order.
pub(in crate::pipeline) fn of(pattern: SortPattern, parser: &PipelineParser) -> SharedStage {
    Arc::new(SortSpec {
        pattern,
        limit: None,
        collator: parser.context.collator.clone(),
        resources: parser.resources.clone(),
    })
}

struct SortSource {
    source: Box<dyn DocumentSource>,
    generator: SortKeyGenerator,
    sorter: Sorter<SpilledDocument>,
    counters: Arc<SpillCounters>,
    held: Held,
    outgoing: Option<Sorted<SpilledDocument>>,
}

impl SortSource {
    fn take_in(&mut self, document: Doc) -> Result<()> {
        let key = self.generator.of_document(document.view())?;
        self.sorter.add(&key, SpilledDocument(document))?;
        self.held.set(self.sorter.memory_bytes())
    }

    fn turn_around(&mut self, operation: &Operation) -> Result<()> {
        self.outgoing = Some(self.sorter.finish()?);
        self.counters.sorted(operation, &self.sorter.statistics());
        Ok(())
    }
}

impl DocumentSource for SortSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        loop {
            if let Some(outgoing) = &mut self.outgoing {
                let next = outgoing.next_entry()?;
                return Ok(next.map_or(Pulled::Exhausted, |(_, document)| Pulled::Document(document.0)));
            }
            match self.source.next(context)? {
                Pulled::Document(document) => self.take_in(document)?,
                Pulled::Exhausted => self.turn_around(context.operation)?,
                Pulled::Yield(cause) => return Ok(Pulled::Yield(cause)),
            }
        }
    }

    fn facts(&self) -> StageFacts {
        let statistics = self.sorter.statistics();
        let used_disk = statistics.spills > 0;
        let details = doc! {
            "totalDataSizeSortedBytesEstimate": (statistics.data_bytes as i64),
            "usedDisk": used_disk,
            "spills": (statistics.spills as i64),
            "spilledDataStorageSize": (statistics.spilled_storage_bytes as i64),
        };
        StageFacts { used_disk, details }
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
            sorter: self.resources.sorter(self.limit),
            counters: Arc::clone(&self.resources.counters),
            held: self.resources.account.held(),
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
        Pushdown::Sort(&self.pattern)
    }

    fn needs(&self) -> Needs {
        if self.pattern.needs_metadata() {
            return Needs::Everything;
        }
        Needs::These(self.pattern.paths().map(without_places).collect())
    }

    fn split(&self) -> ShardSplit {
        ShardSplit::Both
    }

    fn with_pattern(&self, pattern: SortPattern) -> Option<SharedStage> {
        Some(Arc::new(SortSpec { pattern, ..self.clone() }))
    }

    fn sorting(&self) -> Option<SortParts> {
        let SortSpec { pattern, limit, collator, resources } = self.clone();
        Some(SortParts { pattern, limit, collator, resources })
    }

    fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    fn with_limit(&self, limit: u64) -> Option<SharedStage> {
        Some(Arc::new(SortSpec { limit: Some(limit), ..self.clone() }))
    }
}
