//! Removes documents that were kept for change streams (`config.system.preimages`) when nobody can ask for them any more: their
//! change has left the oplog, or they are older than the cluster parameter `changeStreamOptions` lets them become.
//!
//! They lie by collection and time, so that of every collection a beginning has expired. Where it ends is reckoned from the times,
//! and all before it goes at the cost of one write, however much it is. What is left of it, within a second or where the cluster's
//! time is ahead of the clock, goes one by one: the first that has not expired is where the look at its collection ends.
//! Every node removes its own, whatever its state, with no word of it in the oplog and at no time of its own: who reads at an
//! earlier time may find it gone. What was removed since the last checkpoint comes back after a crash, since recovery makes the
//! kept documents anew from the oplog; so the first look is at the start.

use crate::Data;
use crate::locking::lock_collection;
use pando_base::{
    AnyParameter, Client, Component, Log, Namespace, Parameter, RecordId, Result, Severity, Timestamp, Uuid, log,
};
use pando_catalog::Collection;
use pando_doc::{Doc, DocRef, Value};
use pando_env::Env;
use pando_locks::Mode;
use pando_operation::{Operation, write_conflict_retry, yield_now};
use pando_session::PreImage;
use pando_storage::Direction;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long the job sleeps.
static SLEEP_SECONDS: Parameter<i32> = Parameter::new(
    "expiredChangeStreamPreImageRemovalJobSleepSecs",
    10,
    "How many seconds there are between looks for expired documents that were kept for change streams.",
)
.at_least(1);

/// What can be set.
pub static PARAMETERS: &[&dyn AnyParameter] = &[&SLEEP_SECONDS];

/// As many are removed in one unit of work.
const BATCH_COUNT_MAX: usize = 500;

/// Removes and sleeps, until the data is gone.
pub async fn keep_removing(env: Env, data: Weak<Data>, log: Log) {
    while let Some(data) = data.upgrade() {
        if let Err(error) = remove_expired(&data).await {
            let message = "Periodic expired pre-images removal job was interrupted";
            log!(log, Severity::Warning, Component::Query, 5869105, message, "errorCode" = &error);
        }
        let seconds = data.services.parameters.get(&SLEEP_SECONDS).unsigned_abs();
        drop(data);
        env.clock().sleep(Duration::from_secs(u64::from(seconds))).await;
    }
}

/// What has expired.
struct Expired {
    /// Changes before this time have left the oplog.
    oldest: Timestamp,
    /// Changes up to then are too old.
    until_ms: Option<i64>,
}

impl Expired {
    /// Changes before this time have all expired. A change has a time that is not a second before its date.
    fn end(&self) -> Timestamp {
        let seconds = self.until_ms.map_or(0, |until_ms| until_ms.div_euclid(1000) - 1);
        self.oldest.max(Timestamp::new(u32::try_from(seconds).unwrap_or(0), 0))
    }

    fn contains(&self, time: Timestamp, changed_ms: i64) -> bool {
        time < self.oldest || self.until_ms.is_some_and(|until_ms| changed_ms <= until_ms)
    }
}

/// Removes what has expired by now; how many that were.
pub async fn remove_expired(data: &Arc<Data>) -> Result<u64> {
    let context = data.services.operations.start(&Arc::new(Client::internal("ChangeStreamExpiredPreImagesRemover")));
    let mut operation = data.services.operation_of(context);
    let removed = remove_with(data, &mut operation).await;
    operation.locker.unlock_everything();
    removed
}

async fn remove_with(data: &Arc<Data>, operation: &mut Operation) -> Result<u64> {
    let namespace = Namespace::pre_images();
    let Some(oldest) = data.services.engine.oplog().and_then(|oplog| oplog.first()) else { return Ok(0) };
    lock_collection(operation, namespace, Mode::IX).await?;
    let Some(collection) = data.catalog.latest().collection(namespace).cloned() else { return Ok(0) };
    let now_ms = i64::try_from(operation.env.clock().wall_ms()).unwrap_or(i64::MAX);
    let seconds = data.settings.pre_images_expire_after_seconds();
    let until_ms = seconds.map(|seconds| now_ms.saturating_sub(seconds.saturating_mul(1000)));
    let expired = Expired { oldest, until_ms };
    let mut removed = truncate(operation, &collection, &expired).await?;
    let mut place = None;
    loop {
        operation.context.check()?;
        let found = find(operation, &collection, &expired, &mut place)?;
        if found.is_empty() {
            return Ok(removed);
        }
        write_conflict_retry(operation, "remove", namespace, |operation| {
            operation.in_unit_of_work(|operation| data.session_table.remove_pre_images(operation, &found))
        })
        .await?;
        removed += found.len() as u64;
        operation.recovery_unit.abandon_snapshot()?;
        yield_now().await;
    }
}

/// Removes of every collection what has expired as a range; how many that were.
async fn truncate(operation: &mut Operation, collection: &Collection, expired: &Expired) -> Result<u64> {
    let end = expired.end();
    let (mut removed, mut place) = (0, None);
    while let Some((first, uuid)) = first_at(operation, collection, place.as_ref())? {
        operation.context.check()?;
        place = Some(edge(uuid, Timestamp::MAX)?);
        if let Some(last) = last_before(operation, collection, &first, &edge(uuid, end)?)? {
            let gone = write_conflict_retry(operation, "truncate", &collection.namespace, |operation| {
                operation.in_unit_of_work(|operation| {
                    let unit = &mut operation.recovery_unit;
                    Ok(collection.records.range_truncate(unit, Some(&first), Some(&last), None)?)
                })
            })
            .await?;
            removed += u64::try_from(gone.records).unwrap_or(0);
        }
        operation.recovery_unit.abandon_snapshot()?;
        yield_now().await;
    }
    Ok(removed)
}

/// The first kept document behind a place, and its collection.
fn first_at(
    operation: &mut Operation,
    collection: &Collection,
    place: Option<&RecordId>,
) -> Result<Option<(RecordId, Uuid)>> {
    let unit = &mut operation.recovery_unit;
    let mut cursor = collection.records.cursor(Direction::Forward);
    let mut record = match place {
        Some(place) => cursor.seek(unit, place)?,
        None => cursor.next(unit)?,
    };
    while let Some(found) = record {
        // What is no kept document is left to those who look at each.
        if let Some((uuid, ..)) = facts(DocRef::trusted(found.value)) {
            return Ok(Some((found.id, uuid)));
        }
        record = cursor.next(unit)?;
    }
    Ok(None)
}

/// The last record before a place, if it is not before the first.
fn last_before(
    operation: &mut Operation,
    collection: &Collection,
    first: &RecordId,
    end: &RecordId,
) -> Result<Option<RecordId>> {
    let unit = &mut operation.recovery_unit;
    let mut cursor = collection.records.cursor(Direction::Reverse);
    let last = cursor.seek(unit, end)?.map(|record| record.id);
    Ok(last.filter(|last| last >= first && last < end))
}

/// The next batch of what has expired, from a place on, which is moved.
fn find(
    operation: &mut Operation,
    collection: &Collection,
    expired: &Expired,
    place: &mut Option<RecordId>,
) -> Result<Vec<(RecordId, Doc)>> {
    let unit = &mut operation.recovery_unit;
    let mut cursor = collection.records.cursor(Direction::Forward);
    let mut record = match place {
        Some(place) => cursor.seek(unit, place)?.map(|record| (record.id, DocRef::trusted(record.value).to_doc())),
        None => cursor.next(unit)?.map(|record| (record.id, DocRef::trusted(record.value).to_doc())),
    };
    let mut found = Vec::new();
    while let Some((id, document)) = record {
        *place = Some(id.clone());
        if found.len() >= BATCH_COUNT_MAX {
            break;
        }
        let next = match facts(document.view()) {
            Some((uuid, time, changed_ms)) if !expired.contains(time, changed_ms) => cursor
                .seek(unit, &edge(uuid, Timestamp::MAX)?)?
                .map(|record| (record.id, DocRef::trusted(record.value).to_doc())),
            _ => {
                found.push((id, document));
                cursor.next(unit)?.map(|record| (record.id, DocRef::trusted(record.value).to_doc()))
            }
        };
        record = next;
    }
    Ok(found)
}

/// Collection, time and date of a kept document; none if it is none.
fn facts(document: DocRef<'_>) -> Option<(Uuid, Timestamp, i64)> {
    let id = document.get("_id")?.as_document()?;
    let Some(Value::Binary { subtype: 4, bytes }) = id.get("nsUUID") else { return None };
    let changed_ms = document.get("operationTime")?.as_date()?;
    Some((Uuid::from_slice(bytes).ok()?, id.get("ts")?.as_timestamp()?, changed_ms))
}

/// The place before every change of a collection at this time or later; with the last time of all, behind everything.
fn edge(collection: Uuid, time: Timestamp) -> Result<RecordId> {
    let last = PreImage {
        collection,
        time,
        apply_ops_index: if time == Timestamp::MAX { i64::MAX } else { i64::MIN },
        wall_ms: 0,
        document: DocRef::EMPTY,
    };
    let document = last.to_doc();
    pando_collection::cluster_key(document.get("_id").unwrap_or(Value::Null), None)
}
