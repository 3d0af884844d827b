//! One collection: validated, put right, and if that is not enough, its indexes rebuilt.

use super::RepairReport;
use pando_base::{Component, Log, Namespace, RecordId, Result};
use pando_catalog::{Collection, INTERNAL_PREFIX, Index};
use pando_collection::{Repair, ValidateOptions, ValidateReport, move_to_lost_and_found, validate_collection};
use pando_commands::{Data, locking};
use pando_doc::{Doc, DocRef};
use pando_index::{IndexAccess, KeySet};
use pando_locks::Mode;
use pando_operation::Operation;
use pando_storage::{BeginOptions, Direction, Table, TableOptions};
use std::sync::Arc;

/// Validation may have to be repeated: each time it puts right what it can remember. It is given up when that leads nowhere.
const VALIDATIONS_MAX: usize = 100;
/// What validation may remember.
const DETAILS_BYTES_MAX: usize = 200 * 1024 * 1024;
/// Documents that are looked at in one unit of work.
const BATCH_DOCUMENTS: usize = 1000;

/// Repairs a collection and says what was changed.
pub(super) async fn repair(data: &Data, namespace: &Namespace, log: &Log, report: &mut RepairReport) -> Result<()> {
    let mut operation = data.services.internal_operation("repair");
    locking::lock_collection(&mut operation, namespace, Mode::X).await?;
    let outcome = repair_locked(data, &mut operation, namespace, log, report).await;
    operation.locker.unlock_everything();
    outcome
}

async fn repair_locked(
    data: &Data,
    operation: &mut Operation,
    namespace: &Namespace,
    log: &Log,
    report: &mut RepairReport,
) -> Result<()> {
    let Some(collection) = data.catalog.collection_for_write(operation, namespace)? else { return Ok(()) };
    let idents = std::iter::once(collection.ident()).chain(collection.indexes.iter().map(|index| index.ident()));
    let is_damaged = idents.into_iter().any(|ident| report.damaged.contains(ident));
    let mut work = Work { data, log, report, namespace };
    if !is_damaged && work.put_right(operation, &collection)? {
        return Ok(());
    }
    let rebuilt = work.rebuild(operation, &collection).await?;
    if !work.put_right(operation, &rebuilt)? {
        work.note(format!("{namespace} is not valid, and cannot be made so"));
    }
    Ok(())
}

struct Work<'a> {
    data: &'a Data,
    log: &'a Log,
    report: &'a mut RepairReport,
    namespace: &'a Namespace,
}

impl Work<'_> {
    fn note(&mut self, change: String) {
        self.report.note(self.log, change);
    }

    /// Validates and repairs until nothing is wrong; false if something stays wrong.
    fn put_right(&mut self, operation: &mut Operation, collection: &Arc<Collection>) -> Result<bool> {
        let options = ValidateOptions {
            adjusts_count: true,
            repair: Repair::Everything,
            details_bytes_max: DETAILS_BYTES_MAX,
            ..ValidateOptions::default()
        };
        let mut collection = Arc::clone(collection);
        for _ in 0..VALIDATIONS_MAX {
            let (mut outcome, data) = (None, self.data);
            data.services.env.tasks().blocking(&mut || {
                outcome = Some(validate_collection(operation, data.write_path(), &data.catalog, &collection, options));
            });
            let Some(found) = outcome.transpose()? else { return Ok(false) };
            if !found.is_repaired {
                return Ok(found.is_valid());
            }
            self.tell(&found);
            collection = data.catalog.collection_for_write(operation, self.namespace)?.unwrap_or(collection);
        }
        Ok(false)
    }

    fn tell(&mut self, found: &ValidateReport) {
        let namespace = self.namespace;
        for note in &found.notes {
            self.log.write(note.severity, Component::Storage, note.id, note.message, note.attributes.clone());
        }
        let told: Vec<&String> =
            found.warnings.iter().chain(found.indexes.iter().flat_map(|index| &index.warnings)).collect();
        for warning in told {
            self.note(format!("{namespace}: {warning}"));
        }
    }

    /// Takes all indexes away and makes them anew.
    async fn rebuild(&mut self, operation: &mut Operation, collection: &Arc<Collection>) -> Result<Arc<Collection>> {
        let (data, namespace) = (self.data, self.namespace);
        let ready: Vec<Arc<Index>> = collection.ready_indexes().cloned().collect();
        let specifications: Vec<Doc> = ready.iter().map(|index| index.descriptor.specification.clone()).collect();
        let mut bare = operation.in_unit_of_work(|operation| {
            let mut next = Arc::clone(collection);
            for index in &ready {
                next = data.catalog.remove_index(operation, &next, index.name())?;
            }
            Ok(next)
        })?;
        // Documents that are none go, and the count is put right.
        self.put_right(operation, &bare)?;
        for is_second in [false, true] {
            let error = match data.index_builds.build_exclusively(operation, &bare, &specifications).await {
                Ok(built) => {
                    self.note(format!("the indexes of {namespace} were rebuilt"));
                    return Ok(built);
                }
                Err(error) if is_second => return Err(error),
                Err(error) => error,
            };
            self.note(format!("{namespace} cannot be indexed as it is: {}", error.reason()));
            bare = data.catalog.collection_for_write(operation, namespace)?.unwrap_or(bare);
            self.move_away(operation, &bare, &ready)?;
        }
        Ok(bare)
    }

    /// Documents that cannot be indexed, or whose keys an earlier one has in a unique index, go to lost and found.
    fn move_away(&mut self, operation: &mut Operation, bare: &Arc<Collection>, indexes: &[Arc<Index>]) -> Result<()> {
        let (data, mut moved) = (self.data, 0_u64);
        for index in indexes {
            let descriptor = &index.descriptor;
            let is_unique = descriptor.unique || descriptor.is_id_index();
            let access = data.write_path().indexing().access(index)?;
            for id in self.in_the_way(operation, bare, &access, is_unique)? {
                let away = move_to_lost_and_found(operation, &data.catalog, data.write_path(), bare, &id)?;
                moved += u64::from(away);
            }
        }
        if moved > 0 {
            let (namespace, uuid) = (self.namespace, bare.uuid);
            self.note(format!("{moved} documents of {namespace} were moved to local.lost_and_found.{uuid}"));
        }
        Ok(())
    }

    /// The documents in the way of one index. Which keys were seen is kept in a table: memory is not for so many.
    fn in_the_way(
        &self,
        operation: &mut Operation,
        bare: &Collection,
        access: &IndexAccess,
        is_unique: bool,
    ) -> Result<Vec<RecordId>> {
        let engine = &self.data.services.engine;
        let ident = self.data.catalog.new_internal_ident("repair");
        debug_assert!(ident.starts_with(INTERNAL_PREFIX));
        let table = engine.create_table(&ident, &TableOptions::default())?;
        let found = self.seek_in_the_way(operation, bare, access, is_unique.then_some(&table));
        drop(table);
        engine.drop_table(&ident)?;
        found
    }

    fn seek_in_the_way(
        &self,
        operation: &mut Operation,
        bare: &Collection,
        access: &IndexAccess,
        seen: Option<&Table>,
    ) -> Result<Vec<RecordId>> {
        let engine = &self.data.services.engine;
        let (mut found, mut keys) = (Vec::new(), KeySet::new());
        let mut cursor = bare.records.cursor(Direction::Forward);
        let mut transaction = engine.begin(BeginOptions::default())?;
        let mut count = 0_usize;
        while let Some(record) = cursor.next(&mut operation.recovery_unit)? {
            let Ok(document) = DocRef::parse(record.value) else { continue };
            let mut is_in_the_way = access.keys(document, &mut keys).is_err();
            if let Some(seen) = seen.filter(|_| !is_in_the_way) {
                for key in keys.iter() {
                    is_in_the_way |= transaction.get(seen, key.bytes)?.is_some();
                }
                if !is_in_the_way {
                    for key in keys.iter() {
                        transaction.put(seen, key.bytes, &[])?;
                    }
                }
            }
            if is_in_the_way {
                found.push(record.id.clone());
            }
            count += 1;
            if count.is_multiple_of(BATCH_DOCUMENTS) {
                transaction.commit()?;
                transaction = engine.begin(BeginOptions::default())?;
                operation.context.check()?;
            }
        }
        transaction.commit()?;
        drop(cursor);
        operation.recovery_unit.abandon_snapshot()?;
        Ok(found)
    }
}
