//! Documents that cannot stay: those whose keys another document has in a unique index. They go to `local.lost_and_found.<uuid>`,
//! named after the collection that they were in, which has no index on `_id`: what is found there may well be equal.

use crate::write_path::WritePath;
use crate::{InsertOptions, InsertStatement};
use pando_base::{DatabaseName, Namespace, RecordId, Result};
use pando_catalog::{Catalog, Collection, CollectionOptions};
use pando_doc::Doc;
use pando_index::KeySet;
use pando_operation::{Operation, write_conflict_retry_blocking};
use std::sync::Arc;

/// With what the names of such collections begin.
const PREFIX: &str = "lost_and_found.";

/// Moves a document, with its keys in all ready indexes; false if it is not there any more. Nobody else may use the collection.
pub fn move_to_lost_and_found(
    operation: &mut Operation,
    catalog: &Arc<Catalog>,
    write_path: &WritePath,
    collection: &Collection,
    id: &RecordId,
) -> Result<bool> {
    let name = format!("{PREFIX}{}", collection.uuid);
    let namespace = Namespace::new(&DatabaseName::new(DatabaseName::LOCAL)?, &name)?;
    write_conflict_retry_blocking(operation, "repair", &collection.namespace, |operation| {
        operation.in_unit_of_work(|operation| {
            let found = collection.records.get(&mut operation.recovery_unit, id)?;
            let Some(document) = found.and_then(|bytes| Doc::parse(bytes).ok()) else { return Ok(false) };
            let place = match catalog.collection_for_write(operation, &namespace)? {
                Some(place) => place,
                None => {
                    let options = CollectionOptions { auto_index_id: Some(false), ..CollectionOptions::default() };
                    catalog.create_collection(operation, &*write_path.observers, &namespace, options)?
                }
            };
            remove_keys(operation, write_path, collection, &document, id)?;
            collection.records.delete(&mut operation.recovery_unit, id)?;
            let statement = InsertStatement::new(document.view());
            write_path.insert_documents(operation, &place, &[statement], InsertOptions::default())?;
            Ok(true)
        })
    })
}

fn remove_keys(
    operation: &mut Operation,
    write_path: &WritePath,
    collection: &Collection,
    document: &Doc,
    id: &RecordId,
) -> Result<()> {
    let (indexing, mut keys) = (write_path.indexing(), KeySet::new());
    for index in collection.ready_indexes() {
        // What cannot be indexed has no keys.
        if indexing.access(index)?.keys(document.view(), &mut keys).is_ok() {
            indexing.remove_keys(operation, index, keys.iter(), id)?;
        }
    }
    Ok(())
}
