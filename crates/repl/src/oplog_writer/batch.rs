//! A group of writes that becomes one `applyOps`.

use super::OplogWriter;
use super::gathered_images::GatheredImages;
use super::transaction::parts;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_doc::{Doc, DocBuilder};
use pando_operation::Operation;
use pando_oplog::Operation as OplogOperation;
use pando_oplog::build::{ApplyOpsPart, apply_ops_object};

/// The operations of the group so far.
#[derive(Default)]
pub(super) struct Batch {
    /// As documents.
    pub(super) operations: Vec<Doc>,
    /// The statements of a retryable write that they carry out, each with the place of its operation.
    pub(super) statements: Vec<(usize, i32)>,
}

impl Batch {
    /// Are the operation's writes gathered into a group?
    pub(super) fn is_open(operation: &Operation) -> bool {
        operation.extensions.get::<Batch>().is_some()
    }

    /// Adds an operation to the operation's group; false if there is none.
    pub(super) fn add(operation: &mut Operation, what: &OplogOperation<'_>) -> Result<bool> {
        let is_transaction = operation.in_multi_document_transaction();
        let Some(batch) = operation.extensions.get_mut::<Batch>() else { return Ok(false) };
        // A transaction that carries out a retryable write remembers its statements.
        if !what.statement_ids.as_slice().is_empty() && !is_transaction {
            let reason = "Cannot use a retryable write within a batched write";
            return Err(Error::new(ErrorCode::IllegalOperation, reason));
        }
        let place = batch.operations.len();
        batch.statements.extend(what.statement_ids.as_slice().iter().map(|statement| (place, *statement)));
        let mut builder = DocBuilder::with_capacity(what.size_bytes_estimate());
        what.append_to(&mut builder);
        batch.operations.push(builder.finish());
        Ok(true)
    }
}

impl OplogWriter {
    /// Ends the group with its entry; the operations given here come after those that were gathered.
    pub(super) fn write_batch(&self, operation: &mut Operation, more: &[OplogOperation<'_>]) -> Result<()> {
        let Batch { operations: gathered, .. } = operation.extensions.remove::<Batch>().unwrap_or_default();
        if gathered.is_empty() && more.is_empty() {
            return Ok(());
        }
        // A group is one entry, whoever reads the oplog: it does not become a chain as a transaction does.
        if parts(&gathered, usize::MAX).len() > 1 {
            let reason = "batched writes must generate a single applyOps entry";
            return Err(Error::new(ErrorCode::TransactionTooLarge, reason));
        }
        let mut operations = Vec::with_capacity(gathered.len() + more.len());
        for document in &gathered {
            operations.push(OplogOperation::parse(document.view())?);
        }
        operations.extend(more.iter().cloned());
        let images = GatheredImages::take(operation);
        let slot = match <[OplogOperation<'_>; 1]>::try_from(operations) {
            // Nobody needs a group of one.
            Ok([single]) => self.append_operation(operation, single, None)?,
            Err(operations) => {
                let object = apply_ops_object(&operations, ApplyOpsPart::Whole);
                let ns = Namespace::admin_command();
                let what = OplogOperation::command(ns.as_str().into(), None, object.view());
                self.append_operation(operation, what, None)?
            }
        };
        let wall_ms = self.wall_ms();
        self.keep_gathered(operation, &images, 0..gathered.len(), slot, wall_ms)
    }
}
