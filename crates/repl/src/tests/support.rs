//! A node without commands: everything that writes, put together as the server does it, on a simulated machine.

use crate::LocalStore;
use crate::apply::Applier;
use crate::config::HostAndPort;
use crate::node::ReplicationNode;
use crate::oplog_writer::OplogWriter;
use crate::recovery::RecoveryOutcome;
use crate::startup::ReplicationParts;
use crate::topology::Mode;
use pando_base::{Error, Namespace, Result, Timestamp};
use pando_catalog::{
    Catalog, Collection, CollectionOptions, Index, IndexDescriptor, MultikeyComponents, PreparedIndex, RenameOptions,
};
use pando_collection::{
    AcceptAll, DeleteArguments, InsertOptions, InsertStatement, UpdateArguments, WritePath, check_indexes,
};
use pando_doc::{Doc, DocRef, Value};
use pando_engine::{DurableEngine, EngineOptions};
use pando_engine_model::{ModelDisk, ModelEngine};
use pando_env::Env;
use pando_index::{DocumentFilter, IndexHooks, Indexing, SharedCollator};
use pando_operation::{Operation, Services};
use pando_oplog::{ObserverRegistry, OpObserver, StatementIds, update_object};
use pando_session::{History, SessionCatalog, SessionTable, StoredSessions};
use pando_storage::{Direction, Engine};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// What indexes need from above.
struct Hooks {
    catalog: OnceLock<Arc<Catalog>>,
    observers: OnceLock<Arc<dyn OpObserver<Operation>>>,
}

/// `{field: {$exists: true}}`.
struct Exists(String);

impl DocumentFilter for Exists {
    fn matches(&self, document: DocRef<'_>) -> bool {
        document.contains(&self.0)
    }
}

impl IndexHooks for Hooks {
    fn filter(
        &self,
        _descriptor: &IndexDescriptor,
        expression: DocRef<'_>,
        _collator: Option<&SharedCollator>,
    ) -> Result<Arc<dyn DocumentFilter>> {
        let field = expression.first().map(|element| element.name.to_string()).unwrap_or_default();
        Ok(Arc::new(Exists(field)))
    }

    fn collator(&self, _collation: DocRef<'_>) -> Result<SharedCollator> {
        Err(Error::internal("no collations here"))
    }

    fn set_multikey(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        index: &Index,
        paths: &[MultikeyComponents],
    ) -> Result<()> {
        let (catalog, observers) = (self.catalog.get().unwrap(), self.observers.get().unwrap());
        catalog.set_multikey(operation, &**observers, collection, index, paths)
    }
}

fn write_path(catalog: &Arc<Catalog>, observers: Arc<dyn OpObserver<Operation>>) -> Arc<WritePath> {
    let hooks = Hooks { catalog: OnceLock::new(), observers: OnceLock::new() };
    let _ = (hooks.catalog.set(catalog.clone()), hooks.observers.set(observers.clone()));
    Arc::new(WritePath::new(observers, Arc::new(Indexing::new(Arc::new(hooks))), Arc::new(AcceptAll)))
}

/// A node.
pub(super) struct Node {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) services: Services,
    pub(super) catalog: Arc<Catalog>,
    pub(super) node: Arc<ReplicationNode>,
    pub(super) parts: ReplicationParts,
    pub(super) writer: Arc<OplogWriter>,
    pub(super) sessions: SessionCatalog,
    pub(super) table: Arc<dyn SessionTable>,
    /// Without observers.
    pub(super) unobserved: Arc<WritePath>,
    /// With the oplog's writer.
    pub(super) write_path: Arc<WritePath>,
}

pub(super) fn self_initiated() -> Mode {
    Mode::SelfInitiated { set_name: "rs0".into() }
}

/// The engine of the machine's directory.
pub(super) fn engine(env: &Env, mode: pando_engine::Mode) -> pando_storage::Result<Arc<dyn Engine>> {
    let options = EngineOptions { log_segment_bytes: 64 << 10, ..EngineOptions::stepped(mode) };
    Ok(DurableEngine::open(env, Path::new("/data"), options)?)
}

/// An oracle that lasts as long as its disk.
pub(super) fn model_engine(disk: &Arc<ModelDisk>) -> Arc<dyn Engine> {
    ModelEngine::open(disk, pando_engine_model::Mode::ReplicaSet).unwrap()
}

impl Node {
    /// Put together, but not started.
    pub(super) fn new(env: &Env, engine: Arc<dyn Engine>, mode: Mode, port: u16) -> Result<Node> {
        let node = ReplicationNode::new(env, &engine, mode);
        let mut services = Services::plain(env, engine.clone());
        services.replication = node.clone();
        let (catalog, _) = Catalog::open(env, &engine)?;
        let unobserved = write_path(&catalog, Arc::new(ObserverRegistry::new()));
        let table: Arc<dyn SessionTable> = Arc::new(StoredSessions::new(catalog.clone(), unobserved.clone()));
        let sessions = SessionCatalog::new();
        let writer = node.oplog_writer(sessions.clone(), table.clone());
        let observed = write_path(&catalog, writer.clone());
        let history = History::new(engine.clone());
        let parts = ReplicationParts {
            services: services.clone(),
            catalog: catalog.clone(),
            node: node.clone(),
            local: LocalStore::new(catalog.clone(), unobserved.clone()),
            applier: Applier::new(catalog.clone(), unobserved.clone(), table.clone(), history),
            writer: writer.clone(),
            own_host: HostAndPort::new("127.0.0.1", port),
            other_names: vec!["box.example".into()],
        };
        Ok(Node { engine, services, catalog, node, parts, writer, sessions, table, unobserved, write_path: observed })
    }

    /// Started on the machine's directory.
    pub(super) fn start(env: &Env) -> Result<(Node, RecoveryOutcome)> {
        let node = Node::new(env, engine(env, pando_engine::Mode::ReplicaSet)?, self_initiated(), 27017)?;
        let outcome = node.parts.start()?;
        Ok((node, outcome))
    }

    pub(super) fn operation(&self) -> Operation {
        self.services.internal_operation("test")
    }

    // ---- Writing, as commands do.

    /// The collection; made, if it is not there.
    pub(super) fn collection(&self, operation: &mut Operation, name: &str) -> Result<Arc<Collection>> {
        let namespace = Namespace::parse(name)?;
        if let Some(collection) = self.catalog.collection_for_write(operation, &namespace)? {
            return Ok(collection);
        }
        operation.in_unit_of_work(|operation| {
            self.catalog.create_collection(operation, &*self.writer, &namespace, CollectionOptions::default())
        })
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<Collection>> {
        self.catalog.latest().collection(&Namespace::parse(name).unwrap()).cloned()
    }

    pub(super) fn insert(&self, name: &str, documents: &[Doc]) -> Result<()> {
        self.insert_as(&mut self.operation(), name, documents, None)
    }

    /// Inserts documents as one batch, as statements from this number on.
    pub(super) fn insert_as(
        &self,
        operation: &mut Operation,
        name: &str,
        documents: &[Doc],
        first_statement: Option<i32>,
    ) -> Result<()> {
        let collection = self.collection(operation, name)?;
        operation.in_unit_of_work(|operation| {
            let statements: Vec<InsertStatement<'_>> = documents
                .iter()
                .enumerate()
                .map(|(place, document)| {
                    let mut statement = InsertStatement::new(document.view());
                    statement.statement_ids =
                        first_statement.map_or(StatementIds::None, |first| StatementIds::One(first + place as i32));
                    statement
                })
                .collect();
            let options = InsertOptions::default();
            self.write_path.insert_documents(operation, &collection, &statements, options).map(|_| ())
        })
    }

    /// Puts the document in place of the one with its `_id`; false if there is none.
    pub(super) fn update(&self, name: &str, new: &Doc) -> Result<bool> {
        let mut operation = self.operation();
        let Some(collection) = self.find(name) else { return Ok(false) };
        let found = self.write_path.find_by_id(&mut operation, &collection, new.get("_id").unwrap())?;
        let Some((record_id, old)) = found else { return Ok(false) };
        let Some(change) = update_object(old.view(), new.view()) else { return Ok(true) };
        let arguments = UpdateArguments::new(record_id, old.view(), new.view(), change.view());
        self.write_path.update_document(&mut operation, &collection, &arguments)?;
        Ok(true)
    }

    pub(super) fn delete(&self, name: &str, id: Value<'_>) -> Result<bool> {
        let mut operation = self.operation();
        let Some(collection) = self.find(name) else { return Ok(false) };
        let Some((record_id, old)) = self.write_path.find_by_id(&mut operation, &collection, id)? else {
            return Ok(false);
        };
        let arguments = DeleteArguments::new(record_id, old.view());
        self.write_path.delete_document(&mut operation, &collection, &arguments)?;
        Ok(true)
    }

    /// Deletes several documents as one group.
    pub(super) fn delete_batch(&self, name: &str, ids: &[i32]) -> Result<()> {
        let mut operation = self.operation();
        let Some(collection) = self.find(name) else { return Ok(()) };
        operation.in_unit_of_work(|operation| {
            self.writer.on_batched_write_start(operation)?;
            for id in ids {
                let found = self.write_path.find_by_id(operation, &collection, Value::Int32(*id))?;
                if let Some((record_id, old)) = found {
                    let arguments = DeleteArguments::new(record_id, old.view());
                    self.write_path.delete_document(operation, &collection, &arguments)?;
                }
            }
            self.writer.on_batched_write_commit(operation, &[])
        })
    }

    /// Inserts several documents as one group.
    pub(super) fn insert_group(&self, name: &str, documents: &[Doc]) -> Result<()> {
        let mut operation = self.operation();
        let collection = self.collection(&mut operation, name)?;
        let statements: Vec<_> = documents.iter().map(|document| InsertStatement::new(document.view())).collect();
        self.write_path.in_group(&mut operation, |operation| {
            let options = InsertOptions::default();
            self.write_path.insert_documents(operation, &collection, &statements, options).map(|_| ())
        })
    }

    pub(super) fn drop_collection(&self, name: &str) -> Result<()> {
        let namespace = Namespace::parse(name)?;
        self.operation()
            .in_unit_of_work(|operation| self.catalog.drop_collection(operation, &*self.writer, &namespace).map(|_| ()))
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (Namespace::parse(from)?, Namespace::parse(to)?);
        let options = RenameOptions { drop_target: true, stay_temp: false };
        self.operation().in_unit_of_work(|operation| {
            self.catalog.rename_collection(operation, &*self.writer, &from, &to, options).map(|_| ())
        })
    }

    /// An index on an empty collection; on another, what an index build leaves in the oplog.
    pub(super) fn create_index(&self, name: &str, specification: &Doc) -> Result<()> {
        let mut operation = self.operation();
        let collection = self.collection(&mut operation, name)?;
        let PreparedIndex::New(specification) = self.catalog.prepare_index(&collection, specification.view())? else {
            return Ok(());
        };
        operation.in_unit_of_work(|operation| {
            self.catalog.create_index_on_empty(operation, &*self.writer, &collection, &specification).map(|_| ())
        })
    }

    // ---- Looking.

    /// The entries of the oplog.
    pub(super) fn entries(&self) -> Vec<Doc> {
        let oplog = self.engine.oplog().unwrap();
        let mut cursor = oplog.forward().unwrap();
        let mut entries = Vec::new();
        let mut next = cursor.seek(Timestamp::NONE.next()).unwrap();
        while let Some(entry) = next {
            entries.push(Doc::parse(entry.entry).unwrap());
            next = cursor.next().unwrap();
        }
        entries
    }

    /// Every document of every replicated collection, by collection and `_id`.
    pub(super) fn contents(&self) -> Contents {
        self.try_contents().unwrap()
    }

    /// The same, where the disk may be gone.
    pub(super) fn try_contents(&self) -> Result<Contents> {
        let mut contents = Contents::new();
        let mut operation = self.operation();
        for collection in self.catalog.latest().all_collections() {
            if collection.namespace.is_internal() {
                continue;
            }
            let documents = contents.entry(collection.namespace.to_string()).or_default();
            let mut cursor = collection.records.cursor(Direction::Forward);
            while let Some(record) = cursor.next(&mut operation.recovery_unit)? {
                let document = Doc::parse(record.value.to_vec())?;
                let id = document.get("_id").map(|id| format!("{id:?}")).unwrap_or_default();
                documents.insert(id, document.to_string());
            }
        }
        Ok(contents)
    }

    /// Every index says what the documents say.
    pub(super) fn check_indexes(&self) {
        for collection in self.catalog.latest().all_collections() {
            let faults = check_indexes(&mut self.operation(), self.write_path.indexing(), collection).unwrap();
            assert_eq!(faults, Vec::<String>::new(), "{}", collection.namespace);
        }
    }
}

/// What a node has: collection, `_id`, document.
pub(super) type Contents = BTreeMap<String, BTreeMap<String, String>>;
