//! The documents before the changes of a group of writes, until the group has its entry.

use super::batch::Batch;
use super::{OplogWriter, TransactionOf};
use pando_base::{Result, Uuid};
use pando_doc::{Doc, DocRef};
use pando_operation::Operation;
use pando_oplog::observer::Collection;
use pando_oplog::{OpTime, Operation as OplogOperation, RetryImage};
use pando_session::{Image, PreImage};
use std::ops::Range;

/// They, each with the place of its operation in the group and its collection.
#[derive(Default)]
pub(super) struct GatheredImages(Vec<(usize, Uuid, Doc)>);

impl GatheredImages {
    /// Adds the document before the group's newest operation, if the collection's are kept.
    pub(super) fn add(operation: &mut Operation, collection: &Collection<'_>, before: Option<DocRef<'_>>) {
        let Some(before) = before else { return };
        let Some(place) = operation.extensions.get::<Batch>().and_then(|batch| batch.operations.len().checked_sub(1))
        else {
            return;
        };
        let gathered = operation.extensions.get_or_default::<GatheredImages>();
        gathered.0.push((place, collection.uuid, before.to_doc()));
    }

    /// Takes them from the operation.
    pub(super) fn take(operation: &mut Operation) -> GatheredImages {
        operation.extensions.remove::<GatheredImages>().unwrap_or_default()
    }
}

/// What a retried findAndModify of a transaction returns: there is one, of its newest.
pub(super) struct GatheredRetryImage {
    kind: RetryImage,
    image: Doc,
    statement: i32,
}

impl GatheredRetryImage {
    /// Keeps the document until the transaction has its entry, and says so in the operation. Nothing to do outside of transactions, and
    /// for statements that are not retried.
    pub(super) fn add(
        operation: &mut Operation,
        what: &mut OplogOperation<'_>,
        image: Option<(RetryImage, DocRef<'_>)>,
    ) {
        let statement = what.statement_ids.as_slice().first().copied();
        let (Some(statement), Some((kind, image))) = (statement, image) else { return };
        if operation.extensions.get::<Batch>().is_some() {
            what.needs_retry_image = Some(kind);
            operation.extensions.insert(GatheredRetryImage { kind, image: image.to_doc(), statement });
        }
    }
}

impl OplogWriter {
    /// Keeps what a retried findAndModify of this transaction returns.
    pub(super) fn keep_retry_image(
        &self,
        operation: &mut Operation,
        of: TransactionOf<'_>,
        statements: &[(i32, OpTime)],
    ) -> Result<()> {
        let Some(gathered) = operation.extensions.remove::<GatheredRetryImage>() else { return Ok(()) };
        let slot = statements.iter().find(|(statement, _)| *statement == gathered.statement);
        let Some((_, slot)) = slot else { return Ok(()) };
        let image = Image {
            session: of.session.session,
            txn_number: of.number,
            timestamp: slot.timestamp,
            kind: gathered.kind,
            image: gathered.image,
            is_invalidated: false,
        };
        self.table.store_image(operation, &image)
    }

    /// Keeps those of the operations that one entry has.
    pub(super) fn keep_gathered(
        &self,
        operation: &mut Operation,
        gathered: &GatheredImages,
        places: Range<usize>,
        slot: OpTime,
        wall_ms: i64,
    ) -> Result<()> {
        let own = gathered.0.iter().filter(|(place, ..)| places.contains(place));
        for (place, collection, document) in own {
            let image = PreImage {
                collection: *collection,
                time: slot.timestamp,
                apply_ops_index: i64::try_from(place.saturating_sub(places.start)).unwrap_or(i64::MAX),
                wall_ms,
                document: document.view(),
            };
            self.table.store_pre_image(operation, &image)?;
        }
        Ok(())
    }
}
