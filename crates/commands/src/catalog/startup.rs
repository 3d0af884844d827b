//! What is odd about the collections that a start finds: told to whoever connects, and put right where that is safe.

use crate::{Data, locking};
use pando_base::{Component, Log, LogValue, Result, Severity, log};
use pando_catalog::{Collection, default_id_index_spec, requires_id_index};
use pando_doc::DocRef;
use pando_expr::{MatchExpression, ParseContext};
use pando_locks::Mode;
use pando_repl::ReplGate;
use std::sync::Arc;

/// Looks at all collections.
pub async fn check_at_startup(data: &Data, is_read_only: bool, log: &Log) -> Result<()> {
    let collections: Vec<Arc<Collection>> = data.catalog.latest().all_collections().cloned().collect();
    for collection in &collections {
        warn_of_validator(data, collection, log);
        // In a set the other members have the index too, or have it not.
        if !is_read_only && !data.replication.is_replicated() {
            build_missing_id_index(data, collection, log).await?;
        }
    }
    Ok(())
}

/// A validator of an older version may be none today. Writes to the collection fail then.
fn warn_of_validator(data: &Data, collection: &Collection, log: &Log) {
    let Some(validator) = &collection.options.validator else { return };
    let now_ms = i64::try_from(data.services.env.clock().wall_ms()).unwrap_or(i64::MAX);
    if let Err(error) = parse(validator.view(), now_ms) {
        let attributes =
            vec![("namespace", LogValue::from(&collection.namespace)), ("validatorStatus", LogValue::from(&error))];
        log.startup_warning(Component::Storage, 20293, "Collection has malformed validator", attributes);
    }
}

fn parse(validator: DocRef<'_>, now_ms: i64) -> Result<()> {
    MatchExpression::parse(validator, &ParseContext::new(now_ms)).map(|_| ())
}

/// A process that ended in the middle of `reIndex` has left none.
async fn build_missing_id_index(data: &Data, collection: &Arc<Collection>, log: &Log) -> Result<()> {
    let is_missing = collection.id_index().is_none() && requires_id_index(&collection.namespace, &collection.options);
    if !is_missing {
        return Ok(());
    }
    let namespace = &collection.namespace;
    log!(log, Severity::Info, Component::Storage, 4805002, "Building missing _id index", "namespace" = namespace);
    let mut operation = data.services.internal_operation("initandlisten");
    locking::lock_collection(&mut operation, namespace, Mode::X).await?;
    let specifications = [default_id_index_spec(&collection.options)];
    data.index_builds.build_exclusively(&mut operation, collection, &specifications).await?;
    locking::unlock(&operation);
    Ok(())
}
