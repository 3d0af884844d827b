//! A collection with indexes, made by hand, and everything that its write path needs.

use crate::*;
use bstr::BStr;
use pando_base::{Counter, Namespace, RecordId, Result, Timestamp, Uuid};
use pando_catalog::{Collection, CollectionOptions, Index, IndexDescriptor, MultikeyComponents, MultikeyState};
use pando_doc::{Collator, Doc, DocRef, StringComparator, Value, compare, doc};
use pando_engine::{DurableEngine, EngineOptions};
use pando_engine_model::{ModelDisk, ModelEngine};
use pando_env::Env;
use pando_env::simulated::Simulation;
use pando_index::{DocumentFilter, IndexHooks, IndexInterceptor, Indexing, SharedCollator};
use pando_operation::{Operation, Services};
use pando_oplog::observer::{Delete, Inserts, Update};
use pando_oplog::{ObserverRegistry, OpObserver};
use pando_storage::{Engine, RecordIdKind, RecordStore, SortedData, TableOptions};
use parking_lot::Mutex;
use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Which engines a test runs on.
pub(super) enum Mode {
    StandAlone,
    ReplicaSet,
}

/// A node with one collection.
pub(super) struct Fixture {
    pub(super) services: Services,
    pub(super) collection: Collection,
    pub(super) write_path: WritePath,
    pub(super) observer: Arc<Recorder>,
    pub(super) hooks: Arc<Hooks>,
    _simulation: Simulation,
}

/// Runs the test on each engine.
pub(super) fn on_each_engine(mode: &Mode, test: impl Fn(&dyn Fn() -> (Env, Simulation, Arc<dyn Engine>))) {
    test(&|| {
        let simulation = Simulation::new(1);
        let mode = match mode {
            Mode::StandAlone => pando_engine_model::Mode::StandAlone,
            Mode::ReplicaSet => pando_engine_model::Mode::ReplicaSet,
        };
        (simulation.env(), simulation, ModelEngine::open(&ModelDisk::new(), mode).unwrap())
    });
    test(&|| {
        let simulation = Simulation::new(1);
        let env = simulation.env();
        let mode = match mode {
            Mode::StandAlone => pando_engine::Mode::StandAlone,
            Mode::ReplicaSet => pando_engine::Mode::ReplicaSet,
        };
        let engine = DurableEngine::open(&env, Path::new("/data"), EngineOptions::stepped(mode)).unwrap();
        (env, simulation, engine)
    });
}

impl Fixture {
    pub(super) fn new(
        make: &dyn Fn() -> (Env, Simulation, Arc<dyn Engine>),
        options: CollectionOptions,
        specifications: &[Doc],
    ) -> Fixture {
        let (env, simulation, engine) = make();
        let services = Services::plain(&env, Arc::clone(&engine));
        let collection = collection(&engine, options, specifications);
        let (observer, hooks) = (Arc::new(Recorder::default()), Arc::new(Hooks::default()));
        let mut observers = ObserverRegistry::new();
        observers.add(Arc::clone(&observer) as Arc<dyn OpObserver<Operation>>);
        let indexing = Arc::new(Indexing::new(Arc::clone(&hooks) as Arc<dyn IndexHooks>));
        let write_path = WritePath::new(Arc::new(observers), indexing, Arc::new(NoBadField));
        Fixture { services, collection, write_path, observer, hooks, _simulation: simulation }
    }

    /// With an index on `_id` and these.
    pub(super) fn with_indexes(
        make: &dyn Fn() -> (Env, Simulation, Arc<dyn Engine>),
        specifications: &[Doc],
    ) -> Fixture {
        Fixture::new(make, CollectionOptions::default(), specifications)
    }

    pub(super) fn operation(&self) -> Operation {
        self.services.internal_operation("test")
    }

    pub(super) fn insert(&self, operation: &mut Operation, document: &Doc) -> Result<RecordId> {
        let statements = [InsertStatement::new(document.view())];
        let ids =
            self.write_path.insert_documents(operation, &self.collection, &statements, InsertOptions::default())?;
        Ok(ids[0].clone())
    }

    /// Replaces the document that has the new one's `_id`; false if there is none.
    pub(super) fn update(&self, operation: &mut Operation, new: &Doc) -> Result<bool> {
        let Some((record_id, old)) = self.find(operation, new.get("_id").unwrap())? else { return Ok(false) };
        let arguments = UpdateArguments::new(record_id, old.view(), new.view(), new.view());
        self.write_path.update_document(operation, &self.collection, &arguments)?;
        Ok(true)
    }

    pub(super) fn delete(&self, operation: &mut Operation, id: Value<'_>) -> Result<bool> {
        let Some((record_id, document)) = self.find(operation, id)? else { return Ok(false) };
        let arguments = DeleteArguments::new(record_id, document.view());
        self.write_path.delete_document(operation, &self.collection, &arguments)?;
        Ok(true)
    }

    pub(super) fn find(&self, operation: &mut Operation, id: Value<'_>) -> Result<Option<(RecordId, Doc)>> {
        self.write_path.find_by_id(operation, &self.collection, id)
    }

    /// The documents in order of their record ids, as text.
    pub(super) fn documents(&self) -> Vec<String> {
        let mut operation = self.operation();
        let mut cursor = self.collection.records.cursor(pando_storage::Direction::Forward);
        let mut documents = Vec::new();
        while let Some(record) = cursor.next(&mut operation.recovery_unit).unwrap() {
            documents.push(DocRef::trusted(record.value).to_string());
        }
        documents
    }

    pub(super) fn entry_count(&self, index: &str) -> usize {
        let mut operation = self.operation();
        let mut cursor = self.collection.index(index).unwrap().data.cursor(pando_storage::Direction::Forward);
        std::iter::from_fn(|| cursor.next(&mut operation.recovery_unit).unwrap().map(|_| ())).count()
    }

    /// Every index says what the documents say.
    pub(super) fn check(&self) {
        let faults = check_indexes(&mut self.operation(), self.write_path.indexing(), &self.collection).unwrap();
        assert_eq!(faults, Vec::<String>::new());
    }
}

pub(super) fn specification(key: Doc, name: &str) -> Doc {
    doc! { "v": 2_i32, "key": key.view(), "name": name }
}

pub(super) fn unique(key: Doc, name: &str) -> Doc {
    doc! { "v": 2_i32, "key": key.view(), "name": name, "unique": true }
}

static TABLES: AtomicU64 = AtomicU64::new(0);

fn collection(engine: &Arc<dyn Engine>, options: CollectionOptions, specifications: &[Doc]) -> Collection {
    let number = TABLES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let kind = if options.is_clustered() { RecordIdKind::Bytes } else { RecordIdKind::Long };
    let table_options = TableOptions { replicated: true, ..TableOptions::default() };
    let table = engine.create_table(&format!("collection-{number}"), &table_options).unwrap();
    let records = Arc::new(RecordStore::new(Arc::clone(engine), table, kind));
    let id_index = (!options.is_clustered()).then(|| specification(doc! { "_id": 1_i32 }, "_id_"));
    let specifications = id_index.iter().chain(specifications);
    let indexes = specifications
        .enumerate()
        .map(|(place, specification)| Arc::new(index(engine, &format!("index-{number}-{place}"), specification, kind)));
    Collection {
        namespace: Namespace::parse("db.c").unwrap(),
        uuid: Uuid::from_random([7; 16]),
        options: Arc::new(options),
        catalog_id: RecordId::Long(1),
        records,
        indexes: indexes.collect(),
        minimum_valid_snapshot: Timestamp::NONE,
        timeseries_mixed_schema: None,
    }
}

fn index(engine: &Arc<dyn Engine>, ident: &str, specification: &Doc, kind: RecordIdKind) -> Index {
    let descriptor = Arc::new(IndexDescriptor::parse(specification.view()).unwrap());
    let table = engine.create_table(ident, &Index::table_options(&descriptor, kind, true)).unwrap();
    let multikey = Arc::new(MultikeyState::new(descriptor.tracked_field_count()));
    let data = Arc::new(SortedData::new(Arc::clone(engine), table, Index::format(&descriptor), kind));
    Index { descriptor, data, ready: true, build_uuid: None, multikey, usage: Arc::new(Counter::new()) }
}

/// Writes down who became multikey; the state grows at commit.
#[derive(Default)]
pub(super) struct Hooks {
    pub(super) multikey: Mutex<Vec<String>>,
    pub(super) interceptor: Mutex<Option<Arc<dyn IndexInterceptor>>>,
}

impl IndexHooks for Hooks {
    fn filter(
        &self,
        _descriptor: &IndexDescriptor,
        expression: DocRef<'_>,
        _collator: Option<&SharedCollator>,
    ) -> Result<Arc<dyn DocumentFilter>> {
        Ok(Arc::new(Equals(expression.to_doc())))
    }

    fn collator(&self, _collation: DocRef<'_>) -> Result<SharedCollator> {
        Ok(Arc::new(CaseBlind))
    }

    fn set_multikey(
        &self,
        operation: &mut Operation,
        _collection: &Collection,
        index: &Index,
        paths: &[MultikeyComponents],
    ) -> Result<()> {
        let (state, paths) = (Arc::clone(&index.multikey), paths.to_vec());
        let parts: Vec<Vec<usize>> = paths.iter().map(|path| path.iter().collect()).collect();
        self.multikey.lock().push(format!("{} {parts:?}", index.name()));
        Ok(operation.recovery_unit.on_commit(move |_| state.raise(&paths))?)
    }

    fn interceptor(&self, _index: &Index) -> Option<Arc<dyn IndexInterceptor>> {
        self.interceptor.lock().clone()
    }
}

/// Lets in documents that have these values.
struct Equals(Doc);

impl DocumentFilter for Equals {
    fn matches(&self, document: DocRef<'_>) -> bool {
        let has = |name: &BStr, value| document.get(name).is_some_and(|found| compare(found, value) == Ordering::Equal);
        self.0.elements().all(|wanted| has(wanted.name, wanted.value))
    }
}

/// Does not care about case.
struct CaseBlind;

impl StringComparator for CaseBlind {
    fn compare(&self, left: &BStr, right: &BStr) -> Ordering {
        left.to_ascii_lowercase().cmp(&right.to_ascii_lowercase())
    }

    fn equality_key(&self, text: &BStr) -> Vec<u8> {
        text.to_ascii_lowercase()
    }
}

impl Collator for CaseBlind {
    fn sort_key(&self, text: &BStr) -> Vec<u8> {
        text.to_ascii_lowercase()
    }

    fn specification(&self) -> &Doc {
        static NONE: std::sync::LazyLock<Doc> = std::sync::LazyLock::new(Doc::new);
        &NONE
    }
}

/// Refuses documents with a field "bad".
struct NoBadField;

impl DocumentValidator for NoBadField {
    fn validate(&self, _operation: &Operation, _collection: &Collection, document: DocRef<'_>) -> Result<()> {
        match document.get("bad") {
            None => Ok(()),
            Some(_) => Err(pando_base::Error::new(
                pando_base::ErrorCode::DocumentValidationFailure,
                "Document failed validation",
            )),
        }
    }
}

/// Keeps what it is told, whether or not it commits, and can refuse.
#[derive(Default)]
pub(super) struct Recorder {
    pub(super) told: Mutex<Vec<String>>,
    pub(super) refuses: AtomicBool,
    /// What each delete's own timestamp is, if deletes have one.
    pub(super) delete_timestamp: AtomicU64,
}

impl Recorder {
    fn tell(&self, text: String) -> Result<()> {
        self.told.lock().push(text);
        if self.refuses.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(pando_base::Error::new(pando_base::ErrorCode::FailPointEnabled, "refused"));
        }
        Ok(())
    }

    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.told.lock())
    }
}

impl OpObserver<Operation> for Recorder {
    fn on_inserts(&self, operation: &mut Operation, inserts: &Inserts<'_>) -> Result<()> {
        assert!(operation.recovery_unit.in_unit_of_work());
        assert_eq!(inserts.collection.namespace.to_string(), "db.c");
        let rows = inserts
            .inserts
            .iter()
            .map(|insert| format!("{} {} {:?}", insert.document_key, insert.document, insert.statement_ids.as_slice()));
        self.tell(format!("i {}", rows.collect::<Vec<_>>().join(" | ")))
    }

    fn on_update(&self, _operation: &mut Operation, update: &Update<'_>) -> Result<()> {
        self.tell(format!("u {} {} -> {}", update.document_key, update.pre_image, update.post_image))
    }

    fn about_to_delete(
        &self,
        _operation: &mut Operation,
        _collection: &pando_oplog::observer::Collection<'_>,
        document: DocRef<'_>,
    ) -> Result<()> {
        self.tell(format!("about {document}"))
    }

    fn on_delete(&self, operation: &mut Operation, delete: &Delete<'_>) -> Result<()> {
        let timestamp = self.delete_timestamp.load(std::sync::atomic::Ordering::Relaxed);
        if timestamp != 0 {
            operation.recovery_unit.set_timestamp(Timestamp(timestamp))?;
        }
        self.tell(format!("d {} {}", delete.document_key, delete.pre_image))
    }

    fn on_empty_capped(
        &self,
        _operation: &mut Operation,
        collection: &pando_oplog::observer::Collection<'_>,
    ) -> Result<()> {
        self.tell(format!("empty {}", collection.namespace))
    }
}
