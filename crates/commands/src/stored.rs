//! Documents that the server keeps in collections for itself: sessions, users, roles.
//!
//! Each call takes the locks it needs and gives them back. Writes are seen by the observers, as a client's are.

use crate::Data;
use crate::crud::collection_for_insert;
use crate::locking::{lock_collection, lock_for_read, unlock};
use pando_base::{Namespace, Result};
use pando_doc::{Doc, doc};
use pando_locks::Mode;
use pando_operation::Operation;
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
    let abandoned = operation.recovery_unit.abandon_snapshot();
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
