//! Documents that the server keeps in collections for itself: sessions, users, roles.
//!
//! Each call takes the locks it needs and gives them back. Writes are seen by the observers, as a client's are.

use crate::Data;
use crate::crud::collection_for_insert;
use crate::locking::{lock_collection, lock_for_read, unlock};
use bstr::BStr;
use pando_base::{Namespace, Result};
use pando_collection::{DeleteArguments, UpdateArguments};
use pando_doc::{Doc, Value, doc};
use pando_locks::Mode;
use pando_operation::{Operation, write_conflict_retry};
use pando_query::FindPlan;
use pando_query::executor::drive;
use pando_query::request::{DeleteRequest, FindRequest, UpdateRequest};
use pando_repl::ReplGate;

/// All that match; none if the collection is not there.
pub(crate) async fn find(
    data: &Data,
    operation: &mut Operation,
    namespace: &Namespace,
    filter: Doc,
) -> Result<Vec<Doc>> {
    let request = FindRequest { filter, ..FindRequest::new(namespace.clone()) };
    lock_for_read(operation).await?;
    let mut found: Vec<Doc> = Vec::new();
    let outcome = match data.query.find(operation, &request) {
        Ok(FindPlan::Executor(mut executor)) => {
            drive(&mut *executor, operation, data.collections(), &mut found).await.map(|_| ())
        }
        Ok(FindPlan::View(_)) => Ok(()),
        Err(error) => Err(error),
    };
    // A transaction keeps its own.
    let abandoned = match operation.recovery_unit.in_unit_of_work() {
        true => Ok(()),
        false => operation.recovery_unit.abandon_snapshot(),
    };
    unlock(operation);
    outcome?;
    abandoned?;
    Ok(found)
}

/// Puts a document in the place of the one with its `_id`, or adds it.
pub(crate) async fn save(data: &Data, operation: &mut Operation, namespace: &Namespace, document: &Doc) -> Result<()> {
    let mut filter = pando_doc::DocBuilder::new();
    filter.append_some("_id", document.get("_id"));
    let request = UpdateRequest {
        upsert: true,
        bypass_empty_timestamp_replacement: true,
        ..UpdateRequest::new(namespace.clone(), filter.finish(), document.clone())
    };
    let outcome = match collection_for_insert(data, operation, namespace).await {
        Ok(_) => data.query.update(operation, &request).await.map(|_| ()),
        Err(error) => Err(error),
    };
    unlock(operation);
    outcome
}

/// A change of a document that is there.
pub(crate) enum StoredChange {
    /// This takes the place of the one with its `_id`.
    Replace(&'static Namespace, Doc),
    /// The one with this text as its `_id` goes.
    Delete(&'static Namespace, String),
}

impl StoredChange {
    fn namespace(&self) -> &'static Namespace {
        match self {
            StoredChange::Replace(namespace, _) | StoredChange::Delete(namespace, _) => namespace,
        }
    }

    fn apply(&self, data: &Data, operation: &mut Operation) -> Result<()> {
        let namespace = self.namespace();
        let Some(collection) = data.catalog.collection_for_write(operation, namespace)? else { return Ok(()) };
        let id = match self {
            StoredChange::Replace(_, document) => document.get("_id").unwrap_or(Value::Null),
            StoredChange::Delete(_, id) => Value::String(BStr::new(id.as_str())),
        };
        let Some((record_id, old)) = data.write_path().find_by_id(operation, &collection, id)? else { return Ok(()) };
        match self {
            StoredChange::Replace(_, new) => {
                let arguments = UpdateArguments::new(record_id, old.view(), new.view(), new.view());
                data.write_path().update_document(operation, &collection, &arguments).map(|_| ())
            }
            StoredChange::Delete(..) => {
                let arguments = DeleteArguments::new(record_id, old.view());
                data.write_path().delete_document(operation, &collection, &arguments)
            }
        }
    }
}

/// Makes all of these changes or none. Documents that are gone are left alone.
pub(crate) async fn change_together(data: &Data, operation: &mut Operation, changes: &[StoredChange]) -> Result<()> {
    let mut namespaces: Vec<&'static Namespace> = changes.iter().map(StoredChange::namespace).collect();
    namespaces.sort_unstable_by_key(|namespace| namespace.as_str());
    namespaces.dedup();
    let outcome = change_locked(data, operation, &namespaces, changes).await;
    unlock(operation);
    outcome
}

async fn change_locked(
    data: &Data,
    operation: &mut Operation,
    namespaces: &[&'static Namespace],
    changes: &[StoredChange],
) -> Result<()> {
    let Some(first) = namespaces.first() else { return Ok(()) };
    for namespace in namespaces {
        lock_collection(operation, namespace, Mode::IX).await?;
        data.replication.check_can_write(namespace)?;
    }
    write_conflict_retry(operation, "stored", first, |operation| {
        operation.in_unit_of_work(|operation| changes.iter().try_for_each(|change| change.apply(data, operation)))
    })
    .await
}

/// Deletes what matches; how many.
pub(crate) async fn delete(data: &Data, operation: &mut Operation, namespace: &Namespace, filter: Doc) -> Result<u64> {
    lock_collection(operation, namespace, Mode::IX).await?;
    let request = DeleteRequest::new(namespace.clone(), filter, true);
    let outcome = match data.replication.check_can_write(namespace) {
        Ok(()) => data.query.delete(operation, &request).await,
        Err(error) => Err(error),
    };
    unlock(operation);
    outcome.map(|deleted| deleted.n)
}

/// The one with this `_id`.
pub(crate) async fn find_one(
    data: &Data,
    operation: &mut Operation,
    namespace: &Namespace,
    id: &str,
) -> Result<Option<Doc>> {
    Ok(find(data, operation, namespace, doc! { "_id": id }).await?.pop())
}
