//! Documents that a node keeps for itself in `local`: the configuration, its vote, where the oplog may end.
//!
//! They are not replicated and have no timestamps, so that what is written lasts whatever becomes of the data. The
//! catalog's entries of these collections are only as durable as the last checkpoint: whoever makes one takes a checkpoint.

use pando_base::{Namespace, Result};
use pando_catalog::{Catalog, Collection, CollectionOptions};
use pando_collection::WritePath;
use pando_doc::{Doc, DocRef};
use pando_operation::Operation;
use pando_oplog::ObserverRegistry;
use pando_storage::Direction;
use std::sync::Arc;

/// The documents of this node.
pub struct LocalStore {
    catalog: Arc<Catalog>,
    /// Without observers: there is nobody to tell.
    write_path: Arc<WritePath>,
}

impl LocalStore {
    /// The documents in this catalog. The write path must have no observers.
    pub fn new(catalog: Arc<Catalog>, write_path: Arc<WritePath>) -> LocalStore {
        LocalStore { catalog, write_path }
    }

    /// Makes the collections that are not there; true if there were any.
    pub fn ensure(&self, operation: &mut Operation, namespaces: &[&Namespace]) -> Result<bool> {
        let missing: Vec<&&Namespace> =
            namespaces.iter().filter(|namespace| self.catalog.latest().collection(namespace).is_none()).collect();
        for namespace in &missing {
            self.create(operation, namespace, CollectionOptions::default())?;
        }
        Ok(!missing.is_empty())
    }

    /// Makes the capped collection of this name and size, unless it is there; true if it was not.
    pub fn ensure_capped(&self, operation: &mut Operation, namespace: &Namespace, size_bytes: u64) -> Result<bool> {
        if self.catalog.latest().collection(namespace).is_some() {
            return Ok(false);
        }
        let capped_size_bytes = i64::try_from(size_bytes).unwrap_or(i64::MAX);
        let options = CollectionOptions { capped: true, capped_size_bytes, ..CollectionOptions::default() };
        self.create(operation, namespace, options)?;
        Ok(true)
    }

    fn create(&self, operation: &mut Operation, namespace: &Namespace, options: CollectionOptions) -> Result<()> {
        debug_assert!(namespace.is_local(), "{namespace} is not this node's own");
        operation.in_unit_of_work(|operation| {
            let nobody = ObserverRegistry::new();
            self.catalog.create_collection(operation, &nobody, namespace, options).map(|_| ())
        })
    }

    /// Adds a document.
    pub fn add(&self, operation: &mut Operation, namespace: &Namespace, document: DocRef<'_>) -> Result<()> {
        let collection = self.catalog.collection_for_ddl(operation, namespace)?;
        operation.in_unit_of_work(|operation| self.write_path.put_document(operation, &collection, document))
    }

    /// The first document of a collection.
    pub fn first(&self, operation: &mut Operation, namespace: &Namespace) -> Result<Option<Doc>> {
        let Some(collection) = self.catalog.latest().collection(namespace).cloned() else { return Ok(None) };
        let mut cursor = collection.records.cursor(Direction::Forward);
        let found = cursor.next(&mut operation.recovery_unit)?.map(|record| Doc::parse(record.value.to_vec()));
        let found = found.transpose()?;
        drop(cursor);
        operation.recovery_unit.abandon_snapshot()?;
        Ok(found)
    }

    /// Puts a document in place of all others of its collection.
    pub fn replace(&self, operation: &mut Operation, namespace: &Namespace, document: DocRef<'_>) -> Result<()> {
        let collection = self.catalog.collection_for_ddl(operation, namespace)?;
        operation.in_unit_of_work(|operation| {
            self.remove_others(operation, &collection, document)?;
            self.write_path.put_document(operation, &collection, document)
        })
    }

    fn remove_others(&self, operation: &mut Operation, collection: &Collection, keep: DocRef<'_>) -> Result<()> {
        let keep = keep.get("_id");
        let mut others = Vec::new();
        let mut cursor = collection.records.cursor(Direction::Forward);
        while let Some(record) = cursor.next(&mut operation.recovery_unit)? {
            let document = Doc::parse(record.value.to_vec())?;
            if document.get("_id") != keep {
                others.push((record.id.clone(), document));
            }
        }
        for (record_id, document) in others {
            let arguments = pando_collection::DeleteArguments::new(record_id, document.view());
            self.write_path.delete_document(operation, collection, &arguments)?;
        }
        Ok(())
    }
}
