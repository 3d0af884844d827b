//! Puts right what an old version has stored: indexes that let documents expire after a time that is none.
//!
//! The primary does it for the whole set, by a `collMod` that others find in the oplog; once for each time that it becomes primary.

use super::visit::VisitOperation;
use crate::Data;
use crate::catalog::{change, lock_exclusively};
use pando_base::{Component, Log, Namespace, Result, Severity, log};
use pando_catalog::{CollModChange, Collection, EXPIRE_AFTER_SECONDS_INACTIVE, IndexChange, is_expiry_usable};
use pando_doc::doc;
use pando_repl::ReplGate;

/// Remembers for which term it was done.
#[derive(Default)]
pub(super) struct Correction {
    term: Option<i64>,
}

impl Correction {
    /// Corrects, if the node has become primary since it was asked last.
    pub(super) async fn run_if_new_primary(&mut self, data: &Data, log: &Log) {
        if !data.replication.is_replicated() || !data.replication.is_writable_primary() {
            self.term = None;
            return;
        }
        let term = data.replication.with_topology(|topology| topology.term());
        if self.term.replace(term) != Some(term) {
            correct_expiries(data, log).await;
        }
    }
}

/// Corrects every index that needs it. What fails is told and left to the next primary.
pub async fn correct_expiries(data: &Data, log: &Log) {
    let catalog = data.catalog.latest();
    for collection in catalog.all_collections() {
        for index in unusable(collection) {
            let namespace = &collection.namespace;
            let message = "Running collMod to fix a TTL index whose expireAfterSeconds cannot be used";
            log!(log, Severity::Info, Component::Index, 6847700, message, "ns" = namespace, "index" = index.as_str());
            if let Err(error) = correct(data, namespace, &index).await {
                let message = "Could not fix a TTL index whose expireAfterSeconds cannot be used";
                log!(log, Severity::Warning, Component::Index, 6847701, message, "ns" = namespace, "error" = &error);
            }
        }
    }
}

/// Tells of the indexes that a primary would correct, when the node starts.
pub(super) fn tell_unusable(data: &Data, log: &Log) {
    let catalog = data.catalog.latest();
    for collection in catalog.all_collections() {
        for index in unusable(collection) {
            let message = "Found an existing TTL index in the catalog whose 'expireAfterSeconds' cannot be used";
            let namespace = &collection.namespace;
            log!(
                log,
                Severity::Warning,
                Component::Index,
                6852200,
                message,
                "ns" = namespace,
                "index" = index.as_str()
            );
        }
    }
}

/// The names of a collection's indexes whose expiry cannot be used.
fn unusable(collection: &Collection) -> Vec<String> {
    let indexes = collection.indexes.iter().filter(|index| index.ready);
    let unusable = indexes.filter(|index| !is_expiry_usable(index.descriptor.specification.view()));
    unusable.map(|index| index.name().to_owned()).collect()
}

async fn correct(data: &Data, namespace: &Namespace, index: &str) -> Result<()> {
    let mut operation = VisitOperation(data.services.internal_operation("TTLMonitor"));
    lock_exclusively(data, &mut operation, &[namespace]).await?;
    let Some(collection) = data.catalog.collection_for_write(&mut operation, namespace)? else { return Ok(()) };
    if !unusable(&collection).iter().any(|name| name == index) {
        return Ok(());
    }
    let seconds = i64::from(EXPIRE_AFTER_SECONDS_INACTIVE);
    let index_change =
        IndexChange { name: index.to_owned(), expire_after_seconds: Some(seconds), ..IndexChange::default() };
    let change_of = CollModChange { index: Some(index_change), ..CollModChange::default() };
    let changed = doc! { "name": index, "expireAfterSeconds": seconds };
    let command = doc! { "collMod": (namespace.collection()), "index": changed };
    change(&mut operation, "collMod", namespace, |operation| {
        data.catalog.coll_mod(operation, &*data.observers, &collection, &change_of, command.view()).map(|_| ())
    })
    .await
}
