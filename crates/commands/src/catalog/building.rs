//! Index builds as commands meet them: waiting for one, and ending those that are in the way of a change.
//!
//! A build needs the collection's locks for each of its steps and for its end; whoever waits for one must hold none.

use super::change::lock_exclusively;
use crate::{Data, locking};
use pando_base::{Category, Component, Error, ErrorCode, Namespace, Result, Severity, log};
use pando_index_build::{ActiveBuild, Finished};
use pando_operation::Operation;
use std::time::Duration;

/// Waits for a build that this command has asked for. If the command is told to stop, so is the build; it goes on if only the
/// server or the node's part in its set ends.
pub(super) async fn await_own_build(data: &Data, operation: &mut Operation, build: &ActiveBuild) -> Result<Finished> {
    locking::unlock(operation);
    let finished = match wait(operation, build).await {
        Ok(outcome) => outcome,
        Err(interruption) => {
            if goes_on(&interruption) {
                return Err(failed(build, interruption));
            }
            let reason = format!("{interruption}");
            data.index_builds.abort(build, &reason).await;
            return Err(failed(build, interruption));
        }
    };
    match finished {
        Ok(finished) => {
            operation.last_commit = match (operation.last_commit, finished.last_commit) {
                (Some(before), Some(last)) => Some(before.joined(last)),
                (before, last) => last.or(before),
            };
            Ok(finished)
        }
        Err(error) => {
            let (log, message) = (&data.services.log, "Index build: joined after abort");
            let (uuid, status) = (build.build_uuid, &error);
            log!(log, Severity::Info, Component::Index, 20655, message, "buildUUID" = uuid, "status" = status);
            Err(failed(build, error))
        }
    }
}

/// Waits for a build that somebody else has asked for, however it ends.
pub(super) async fn await_other_build(operation: &mut Operation, build: &ActiveBuild) -> Result<()> {
    locking::unlock(operation);
    wait(operation, build).await.map(|_| ())
}

async fn wait(operation: &mut Operation, build: &ActiveBuild) -> Result<Result<Finished>> {
    let context = operation.context.clone();
    let waited = context.interruptible(build.wait());
    let Some(remaining_ns) = context.remaining_ns() else { return waited.await };
    let sleep = operation.env.clock().sleep(Duration::from_nanos(remaining_ns));
    tokio::select! {
        biased;
        outcome = waited => outcome,
        () = sleep => {
            context.check()?;
            Err(Error::new(ErrorCode::MaxTimeMSExpired, "operation exceeded time limit"))
        }
    }
}

fn goes_on(interruption: &Error) -> bool {
    let code = interruption.code();
    code.is(Category::NotPrimaryError) || code.is(Category::ShutdownError)
}

fn failed(build: &ActiveBuild, error: Error) -> Error {
    let ActiveBuild { build_uuid, namespace, collection_uuid, .. } = build;
    error.context(format!("Index build failed: {build_uuid}: Collection {namespace} ( {collection_uuid} )"))
}

/// Locks a collection, and others with it, in X when no index builds of it are under way: those that are get ended for this
/// reason.
pub(super) async fn lock_without_builds(
    data: &Data,
    operation: &mut Operation,
    namespaces: &[&Namespace],
    reason: &str,
) -> Result<()> {
    loop {
        lock_exclusively(data, operation, namespaces).await?;
        let latest = data.catalog.latest();
        let uuids = namespaces.iter().filter_map(|namespace| latest.collection(namespace)).map(|found| found.uuid);
        let built = uuids.into_iter().find(|uuid| !data.index_builds.of_collection(*uuid).is_empty());
        drop(latest);
        let Some(uuid) = built.filter(|_| !operation.in_multi_document_transaction()) else { return Ok(()) };
        locking::unlock(operation);
        data.index_builds.abort_collection(uuid, reason).await;
        operation.context.check()?;
    }
}
