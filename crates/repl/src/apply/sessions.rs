//! What an entry says of its session: the record in `config.transactions`, and the image of findAndModify.

use super::Applier;
use super::documents::Images;
use pando_base::{Namespace, Result};
use pando_operation::Operation;
use pando_oplog::{OplogEntry, RetryImage};
use pando_session::{DurableState, Image, LogicalSessionId, SessionRecord};

impl Applier {
    /// Writes the record of a retryable write's statement, in the unit of work of its change.
    pub(super) fn record_session(
        &self,
        operation: &mut Operation,
        entry: &OplogEntry<'_>,
        images: Option<&Images>,
    ) -> Result<()> {
        if entry.operation.statement_ids.as_slice().is_empty() {
            return Ok(());
        }
        self.write_record(operation, entry, None)?;
        match entry.operation.needs_retry_image {
            Some(kind) => self.keep_image(operation, entry, kind, images),
            None => Ok(()),
        }
    }

    /// Writes the record of a session whose newest entry this is.
    pub(super) fn write_record(
        &self,
        operation: &mut Operation,
        entry: &OplogEntry<'_>,
        state: Option<DurableState>,
    ) -> Result<()> {
        let Some((session, txn_number)) = session_of(entry)? else { return Ok(()) };
        // An entry that makes the table comes before every record in it; without the table it was dropped since.
        if self.catalog.collection_for_write(operation, Namespace::session_transactions())?.is_none() {
            return Ok(());
        }
        let record =
            SessionRecord { session, txn_number, last_write: entry.op_time, last_write_ms: entry.wall_ms, state };
        self.table.store(operation, &record)
    }

    fn keep_image(
        &self,
        operation: &mut Operation,
        entry: &OplogEntry<'_>,
        kind: RetryImage,
        images: Option<&Images>,
    ) -> Result<()> {
        let Some((session, txn_number)) = session_of(entry)? else { return Ok(()) };
        if self.catalog.collection_for_write(operation, Namespace::config_images())?.is_none() {
            return Ok(());
        }
        let known = images.and_then(|images| match kind {
            RetryImage::Pre => images.before.clone(),
            RetryImage::Post => images.after.clone(),
        });
        let image = Image {
            session,
            txn_number,
            timestamp: entry.op_time.timestamp,
            kind,
            is_invalidated: known.is_none(),
            image: known.unwrap_or_default(),
        };
        self.table.store_image(operation, &image)
    }
}

fn session_of(entry: &OplogEntry<'_>) -> Result<Option<(LogicalSessionId, i64)>> {
    let session = entry.session.session_id.map(LogicalSessionId::parse).transpose()?;
    Ok(session.zip(entry.session.txn_number))
}
