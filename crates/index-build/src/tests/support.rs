//! A collection in a catalog, its writers, and a build that is driven by hand.

use crate::{BatchLimits, Builder, Phase, ResumeInfo};
use pando_base::{Namespace, Result, Uuid};
use pando_catalog::{
    Catalog, Collection, CollectionOptions, Index, IndexDescriptor, MultikeyComponents, Observers, PreparedIndex,
};
use pando_collection::{
    AcceptAll, DeleteArguments, InsertOptions, InsertStatement, UpdateArguments, WritePath, check_indexes,
};
use pando_doc::{Doc, DocRef, Value};
use pando_engine_model::{Mode, ModelDisk, ModelEngine};
use pando_env::Env;
use pando_env::simulated::Simulation;
use pando_index::{DocumentFilter, IndexHooks, IndexInterceptor, Indexing, Interceptors, SharedCollator};
use pando_operation::{Operation, Services};
use pando_oplog::ObserverRegistry;
use pando_sorter::SpillDirectory;
use pando_storage::Engine;
use std::sync::Arc;

/// So little memory that every few documents are a range of their own.
const MEMORY_BYTES: u64 = 600;

/// Small batches, so that writers come in between often.
pub(super) const LIMITS: BatchLimits = BatchLimits { count_max: 3, bytes_max: 1000 };

pub(super) struct World {
    _simulation: Simulation,
    pub(super) services: Services,
    pub(super) engine: Arc<dyn Engine>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) write_path: Arc<WritePath>,
    interceptors: Arc<Interceptors>,
    directory: Arc<SpillDirectory>,
    pub(super) namespace: Namespace,
}

struct Hooks {
    catalog: Arc<Catalog>,
    interceptors: Arc<Interceptors>,
}

impl IndexHooks for Hooks {
    fn filter(
        &self,
        _descriptor: &IndexDescriptor,
        _expression: DocRef<'_>,
        _collator: Option<&SharedCollator>,
    ) -> Result<Arc<dyn DocumentFilter>> {
        unreachable!("no index here is partial")
    }

    fn collator(&self, _collation: DocRef<'_>) -> Result<SharedCollator> {
        unreachable!("no index here has a collation")
    }

    fn set_multikey(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        index: &Index,
        paths: &[MultikeyComponents],
    ) -> Result<()> {
        self.catalog.set_multikey(operation, &ObserverRegistry::new(), collection, index, paths)
    }

    fn interceptor(&self, index: &Index) -> Option<Arc<dyn IndexInterceptor>> {
        self.interceptors.of(index)
    }
}

impl World {
    pub(super) fn new() -> World {
        let simulation = Simulation::new(7);
        let env: Env = simulation.env();
        let engine: Arc<dyn Engine> = ModelEngine::open(&ModelDisk::new(), Mode::StandAlone).unwrap();
        let services = Services::plain(&env, Arc::clone(&engine));
        let (catalog, _) = Catalog::open(&env, &engine).unwrap();
        let interceptors = Arc::new(Interceptors::default());
        let hooks = Hooks { catalog: Arc::clone(&catalog), interceptors: Arc::clone(&interceptors) };
        let observers: Arc<Observers> = Arc::new(ObserverRegistry::new());
        let write_path =
            Arc::new(WritePath::new(observers, Arc::new(Indexing::new(Arc::new(hooks))), Arc::new(AcceptAll)));
        let namespace = Namespace::of("d", "c").unwrap();
        let mut operation = services.internal_operation("test");
        operation
            .in_unit_of_work(|operation| {
                let options = CollectionOptions::default();
                catalog.create_collection(operation, &ObserverRegistry::new(), &namespace, options).map(|_| ())
            })
            .unwrap();
        drop(operation);
        let directory = Arc::new(SpillDirectory::new(Arc::clone(env.disk()), "/data/_tmp"));
        World { _simulation: simulation, services, engine, catalog, write_path, interceptors, directory, namespace }
    }

    pub(super) fn operation(&self) -> Operation {
        self.services.internal_operation("test")
    }

    pub(super) fn collection(&self) -> Arc<Collection> {
        Arc::clone(self.catalog.latest().collection(&self.namespace).unwrap())
    }

    pub(super) fn insert(&self, document: &Doc) -> Result<()> {
        let statements = [InsertStatement::new(document.view())];
        let (mut operation, collection) = (self.operation(), self.collection());
        let options = InsertOptions::default();
        self.write_path.insert_documents(&mut operation, &collection, &statements, options).map(|_| ())
    }

    /// Replaces the document with the new one's `_id`, if there is one.
    pub(super) fn update(&self, new: &Doc) -> Result<()> {
        let (mut operation, collection) = (self.operation(), self.collection());
        let id = new.get("_id").unwrap();
        let Some((record_id, old)) = self.write_path.find_by_id(&mut operation, &collection, id)? else {
            return Ok(());
        };
        let arguments = UpdateArguments::new(record_id, old.view(), new.view(), new.view());
        self.write_path.update_document(&mut operation, &collection, &arguments).map(|_| ())
    }

    pub(super) fn delete(&self, id: i32) -> Result<()> {
        let (mut operation, collection) = (self.operation(), self.collection());
        let found = self.write_path.find_by_id(&mut operation, &collection, Value::Int32(id))?;
        let Some((record_id, document)) = found else { return Ok(()) };
        let arguments = DeleteArguments::new(record_id, document.view());
        self.write_path.delete_document(&mut operation, &collection, &arguments).map(|_| ())
    }

    pub(super) fn begin(&self, specifications: &[Doc]) -> Driven<'_> {
        let mut operation = self.operation();
        let build_uuid = Uuid::from_random([3; 16]);
        let mut collection = self.collection();
        operation
            .in_unit_of_work(|operation| {
                for specification in specifications {
                    let prepared = self.catalog.prepare_index(&collection, specification.view())?;
                    let PreparedIndex::New(completed) = prepared else { panic!("{specification} is new") };
                    collection = self.catalog.start_index(operation, &collection, &completed, Some(build_uuid))?;
                }
                Ok(())
            })
            .unwrap();
        let collection = self.collection();
        let indexes: Vec<Arc<Index>> = collection.indexes.iter().filter(|index| !index.ready).cloned().collect();
        let sorting = Builder::sorting(MEMORY_BYTES, indexes.len(), Some(&self.directory), 0);
        let intercepted = Some((&self.engine, &*self.catalog));
        let builder = Builder::new(build_uuid, &collection, &indexes, &self.write_path, &sorting, intercepted).unwrap();
        builder.install(&self.interceptors);
        Driven { world: self, builder: Some(builder), operation }
    }

    /// What is wrong with the indexes that are ready.
    pub(super) fn faults(&self) -> Vec<String> {
        check_indexes(&mut self.operation(), self.write_path.indexing(), &self.collection()).unwrap()
    }
}

/// A build that takes one step after the other.
pub(super) struct Driven<'w> {
    world: &'w World,
    builder: Option<Builder>,
    operation: Operation,
}

impl Driven<'_> {
    pub(super) fn phase(&self) -> Phase {
        self.builder.as_ref().unwrap().phase()
    }

    /// Takes a step; true if the pass over the side tables is over, which is when the build could end.
    pub(super) fn step(&mut self) -> Result<bool> {
        let collection = self.world.collection();
        let builder = self.builder.as_mut().unwrap();
        match builder.phase() {
            Phase::Initialized | Phase::CollectionScan => {
                if builder.scan_batch(&mut self.operation, &collection, LIMITS)?.is_none() {
                    builder.end_scan();
                }
                Ok(false)
            }
            Phase::BulkLoad => builder.load_batch(&mut self.operation, LIMITS.count_max).map(|_| false),
            Phase::DrainWrites => Ok(builder.drain_batch(&mut self.operation, &collection, LIMITS)?.is_none()),
        }
    }

    /// What a clean restart does between two steps.
    pub(super) fn put_down_and_take_up(&mut self) {
        let builder = self.builder.take().unwrap();
        let count = builder.indexes.len();
        let info = builder.put_down(&mut self.operation).unwrap();
        let read = ResumeInfo::parse(info.to_doc().view()).unwrap();
        assert_eq!(read, info);
        let world = self.world;
        let sorting = Builder::sorting(MEMORY_BYTES, count, Some(&world.directory), 0);
        let builder = read.open(&world.engine, &world.collection(), &world.write_path, &sorting).unwrap();
        builder.install(&world.interceptors);
        self.builder = Some(builder);
    }

    /// The end, when nobody writes any more.
    pub(super) fn commit(mut self) -> Result<()> {
        while self.phase() != Phase::DrainWrites {
            self.step()?;
        }
        // A pass may have been under way: what came behind it is found by the next one.
        while !self.step()? {}
        while !self.step()? {}
        let mut builder = self.builder.take().unwrap();
        let (world, collection) = (self.world, self.world.collection());
        let operation = &mut self.operation;
        let checked = builder
            .retry_skipped(operation, &collection)
            .and_then(|()| builder.check_duplicates(operation))
            .and_then(|()| builder.require_drained(operation));
        let outcome = checked.and_then(|()| {
            operation.recovery_unit.abandon_snapshot()?;
            operation.in_unit_of_work(|operation| {
                builder.commit(operation, &world.catalog, &ObserverRegistry::new(), &collection).map(|_| ())
            })
        });
        builder.remove(&world.interceptors).unwrap();
        let leftover = world.engine.idents().into_iter().filter(|ident| ident.starts_with("internal-"));
        assert_eq!(leftover.collect::<Vec<_>>(), Vec::<String>::new());
        outcome
    }
}
