//! The stage behind the sort: one partition at a time.

use super::function::WindowFunction;
use super::reckon::Partition;
use crate::memory::Held;
use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::stages::ordering;
use crate::pipeline::stages::set_field::with_field_in_arrays;
use crate::pipeline::{DocumentSource, PipelineContext, Pulled, ShardSplit, StageFacts, StageSpec};
use crate::spill::{SpilledDocument, StageResources};
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, FieldPath, OwnedValue, Value, compare_with, doc};
use pando_expr::{Expression, ExpressionLimits, SharedCollator};
use pando_sorter::{SorterError, SpilledList};
use std::sync::Arc;

/// A field of the results.
#[derive(Debug)]
pub(super) struct WindowField {
    pub(super) path: FieldPath,
    pub(super) function: WindowFunction,
}

pub(super) struct Windows {
    /// What documents of a partition have in common.
    pub(super) partition: Option<Expression>,
    /// What they are sorted by, if it is one field.
    pub(super) key: Option<Expression>,
    pub(super) sort: Option<Doc>,
    pub(super) fields: Vec<WindowField>,
    pub(super) output: Doc,
    pub(super) collator: Option<SharedCollator>,
    pub(super) limits: ExpressionLimits,
    pub(super) resources: StageResources,
}

#[derive(Clone)]
pub(super) struct WindowSpec(pub(super) Arc<Windows>);

impl std::fmt::Debug for WindowSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.to_doc())
    }
}

struct WindowSource {
    source: Box<dyn DocumentSource>,
    windows: Arc<Windows>,
    /// The partition that is being read, and what its documents have in common.
    partition: SpilledList<SpilledDocument>,
    common: OwnedValue,
    ready: Option<Ready>,
    is_over: bool,
    /// What all partitions took.
    memory_bytes_max: u64,
    spilled: u64,
    held: Held,
}

/// A partition that was reckoned: its documents, and for each field the values that were not given out yet.
struct Ready {
    documents: SpilledList<SpilledDocument>,
    given: usize,
    columns: Vec<std::vec::IntoIter<Option<OwnedValue>>>,
}

impl WindowSource {
    /// Takes a document in; a full partition is reckoned when the first one of the next comes.
    fn take_in(&mut self, document: Doc) -> Result<()> {
        let common = match &self.windows.partition {
            Some(expression) => expression.evaluate_document(document.view())?.into_value().unwrap_or(OwnedValue::Null),
            None => OwnedValue::Null,
        };
        if matches!(common.view(), Value::Array(_)) {
            let reason = "An expression used to partition cannot evaluate to value of type array";
            return Err(Error::type_mismatch(reason));
        }
        let options = ordering::options(&self.windows.collator);
        if !self.partition.is_empty() && compare_with(self.common.view(), common.view(), &options).is_ne() {
            self.finish()?;
        }
        self.common = common;
        let kept_bytes = self.partition.statistics().data_bytes.min(self.windows.resources.window_memory_bytes_max);
        self.held.set(kept_bytes + document.size_bytes() as u64)?;
        self.partition.push(SpilledDocument(document)).map_err(|error| match error {
            SorterError::MemoryExceeded { memory_bytes_max } => {
                let used_bytes = self.partition.statistics().data_bytes;
                let reason = format!(
                    "Exceeded max memory. Current memory: {used_bytes} bytes. Max allowed memory: {memory_bytes_max} bytes. \
                     Set 'allowDiskUse: true' to spill to disk"
                );
                Error::location(5643011, reason)
            }
            other => other.into(),
        })
    }

    /// Reckons the fields of the partition.
    fn finish(&mut self) -> Result<()> {
        let documents = std::mem::replace(&mut self.partition, self.windows.resources.list());
        let mut keys = Vec::new();
        if let Some(key) = &self.windows.key {
            for place in 0..documents.len() {
                let document = documents.get(place)?.map_or_else(Doc::new, |document| document.0);
                keys.push(key.evaluate_document(document.view())?.into_value().unwrap_or(OwnedValue::Null));
            }
        }
        let windows = &self.windows;
        let memory_bytes_max = windows.resources.window_memory_bytes_max;
        let (collator, limits) = (&windows.collator, windows.limits);
        let partition = Partition { documents: &documents, keys: &keys, collator, limits, memory_bytes_max };
        let columns = windows.fields.iter().map(|field| Ok(partition.reckon(&field.function)?.into_iter()));
        let columns = columns.collect::<Result<_>>()?;
        let statistics = documents.statistics();
        windows.resources.counters.windowed(&statistics);
        self.spilled += statistics.spills;
        self.memory_bytes_max = self.memory_bytes_max.max(statistics.data_bytes.min(memory_bytes_max));
        self.ready = Some(Ready { documents, given: 0, columns });
        Ok(())
    }

    /// The next document of the partition that was reckoned.
    fn next_ready(&mut self) -> Result<Option<Doc>> {
        let Some(ready) = &mut self.ready else { return Ok(None) };
        let Some(SpilledDocument(mut result)) = ready.documents.get(ready.given)? else {
            self.ready = None;
            return Ok(None);
        };
        ready.given += 1;
        for (field, column) in self.windows.fields.iter().zip(&mut ready.columns) {
            let value = column.next().flatten();
            result = with_field_in_arrays(result.view(), &field.path, value.as_ref().map(OwnedValue::view));
        }
        Ok(Some(result))
    }
}

impl DocumentSource for WindowSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        loop {
            if let Some(document) = self.next_ready()? {
                return Ok(Pulled::Document(document));
            }
            if self.is_over {
                return Ok(Pulled::Exhausted);
            }
            match self.source.next(context)? {
                Pulled::Document(document) => self.take_in(document)?,
                Pulled::Exhausted => {
                    self.is_over = true;
                    self.finish()?;
                }
                Pulled::Yield(cause) => return Ok(Pulled::Yield(cause)),
            }
        }
    }

    fn facts(&self) -> StageFacts {
        let used_disk = self.spilled > 0;
        let mut details = DocBuilder::new();
        details.document("maxFunctionMemoryUsageBytes", |fields| {
            for field in &self.windows.fields {
                fields.append(field.path.text(), 0_i64);
            }
        });
        details.append("maxTotalMemoryUsageBytes", self.memory_bytes_max as i64);
        details.append("usedDisk", used_disk);
        StageFacts { used_disk, details: details.finish() }
    }

    pass_on_to_source!();
}

impl StageSpec for WindowSpec {
    fn name(&self) -> &'static str {
        "$_internalSetWindowFields"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(WindowSource {
            source,
            windows: Arc::clone(&self.0),
            partition: self.0.resources.list(),
            common: OwnedValue::Null,
            ready: None,
            is_over: false,
            memory_bytes_max: 0,
            spilled: 0,
            held: self.0.resources.account.held(),
        }))
    }

    fn to_doc(&self) -> Doc {
        let mut specification = DocBuilder::new();
        specification.append_some("partitionBy", self.0.partition.as_ref().map(Expression::to_value));
        specification.append_some("sortBy", self.0.sort.as_ref());
        specification.append("output", &self.0.output);
        doc! { "$_internalSetWindowFields": specification.finish() }
    }

    fn split(&self) -> ShardSplit {
        ShardSplit::OnMerger
    }
}
