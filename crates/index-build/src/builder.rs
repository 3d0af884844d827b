//! The work of one build, in bounded steps.
//!
//! A [`Builder`] neither takes locks nor waits: whoever drives it holds what the step needs and lets others run in between.
//! The order is that of [`Phase`]; each phase has a file of its own (`scan`, `load`, `drain`).

use crate::arrays::LearntArrays;
use crate::interceptor::Interceptor;
use crate::load::Loading;
use pando_base::{Namespace, RecordId, RecordIdKind, Result, Timestamp, Uuid};
use pando_catalog::{Catalog, Collection, Index, Observers};
use pando_collection::WritePath;
use pando_doc::{Doc, DocRef};
use pando_index::{IndexAccess, Interceptors, KeySet};
use pando_operation::Operation;
use pando_oplog::observer::IndexBuildArguments;
use pando_sorter::{Sorter, SorterOptions, SpillDirectory, Spilled};
use pando_storage::Engine;
use parking_lot::Mutex;
use std::sync::Arc;

/// What memory an entry of a sorter takes beside its bytes: two boxes, a number, what the allocator adds.
const ENTRY_OVERHEAD_BYTES: usize = 72;

/// What files of sorters are named by.
const PURPOSE: &str = "index-build";

/// How far a build has come, by MongoDB's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The indexes are in the catalog.
    Initialized,
    /// Documents are read.
    CollectionScan,
    /// Sorted keys go into the indexes.
    BulkLoad,
    /// Side writes go into the indexes.
    DrainWrites,
}

impl Phase {
    const ALL: [Phase; 4] = [Phase::Initialized, Phase::CollectionScan, Phase::BulkLoad, Phase::DrainWrites];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Initialized => "initialized",
            Phase::CollectionScan => "collection scan",
            Phase::BulkLoad => "bulk load",
            Phase::DrainWrites => "drain writes",
        }
    }

    /// The phase of a name.
    pub fn named(name: &str) -> Option<Phase> {
        Phase::ALL.into_iter().find(|phase| phase.name() == name)
    }
}

/// How much one step may do.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    /// Documents, keys or side writes.
    pub count_max: usize,
    /// Their bytes.
    pub bytes_max: usize,
}

/// The type bits of a key, as a sorter has them beside it.
pub(crate) struct TypeBits(pub(crate) Box<[u8]>);

impl Spilled for TypeBits {
    fn memory_bytes(&self) -> usize {
        self.0.len() + ENTRY_OVERHEAD_BYTES
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn read(bytes: &[u8]) -> Option<TypeBits> {
        Some(TypeBits(Box::from(bytes)))
    }
}

/// An index that is being built.
pub(crate) struct Building {
    pub(crate) index: Arc<Index>,
    pub(crate) access: Arc<IndexAccess>,
    /// None if the collection is kept locked: there are no writers then.
    pub(crate) interceptor: Option<Arc<Interceptor>>,
    /// What the scan has found; gone once it is loaded.
    pub(crate) sorter: Option<Sorter<TypeBits>>,
    pub(crate) arrays: LearntArrays,
    pub(crate) keys_loaded: u64,
    /// The entry that goes to the sorter next.
    pub(crate) entry: Vec<u8>,
    /// What was drained since that was told.
    pub(crate) drained: Drained,
}

/// Side writes that went into an index.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drained {
    pub(crate) applied: u64,
    pub(crate) inserted: u64,
    pub(crate) deleted: u64,
}

/// The work of one build.
pub struct Builder {
    pub(crate) build_uuid: Uuid,
    pub(crate) namespace: Namespace,
    pub(crate) collection_uuid: Uuid,
    pub(crate) kind: RecordIdKind,
    pub(crate) write_path: Arc<WritePath>,
    pub(crate) indexes: Vec<Building>,
    pub(crate) phase: Phase,
    /// The last document that was read.
    pub(crate) position: Option<RecordId>,
    pub(crate) documents_read: u64,
    /// No commit that it has seen, in the scan or in side tables, is younger. A rollback that goes back further takes away what is
    /// in the indexes already.
    pub(crate) read_until: Timestamp,
    /// Behind a lock for the compiler's sake: whoever loads has the builder for itself.
    pub(crate) loading: Mutex<Option<Loading>>,
    /// Which index is drained, and up to which row of this pass.
    pub(crate) drained: (usize, Option<Vec<u8>>),
    pub(crate) keys: KeySet,
}

impl Builder {
    /// Begins with the indexes of a build, which the collection has, not ready. With an engine they get interceptors.
    pub fn new(
        build_uuid: Uuid,
        collection: &Collection,
        indexes: &[Arc<Index>],
        write_path: &Arc<WritePath>,
        sorting: &SorterOptions,
        intercepted: Option<(&Arc<dyn Engine>, &Catalog)>,
    ) -> Result<Builder> {
        let kind = collection.records.kind();
        let mut builder = Builder::empty(build_uuid, collection, write_path);
        for index in indexes {
            let interceptor = intercepted.map(|(engine, catalog)| {
                Interceptor::create(engine, catalog, index, kind, collection.is_replicated()).map(Arc::new)
            });
            builder.indexes.push(Building {
                access: write_path.indexing().access(index)?,
                interceptor: interceptor.transpose()?,
                sorter: Some(Sorter::new(sorting.clone())),
                arrays: LearntArrays::new(index.descriptor.tracked_field_count()),
                index: Arc::clone(index),
                keys_loaded: 0,
                entry: Vec::new(),
                drained: Drained::default(),
            });
        }
        Ok(builder)
    }

    pub(crate) fn empty(build_uuid: Uuid, collection: &Collection, write_path: &Arc<WritePath>) -> Builder {
        Builder {
            build_uuid,
            namespace: collection.namespace.clone(),
            collection_uuid: collection.uuid,
            kind: collection.records.kind(),
            write_path: Arc::clone(write_path),
            indexes: Vec::new(),
            phase: Phase::Initialized,
            position: None,
            documents_read: 0,
            read_until: Timestamp::NONE,
            loading: Mutex::default(),
            drained: (0, None),
            keys: KeySet::new(),
        }
    }

    /// How the sorters of a build share its memory.
    pub fn sorting(
        memory_bytes_max: u64,
        index_count: usize,
        directory: Option<&Arc<SpillDirectory>>,
        free_bytes_min: u64,
    ) -> SorterOptions {
        SorterOptions {
            memory_bytes_max: memory_bytes_max / index_count.max(1) as u64,
            limit: None,
            directory: directory.cloned(),
            purpose: PURPOSE,
            free_bytes_min,
            readers_memory_bytes_max: None,
            helper: None,
        }
    }

    /// How far it has come.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// It has seen whatever was committed until now.
    pub(crate) fn note_read(&mut self, engine: &dyn Engine) {
        let newest = engine.oplog().and_then(|oplog| oplog.last());
        self.read_until = self.read_until.max(newest.unwrap_or(Timestamp::NONE));
    }

    /// From now on writers' keys go to the side tables. The caller holds the collection in X.
    pub fn install(&self, interceptors: &Interceptors) {
        for building in &self.indexes {
            if let Some(interceptor) = &building.interceptor {
                interceptors.install(building.index.ident(), Arc::clone(interceptor) as _);
            }
        }
    }

    /// Takes the interceptors away and drops what was temporary. The caller holds the collection in X, or nobody writes.
    pub fn remove(&mut self, interceptors: &Interceptors) -> Result<()> {
        *self.loading.get_mut() = None;
        let mut outcome = Ok(());
        for building in &mut self.indexes {
            building.sorter = None;
            interceptors.remove(building.index.ident());
            if let Some(interceptor) = &building.interceptor {
                outcome = outcome.and(interceptor.drop_tables());
            }
        }
        outcome
    }

    /// The indexes become ready, in the operation's unit of work, with what was learnt of arrays.
    pub fn commit(
        &self,
        operation: &mut Operation,
        catalog: &Arc<Catalog>,
        observers: &Observers,
        collection: &Arc<Collection>,
    ) -> Result<Arc<Collection>> {
        let mut next = Arc::clone(collection);
        for building in &self.indexes {
            next = catalog.set_index_ready(operation, &next, building.index.name())?;
        }
        for building in &self.indexes {
            let mut arrays = building.arrays.clone();
            building.interceptor.iter().for_each(|interceptor| arrays.join(&interceptor.arrays()));
            if arrays.is_multikey {
                catalog.set_multikey(operation, observers, &next, &building.index, &arrays.paths)?;
            }
        }
        let specifications = self.specifications();
        let views: Vec<DocRef<'_>> = specifications.iter().map(Doc::view).collect();
        observers.on_commit_index_build(operation, &self.told(&next, &views))?;
        Ok(next)
    }

    pub(crate) fn specifications(&self) -> Vec<Doc> {
        self.indexes.iter().map(|building| building.index.descriptor.specification.clone()).collect()
    }

    pub(crate) fn told<'b>(&self, collection: &'b Collection, views: &'b [DocRef<'b>]) -> IndexBuildArguments<'b> {
        IndexBuildArguments {
            collection: collection.observed(),
            build_uuid: self.build_uuid,
            specifications: views,
            from_migrate: false,
        }
    }
}
