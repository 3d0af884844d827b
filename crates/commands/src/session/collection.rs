//! `config.system.sessions`: the sessions that live, with the time of their last use.

use crate::Data;
use crate::crud::collection_for_insert;
use crate::locking::{lock_collection, lock_for_read, unlock};
use crate::stored::delete;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_catalog::{CollectionOptions, PreparedIndex};
use pando_doc::{Value, doc};
use pando_locks::Mode;
use pando_operation::{Operation, write_conflict_retry};
use pando_query::request::UpdateRequest;
use pando_repl::ReplGate;
use pando_session::{CachedSession, LOCAL_LOGICAL_SESSION_TIMEOUT_MINUTES, LogicalSessionId};

/// Sessions that were not used for long leave by this index.
const INDEX_NAME: &str = "lsidTTLIndex";

/// Is it there?
pub(super) fn exists(data: &Data) -> bool {
    data.catalog.latest().collection(Namespace::sessions()).is_some()
}

/// How long a session lives without use.
fn timeout_minutes(data: &Data) -> i64 {
    i64::from(data.services.parameters.get(&LOCAL_LOGICAL_SESSION_TIMEOUT_MINUTES))
}

/// Makes the collection with its index, unless it is there.
pub(super) async fn ensure(data: &Data, operation: &mut Operation) -> Result<()> {
    if exists(data) {
        return Ok(());
    }
    let namespace = Namespace::sessions();
    lock_collection(operation, namespace, Mode::X).await?;
    let index = doc! {
        "v": 2, "key": { "lastUse": 1 }, "name": INDEX_NAME,
        "expireAfterSeconds": (i32::try_from(timeout_minutes(data).saturating_mul(60)).unwrap_or(i32::MAX)),
    };
    let made = write_conflict_retry(operation, "create", namespace, |operation| {
        if data.catalog.collection_for_write(operation, namespace)?.is_some() {
            return Ok(());
        }
        data.replication.check_can_write(namespace)?;
        operation.in_unit_of_work(|operation| {
            let options = CollectionOptions::default();
            let created = data.catalog.create_collection(operation, &*data.observers, namespace, options)?;
            if let PreparedIndex::New(index) = data.catalog.prepare_index(&created, index.view())? {
                data.catalog.create_index_on_empty(operation, &*data.observers, &created, &index)?;
            }
            Ok(())
        })
    })
    .await;
    unlock(operation);
    made
}

/// Writes down when a session was last used.
pub(super) async fn refresh(data: &Data, operation: &mut Operation, session: &CachedSession) -> Result<()> {
    let used = doc! { "$set": { "lastUse": (Value::DateTime(session.last_use_ms)) } };
    let filter = doc! { "_id": (session.session.to_doc()) };
    let update = UpdateRequest { upsert: true, ..UpdateRequest::new(Namespace::sessions().clone(), filter, used) };
    collection_for_insert(data, operation, Namespace::sessions()).await?;
    let outcome = data.query.update(operation, &update).await;
    unlock(operation);
    outcome.map(|_| ())
}

/// Removes a session.
pub(super) async fn remove(data: &Data, operation: &mut Operation, session: LogicalSessionId) -> Result<()> {
    delete(data, operation, Namespace::sessions(), doc! { "_id": (session.to_doc()) }).await.map(|_| ())
}

/// Is the session written down?
pub(super) async fn contains(data: &Data, operation: &mut Operation, session: LogicalSessionId) -> Result<bool> {
    lock_for_read(operation).await?;
    let id = session.parent().to_doc();
    let found = write_conflict_retry(operation, "find", Namespace::sessions(), |operation| {
        let missing = || Error::new(ErrorCode::NamespaceNotFound, "config.system.sessions does not exist");
        let collection = data.query.collections.open(operation, Namespace::sessions())?.ok_or_else(missing)?;
        let found = data.write_path().find_by_id(operation, &collection, Value::Document(id.view()))?;
        operation.recovery_unit.abandon_snapshot()?;
        Ok(found.is_some())
    })
    .await;
    unlock(operation);
    found
}
