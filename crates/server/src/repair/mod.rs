//! Repair of the data above the engine: what `--repair` does once the engine's files are sound.
//!
//! First the catalog ([`repair_catalog`]), so that it can be read. Then, with the node's data put together but nobody let in
//! ([`repair_data`]): every collection is validated, and what validation can put right is; a collection of which something is lost,
//! or that validation cannot put right, has all of its indexes rebuilt (`collections`). Documents that stand in the way of a unique
//! index go to `local.lost_and_found.<uuid>`. The document of the feature compatibility version is written if it is missing. If
//! anything was changed, the configuration of a set with other members is invalidated: the node must not take part in it with
//! data that the others do not have.

mod collections;

use crate::compatibility;
use crate::options::{ReplicationMode, ServerOptions};
use crate::start::Grounds;
use pando_base::{Component, Error, Log, Namespace, Progress, Result, Severity, log};
use pando_catalog::CATALOG_IDENT;
use pando_commands::Data;
use pando_doc::{Doc, DocBuilder};
use pando_env::{Env, Machine};
use pando_operation::Operation;
use pando_storage::Engine;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Of the bar that shows how many collections are done.
const PROGRESS_ID: u64 = 0;

/// What is known of the damage, and what was done about it so far.
#[derive(Clone, Debug, Default)]
pub struct RepairReport {
    /// Tables that have lost something.
    pub damaged: BTreeSet<String>,
    /// It is not known which tables have.
    pub is_anything_damaged: bool,
    /// In words, one for each change.
    pub changes: Vec<String>,
}

impl RepairReport {
    /// Something was done.
    pub fn note(&mut self, log: &Log, change: String) {
        let message = "Repair has changed data";
        log!(log, Severity::Warning, Component::Storage, 22_248, message, "change" = change.as_str());
        self.changes.push(change);
    }
}

/// Repairs the catalog, with whatever mode the engine was opened in.
pub fn repair_catalog(env: &Env, engine: &Arc<dyn Engine>, log: &Log, report: &mut RepairReport) -> Result<()> {
    let is_suspect = report.is_anything_damaged || report.damaged.contains(CATALOG_IDENT);
    let done = pando_catalog::repair_catalog(env, engine, is_suspect)?;
    done.changes.into_iter().for_each(|change| report.note(log, change));
    report.damaged.extend(done.to_rebuild);
    Ok(())
}

/// Repairs collections and what a node needs to start. The engine is open as that of a node that stands alone.
pub async fn repair_data(
    env: &Env,
    machine: &dyn Machine,
    engine: &Arc<dyn Engine>,
    options: &ServerOptions,
    log: &Log,
    report: &mut RepairReport,
) -> Result<()> {
    let alone = ServerOptions { replication: ReplicationMode::StandAlone, ..options.clone() };
    let grounds = Grounds::new(env, machine, &alone, log, Some(engine))?;
    let Some(data) = &grounds.data else { return Err(Error::internal("there is nothing to repair")) };
    let mut namespaces: Vec<Namespace> =
        data.catalog.latest().all_collections().map(|collection| collection.namespace.clone()).collect();
    namespaces.retain(|namespace| !namespace.is_oplog());
    for (place, namespace) in namespaces.iter().enumerate() {
        let message = "Repairing collection";
        log!(log, Severity::Info, Component::Storage, 21_027, message, "namespace" = namespace.as_str());
        let what = format!("{message} {namespace}");
        let progress = Progress { what: &what, done: place as u64, total: namespaces.len() as u64 };
        log.show_progress(PROGRESS_ID, Some(progress));
        let repaired = collections::repair(data, namespace, log, report).await;
        log.show_progress(PROGRESS_ID, None);
        repaired?;
    }
    let mut operation = data.services.internal_operation("repair");
    if compatibility::restore(data, &mut operation)? {
        report.note(log, "the featureCompatibilityVersion document was missing; it is that of 6.0 now".to_owned());
    }
    if !report.changes.is_empty() && invalidate_configuration(data, &mut operation)? {
        report.note(log, "the configuration of the replica set was invalidated".to_owned());
    }
    Ok(())
}

/// Marks the configuration of a set that others are members of, too; false if there is none, or it is marked.
fn invalidate_configuration(data: &Data, operation: &mut Operation) -> Result<bool> {
    let local = &data.replication_parts.local;
    let Some(stored) = local.first(operation, Namespace::system_replset())? else { return Ok(false) };
    let members = stored.get("members").and_then(|members| members.as_array()).map_or(0, |members| members.len());
    if members < 2 || stored.get("repaired").is_some() {
        return Ok(false);
    }
    local.replace(operation, Namespace::system_replset(), marked(&stored).view())?;
    Ok(true)
}

fn marked(configuration: &Doc) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append_all(configuration.view());
    builder.append("repaired", true);
    builder.finish()
}
