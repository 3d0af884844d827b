//! `local.system.healthlog`: what checks have found, a document each, in a capped collection of this node alone.

use crate::Data;
use crate::locking::{lock_collection, unlock};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_catalog::CollectionOptions;
use pando_collection::{InsertOptions, InsertStatement};
use pando_doc::{Doc, DocBuilder, Value};
use pando_locks::Mode;
use pando_operation::{Operation, write_conflict_retry};

/// How much it keeps.
const SIZE_BYTES: i64 = 100_000_000;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Graveness {
    Info,
    Warning,
    Error,
}

impl Graveness {
    fn name(self) -> &'static str {
        match self {
            Graveness::Info => "info",
            Graveness::Warning => "warning",
            Graveness::Error => "error",
        }
    }
}

/// One finding.
pub(super) struct Finding<'a> {
    pub(super) namespace: Option<&'a Namespace>,
    pub(super) graveness: Graveness,
    pub(super) message: &'a str,
    /// `dbCheckStart`, `dbCheckBatch`, `dbCheckStop`.
    pub(super) operation: &'static str,
    pub(super) details: Option<Doc>,
}

/// Writes a finding down.
pub(super) async fn write(data: &Data, operation: &mut Operation, finding: &Finding<'_>) -> Result<()> {
    let env = &data.services.env;
    let now_ms = i64::try_from(env.clock().wall_ms()).unwrap_or(i64::MAX);
    let mut document = DocBuilder::new();
    document.append("_id", Value::ObjectId(data.query.object_ids.next(env)));
    document.append_some("namespace", finding.namespace.map(Namespace::as_str));
    document.append("timestamp", Value::DateTime(now_ms));
    document.append("severity", finding.graveness.name());
    document.append("msg", finding.message);
    document.append("scope", "cluster");
    document.append("operation", finding.operation);
    document.append_some("data", finding.details.as_ref());
    let document = document.finish();
    let outcome = insert(data, operation, &document).await;
    unlock(operation);
    outcome
}

async fn insert(data: &Data, operation: &mut Operation, document: &Doc) -> Result<()> {
    let namespace = Namespace::parse("local.system.healthlog")?;
    if data.catalog.latest().collection(&namespace).is_none() {
        lock_collection(operation, &namespace, Mode::X).await?;
        create(data, operation, &namespace).await?;
        unlock(operation);
    }
    lock_collection(operation, &namespace, Mode::IX).await?;
    write_conflict_retry(operation, "healthlog", &namespace, |operation| {
        let Some(collection) = data.catalog.collection_for_write(operation, &namespace)? else {
            return Err(Error::new(ErrorCode::NamespaceNotFound, format!("{namespace} is gone")));
        };
        operation.in_unit_of_work(|operation| {
            let statement = InsertStatement::new(document.view());
            let options = InsertOptions::default();
            data.write_path().insert_documents(operation, &collection, &[statement], options).map(|_| ())
        })
    })
    .await
}

async fn create(data: &Data, operation: &mut Operation, namespace: &Namespace) -> Result<()> {
    write_conflict_retry(operation, "createHealthlog", namespace, |operation| {
        if data.catalog.latest().collection(namespace).is_some() {
            return Ok(());
        }
        let options = CollectionOptions {
            capped: true,
            capped_size_bytes: SIZE_BYTES,
            auto_index_id: Some(false),
            ..CollectionOptions::default()
        };
        operation.in_unit_of_work(|operation| {
            data.catalog.create_collection(operation, &*data.observers, namespace, options.clone()).map(|_| ())
        })
    })
    .await
}
