//! Replies with a cursor over documents that are there already: lists of collections and indexes.

use crate::{Data, Invocation, arguments};
use pando_base::{Namespace, Result};
use pando_doc::{Doc, DocBuilder};
use pando_operation::Operation;
use pando_query::cursor::CursorOptions;
use pando_query::executor::{
    BATCH_BYTES_MAX, BatchLimits, BatchOutcome, BatchSink, BatchSource, Collections, DocumentSink,
};
use std::collections::VecDeque;

arguments! {
    /// The field `cursor` of a command that gives one.
    pub(super) struct CursorArguments<'a> of "cursor" {
        batch_size: Option<crate::arguments::SafeLong> = "batchSize",
    }
}

impl CursorArguments<'_> {
    /// How large the first batch is. Lists are short: without a word from the client all of it.
    pub(super) fn limits(given: Option<&CursorArguments<'_>>) -> Result<BatchLimits> {
        let count = given.and_then(|cursor| cursor.batch_size).map(|size| size.0);
        let count = count.map(|count| crate::arguments::at_least("batchSize", count, 0)).transpose()?;
        Ok(BatchLimits { count: count.and_then(|count| u64::try_from(count).ok()), size_bytes: BATCH_BYTES_MAX })
    }
}

/// Documents that wait to be asked for.
struct Queue(VecDeque<Doc>);

impl BatchSource for Queue {
    fn next_batch(&mut self, _operation: &mut Operation, sink: &mut dyn DocumentSink) -> Result<BatchOutcome> {
        while !sink.is_full() {
            let Some(document) = self.0.pop_front() else { return Ok(BatchOutcome::Exhausted) };
            if !sink.offer(&document) {
                self.0.push_front(document);
                return Ok(BatchOutcome::Full);
            }
        }
        Ok(if self.0.is_empty() { BatchOutcome::Exhausted } else { BatchOutcome::Full })
    }

    fn save(&mut self) {}

    fn restore(&mut self, _operation: &mut Operation, _collections: &dyn Collections) -> Result<()> {
        Ok(())
    }

    fn plan_summary(&self) -> &str {
        "QUEUED_DATA"
    }
}

/// Appends the field `cursor` with the first batch; what does not fit waits for getMore.
pub(super) fn append_cursor(
    invocation: &Invocation,
    data: &Data,
    operation: &mut Operation,
    namespace: &Namespace,
    documents: Vec<Doc>,
    limits: BatchLimits,
    reply: &mut DocBuilder,
) -> Result<()> {
    let mut queue = Queue(documents.into());
    // The id stands before the batch, and is known only after it.
    let mut batch = DocBuilder::new();
    let mut sink = BatchSink::begin(&mut batch, "firstBatch", limits);
    let outcome = queue.next_batch(operation, &mut sink)?;
    sink.end();
    let id = match outcome {
        BatchOutcome::Exhausted => 0,
        BatchOutcome::Full | BatchOutcome::Yield(_) => {
            let options = CursorOptions {
                session: invocation.generic.session.as_ref().map(|session| session.document.clone()),
                transaction_number: invocation.generic.transaction_number,
                user: invocation.client_user(),
                originating_command: invocation.body().to_doc(),
                ..CursorOptions::new(namespace.clone())
            };
            data.cursors.register(&invocation.context, options, Box::new(queue)).keep()
        }
    };
    reply.document("cursor", |cursor| {
        cursor.append("id", id);
        cursor.append("ns", namespace.as_str());
        cursor.append_all(batch.finish().view());
    });
    Ok(())
}
