//! The write path over collections of the real catalog: the multikey state is written down and comes back.

use super::support::*;
use crate::*;
use pando_base::{Namespace, Result};
use pando_catalog::{
    Catalog, Collection, CollectionOptions, Index, IndexDescriptor, MultikeyComponents, Observers, PreparedIndex,
};
use pando_doc::{DocRef, doc};
use pando_index::{DocumentFilter, IndexHooks, Indexing, SharedCollator};
use pando_operation::{Operation, Services};
use pando_oplog::ObserverRegistry;
use std::sync::Arc;

/// What the composition root does: the catalog writes the multikey state.
struct CatalogHooks {
    catalog: Arc<Catalog>,
    observers: Arc<Observers>,
}

impl IndexHooks for CatalogHooks {
    fn filter(
        &self,
        _descriptor: &IndexDescriptor,
        _expression: DocRef<'_>,
        _collator: Option<&SharedCollator>,
    ) -> Result<Arc<dyn DocumentFilter>> {
        Err(pando_base::Error::bad_value("no filters here"))
    }

    fn collator(&self, _collation: DocRef<'_>) -> Result<SharedCollator> {
        Err(pando_base::Error::bad_value("no collations here"))
    }

    fn set_multikey(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        index: &Index,
        paths: &[MultikeyComponents],
    ) -> Result<()> {
        self.catalog.set_multikey(operation, &*self.observers, collection, index, paths)
    }
}

fn created(catalog: &Arc<Catalog>, operation: &mut Operation, observers: &Observers, name: &Namespace) {
    let specification = doc! { "key": { "a.b": 1_i32 }, "name": "a.b_1" };
    operation
        .in_unit_of_work(|operation| {
            let options = CollectionOptions::default();
            let collection = catalog.create_collection(operation, observers, name, options)?;
            let PreparedIndex::New(specification) = catalog.prepare_index(&collection, specification.view())? else {
                panic!("there is no such index yet");
            };
            catalog.create_index_on_empty(operation, observers, &collection, &specification)
        })
        .unwrap();
}

#[test]
fn x11_the_multikey_state_survives_a_restart() {
    on_each_engine(&Mode::StandAlone, |make| {
        let (env, _simulation, engine) = make();
        let services = Services::plain(&env, Arc::clone(&engine));
        let (catalog, _) = Catalog::open(&env, &engine).unwrap();
        let observers: Arc<Observers> = Arc::new(ObserverRegistry::new());
        let hooks = CatalogHooks { catalog: Arc::clone(&catalog), observers: Arc::clone(&observers) };
        let indexing = Arc::new(Indexing::new(Arc::new(hooks)));
        let write_path = WritePath::new(Arc::clone(&observers), indexing, Arc::new(AcceptAll));
        let name = Namespace::parse("db.c").unwrap();
        let mut operation = services.internal_operation("test");
        created(&catalog, &mut operation, &*observers, &name);
        let collection = catalog.collection_for_write(&mut operation, &name).unwrap().unwrap();
        for document in [
            doc! { "_id": 1_i32, "a": { "b": 1_i32 } },
            doc! { "_id": 2_i32, "a": [{ "b": 1_i32 }, { "b": 2_i32 }] },
            doc! { "_id": 3_i32, "a": { "b": [3_i32] } },
        ] {
            let statements = [InsertStatement::new(document.view())];
            write_path.insert_documents(&mut operation, &collection, &statements, InsertOptions::default()).unwrap();
        }
        let (catalog, report) = Catalog::open(&env, &engine).unwrap();
        assert!(report.missing_indexes.is_empty());
        let collection = catalog.collection_for_write(&mut operation, &name).unwrap().unwrap();
        let state = &collection.index("a.b_1").unwrap().multikey;
        assert_eq!(state.paths()[..], [MultikeyComponents::from_iter([0, 1])]);
        assert!(!collection.id_index().unwrap().multikey.is_multikey());
        let mut operation = services.internal_operation("test");
        let faults = check_indexes(&mut operation, write_path.indexing(), &collection).unwrap();
        assert_eq!(faults, Vec::<String>::new());
    });
}
