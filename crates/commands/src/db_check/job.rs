//! Checks that were asked for, one after the other.

use super::LOGGED_BATCHES;
use super::batch::{Batch, read};
use super::health_log::{Finding, Graveness, write};
use crate::Data;
use crate::locking::{lock_for_note, unlock};
use pando_base::{Component, Error, ErrorCode, FailPoint, Log, Namespace, Result, Severity, Uuid, log};
use pando_doc::{Doc, DocBuilder, OwnedValue, compare, doc};
use pando_operation::{Operation, write_conflict_retry};
use pando_oplog::OpTime;
use pando_repl::ReplGate;
use parking_lot::Mutex;
use std::cmp::Ordering;
use std::sync::Weak;
use std::time::Duration;
use tokio::sync::mpsc;

/// A check that is about to begin waits.
pub(super) static BEFORE_RUN: FailPoint = FailPoint::new("hangBeforeProcessingDbCheckRun");
/// A batch was read and is not in the oplog yet.
pub(super) static BEFORE_ENTRY: FailPoint = FailPoint::new("hangBeforeAddingDBCheckBatchToOplog");

/// How much of a collection is checked, and how fast.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub(super) documents: i64,
    pub(super) bytes: i64,
    pub(super) documents_per_second: i64,
    pub(super) batch_documents: i64,
    pub(super) batch_bytes: i64,
    pub(super) batch_ms: i64,
}

/// What is checked of one collection.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) namespace: Namespace,
    pub(super) uuid: Uuid,
    /// Not part of the range itself.
    pub(super) min: OwnedValue,
    pub(super) max: OwnedValue,
    pub(super) limits: Limits,
}

/// One check.
#[derive(Debug)]
pub(super) struct Run(pub(super) Vec<Range>);

/// The checks that wait.
#[derive(Debug)]
pub struct DbChecks {
    asked: mpsc::UnboundedSender<Run>,
    /// Until somebody serves them.
    waiting: Mutex<Option<mpsc::UnboundedReceiver<Run>>>,
}

impl Default for DbChecks {
    fn default() -> DbChecks {
        let (asked, waiting) = mpsc::unbounded_channel();
        DbChecks { asked, waiting: Mutex::new(Some(waiting)) }
    }
}

impl DbChecks {
    pub(super) fn start(&self, run: Run) -> Result<()> {
        self.asked.send(run).map_err(|_| Error::new(ErrorCode::InterruptedAtShutdown, "the node is shutting down"))
    }
}

/// Makes the checks that are asked for, until the data are gone.
pub async fn keep_checking(data: Weak<Data>, log: Log) {
    let Some(mut waiting) = data.upgrade().and_then(|data| data.checks.waiting.lock().take()) else { return };
    while let Some(run) = waiting.recv().await {
        let Some(data) = data.upgrade() else { return };
        if let Err(error) = make(&data, &run).await {
            let message = "Could not write down a dbCheck";
            log!(log, Severity::Warning, Component::Command, 6_202_200, message, "error" = &error);
        }
    }
}

async fn make(data: &Data, run: &Run) -> Result<()> {
    let mut operation = data.services.internal_operation("dbCheck");
    let mark = |operation: &'static str| Finding {
        namespace: None,
        graveness: Graveness::Info,
        message: "",
        operation,
        details: None,
    };
    let admin = Namespace::parse("admin.$cmd")?;
    let entry = |kind: &str| doc! { "dbCheck": (admin.as_str()), "type": kind };
    write(data, &mut operation, &mark("dbCheckStart")).await?;
    append(data, &mut operation, &admin, None, &entry("start")).await?;
    if BEFORE_RUN.should_fail() {
        BEFORE_RUN.until_off().await;
    }
    let mut batches = 0_i32;
    for range in &run.0 {
        if let Err(error) = check(data, &mut operation, range, &mut batches).await {
            let (graveness, message) = told(error.code());
            let details = doc! { "success": false, "error": (error.to_string()) };
            let finding = Finding {
                namespace: Some(&range.namespace),
                graveness,
                message,
                operation: "dbCheckBatch",
                details: Some(details),
            };
            write(data, &mut operation, &finding).await?;
        }
    }
    append(data, &mut operation, &admin, None, &entry("stop")).await?;
    write(data, &mut operation, &mark("dbCheckStop")).await
}

/// How a check that cannot go on is written down.
fn told(code: ErrorCode) -> (Graveness, &'static str) {
    match code {
        ErrorCode::NamespaceNotFound => {
            (Graveness::Warning, "abandoning dbCheck batch because collection no longer exists")
        }
        ErrorCode::IndexNotFound => {
            (Graveness::Warning, "skipping dbCheck on collection because it is missing an _id index")
        }
        ErrorCode::NotWritablePrimary | ErrorCode::PrimarySteppedDown => {
            (Graveness::Warning, "stopping dbCheck because node is no longer primary")
        }
        _ => (Graveness::Error, "dbCheck batch failed"),
    }
}

async fn check(data: &Data, operation: &mut Operation, range: &Range, batches: &mut i32) -> Result<()> {
    let (mut documents, mut bytes) = (0_i64, 0_i64);
    let mut start = range.min.clone();
    loop {
        operation.context.check()?;
        data.replication.check_can_write(&range.namespace)?;
        let began_ns = operation.env.clock().monotonic_ns();
        let batch = read(data, operation, range, &start).await?;
        if BEFORE_ENTRY.should_fail() {
            BEFORE_ENTRY.until_off().await;
        }
        let entry = entry_of(range, &start, &batch);
        let at = append(data, operation, &range.namespace, Some(range.uuid), &entry).await?;
        *batches = batches.wrapping_add(1);
        if *batches % data.services.parameters.get(&LOGGED_BATCHES) == 0 {
            let finding = Finding {
                namespace: Some(&range.namespace),
                graveness: Graveness::Info,
                message: "dbCheck batch consistent",
                operation: "dbCheckBatch",
                details: Some(details_of(&start, &batch, at)),
            };
            write(data, operation, &finding).await?;
        }
        documents += batch.documents;
        bytes += batch.bytes;
        let is_at_end = compare(batch.last.view(), range.max.view()) != Ordering::Less;
        if is_at_end || documents >= range.limits.documents || bytes >= range.limits.bytes {
            return Ok(());
        }
        rest(operation, range.limits.documents_per_second, batch.documents, began_ns).await?;
        start = batch.last;
    }
}

/// Waits until so many documents a second are no more than were wished for.
async fn rest(operation: &mut Operation, per_second: i64, documents: i64, began_ns: u64) -> Result<()> {
    if per_second <= 0 || documents <= per_second {
        return Ok(());
    }
    let seconds = u64::try_from(documents / per_second).unwrap_or(0);
    let passed = Duration::from_nanos(operation.env.clock().monotonic_ns().saturating_sub(began_ns));
    let sleep = operation.env.clock().sleep(Duration::from_secs(seconds).saturating_sub(passed));
    operation.context.interruptible(sleep).await
}

fn entry_of(range: &Range, start: &OwnedValue, batch: &Batch) -> Doc {
    let mut entry = DocBuilder::new();
    entry.append("dbCheck", range.namespace.as_str());
    entry.append("type", "batch");
    entry.append("md5", batch.hash.as_str());
    entry.append("minKey", start.view());
    entry.append("maxKey", batch.last.view());
    entry.append("readTimestamp", pando_doc::Value::Timestamp(batch.read_at));
    entry.finish()
}

fn details_of(start: &OwnedValue, batch: &Batch, at: OpTime) -> Doc {
    let mut details = DocBuilder::new();
    details.append("success", true);
    details.append("count", batch.documents);
    details.append("bytes", batch.bytes);
    details.append("md5", doc! { "expected": (batch.hash.as_str()), "found": (batch.hash.as_str()) });
    details.append("minKey", start.view());
    details.append("maxKey", batch.last.view());
    details.append("readTimestamp", pando_doc::Value::Timestamp(batch.read_at));
    at.append_as("optime", &mut details);
    details.finish()
}

/// Adds an entry to the oplog.
async fn append(
    data: &Data,
    operation: &mut Operation,
    namespace: &Namespace,
    uuid: Option<Uuid>,
    entry: &Doc,
) -> Result<OpTime> {
    lock_for_note(operation).await?;
    let outcome = match data.replication.is_writable_primary() {
        false => Err(Error::new(ErrorCode::NotWritablePrimary, "dbCheck terminated due to stepdown")),
        true => {
            write_conflict_retry(operation, "dbCheck oplog entry", Namespace::oplog(), |operation| {
                operation.in_unit_of_work(|operation| {
                    data.oplog_writer().append_command(operation, namespace, uuid, entry.view())
                })
            })
            .await
        }
    };
    unlock(operation);
    outcome
}
