//! One visit: what has expired by one index is deleted, all of it or a part.

use super::HANG_WITH_LOCK;
use super::parameters::{BATCH_DELETES, TARGET_DOCUMENTS, TARGET_TIME_MS};
use super::pass::Pass;
use crate::SLOW_MS;
use crate::locking::lock_collection;
use crate::watch::{account, meter_for};
use pando_base::{Component, Error, ErrorCode, Result, Severity, Uuid, log};
use pando_catalog::{Collection, Index, IndexKind, is_expiry_usable};
use pando_locks::{Mode, Priority};
use pando_operation::Operation;
use pando_query::stage::DeleteTarget;
use pando_query::write::{ExpireResult, Expired};
use pando_repl::ReplGate;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// An operation that gives its locks back when it goes, also if the server ends in the middle of it.
pub(super) struct VisitOperation(pub(super) Operation);

impl Deref for VisitOperation {
    type Target = Operation;

    fn deref(&self) -> &Operation {
        &self.0
    }
}

impl DerefMut for VisitOperation {
    fn deref_mut(&mut self) -> &mut Operation {
        &mut self.0
    }
}

impl Drop for VisitOperation {
    fn drop(&mut self) {
        self.0.locker.unlock_everything();
    }
}

/// A visit to an index of a collection; without a name, to its cluster key.
pub(super) struct Visit<'a> {
    pub(super) pass: &'a Pass<'a>,
    pub(super) collection: Uuid,
    pub(super) index: Option<&'a str>,
    pub(super) priority: Priority,
}

impl Visit<'_> {
    /// Deletes; true if something may be left. An error is one that ends the whole pass.
    pub(super) async fn run(&self) -> Result<bool> {
        let data = self.pass.data;
        let Some(known) = data.catalog.latest().collection_by_uuid(&self.collection).cloned() else { return Ok(false) };
        let context = data.services.operations.start(&Arc::new(pando_base::Client::internal("TTLMonitor")));
        let database = known.namespace.database_name();
        if let Some(meter) = meter_for(&data.services.parameters, &database) {
            context.measure_resources(meter);
        }
        let mut operation = VisitOperation(data.services.operation_of(context));
        operation.locker.set_priority(self.priority);
        let outcome = self.run_on(&mut operation, &known).await;
        account(self.pass.counters, &data.services.parameters, &operation.context, &database, true);
        match outcome {
            Ok(done) => Ok(done.has_more),
            // The whole monitor was told to stop, not only this visit.
            Err(error) if operation.context.check().is_err() => Err(error),
            // Somebody has dropped it meanwhile.
            Err(error) if error.code() == ErrorCode::QueryPlanKilled => Ok(false),
            Err(error) => {
                log!(
                    self.pass.log,
                    Severity::Error,
                    Component::Index,
                    5400703,
                    "Error running TTL job on collection",
                    "namespace" = &known.namespace,
                    "error" = &error
                );
                Ok(false)
            }
        }
    }

    async fn run_on(&self, operation: &mut Operation, known: &Collection) -> Result<ExpireResult> {
        let data = self.pass.data;
        let namespace = &known.namespace;
        lock_collection(operation, namespace, Mode::IX).await?;
        // It may have been dropped, renamed or changed before the lock was there.
        let Some(collection) = data.catalog.latest().collection(namespace).cloned() else {
            return Ok(ExpireResult::default());
        };
        if collection.uuid != self.collection {
            return Ok(ExpireResult::default());
        }
        operation.context.interruptible(HANG_WITH_LOCK.pause_while_on()).await?;
        if data.replication.check_can_write(namespace).is_err() {
            return Ok(ExpireResult::default());
        }
        let Some((index, seconds)) = self.expiry(&collection) else { return Ok(ExpireResult::default()) };
        let wall_ms = i64::try_from(operation.env.clock().wall_ms()).unwrap_or(i64::MAX);
        let kept_seconds = seconds.saturating_add(bucket_span_seconds(&collection));
        let until_ms = wall_ms.saturating_sub(kept_seconds.saturating_mul(1000));
        let is_batched = self.is_batched(&collection);
        let target = if is_batched { self.target(operation) } else { DeleteTarget::default() };
        let expired = Expired { index: index.as_ref(), until_ms, target, is_batched };
        let start_ns = operation.context.now_ns();
        let done = data.query.delete_expired(operation, &collection, &expired).await?;
        self.pass.counters.ttl.deleted.add(done.deleted);
        self.tell(&collection, done, operation.context.now_ns().saturating_sub(start_ns) / 1_000_000);
        Ok(done)
    }

    /// The index, and after how many seconds it lets documents expire; none if it does not, or cannot be used.
    fn expiry(&self, collection: &Collection) -> Option<(Option<Arc<Index>>, i64)> {
        let Some(name) = self.index else {
            return collection.options.expire_after_seconds.map(|seconds| (None, seconds));
        };
        let index = collection.index(name).filter(|index| index.ready)?;
        match check(index) {
            Ok(seconds) => Some((Some(Arc::clone(index)), seconds)),
            Err(error) => {
                self.pass.counters.ttl.invalid.increment();
                log!(
                    self.pass.log,
                    Severity::Error,
                    Component::Index,
                    6909100,
                    "Skipping TTL job due to invalid index spec",
                    "reason" = error.reason(),
                    "ns" = &collection.namespace,
                    "index" = name
                );
                None
            }
        }
    }

    /// Where images of documents before their change are kept, they are deleted one by one.
    fn is_batched(&self, collection: &Collection) -> bool {
        self.pass.data.services.parameters.get(&BATCH_DELETES) && !collection.options.pre_and_post_images
    }

    /// How much one visit deletes, where there are batches.
    fn target(&self, operation: &Operation) -> DeleteTarget {
        let parameters = &self.pass.data.services.parameters;
        let limited = |number: i32| u64::try_from(number).ok().filter(|number| *number > 0);
        let now_ns = operation.context.now_ns();
        let until = |ms: u64| now_ns.saturating_add(ms.saturating_mul(1_000_000));
        DeleteTarget {
            documents: limited(parameters.get(&TARGET_DOCUMENTS)),
            until_ns: limited(parameters.get(&TARGET_TIME_MS)).map(until),
        }
    }

    fn tell(&self, collection: &Collection, done: ExpireResult, duration_ms: u64) {
        let slow_ms = u64::try_from(self.pass.data.services.parameters.get(&SLOW_MS)).unwrap_or(0);
        if duration_ms < slow_ms {
            return;
        }
        let (id, message) = match self.index {
            Some(_) => (5479200, "Deleted expired documents using index"),
            None => (5400702, "Deleted expired documents using clustered index scan"),
        };
        log!(
            self.pass.log,
            Severity::Info,
            Component::Index,
            id,
            message,
            "namespace" = &collection.namespace,
            "index" = self.index.unwrap_or_default(),
            "numDeleted" = done.deleted,
            "durationMillis" = duration_ms
        );
    }
}

/// How many seconds an index says, if it can be used.
fn check(index: &Index) -> Result<i64> {
    let descriptor = &index.descriptor;
    let Some(seconds) = descriptor.expire_after_seconds else { return Err(Error::bad_value("it does not expire")) };
    let is_simple = descriptor.kind == IndexKind::Btree && descriptor.key_pattern.view().elements().count() == 1;
    if !is_simple {
        return Err(Error::bad_value("TTL indexes are single-field indexes"));
    }
    if !is_expiry_usable(descriptor.specification.view()) {
        return Err(Error::bad_value("TTL index 'expireAfterSeconds' option must be within an acceptable range"));
    }
    Ok(seconds)
}

/// How much younger than its id a measurement in a bucket can be; nothing where there are no buckets.
fn bucket_span_seconds(collection: &Collection) -> i64 {
    let Some(options) = &collection.options.timeseries else { return 0 };
    options.get("bucketMaxSpanSeconds").map_or(0, |span| span.to_i64_or_zero())
}
