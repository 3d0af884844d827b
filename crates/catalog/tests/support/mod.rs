//! Stores with a catalog, on the oracle and on the durable engine over a simulated disk, and an observer that gives every
//! change the time that an oplog would.

#![allow(dead_code, clippy::unwrap_used, reason = "each test uses some of it, and fails where it does")]

use pando_base::{Namespace, Result, Timestamp};
use pando_catalog::{Catalog, Collection, CollectionOptions, LoadReport, Observers, SystemViewsWriter};
use pando_doc::{Doc, DocRef, doc};
use pando_engine::{DurableEngine, EngineOptions};
use pando_engine_model::{ModelDisk, ModelEngine};
use pando_env::Env;
use pando_env::simulated::Simulation;
use pando_operation::{Operation, Services};
use pando_oplog::OpObserver;
use pando_oplog::observer::{
    CollMod, CreateCollection, CreateIndex, DropCollection, DropIndex, InternalMessage, RenameCollection,
};
use pando_storage::{CheckpointKind, Direction, Engine, ReadSource};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Whether there is an oplog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    StandAlone,
    ReplicaSet,
}

/// What outlives an engine.
pub enum Store {
    Model(Arc<ModelDisk>, Simulation, Mode),
    Simulated(Simulation, Mode),
}

/// One store of each kind.
pub fn stores(mode: Mode) -> Vec<Store> {
    vec![Store::model(mode), Store::simulated(mode, 1)]
}

impl Store {
    pub fn model(mode: Mode) -> Store {
        Store::Model(ModelDisk::new(), Simulation::new(7), mode)
    }

    pub fn simulated(mode: Mode, seed: u64) -> Store {
        Store::Simulated(Simulation::new(seed), mode)
    }

    /// Opens the store with its catalog.
    pub fn open(&self) -> Node {
        let (env, engine, mode): (Env, Arc<dyn Engine>, Mode) = match self {
            Store::Model(disk, simulation, mode) => {
                let model_mode = match mode {
                    Mode::StandAlone => pando_engine_model::Mode::StandAlone,
                    Mode::ReplicaSet => pando_engine_model::Mode::ReplicaSet,
                };
                (simulation.env(), ModelEngine::open(disk, model_mode).unwrap(), *mode)
            }
            Store::Simulated(simulation, mode) => {
                let engine_mode = match mode {
                    Mode::StandAlone => pando_engine::Mode::StandAlone,
                    Mode::ReplicaSet => pando_engine::Mode::ReplicaSet,
                };
                let (env, options) = (simulation.env(), EngineOptions::stepped(engine_mode));
                let engine = DurableEngine::open(&env, Path::new("/data"), options).unwrap();
                (env, engine, *mode)
            }
        };
        let (catalog, report) = Catalog::open(&env, &engine).unwrap();
        let timestamps = engine.timestamps();
        let last = engine.oplog().and_then(|oplog| oplog.last()).unwrap_or_default().max(timestamps.recovery);
        let clock = Arc::new(Mutex::new(last.0.max(10)));
        if mode == Mode::ReplicaSet && timestamps.initial_data.is_none() {
            engine.set_initial_data(Timestamp(1));
        }
        let services = Services::plain(&env, engine);
        Node { services, catalog, report, oplog: TestOplog { mode, clock }, mode }
    }

    /// Cuts the power. Every handle of the node must be gone.
    pub fn crash(&self) {
        match self {
            Store::Model(disk, ..) => disk.crash(),
            Store::Simulated(simulation, _) => {
                simulation.crash();
            }
        }
    }
}

/// An open store.
pub struct Node {
    pub services: Services,
    pub catalog: Arc<Catalog>,
    pub report: LoadReport,
    pub oplog: TestOplog,
    pub mode: Mode,
}

/// Writes an oplog entry for every change, as a primary does.
#[derive(Clone)]
pub struct TestOplog {
    mode: Mode,
    clock: Arc<Mutex<u64>>,
}

impl TestOplog {
    /// Gives the operation's unit its time and an entry.
    pub fn write(&self, operation: &mut Operation, namespace: &Namespace) -> Result<()> {
        if self.mode == Mode::StandAlone || !namespace.is_replicated() {
            return Ok(());
        }
        let unit = &mut operation.recovery_unit;
        unit.preallocate_snapshot()?;
        // Under one lock, so that no later slot is filled before this one is known.
        let slot = {
            let mut clock = self.clock.lock().unwrap();
            *clock += 1;
            unit.engine().reserve_slot(Timestamp(*clock))?
        };
        let time = slot.timestamp();
        unit.hold_slot(slot)?;
        unit.set_timestamp(time)?;
        unit.writer()?.append_oplog(time, b"entry")?;
        Ok(())
    }

    pub fn now(&self) -> Timestamp {
        Timestamp(*self.clock.lock().unwrap())
    }
}

impl OpObserver<Operation> for TestOplog {
    fn on_create_collection(&self, operation: &mut Operation, create: &CreateCollection<'_>) -> Result<()> {
        self.write(operation, create.collection.namespace)
    }

    fn on_drop_collection(&self, operation: &mut Operation, drop: &DropCollection<'_>) -> Result<()> {
        self.write(operation, drop.collection.namespace)
    }

    fn on_rename_collection(&self, operation: &mut Operation, rename: &RenameCollection<'_>) -> Result<()> {
        self.write(operation, rename.to)
    }

    fn on_coll_mod(&self, operation: &mut Operation, change: &CollMod<'_>) -> Result<()> {
        self.write(operation, change.collection.namespace)
    }

    fn on_create_index(&self, operation: &mut Operation, index: &CreateIndex<'_>) -> Result<()> {
        self.write(operation, index.collection.namespace)
    }

    fn on_drop_index(&self, operation: &mut Operation, index: &DropIndex<'_>) -> Result<()> {
        self.write(operation, index.collection.namespace)
    }

    fn on_internal_message(&self, operation: &mut Operation, message: &InternalMessage<'_>) -> Result<()> {
        message.namespace.map_or(Ok(()), |namespace| self.write(operation, namespace))
    }
}

pub fn name(text: &str) -> Namespace {
    Namespace::parse(text).unwrap()
}

impl Node {
    pub fn operation(&self) -> Operation {
        self.services.internal_operation("test")
    }

    pub fn observers(&self) -> &Observers {
        &self.oplog
    }

    /// Runs a change in a unit of work of its own.
    pub fn change<T>(&self, body: impl FnOnce(&mut Operation) -> Result<T>) -> Result<T> {
        self.operation().in_unit_of_work(body)
    }

    pub fn create(&self, namespace: &str) -> Arc<Collection> {
        self.create_with(namespace, CollectionOptions::default())
    }

    pub fn create_with(&self, namespace: &str, options: CollectionOptions) -> Arc<Collection> {
        self.try_create(namespace, options).unwrap()
    }

    pub fn try_create(&self, namespace: &str, options: CollectionOptions) -> Result<Arc<Collection>> {
        self.change(|operation| self.catalog.create_collection(operation, &self.oplog, &name(namespace), options))
    }

    pub fn drop_collection(&self, namespace: &str) {
        self.change(|operation| self.catalog.drop_collection(operation, &self.oplog, &name(namespace))).unwrap();
    }

    pub fn rename(&self, from: &str, to: &str) {
        let options = pando_catalog::RenameOptions { drop_target: true, ..Default::default() };
        self.change(|operation| {
            self.catalog.rename_collection(operation, &self.oplog, &name(from), &name(to), options)
        })
        .unwrap();
    }

    /// Adds an index to an empty collection.
    pub fn add_index(&self, namespace: &str, specification: &Doc) -> Arc<Collection> {
        self.change(|operation| {
            let collection = self.catalog.collection_for_ddl(operation, &name(namespace))?;
            let prepared = self.catalog.prepare_index(&collection, specification.view())?;
            let pando_catalog::PreparedIndex::New(completed) = prepared else { panic!("{prepared:?}") };
            self.catalog.create_index_on_empty(operation, &self.oplog, &collection, &completed)
        })
        .unwrap()
    }

    /// Puts a record into a collection, at a time of its own.
    pub fn insert(&self, namespace: &str, value: &str) {
        self.change(|operation| {
            let collection = self.catalog.collection_for_ddl(operation, &name(namespace))?;
            collection.records.insert(&mut operation.recovery_unit, value.as_bytes())?;
            self.oplog.write(operation, &collection.namespace)
        })
        .unwrap();
    }

    /// The collection of a name as of a time, with its records.
    pub fn read_at(&self, namespace: &str, at: Timestamp) -> Option<(Arc<Collection>, Vec<String>)> {
        let mut operation = self.operation();
        operation.recovery_unit.set_read_source(ReadSource::Provided(at)).unwrap();
        self.read_with(&mut operation, namespace)
    }

    /// The collection of a name now, with its records.
    pub fn read(&self, namespace: &str) -> Option<(Arc<Collection>, Vec<String>)> {
        self.read_with(&mut self.operation(), namespace)
    }

    pub fn read_with(&self, operation: &mut Operation, namespace: &str) -> Option<(Arc<Collection>, Vec<String>)> {
        let mut view = self.catalog.establish(operation).unwrap();
        let collection = view.collection(&self.catalog, operation, &name(namespace)).unwrap()?;
        let records = records(operation, &collection);
        Some((collection, records))
    }

    /// Moves stable and oldest to now, takes a checkpoint and reaps.
    pub fn settle(&self) -> usize {
        let now = self.oplog.now();
        let engine = &self.services.engine;
        if self.mode == Mode::ReplicaSet {
            engine.set_stable(now).unwrap();
            engine.set_oldest(now, false).unwrap();
        }
        engine.checkpoint(CheckpointKind::Automatic).unwrap();
        self.catalog.reap().unwrap()
    }

    /// Moves stable to now and takes a checkpoint.
    pub fn checkpoint(&self) {
        if self.mode == Mode::ReplicaSet {
            self.services.engine.set_stable(self.oplog.now()).unwrap();
        }
        self.services.engine.checkpoint(CheckpointKind::Automatic).unwrap();
    }

    pub fn has_table(&self, ident: &str) -> bool {
        self.services.engine.idents().iter().any(|known| known == ident)
    }
}

pub fn records(operation: &mut Operation, collection: &Collection) -> Vec<String> {
    let mut cursor = collection.records.cursor(Direction::Forward);
    let mut found = Vec::new();
    while let Some(record) = cursor.next(&mut operation.recovery_unit).unwrap() {
        found.push(String::from_utf8_lossy(record.value).into_owned());
    }
    found
}

/// Writes documents of `system.views` without an index: enough for the catalog, which scans them.
pub struct PlainWriter<'a>(pub &'a TestOplog);

impl SystemViewsWriter for PlainWriter<'_> {
    fn put(&self, operation: &mut Operation, system_views: &Arc<Collection>, document: DocRef<'_>) -> Result<()> {
        let id = document.get("_id").and_then(|id| id.as_str()).unwrap().to_owned();
        self.remove(operation, system_views, &id)?;
        system_views.records.insert(&mut operation.recovery_unit, document.bytes())?;
        self.0.write(operation, &system_views.namespace)
    }

    fn remove(&self, operation: &mut Operation, system_views: &Arc<Collection>, id: &str) -> Result<()> {
        let mut cursor = system_views.records.cursor(Direction::Forward);
        let mut found = None;
        while let Some(record) = cursor.next(&mut operation.recovery_unit)? {
            let document = DocRef::parse(record.value)?;
            if document.get("_id").and_then(|found| found.as_str()) == Some(id) {
                found = Some(record.id);
            }
        }
        if let Some(found) = found {
            system_views.records.delete(&mut operation.recovery_unit, &found)?;
            self.0.write(operation, &system_views.namespace)?;
        }
        Ok(())
    }
}

/// The specification of an index on one field.
pub fn index_on(field: &str) -> Doc {
    doc! { "key": { (field): 1 }, "name": (format!("{field}_1")) }
}
