//! Building indexes of a collection that has documents.
//!
//! The seam for builds that let writers in: [`build_indexes`] is all that others see. Here it is done in the plain way.
//! The caller holds the collection in X throughout; readers go on, and do not see the indexes before they are complete.
//!
//! 1. The indexes are entered into the catalog, not ready, with an entry `startIndexBuild`.
//! 2. All documents are read in batches; other operations of the node run in between. Keys are collected in memory, sorted,
//!    and loaded past the log. If they are too many, what was collected is inserted in units of work, and so is the rest.
//! 3. The indexes become ready, with what was learnt of arrays, with an entry `commitIndexBuild`.
//!
//! Anything that fails before the end, a kill included, takes the indexes out again, with an entry `abortIndexBuild`. The keys
//! themselves carry no timestamps: nobody reads an index at a time before its commit.

mod keys;

use super::change::{change, new_uuid};
use super::copy::next_documents;
use crate::{Data, Invocation};
use keys::CollectedKeys;
use pando_base::{Error, ErrorCode, FailPoint, RecordId, Result, Uuid};
use pando_catalog::{Collection, Index, MultikeyComponents};
use pando_doc::{Doc, DocRef};
use pando_index::{Duplicates, IndexAccess, KeySet, duplicate_key_error};
use pando_operation::{Operation, write_conflict_retry};
use pando_oplog::observer::IndexBuildArguments;
use pando_query::executor::yield_now;
use pando_storage::Insertion;
use std::sync::Arc;

/// Keys of one build that are kept in memory.
const MEMORY_BYTES_MAX: usize = 200 * 1024 * 1024;
/// Keys that are inserted in one unit of work, where they are too many for the memory.
const UNIT_KEYS_MAX: usize = 1000;

/// Makes builds behave as if every batch were too much for the memory.
pub static INDEX_BUILD_SPILLS: FailPoint = FailPoint::new("indexBuildSpills");

/// An index that is being built.
struct Building {
    index: Arc<Index>,
    access: Arc<IndexAccess>,
    keys: CollectedKeys,
    /// Keys went into the index before the end; the rest goes the same way.
    is_spilled: bool,
    paths: Vec<MultikeyComponents>,
    is_multikey: bool,
}

/// Builds indexes whose specifications are new and complete. Returns the collection with them, ready.
pub(super) async fn build_indexes(
    invocation: &Invocation,
    data: &Data,
    operation: &mut Operation,
    collection: &Arc<Collection>,
    specifications: &[Doc],
) -> Result<Arc<Collection>> {
    let build = Build { data, build_uuid: new_uuid(invocation), specifications };
    let started = build.start(operation, collection).await?;
    let built = match build.fill(operation, &started).await {
        Ok(filled) => build.commit(operation, &started, &filled).await,
        Err(error) => Err(error),
    };
    match built {
        Ok(collection) => Ok(collection),
        Err(error) => {
            build.abort(operation.beside(), &started, &error).await?;
            let Build { build_uuid, .. } = build;
            let (namespace, uuid) = (&collection.namespace, collection.uuid);
            Err(error.context(format!("Index build failed: {build_uuid}: Collection {namespace} ( {uuid} )")))
        }
    }
}

struct Build<'a> {
    data: &'a Data,
    build_uuid: Uuid,
    specifications: &'a [Doc],
}

impl Build<'_> {
    async fn start(&self, operation: &mut Operation, collection: &Arc<Collection>) -> Result<Arc<Collection>> {
        let catalog = &self.data.catalog;
        change(operation, "createIndexes", &collection.namespace, |operation| {
            let mut next = Arc::clone(collection);
            for specification in self.specifications {
                next = catalog.start_index(operation, &next, specification, Some(self.build_uuid))?;
            }
            let specifications = self.views();
            self.data.observers.on_start_index_build(operation, &self.told(&next, &specifications))?;
            Ok(next)
        })
        .await
    }

    fn views(&self) -> Vec<DocRef<'_>> {
        self.specifications.iter().map(Doc::view).collect()
    }

    fn told<'b>(&self, collection: &'b Collection, specifications: &'b [DocRef<'b>]) -> IndexBuildArguments<'b> {
        IndexBuildArguments {
            collection: collection.observed(),
            build_uuid: self.build_uuid,
            specifications,
            from_migrate: false,
        }
    }

    /// Reads every document and puts its keys into the indexes.
    async fn fill(&self, operation: &mut Operation, collection: &Collection) -> Result<Vec<Building>> {
        let mut indexes = self.begin(collection)?;
        let mut keys = KeySet::new();
        let mut after: Option<RecordId> = None;
        loop {
            operation.context.check()?;
            let documents = next_documents(operation, collection, after.as_ref())?;
            let Some((last, _)) = documents.last() else { break };
            after = Some(last.clone());
            for building in &mut indexes {
                building.collect(&documents, &mut keys)?;
                let is_too_much = building.keys.size_bytes() > MEMORY_BYTES_MAX / self.specifications.len().max(1);
                building.is_spilled |= is_too_much || INDEX_BUILD_SPILLS.should_fail();
                if building.is_spilled {
                    self.insert_collected(operation, collection, building).await?;
                }
            }
            yield_now().await;
        }
        for building in &mut indexes {
            if !building.is_spilled {
                building.load(collection)?;
                yield_now().await;
            }
        }
        Ok(indexes)
    }

    fn begin(&self, collection: &Collection) -> Result<Vec<Building>> {
        let indexes = collection.indexes.iter().filter(|index| index.build_uuid == Some(self.build_uuid));
        indexes
            .map(|index| {
                Ok(Building {
                    index: Arc::clone(index),
                    access: self.data.write_path().indexing().access(index)?,
                    keys: CollectedKeys::default(),
                    is_spilled: false,
                    paths: vec![MultikeyComponents::NONE; index.descriptor.tracked_field_count()],
                    is_multikey: false,
                })
            })
            .collect()
    }

    /// Inserts what was collected, in units of work.
    async fn insert_collected(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        building: &mut Building,
    ) -> Result<()> {
        let indexing = self.data.write_path().indexing();
        let keys = building.keys.take_sorted();
        let is_unique = building.index.descriptor.unique;
        for places in keys.places().chunks(UNIT_KEYS_MAX) {
            write_conflict_retry(operation, "createIndexes", &collection.namespace, |operation| {
                operation.in_unit_of_work(|operation| {
                    for place in places {
                        let (key, record_id) = keys.at(place);
                        let mut duplicates = if is_unique { Duplicates::Refused } else { Duplicates::Allowed };
                        let index = &building.index;
                        indexing.insert_keys(operation, collection, index, [key], record_id, &mut duplicates)?;
                    }
                    Ok(())
                })
            })
            .await?;
            yield_now().await;
        }
        Ok(())
    }

    async fn commit(
        &self,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        filled: &[Building],
    ) -> Result<Arc<Collection>> {
        let (catalog, observers) = (&self.data.catalog, &*self.data.observers);
        change(operation, "createIndexes", &collection.namespace, |operation| {
            let mut next = Arc::clone(collection);
            for building in filled {
                next = catalog.set_index_ready(operation, &next, building.index.name())?;
            }
            for building in filled.iter().filter(|building| building.is_multikey) {
                catalog.set_multikey(operation, observers, &next, &building.index, &building.paths)?;
            }
            let specifications = self.views();
            observers.on_commit_index_build(operation, &self.told(&next, &specifications))?;
            Ok(next)
        })
        .await
    }

    /// Takes the indexes out, by an operation that nobody has told to stop: the build's own may have been.
    async fn abort(&self, mut beside: Operation, collection: &Arc<Collection>, cause: &Error) -> Result<()> {
        beside.context = self.data.services.internal_operation("abort-index-build").context;
        let names: Vec<&str> = self.specifications.iter().filter_map(name_of).collect();
        change(&mut beside, "createIndexes", &collection.namespace, |operation| {
            let mut next = Arc::clone(collection);
            for name in &names {
                next = self.data.catalog.remove_index(operation, &next, name)?;
            }
            let specifications = self.views();
            self.data.observers.on_abort_index_build(operation, &self.told(&next, &specifications), cause)
        })
        .await
    }
}

fn name_of(specification: &Doc) -> Option<&str> {
    specification.get("name").and_then(|name| name.as_str())
}

impl Building {
    /// Takes the keys of some documents.
    fn collect(&mut self, documents: &[(RecordId, Doc)], keys: &mut KeySet) -> Result<()> {
        for (record_id, document) in documents {
            self.access.keys(document.view(), keys)?;
            self.is_multikey |= keys.is_multikey();
            self.paths.iter_mut().zip(keys.multikey_paths()).for_each(|(known, new)| known.union(new));
            self.keys.add(keys, record_id);
        }
        Ok(())
    }

    /// Loads all keys, sorted, at once.
    fn load(&mut self, collection: &Collection) -> Result<()> {
        let keys = self.keys.take_sorted();
        let mut loader = self.index.data.bulk_load(!self.index.descriptor.unique)?;
        for place in keys.places() {
            let (key, record_id) = keys.at(place);
            if let Insertion::Duplicate(_) = loader.add(key.bytes, record_id, key.type_bits)? {
                let ordering = self.access.generator().ordering();
                let error = duplicate_key_error(&collection.namespace, &self.index.descriptor, key, ordering);
                debug_assert_eq!(error.code(), ErrorCode::DuplicateKey);
                return Err(error);
            }
        }
        Ok(loader.finish()?)
    }
}
