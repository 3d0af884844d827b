//! Pipelines whose results go into a collection: `$out`, `$merge`.
//!
//! Results are read and written in turns by one operation: a batch is read, the pipeline's place is kept and everything it
//! holds is let go of, then the batch is written.

mod merge;
mod out;
mod out_target;

use crate::locking::{lock_for_read, unlock};
use crate::stages::NodeStages;
use crate::{Data, Invocation};
use pando_base::Result;
use pando_doc::Doc;
use pando_operation::Operation;
use pando_query::executor::{BatchSource, DocumentSink, drive};
use pando_query::pipeline::{Aggregation, OutputStage};
use pando_query::request::AggregateRequest;
use pando_storage::ReadSource;

/// As many documents are written at a time.
const BATCH_COUNT_MAX: usize = 500;
/// As many bytes, or one document.
const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Runs a pipeline into its output.
pub(super) async fn run(
    invocation: &Invocation,
    data: &Data,
    operation: &mut Operation,
    request: &AggregateRequest,
    aggregation: Aggregation,
) -> Result<()> {
    let Aggregation { executor, output } = aggregation;
    let source = Turns::new(data, operation, Box::new(executor))?;
    match output {
        None => Ok(()),
        Some(OutputStage::Out { namespace, timeseries }) => {
            out::run(invocation, data, operation, request, (&namespace, timeseries.as_ref()), source).await
        }
        Some(OutputStage::Merge(target)) => merge::run(invocation, data, operation, &target, request, source).await,
    }
}

/// What is wrong with the output of a pipeline that is only explained.
pub(super) fn check(
    invocation: &Invocation,
    data: &Data,
    operation: &mut Operation,
    request: &AggregateRequest,
) -> Result<()> {
    let last = request.pipeline.last().and_then(|stage| stage.view().first());
    if last.is_none_or(|last| last.name != "$merge") {
        return Ok(());
    }
    match data.query.aggregate(operation, request, Some(NodeStages::of(invocation)))?.output {
        Some(OutputStage::Merge(target)) => merge::checked(data, operation, &target, request).map(|_| ()),
        _ => Ok(()),
    }
}

/// A pipeline that is read in turns.
struct Turns<'a> {
    data: &'a Data,
    source: Box<dyn BatchSource>,
    read_source: ReadSource,
    is_over: bool,
}

impl<'a> Turns<'a> {
    /// A pipeline that was planned under the operation's present snapshot.
    fn new(data: &'a Data, operation: &mut Operation, source: Box<dyn BatchSource>) -> Result<Turns<'a>> {
        let read_source = operation.recovery_unit.read_source();
        let mut turns = Turns { data, source, read_source, is_over: false };
        turns.let_go(operation)?;
        Ok(turns)
    }

    /// The next documents; none at the end. Between two calls the operation may write.
    async fn next(&mut self, operation: &mut Operation) -> Result<Option<Vec<Doc>>> {
        if self.is_over {
            return Ok(None);
        }
        // An update that changes nothing ends no snapshot.
        operation.recovery_unit.abandon_snapshot()?;
        lock_for_read(operation).await?;
        // What was written may have ended with a look that changed nothing.
        operation.recovery_unit.abandon_snapshot()?;
        operation.recovery_unit.set_read_source(self.read_source)?;
        self.source.restore(operation, self.data.collections())?;
        let mut batch = Batch::default();
        self.is_over = drive(&mut *self.source, operation, self.data.collections(), &mut batch).await?;
        self.let_go(operation)?;
        Ok((!batch.documents.is_empty()).then_some(batch.documents))
    }

    fn let_go(&mut self, operation: &mut Operation) -> Result<()> {
        self.source.save();
        operation.recovery_unit.abandon_snapshot()?;
        operation.recovery_unit.set_read_source(ReadSource::NoTimestamp)?;
        unlock(operation);
        Ok(())
    }
}

/// Takes documents up to a size.
#[derive(Default)]
struct Batch {
    documents: Vec<Doc>,
    size_bytes: usize,
}

impl DocumentSink for Batch {
    fn offer(&mut self, document: &Doc) -> bool {
        let size_bytes = self.size_bytes + document.size_bytes();
        if size_bytes > BATCH_BYTES_MAX && !self.documents.is_empty() {
            return false;
        }
        self.size_bytes = size_bytes;
        self.documents.push(document.clone());
        true
    }

    fn is_full(&self) -> bool {
        self.documents.len() >= BATCH_COUNT_MAX || self.size_bytes >= BATCH_BYTES_MAX
    }
}
