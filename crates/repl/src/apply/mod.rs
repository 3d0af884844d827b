//! Applying oplog entries: a function of the entry and the mode. Recovery uses it today; secondaries, initial sync and
//! rollback will use the same.
//!
//! Entries are applied in their order, each in units of work at its own time, past all observers. Collections are found by
//! their id, so that an entry finds its collection whatever it is called by now.
//!
//! Idempotent: an entry may be applied over data that already has it, or that is newer, as long as all entries up to that
//! newer time follow. An insert of a document that is there replaces it; what is to be changed or removed and is not there
//! was removed by a later entry. In steady state that must not happen, and is an error.
//!
//! Beside the entry's own change: the session's record and the image of findAndModify, the views of a database, multikey
//! flags (through the indexes' hooks) and counts (through the record store).

mod coll_mod;
mod collections;
mod documents;
mod indexes;
mod sessions;
mod transactions;

use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_catalog::{Catalog, Collection, Index, UnfinishedBuild};
use pando_collection::WritePath;
use pando_doc::Doc;
use pando_operation::Operation;
use pando_oplog::{ApplyOps, ObserverRegistry, OpKind, OpTime, Operation as OplogOperation, OplogCommand, OplogEntry};
use pando_session::{History, SessionTable};
use std::sync::Arc;

/// Why entries are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyMode {
    /// They come from the primary as it writes them: the data is just before each.
    Steady,
    /// After a crash, from a checkpoint on.
    Recovery,
    /// Over data that was copied meanwhile.
    InitialSync,
}

impl ApplyMode {
    /// May the data be newer than the entry?
    fn may_be_ahead(self) -> bool {
        self != ApplyMode::Steady
    }
}

/// What an entry did beyond its change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Nothing.
    Plain,
    /// It prepared a transaction, which must be rebuilt unless it ends.
    Prepared(OpTime),
    /// It ended the prepared transaction whose entry is this.
    PreparedEnded(OpTime),
}

impl Applied {
    /// Keeps a list of transactions that are prepared.
    pub fn note_prepared(self, prepared: &mut Vec<OpTime>) {
        match self {
            Applied::Plain => {}
            Applied::Prepared(op_time) => prepared.push(op_time),
            Applied::PreparedEnded(op_time) => prepared.retain(|other| *other != op_time),
        }
    }
}

/// Applies entries to this node's collections.
pub struct Applier {
    catalog: Arc<Catalog>,
    /// Without observers.
    write_path: Arc<WritePath>,
    table: Arc<dyn SessionTable>,
    history: History,
    nobody: ObserverRegistry<Operation>,
    /// Are changes written at their entries' times? Not by nodes that have no history.
    is_timed: bool,
}

/// An operation of an entry together with the entry.
struct Step<'e, 'a> {
    what: &'e OplogOperation<'a>,
    entry: &'e OplogEntry<'a>,
    mode: ApplyMode,
    /// What the document before the change is kept under: its entry, and its place in there.
    image_place: (Timestamp, i64),
}

impl Applier {
    /// Applies to these collections. The write path must have no observers.
    pub fn new(
        catalog: Arc<Catalog>,
        write_path: Arc<WritePath>,
        table: Arc<dyn SessionTable>,
        history: History,
    ) -> Applier {
        Applier { catalog, write_path, table, history, nobody: ObserverRegistry::new(), is_timed: true }
    }

    /// The same, but what is written has no time.
    #[must_use]
    pub fn without_times(self) -> Applier {
        Applier { is_timed: false, ..self }
    }

    /// Applies an entry.
    pub fn apply(&self, operation: &mut Operation, entry: &OplogEntry<'_>, mode: ApplyMode) -> Result<Applied> {
        let place = (entry.op_time.timestamp, 0);
        self.at_time(operation, entry.op_time.timestamp, |operation| self.apply_entry(operation, entry, mode, place))
    }

    /// Runs the body with all of its units of work at this time.
    fn at_time<T>(
        &self,
        operation: &mut Operation,
        time: Timestamp,
        body: impl FnOnce(&mut Operation) -> Result<T>,
    ) -> Result<T> {
        if !self.is_timed {
            return body(operation);
        }
        operation.recovery_unit.set_commit_timestamp(time)?;
        let outcome = body(operation);
        operation.recovery_unit.clear_commit_timestamp()?;
        operation.recovery_unit.abandon_snapshot()?;
        outcome
    }

    fn apply_entry(
        &self,
        operation: &mut Operation,
        entry: &OplogEntry<'_>,
        mode: ApplyMode,
        image_place: (Timestamp, i64),
    ) -> Result<Applied> {
        let step = Step { what: &entry.operation, entry, mode, image_place };
        match entry.operation.kind {
            OpKind::Noop => operation.in_unit_of_work(|operation| self.record_session(operation, entry, None))?,
            OpKind::Insert | OpKind::Update | OpKind::Delete => self.apply_document(operation, &step)?,
            OpKind::Command => return self.apply_command(operation, &step),
            OpKind::InsertGlobalIndexKey | OpKind::DeleteGlobalIndexKey => return Err(unsupported(&step)),
        }
        Ok(Applied::Plain)
    }

    fn apply_command(&self, operation: &mut Operation, step: &Step<'_, '_>) -> Result<Applied> {
        match OplogCommand::parse(step.what.object)? {
            OplogCommand::ApplyOps(operations) => return self.apply_operations(operation, step, operations),
            OplogCommand::CommitTransaction { commit_timestamp } => {
                return self.commit_prepared(operation, step, commit_timestamp);
            }
            OplogCommand::AbortTransaction => return self.abort_transaction(operation, step),
            OplogCommand::Create { object, .. } => self.create(operation, step, object)?,
            OplogCommand::Drop { .. } => self.drop_collection(operation, step)?,
            OplogCommand::DropDatabase => self.drop_database(operation, step)?,
            OplogCommand::RenameCollection { from, to, stay_temp, drop_target } => {
                self.rename(operation, step, from, to, stay_temp, drop_target)?;
            }
            OplogCommand::CollMod { object, .. } => self.coll_mod(operation, step, object)?,
            OplogCommand::CreateIndexes { object, .. } => self.create_index(operation, step, object)?,
            OplogCommand::DropIndexes { index, .. } => self.drop_indexes(operation, step, index)?,
            OplogCommand::StartIndexBuild(build) => self.start_index_build(operation, step, &build)?,
            OplogCommand::CommitIndexBuild(build) => self.commit_index_build(operation, step, &build)?,
            OplogCommand::AbortIndexBuild(build) => self.abort_index_build(operation, step, &build)?,
            OplogCommand::EmptyCapped { .. } => self.empty_capped(operation, step)?,
            // A check of consistency looks at data as of its own time; one that is over says nothing.
            OplogCommand::DbCheck { .. } => {}
            OplogCommand::ConvertToCapped { .. }
            | OplogCommand::ImportCollection { .. }
            | OplogCommand::ModifyCollectionShardingIndexCatalog { .. }
            | OplogCommand::CreateGlobalIndex { .. }
            | OplogCommand::DropGlobalIndex { .. } => return Err(unsupported(step)),
        }
        Ok(Applied::Plain)
    }

    /// Several operations at once: a group of writes, or a transaction.
    fn apply_operations(
        &self,
        operation: &mut Operation,
        step: &Step<'_, '_>,
        operations: ApplyOps<'_>,
    ) -> Result<Applied> {
        if step.entry.session.txn_number.is_some() {
            return self.apply_transaction(operation, step, operations);
        }
        self.apply_all(operation, step, operations, step.entry.op_time.timestamp)?;
        Ok(Applied::Plain)
    }

    /// All operations of an entry of this time, which is the step's or one before it.
    fn apply_all(
        &self,
        operation: &mut Operation,
        step: &Step<'_, '_>,
        operations: ApplyOps<'_>,
        time: Timestamp,
    ) -> Result<()> {
        for (inner, index) in operations.iter().zip(0..) {
            self.apply_inner(operation, step, &inner?, (time, index))?;
        }
        Ok(())
    }

    /// One of several operations.
    fn apply_inner(
        &self,
        operation: &mut Operation,
        outer: &Step<'_, '_>,
        inner: &OplogOperation<'_>,
        image_place: (Timestamp, i64),
    ) -> Result<Applied> {
        // What belongs to the entry as a whole is not the business of its parts, but for what a retried findAndModify returns:
        // that is found by the entry that has the statement.
        let mut entry = OplogEntry::new(inner.clone(), outer.entry.op_time, outer.entry.wall_ms);
        if inner.needs_retry_image.is_some() {
            entry.session = outer.entry.session;
            entry.op_time.timestamp = image_place.0;
        }
        self.apply_entry(operation, &entry, outer.mode, image_place)
    }

    /// The collection that an entry is about. None if it is gone since, where that may be.
    fn collection(&self, operation: &mut Operation, step: &Step<'_, '_>) -> Result<Option<Arc<Collection>>> {
        let found = match step.what.uuid {
            Some(uuid) => self.catalog.collection_for_write_by_uuid(operation, &uuid)?,
            None => self.catalog.collection_for_write(operation, &self.namespace(step)?)?,
        };
        match found {
            None if !step.mode.may_be_ahead() => {
                let reason = format!("Failed to apply operation, the collection is missing: {}", text(step.what));
                Err(Error::new(ErrorCode::NamespaceNotFound, reason))
            }
            found => Ok(found),
        }
    }

    /// Indexes whose builds had not ended.
    pub fn unfinished_builds(&self) -> Vec<UnfinishedBuild> {
        let latest = self.catalog.latest();
        let unfinished = |collection: &Arc<Collection>| {
            let indexes = collection.indexes.iter().filter(|index| !index.ready);
            let build = |index: &Arc<Index>| UnfinishedBuild {
                namespace: collection.namespace.clone(),
                collection: collection.uuid,
                index_name: index.name().to_owned(),
                build_uuid: index.build_uuid,
            };
            indexes.map(build).collect::<Vec<_>>()
        };
        latest.all_collections().flat_map(unfinished).collect()
    }

    fn namespace(&self, step: &Step<'_, '_>) -> Result<pando_base::Namespace> {
        step.what.namespace()
    }
}

fn unsupported(step: &Step<'_, '_>) -> Error {
    let reason = format!("oplog entries of this kind cannot be applied: {}", text(step.what));
    Error::new(ErrorCode::CommandNotSupported, reason)
}

/// An operation as text, for errors.
fn text(what: &OplogOperation<'_>) -> String {
    let mut builder = pando_doc::DocBuilder::new();
    what.append_to(&mut builder);
    let document: Doc = builder.finish();
    document.to_string()
}
