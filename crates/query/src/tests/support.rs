//! A node over the model engine with one collection.

use crate::executor::{CatalogCollections, drive};
use crate::request::FindRequest;
use crate::write::InsertDocument;
use crate::{FindPlan, MatchValidator, QueryEngine, QueryIndexHooks};
use pando_base::{Log, Namespace, Result};
use pando_catalog::{Catalog, Collection, CollectionOptions, Observers, PreparedIndex};
use pando_collection::{InsertOptions, WritePath, check_indexes};
use pando_doc::{Doc, doc};
use pando_engine_model::{Mode, ModelDisk, ModelEngine};
use pando_env::simulated::Simulation;
use pando_index::Indexing;
use pando_operation::{Operation, Services};
use pando_oplog::ObserverRegistry;
use pando_storage::Engine;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// A node.
pub(crate) struct Fixture {
    pub(crate) services: Services,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) engine: QueryEngine,
    pub(crate) observers: Arc<Observers>,
    pub(crate) namespace: Namespace,
    _simulation: Simulation,
}

/// Runs a future that waits for nothing but its turn.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

impl Fixture {
    /// A collection with these indexes (`{key: …, name: …}`).
    pub(crate) fn new(indexes: &[Doc]) -> Fixture {
        Fixture::with_options(CollectionOptions::default(), indexes)
    }

    pub(crate) fn with_options(options: CollectionOptions, indexes: &[Doc]) -> Fixture {
        let simulation = Simulation::new(7);
        let env = simulation.env();
        let engine: Arc<dyn Engine> = ModelEngine::open(&ModelDisk::new(), Mode::StandAlone).unwrap();
        let services = Services::plain(&env, Arc::clone(&engine));
        let (catalog, _) = Catalog::open(&env, &engine).unwrap();
        let observers: Arc<Observers> = Arc::new(ObserverRegistry::<Operation>::new());
        let hooks = Arc::new(QueryIndexHooks::new(&catalog, &observers));
        let indexing = Arc::new(Indexing::new(hooks));
        let write_path = Arc::new(WritePath::new(
            Arc::clone(&observers),
            indexing,
            Arc::new(MatchValidator::new(Arc::clone(&services.parameters), Log::silent())),
        ));
        let collections = Arc::new(CatalogCollections(Arc::clone(&catalog)));
        let parameters = Arc::clone(&services.parameters);
        let engine = QueryEngine::new(&env, collections, write_path, parameters);
        let namespace = Namespace::of("test", "c").unwrap();
        let fixture = Fixture { services, catalog, engine, observers, namespace, _simulation: simulation };
        fixture.create(&fixture.namespace.clone(), options);
        indexes.iter().for_each(|index| fixture.create_index(index));
        fixture
    }

    pub(crate) fn operation(&self) -> Operation {
        self.services.internal_operation("test")
    }

    pub(crate) fn create(&self, namespace: &Namespace, options: CollectionOptions) {
        let mut operation = self.operation();
        operation
            .in_unit_of_work(|operation| {
                self.catalog.create_collection(operation, &*self.observers, namespace, options).map(|_| ())
            })
            .unwrap();
    }

    pub(crate) fn create_index(&self, specification: &Doc) {
        let collection = self.collection();
        let prepared = self.catalog.prepare_index(&collection, specification.view()).unwrap();
        let PreparedIndex::New(specification) = prepared else { panic!("{prepared:?}") };
        let mut operation = self.operation();
        operation
            .in_unit_of_work(|operation| {
                let observers = &*self.observers;
                self.catalog.create_index_on_empty(operation, observers, &collection, &specification).map(|_| ())
            })
            .unwrap();
    }

    pub(crate) fn drop_collection(&self) {
        let mut operation = self.operation();
        operation
            .in_unit_of_work(|operation| {
                self.catalog.drop_collection(operation, &*self.observers, &self.namespace).map(|_| ())
            })
            .unwrap();
    }

    pub(crate) fn drop_index(&self, name: &str) {
        let collection = self.collection();
        let mut operation = self.operation();
        operation
            .in_unit_of_work(|operation| {
                self.catalog.drop_index(operation, &*self.observers, &collection, name).map(|_| ())
            })
            .unwrap();
    }

    pub(crate) fn collection(&self) -> Arc<Collection> {
        Arc::clone(self.catalog.latest().collection(&self.namespace).unwrap())
    }

    pub(crate) fn insert(&self, documents: &[Doc]) {
        self.try_insert(documents).unwrap();
    }

    pub(crate) fn try_insert(&self, documents: &[Doc]) -> Result<()> {
        self.insert_into(&self.collection(), documents)
    }

    /// Another collection with documents.
    pub(crate) fn create_with(&self, name: &str, documents: &[Doc]) {
        let namespace = self.namespace.sibling(name).unwrap();
        self.create(&namespace, CollectionOptions::default());
        let collection = Arc::clone(self.catalog.latest().collection(&namespace).unwrap());
        self.insert_into(&collection, documents).unwrap();
    }

    fn insert_into(&self, collection: &Arc<Collection>, documents: &[Doc]) -> Result<()> {
        let mut operation = self.operation();
        let mut inserts = Vec::new();
        for document in documents {
            let prepared = self.engine.prepare_insert(&operation, document.view())?;
            let document = prepared.unwrap_or_else(|| document.clone());
            inserts.push(InsertDocument { document, statement_ids: pando_oplog::StatementIds::None });
        }
        let options = InsertOptions::default();
        now(self.engine.insert(&mut operation, collection, &inserts, true, options)).into_iter().collect()
    }

    pub(crate) fn request(&self, filter: Doc) -> FindRequest {
        FindRequest::new(self.namespace.clone()).with_filter(filter)
    }

    pub(crate) fn find(&self, request: &FindRequest) -> Result<Vec<Doc>> {
        self.find_with_summary(request).map(|(found, _)| found)
    }

    pub(crate) fn find_with_summary(&self, request: &FindRequest) -> Result<(Vec<Doc>, String)> {
        let mut operation = self.operation();
        let FindPlan::Executor(mut executor) = self.engine.find(&mut operation, request)? else { panic!("a view") };
        let mut found: Vec<Doc> = Vec::new();
        now(drive(&mut *executor, &mut operation, &*self.engine.collections, &mut found))?;
        Ok((found, stages_of(executor.root())))
    }

    /// Every index says what the documents say.
    pub(crate) fn check(&self) {
        let faults =
            check_indexes(&mut self.operation(), self.engine.write_path.indexing(), &self.collection()).unwrap();
        assert_eq!(faults, Vec::<String>::new());
    }
}

/// The names of the stages, outermost first.
pub(crate) fn stages_of(node: &crate::stage::StageNode) -> String {
    let children: Vec<String> = node.children().iter().map(stages_of).collect();
    match children.as_slice() {
        [] => node.name().to_owned(),
        children => format!("{}({})", node.name(), children.join(",")),
    }
}

/// A specification of an index.
pub(crate) fn index(key: Doc) -> Doc {
    let name: Vec<String> = key.elements().map(|element| format!("{}_{}", element.name, element.value)).collect();
    doc! { "v": 2, "key": key, "name": name.join("_").replace('"', "") }
}

/// The `_id`s of documents, as text.
pub(crate) fn ids(documents: &[Doc]) -> Vec<String> {
    documents.iter().map(|document| document.get("_id").unwrap().to_string()).collect()
}
