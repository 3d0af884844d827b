//! The document that says which version's formats the data has: `admin.system.version`, `_id` "featureCompatibilityVersion".
//!
//! Every deployment has it from its first moment: a node that stands alone or starts its own set writes it before it
//! listens, a set that is initiated by a client gets it from its first primary. Clients and tools expect the database
//! "admin" to be there because of it.

use pando_base::{Component, Log, Namespace, RateLimit, Result, Severity, log};
use pando_catalog::CollectionOptions;
use pando_collection::{InsertOptions, InsertStatement};
use pando_commands::{Data, locking};
use pando_doc::{Doc, Value, doc};
use pando_env::Env;
use pando_locks::Mode;
use pando_operation::Operation;
use pando_repl::ReplGate;
use std::sync::Weak;
use std::time::Duration;

/// The document's `_id`.
const ID: &str = "featureCompatibilityVersion";
/// What a new deployment has.
const NEWEST: &str = "7.0";
/// The oldest that there can be.
const OLDEST: &str = "6.0";

/// How often a node that has to be initiated looks whether it has become primary.
const INTERVAL: Duration = Duration::from_millis(100);
/// How often it says that it cannot write.
const COMPLAINT_INTERVAL_MS: u64 = 60_000;

/// True if it is missing, and this node is the one to write it.
pub(crate) fn is_wanted(data: &Data) -> bool {
    let may_write = !data.replication.is_replicated() || data.replication.is_writable_primary();
    may_write && data.catalog.latest().collection(Namespace::server_configuration()).is_none()
}

/// Writes it. Nobody else may use the collection meanwhile.
pub(crate) fn write(data: &Data, operation: &mut Operation) -> Result<()> {
    write_version(data, operation, NEWEST)
}

/// Writes it if it is missing, as repair does: nobody knows what it said, so it says the least. True if it was missing.
pub(crate) fn restore(data: &Data, operation: &mut Operation) -> Result<bool> {
    let latest = data.catalog.latest();
    if let Some(collection) = latest.collection(Namespace::server_configuration()) {
        let found = data.write_path().find_by_id(operation, collection, Value::String(ID.into()))?;
        operation.recovery_unit.abandon_snapshot()?;
        if found.is_some() {
            return Ok(false);
        }
    }
    write_version(data, operation, OLDEST).map(|()| true)
}

fn write_version(data: &Data, operation: &mut Operation, version: &str) -> Result<()> {
    let namespace = Namespace::server_configuration();
    operation.in_unit_of_work(|operation| {
        let options = CollectionOptions::default();
        let collection = match data.catalog.collection_for_write(operation, namespace)? {
            Some(collection) => collection,
            None => data.catalog.create_collection(operation, &*data.observers, namespace, options)?,
        };
        let statements = [document(version)];
        let statements = statements.each_ref().map(|document| InsertStatement::new(document.view()));
        data.write_path().insert_documents(operation, &collection, &statements, InsertOptions::default()).map(|_| ())
    })
}

/// Writes it as soon as this node is primary; ends then, or when the data is gone.
pub(crate) async fn write_when_primary(env: Env, data: Weak<Data>, log: Log) {
    let complaints = RateLimit::new(COMPLAINT_INTERVAL_MS);
    loop {
        let Some(served) = data.upgrade() else { return };
        if is_wanted(&served) {
            let mut operation = served.services.internal_operation("FeatureCompatibilityVersion");
            let namespace = Namespace::server_configuration();
            let mut outcome = locking::lock_collection(&mut operation, namespace, Mode::X).await;
            if outcome.is_ok() && is_wanted(&served) {
                env.tasks().blocking(&mut || outcome = write(&served, &mut operation));
            }
            locking::unlock(&operation);
            // Stepping down in between fails it, and the next primary writes it; a full disk fails it until there is room.
            if let Err(error) = outcome
                && let Some(suppressed) = complaints.admit(env.clock().monotonic_ns() / 1_000_000)
            {
                let message = "Could not write the featureCompatibilityVersion document, trying again";
                let (level, component) = (Severity::Warning, Component::Storage);
                log!(log, level, component, 4_615_101, message, "error" = &error, "suppressed" = suppressed);
            }
        } else if served.catalog.latest().collection(Namespace::server_configuration()).is_some() {
            return;
        }
        drop(served);
        env.clock().sleep(INTERVAL).await;
    }
}

fn document(version: &str) -> Doc {
    doc! { "_id": ID, "version": version }
}
