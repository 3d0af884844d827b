//! Indexes that were created, built, dropped.
//!
//! The start of a build puts its indexes into the catalog, not ready. Its end finds the collection as the primary had it
//! at that time, and builds from there: what has gathered in the tables meanwhile is thrown away. A build whose end is not
//! in the oplog stays unfinished, for those who build indexes to take up or to discard.

use super::{Applier, Step};
use pando_base::{RecordId, Result};
use pando_catalog::{Collection, SpecFit, compare_with_existing};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_index::{Duplicates, KeySet};
use pando_operation::Operation;
use pando_oplog::IndexBuild;
use pando_storage::Direction;
use std::sync::Arc;

/// Documents whose keys are written in one unit of work.
const BUILD_BATCH_DOCUMENTS: usize = 512;

impl Applier {
    /// An index on a collection that was empty. Where it is not, since the data is newer, it is built.
    pub(super) fn create_index(
        &self,
        operation: &mut Operation,
        step: &Step<'_, '_>,
        object: DocRef<'_>,
    ) -> Result<()> {
        let specification = specification(object);
        let Some(collection) = self.collection(operation, step)? else { return Ok(()) };
        if !is_new(&collection, &specification)? {
            return Ok(());
        }
        if is_empty(operation, &collection)? {
            return operation.in_unit_of_work(|operation| {
                self.catalog.create_index_on_empty(operation, &self.nobody, &collection, &specification).map(|_| ())
            });
        }
        self.add_index(operation, &collection, &specification, None)?;
        self.build(operation, step, name_of(&specification))
    }

    pub(super) fn drop_indexes(
        &self,
        operation: &mut Operation,
        step: &Step<'_, '_>,
        index: Option<Value<'_>>,
    ) -> Result<()> {
        operation.in_unit_of_work(|operation| {
            let Some(mut collection) = self.collection(operation, step)? else { return Ok(()) };
            let name = index.and_then(|index| index.as_str()).unwrap_or("*").to_owned();
            let is_meant = |candidate: &str, is_id: bool| if name == "*" { !is_id } else { candidate == name };
            let names: Vec<String> = collection
                .indexes
                .iter()
                .filter(|index| is_meant(index.name(), index.descriptor.is_id_index()))
                .map(|index| index.name().to_owned())
                .collect();
            for name in names {
                collection = self.remove_index(operation, &collection, &name)?;
            }
            Ok(())
        })
    }

    fn remove_index(
        &self,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        name: &str,
    ) -> Result<Arc<Collection>> {
        match collection.index(name).is_some_and(|index| index.ready) {
            true => self.catalog.drop_index(operation, &self.nobody, collection, name),
            false => self.catalog.remove_index(operation, collection, name),
        }
    }

    // ---- Builds.

    pub(super) fn start_index_build(
        &self,
        operation: &mut Operation,
        step: &Step<'_, '_>,
        build: &IndexBuild<'_>,
    ) -> Result<()> {
        for specification in specifications(build) {
            let Some(collection) = self.collection(operation, step)? else { return Ok(()) };
            if is_new(&collection, &specification)? {
                self.add_index(operation, &collection, &specification, Some(build.build_uuid))?;
            }
        }
        Ok(())
    }

    pub(super) fn commit_index_build(
        &self,
        operation: &mut Operation,
        step: &Step<'_, '_>,
        build: &IndexBuild<'_>,
    ) -> Result<()> {
        self.start_index_build(operation, step, build)?;
        for specification in specifications(build) {
            self.build(operation, step, name_of(&specification))?;
        }
        Ok(())
    }

    pub(super) fn abort_index_build(
        &self,
        operation: &mut Operation,
        step: &Step<'_, '_>,
        build: &IndexBuild<'_>,
    ) -> Result<()> {
        operation.in_unit_of_work(|operation| {
            for specification in specifications(build) {
                let Some(collection) = self.collection(operation, step)? else { return Ok(()) };
                let name = name_of(&specification);
                if collection.index(name).is_some_and(|index| !index.ready) {
                    self.catalog.remove_index(operation, &collection, name)?;
                }
            }
            Ok(())
        })
    }

    fn add_index(
        &self,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        specification: &Doc,
        build: Option<pando_base::Uuid>,
    ) -> Result<()> {
        operation.in_unit_of_work(|operation| {
            self.catalog.start_index(operation, collection, specification, build).map(|_| ())
        })
    }

    /// Fills an index that is not ready with the keys of all documents, and makes it ready.
    fn build(&self, operation: &mut Operation, step: &Step<'_, '_>, name: &str) -> Result<()> {
        let Some(collection) = self.collection(operation, step)? else { return Ok(()) };
        let Some(index) = collection.index(name).filter(|index| !index.ready).cloned() else { return Ok(()) };
        operation.in_unit_of_work(|operation| {
            Ok(operation.recovery_unit.writer()?.truncate(index.data.table(), &[], None)?)
        })?;
        let mut after: Option<RecordId> = None;
        loop {
            let documents = self.next_documents(operation, &collection, after.as_ref())?;
            let Some((last, _)) = documents.last() else { break };
            after = Some(last.clone());
            operation.in_unit_of_work(|operation| self.write_keys(operation, &collection, &index, &documents))?;
        }
        operation.in_unit_of_work(|operation| {
            let Some(collection) = self.collection(operation, step)? else { return Ok(()) };
            self.catalog.set_index_ready(operation, &collection, name).map(|_| ())
        })
    }

    fn next_documents(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        after: Option<&RecordId>,
    ) -> Result<Vec<(RecordId, Doc)>> {
        let mut documents = Vec::new();
        let mut cursor = collection.records.cursor(Direction::Forward);
        let unit = &mut operation.recovery_unit;
        let mut record = match after {
            Some(after) => cursor.seek(unit, after)?,
            None => cursor.next(unit)?,
        };
        while let Some(found) = record.filter(|_| documents.len() < BUILD_BATCH_DOCUMENTS) {
            if Some(&found.id) != after {
                documents.push((found.id.clone(), Doc::trusted(found.value.to_vec())));
            }
            record = cursor.next(unit)?;
        }
        drop(cursor);
        unit.abandon_snapshot()?;
        Ok(documents)
    }

    fn write_keys(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        index: &pando_catalog::Index,
        documents: &[(RecordId, Doc)],
    ) -> Result<()> {
        let indexing = self.write_path.indexing();
        let access = indexing.access(index)?;
        let mut keys = KeySet::new();
        for (record_id, document) in documents {
            access.keys(document.view(), &mut keys)?;
            if keys.is_multikey() && !index.multikey.covers(keys.multikey_paths()) {
                indexing.hooks().set_multikey(operation, collection, index, keys.multikey_paths())?;
            }
            indexing.insert_keys(operation, collection, index, keys.iter(), record_id, &mut Duplicates::Allowed)?;
        }
        Ok(())
    }
}

/// The specifications of a build's indexes.
fn specifications(build: &IndexBuild<'_>) -> Vec<Doc> {
    build.indexes.values().filter_map(|index| index.as_document()).map(DocRef::to_doc).collect()
}

/// The fields of `createIndexes` that are the specification.
fn specification(object: DocRef<'_>) -> Doc {
    let mut builder = DocBuilder::with_capacity(object.size_bytes());
    object.raw_elements().skip(1).for_each(|element| builder.append_raw(element));
    builder.finish()
}

fn name_of(specification: &Doc) -> &str {
    specification.get("name").and_then(|name| name.as_str()).unwrap_or("")
}

fn is_new(collection: &Collection, specification: &Doc) -> Result<bool> {
    Ok(matches!(compare_with_existing(collection, specification.view())?, SpecFit::New))
}

fn is_empty(operation: &mut Operation, collection: &Collection) -> Result<bool> {
    let mut cursor = collection.records.cursor(Direction::Forward);
    let found = cursor.next(&mut operation.recovery_unit)?.is_some();
    drop(cursor);
    operation.recovery_unit.abandon_snapshot()?;
    Ok(!found)
}
