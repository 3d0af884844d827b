//! The observer that writes the oplog: every replicated write leaves one entry, in the storage transaction of the write.
//!
//! For each event it takes a place in the oplog (or the one that the write path has reserved), gives its time to the unit
//! of work, and appends the entry. Entries are idempotent: the write path says what documents have become. What is not
//! replicated (`local`, the profiler) leaves nothing.
//!
//! Statements of a retryable write carry their session and point back at the statement before. In the same unit the
//! session's record in `config.transactions`, and for findAndModify the image, are written. So is the document before a change,
//! where it is kept for change streams.
//!
//! A group of writes between `on_batched_write_start` and `on_batched_write_commit` becomes one `applyOps`; so do those of a
//! multi-document transaction, when it commits or is prepared.
//!
//! It takes no locks of its own but the participant's, for an instruction.

mod batch;
mod commands;
mod documents;
mod fail_transactional_write;
mod gathered_images;
mod sessions;
mod transaction;

use crate::prepared_entries::PreparedEntries;
use crate::progress::Progress;
use crate::slots::{OplogSlots, ReservedSlots};
use batch::Batch;
pub(crate) use fail_transactional_write::ON_TRANSACTIONAL_WRITE;
use gathered_images::GatheredImages;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_doc::{DocRef, INTERNAL_SIZE_BYTES_MAX};
use pando_env::Env;
use pando_operation::{Operation, Stash};
use pando_oplog::observer as events;
use pando_oplog::{OpObserver, OpTime, Operation as OplogOperation, OplogEntry};
use pando_session::{SessionCatalog, SessionRecord, SessionTable, TransactionAccount};
use std::sync::Arc;
pub(crate) use transaction::AFTER_RESERVING_PREPARE;
pub use transaction::{
    CommittedChain, SKIP_PREPARE_MAJORITY, TRANSACTION_OPERATIONS_IN_ENTRY_MAX, TransactionOf, TransactionSize,
};

/// Writes the oplog.
pub struct OplogWriter {
    env: Env,
    slots: Arc<OplogSlots>,
    progress: Arc<Progress>,
    sessions: SessionCatalog,
    table: Arc<dyn SessionTable>,
    prepared_entries: Arc<PreparedEntries>,
}

impl OplogWriter {
    /// A writer that takes its places from `slots` and tells `progress` what has committed.
    pub(crate) fn new(
        env: &Env,
        slots: Arc<OplogSlots>,
        progress: Arc<Progress>,
        sessions: SessionCatalog,
        table: Arc<dyn SessionTable>,
        prepared_entries: Arc<PreparedEntries>,
    ) -> OplogWriter {
        OplogWriter { env: env.clone(), slots, progress, sessions, table, prepared_entries }
    }

    /// Puts a prepared transaction that was made anew into its session.
    pub(crate) fn enter_prepared(&self, record: &SessionRecord, account: TransactionAccount, stash: Stash) {
        self.sessions.enter_prepared(record.session, record.last_write, account, stash);
    }

    /// Reserves places for documents that are about to be inserted, one each, inside their unit of work.
    pub fn reserve(&self, operation: &mut Operation, count: usize) -> Result<ReservedSlots> {
        let count = u32::try_from(count).map_err(|_| Error::bad_value("too many documents in one batch"))?;
        self.slots.reserve(operation, count)
    }

    /// Writes a mark that changes nothing and gives its place.
    pub fn append_noop(&self, operation: &mut Operation, message: DocRef<'_>) -> Result<OpTime> {
        self.append_noop_with(operation, None, None, message, None, None)
    }

    /// Writes an entry of a command that changes nothing here, and means something to other members.
    pub fn append_command(
        &self,
        operation: &mut Operation,
        namespace: &Namespace,
        uuid: Option<pando_base::Uuid>,
        command: DocRef<'_>,
    ) -> Result<OpTime> {
        let kind = pando_oplog::OpKind::Command;
        let command = OplogOperation::new(kind, namespace.as_str().into(), uuid, command);
        self.append_operation(operation, command, None)
    }

    fn append_noop_with(
        &self,
        operation: &mut Operation,
        namespace: Option<&Namespace>,
        uuid: Option<pando_base::Uuid>,
        message: DocRef<'_>,
        message2: Option<DocRef<'_>>,
        slot: Option<OpTime>,
    ) -> Result<OpTime> {
        let ns = namespace.map_or("", |namespace| namespace.as_str());
        let mut noop = OplogOperation::new(pando_oplog::OpKind::Noop, ns.into(), uuid, message);
        noop.object2 = message2;
        self.append_operation(operation, noop, slot)
    }

    fn wall_ms(&self) -> i64 {
        i64::try_from(self.env.clock().wall_ms()).unwrap_or(i64::MAX)
    }

    /// Are writes to this collection in the oplog?
    fn is_logged(operation: &Operation, namespace: &Namespace) -> Result<bool> {
        if !namespace.is_replicated() {
            return Ok(false);
        }
        if operation.in_multi_document_transaction() && !Batch::is_open(operation) {
            let reason = "multi-document transactions do not write to the oplog one by one";
            return Err(Error::new(ErrorCode::IllegalOperation, reason));
        }
        Ok(true)
    }

    /// The place for an entry: the reserved one, or a new one whose time the unit gets.
    fn place(&self, operation: &mut Operation, slot: Option<OpTime>) -> Result<OpTime> {
        let slot = match slot {
            Some(slot) => slot,
            None => self.slots.reserve(operation, 1)?.last(),
        };
        self.time_unit(operation, slot)?;
        Ok(slot)
    }

    fn time_unit(&self, operation: &mut Operation, slot: OpTime) -> Result<()> {
        if operation.recovery_unit.commit_timestamp() != Some(slot.timestamp) {
            operation.recovery_unit.set_timestamp(slot.timestamp)?;
        }
        Ok(())
    }

    /// Writes an entry that belongs to no session.
    fn append_operation(
        &self,
        operation: &mut Operation,
        what: OplogOperation<'_>,
        slot: Option<OpTime>,
    ) -> Result<OpTime> {
        let slot = self.place(operation, slot)?;
        let wall_ms = self.wall_ms();
        self.append(operation, &OplogEntry::new(what, slot, wall_ms))?;
        self.tell_progress(operation, slot, wall_ms)?;
        Ok(slot)
    }

    fn append(&self, operation: &mut Operation, entry: &OplogEntry<'_>) -> Result<()> {
        let transaction = operation.recovery_unit.writer()?;
        let size_bytes =
            transaction.build_oplog(entry.op_time.timestamp, &mut |buffer| entry.append_to_buffer(buffer))?;
        // The unit does not commit after this.
        if size_bytes > INTERNAL_SIZE_BYTES_MAX {
            return Err(pando_doc::too_large(size_bytes, INTERNAL_SIZE_BYTES_MAX));
        }
        Ok(())
    }

    /// Once the unit commits, the entry counts as applied.
    fn tell_progress(&self, operation: &mut Operation, slot: OpTime, wall_ms: i64) -> Result<()> {
        self.tell_progress_of(operation, slot, wall_ms, 1)
    }

    /// The same of several entries.
    fn tell_progress_of(&self, operation: &mut Operation, last: OpTime, wall_ms: i64, count: usize) -> Result<()> {
        let progress = Arc::clone(&self.progress);
        Ok(operation.recovery_unit.on_commit(move |_| progress.written(last, wall_ms, count as u64))?)
    }
}

impl OpObserver<Operation> for OplogWriter {
    fn about_to_insert(&self, operation: &mut Operation, inserts: &mut events::ComingInserts<'_>) -> Result<()> {
        self.reserve_for_inserts(operation, inserts)
    }

    fn on_inserts(&self, operation: &mut Operation, inserts: &events::Inserts<'_>) -> Result<()> {
        self.write_inserts(operation, inserts)
    }

    fn on_update(&self, operation: &mut Operation, update: &events::Update<'_>) -> Result<()> {
        self.write_update(operation, update)
    }

    fn on_delete(&self, operation: &mut Operation, delete: &events::Delete<'_>) -> Result<()> {
        self.write_delete(operation, delete)
    }

    fn on_internal_message(&self, operation: &mut Operation, message: &events::InternalMessage<'_>) -> Result<()> {
        let events::InternalMessage { namespace, uuid, message, message2, slot } = *message;
        self.append_noop_with(operation, namespace, uuid, message, message2, slot).map(|_| ())
    }

    fn on_create_collection(&self, operation: &mut Operation, create: &events::CreateCollection<'_>) -> Result<()> {
        self.write_create(operation, create)
    }

    fn on_drop_collection(&self, operation: &mut Operation, drop: &events::DropCollection<'_>) -> Result<()> {
        self.write_drop(operation, drop)
    }

    fn on_rename_collection(&self, operation: &mut Operation, rename: &events::RenameCollection<'_>) -> Result<()> {
        self.write_rename(operation, rename)
    }

    fn on_coll_mod(&self, operation: &mut Operation, change: &events::CollMod<'_>) -> Result<()> {
        self.write_coll_mod(operation, change)
    }

    fn on_empty_capped(&self, operation: &mut Operation, collection: &events::Collection<'_>) -> Result<()> {
        self.write_empty_capped(operation, collection)
    }

    fn on_drop_database(&self, operation: &mut Operation, database: &pando_base::DatabaseName) -> Result<()> {
        self.write_drop_database(operation, database)
    }

    fn on_create_index(&self, operation: &mut Operation, index: &events::CreateIndex<'_>) -> Result<()> {
        self.write_create_index(operation, index)
    }

    fn on_start_index_build(&self, operation: &mut Operation, build: &events::IndexBuildArguments<'_>) -> Result<()> {
        self.write_index_build(operation, build, pando_oplog::build::start_index_build_object)
    }

    fn on_commit_index_build(&self, operation: &mut Operation, build: &events::IndexBuildArguments<'_>) -> Result<()> {
        self.write_index_build(operation, build, pando_oplog::build::commit_index_build_object)
    }

    fn on_abort_index_build(
        &self,
        operation: &mut Operation,
        build: &events::IndexBuildArguments<'_>,
        cause: &Error,
    ) -> Result<()> {
        self.write_index_build(operation, build, |collection, uuid, indexes| {
            pando_oplog::build::abort_index_build_object(collection, uuid, indexes, cause)
        })
    }

    fn on_drop_index(&self, operation: &mut Operation, index: &events::DropIndex<'_>) -> Result<()> {
        self.write_drop_index(operation, index)
    }

    fn on_batched_write_start(&self, operation: &mut Operation) -> Result<()> {
        operation.extensions.insert(Batch::default());
        Ok(())
    }

    fn on_batched_write_commit(&self, operation: &mut Operation, operations: &[OplogOperation<'_>]) -> Result<()> {
        self.write_batch(operation, operations)
    }

    fn on_batched_write_abort(&self, operation: &mut Operation) -> Result<()> {
        operation.extensions.remove::<Batch>();
        GatheredImages::take(operation);
        Ok(())
    }
}
