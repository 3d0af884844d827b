//! Entries of documents that are inserted, updated, deleted.

use super::OplogWriter;
use super::batch::Batch;
use super::gathered_images::{GatheredImages, GatheredRetryImage};
use super::sessions::{Statement, Statements};
use pando_base::Result;
use pando_doc::{DocRef, ObjectId};
use pando_operation::Operation;
use pando_oplog::observer as events;
use pando_oplog::{OpTime, Operation as OplogOperation, OplogEntry, RetryImage};
use pando_session::PreImage;

/// What an entry mostly has beside its document.
const ENTRY_BYTES: usize = 256;

impl OplogWriter {
    /// Reserves a place for each document at once, so that each is written at the time of its own entry. The holes cost others
    /// their waiting, so one document takes its place only when it is written.
    pub(super) fn reserve_for_inserts(
        &self,
        operation: &mut Operation,
        inserts: &mut events::ComingInserts<'_>,
    ) -> Result<()> {
        let namespace = inserts.collection.namespace;
        if inserts.slots.len() < 2 || Batch::is_open(operation) || !Self::is_logged(operation, namespace)? {
            return Ok(());
        }
        let reserved = self.reserve(operation, inserts.slots.len())?;
        inserts.slots.iter_mut().zip(reserved.iter()).for_each(|(slot, place)| *slot = Some(place));
        Ok(())
    }

    /// Documents of a batch have an entry each, in their order.
    pub(super) fn write_inserts(&self, operation: &mut Operation, inserts: &events::Inserts<'_>) -> Result<()> {
        let collection = &inserts.collection;
        if inserts.inserts.is_empty() || !Self::is_logged(operation, collection.namespace)? {
            return Ok(());
        }
        if Batch::is_open(operation) {
            for insert in inserts.inserts {
                Batch::add(operation, &insert_operation(collection, insert, inserts.from_migrate))?;
            }
            return Ok(());
        }
        self.observe_session_table(operation, collection.namespace, None)?;
        let has_slots = inserts.inserts.iter().all(|insert| insert.slot.is_some());
        let reserved = match has_slots {
            true => None,
            false => {
                let reserved = self.reserve(operation, inserts.inserts.len())?;
                // What was written without a time, a single document mostly, gets the first.
                self.time_unit(operation, reserved.first())?;
                Some(reserved)
            }
        };
        let wall_ms = self.wall_ms();
        let document_bytes: usize = inserts.inserts.iter().map(|insert| insert.document.size_bytes()).sum();
        let entries_bytes = document_bytes + inserts.inserts.len() * ENTRY_BYTES;
        operation.recovery_unit.writer()?.expect_oplog(inserts.inserts.len(), entries_bytes);
        let mut statements = Statements::of(operation);
        let places = inserts.inserts.iter().enumerate();
        let mut last = OpTime::NULL;
        for (place, insert) in places {
            let slot = insert.slot.or_else(|| reserved.and_then(|reserved| reserved.get(place)));
            let Some(slot) = slot else { continue };
            let what = insert_operation(collection, insert, inserts.from_migrate);
            let mut entry = OplogEntry::new(what, slot, wall_ms);
            let session = statements.link(&mut entry)?;
            self.append(operation, &entry)?;
            statements.written(session, slot);
            last = slot;
        }
        self.time_unit(operation, last)?;
        self.record_statements(operation, statements, wall_ms)?;
        self.tell_progress_of(operation, last, wall_ms, inserts.inserts.len())
    }

    pub(super) fn write_update(&self, operation: &mut Operation, update: &events::Update<'_>) -> Result<()> {
        let collection = &update.collection;
        if !Self::is_logged(operation, collection.namespace)? {
            return Ok(());
        }
        let ns = collection.namespace.as_str().into();
        let mut what = OplogOperation::update(ns, collection.uuid, update.change, update.document_key);
        what.tenant = tenant(collection);
        what.statement_ids = update.statement_ids.clone();
        what.from_migrate = update.from_migrate.then_some(true);
        what.check_existence_for_diff_insert = update.check_existence_for_diff_insert.then_some(true);
        what.destined_recipient = update.destined_recipient.map(Into::into);
        let before = kept(collection, update.pre_image, update.from_migrate);
        let image = update.retry_image.map(|kind| match kind {
            RetryImage::Pre => (kind, update.pre_image),
            RetryImage::Post => (kind, update.post_image),
        });
        GatheredRetryImage::add(operation, &mut what, image);
        if Batch::add(operation, &what)? {
            GatheredImages::add(operation, collection, before);
            return Ok(());
        }
        let key = update.document_key;
        self.write_changed(operation, collection, what, (key, update.slots), (image, before))
    }

    pub(super) fn write_delete(&self, operation: &mut Operation, delete: &events::Delete<'_>) -> Result<()> {
        let collection = &delete.collection;
        if !Self::is_logged(operation, collection.namespace)? {
            return Ok(());
        }
        let ns = collection.namespace.as_str().into();
        let mut what = OplogOperation::delete(ns, collection.uuid, delete.document_key);
        what.tenant = tenant(collection);
        what.statement_ids = delete.statement_ids.clone();
        what.from_migrate = delete.from_migrate.then_some(true);
        what.destined_recipient = delete.destined_recipient.map(Into::into);
        let before = kept(collection, delete.pre_image, delete.from_migrate);
        let image = delete.retry_image.map(|kind| (kind, delete.pre_image));
        GatheredRetryImage::add(operation, &mut what, image);
        if Batch::add(operation, &what)? {
            self.observe_session_table(operation, collection.namespace, Some(delete.document_key))?;
            GatheredImages::add(operation, collection, before);
            return Ok(());
        }
        let key = delete.document_key;
        self.write_changed(operation, collection, what, (key, delete.slots), (image, before))
    }

    /// An update or a delete. One that keeps an image has a place before it to spare, for those who copy history and turn
    /// the image into an entry.
    fn write_changed(
        &self,
        operation: &mut Operation,
        collection: &events::Collection<'_>,
        mut what: OplogOperation<'_>,
        (key, slots): (DocRef<'_>, &[OpTime]),
        (image, before): (Option<(RetryImage, DocRef<'_>)>, Option<DocRef<'_>>),
    ) -> Result<()> {
        self.observe_session_table(operation, collection.namespace, Some(key))?;
        let image = image.filter(|_| !what.statement_ids.as_slice().is_empty());
        what.needs_retry_image = image.map(|(kind, _)| kind);
        let slot = match slots.last() {
            Some(slot) => *slot,
            None => self.reserve(operation, if image.is_some() { 2 } else { 1 })?.last(),
        };
        self.time_unit(operation, slot)?;
        let wall_ms = self.wall_ms();
        let mut statements = Statements::of(operation);
        let mut entry = OplogEntry::new(what, slot, wall_ms);
        let statement: Option<Statement> = statements.link(&mut entry)?;
        self.append(operation, &entry)?;
        statements.written(statement, slot);
        if let Some((kind, image)) = image {
            self.keep_image(operation, &statements, slot, kind, image)?;
        }
        if let Some(document) = before {
            let image =
                PreImage { collection: collection.uuid, time: slot.timestamp, apply_ops_index: 0, wall_ms, document };
            self.table.store_pre_image(operation, &image)?;
        }
        self.record_statements(operation, statements, wall_ms)?;
        self.tell_progress(operation, slot, wall_ms)
    }
}

fn insert_operation<'a>(
    collection: &events::Collection<'a>,
    insert: &'a events::Insert<'a>,
    from_migrate: bool,
) -> OplogOperation<'a> {
    let ns = collection.namespace.as_str().into();
    let mut what = OplogOperation::insert(ns, collection.uuid, insert.document, insert.document_key);
    what.tenant = tenant(collection);
    what.statement_ids = insert.statement_ids.clone();
    what.from_migrate = from_migrate.then_some(true);
    what.destined_recipient = insert.destined_recipient.map(Into::into);
    what
}

/// The document before a change, if change streams may ask for it.
fn kept<'a>(collection: &events::Collection<'_>, before: DocRef<'a>, from_migrate: bool) -> Option<DocRef<'a>> {
    (collection.records_pre_images && !from_migrate).then_some(before)
}

fn tenant(collection: &events::Collection<'_>) -> Option<ObjectId> {
    collection.namespace.tenant().map(|tenant| ObjectId::from_bytes(tenant.0))
}
