//! Inserting measurements.
//!
//! Measurements of one source that fit into one bucket are written together. A bucket is looked up in the catalog, read, added to as long as
//! it has room, and stored; with what is left the next bucket is tried.

use super::options::{catalog_bytes_max, limits, options_of};
use crate::QueryEngine;
use crate::write::InsertDocument;
use pando_base::{Error, ErrorCode, Result};
use pando_catalog::Collection;
use pando_collection::{InsertOptions, InsertStatement, UpdateArguments};
use pando_doc::{Doc, ObjectId, OwnedValue, SharedCollator, StringComparator, Value};
use pando_operation::{Operation, write_conflict_retry};
use pando_oplog::{StatementIds, update_object};
use pando_timeseries::{
    Bucket, BucketLimits, Candidate, Closed, Rollover, SourceKey, TimeseriesOptions, bucket_id, measurement_time,
};
use std::collections::HashMap;
use std::sync::Arc;

/// A bucket that is not what the catalog says is given up for another; so often.
const ATTEMPTS_MAX: u32 = 16;

/// A measurement on its way into a bucket.
struct Measurement<'a> {
    /// Its place among those to be inserted.
    place: usize,
    insert: &'a InsertDocument,
    time_ms: i64,
}

/// What came of adding to a bucket.
enum Added {
    /// So many were stored.
    Stored { count: usize, is_new: bool, reason: Option<Rollover>, is_kept_open: bool },
    /// There is no room.
    Full(Rollover),
    /// It is not what it was.
    Unusable,
}

/// What the inserts into one collection have in common.
struct Target<'a> {
    collection: &'a Arc<Collection>,
    options: TimeseriesOptions,
    limits: BucketLimits,
    collator: Option<SharedCollator>,
}

impl QueryEngine {
    /// Inserts measurements into a collection of buckets and tells of each what became of it; after an error only those before it, if the
    /// order matters.
    pub async fn insert_measurements(
        &self,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        documents: &[InsertDocument],
        is_ordered: bool,
    ) -> Vec<Result<()>> {
        let target = match self.target(operation, collection) {
            Ok(target) => target,
            Err(error) => return vec![Err(error); documents.len()],
        };
        let mut outcomes: Vec<Result<()>> = Vec::with_capacity(documents.len());
        let mut sources: Vec<(SourceKey, Option<OwnedValue>, Vec<Measurement<'_>>)> = Vec::new();
        let mut known: HashMap<SourceKey, usize> = HashMap::new();
        for (place, insert) in documents.iter().enumerate() {
            match measurement_time(insert.document.view(), &target.options) {
                Err(error) => {
                    outcomes.push(Err(error));
                    if is_ordered {
                        break;
                    }
                }
                Ok(time_ms) => {
                    outcomes.push(Ok(()));
                    let meta = Bucket::meta_of(insert.document.view(), &target.options);
                    let key = SourceKey::new(collection.uuid, meta.as_ref().map(OwnedValue::view));
                    let source = *known.entry(key.clone()).or_insert_with(|| {
                        sources.push((key, meta, Vec::new()));
                        sources.len() - 1
                    });
                    if let Some((.., measurements)) = sources.get_mut(source) {
                        measurements.push(Measurement { place, insert, time_ms });
                    }
                }
            }
        }
        for (key, meta, measurements) in &sources {
            let mut rest = &measurements[..];
            while let Some(first) = rest.first() {
                match self.insert_some(operation, &target, key, meta.as_ref(), rest).await {
                    Ok(count) => rest = rest.get(count.max(1)..).unwrap_or_default(),
                    Err(error) => {
                        if let Some(outcome) = outcomes.get_mut(first.place) {
                            *outcome = Err(error);
                        }
                        if is_ordered {
                            outcomes.truncate(first.place + 1);
                            return outcomes;
                        }
                        rest = rest.get(1..).unwrap_or_default();
                    }
                }
            }
        }
        outcomes
    }

    fn target<'a>(&self, operation: &Operation, collection: &'a Arc<Collection>) -> Result<Target<'a>> {
        let options = options_of(collection)?;
        let context = self.parse_context(operation, &Doc::new(), &Doc::new(), Some(collection))?;
        Ok(Target { collection, options, limits: limits(&self.parameters), collator: context.collator })
    }

    /// Inserts measurements of one source into one bucket; how many it took.
    async fn insert_some(
        &self,
        operation: &mut Operation,
        target: &Target<'_>,
        key: &SourceKey,
        meta: Option<&OwnedValue>,
        measurements: &[Measurement<'_>],
    ) -> Result<usize> {
        let Some(first) = measurements.first() else { return Ok(0) };
        let mut closed = Vec::new();
        self.buckets.expire(catalog_bytes_max(&self.parameters), &mut closed);
        for attempt in 0..ATTEMPTS_MAX {
            operation.context.check()?;
            let is_last = attempt + 1 == ATTEMPTS_MAX;
            let (id, start_ms, is_stored) =
                self.choose(operation, target, key, meta, first.time_ms, is_last, &mut closed).await?;
            match self.add(operation, target, meta, measurements, (id, start_ms, is_stored)).await {
                Ok(Added::Stored { count, is_new, reason, is_kept_open }) => {
                    self.buckets.stored(key, id, is_new, count as u64);
                    if is_kept_open {
                        self.buckets.tell(target.collection.uuid, |counts| &counts.kept_open_due_to_large_measurements);
                    }
                    if let Some(reason) = reason.filter(|reason| is_final(*reason)) {
                        self.buckets.full(key, id, reason, &mut closed);
                    }
                    self.compress_closed(operation, target.collection, &target.options, closed).await?;
                    operation.context.statistics().inserted.add(count as u64);
                    return Ok(count);
                }
                Ok(Added::Full(reason)) => self.buckets.full(key, id, reason, &mut closed),
                Ok(Added::Unusable) => self.buckets.forget(key, id),
                // Somebody else was faster, or the bucket has no room for what it would have become.
                Err(error) if error.code() == ErrorCode::DuplicateKey => self.buckets.forget(key, id),
                Err(error) if error.code() == ErrorCode::BSONObjectTooLarge && is_stored => {
                    self.buckets.tell(target.collection.uuid, |counts| &counts.too_large_updates);
                    self.buckets.forget(key, id);
                }
                Err(error) => {
                    self.buckets.forget(key, id);
                    return Err(error);
                }
            }
        }
        Err(Error::internal("no bucket takes the measurement"))
    }

    /// The bucket to try, when it starts, and whether it was stored before.
    #[allow(clippy::too_many_arguments, reason = "each is needed to choose")]
    async fn choose(
        &self,
        operation: &mut Operation,
        target: &Target<'_>,
        key: &SourceKey,
        meta: Option<&OwnedValue>,
        time_ms: i64,
        wants_new: bool,
        closed: &mut Vec<Closed>,
    ) -> Result<(ObjectId, i64, bool)> {
        let options = &target.options;
        match self.buckets.candidate(key, time_ms, options) {
            Candidate::Known { id, start_ms, is_stored } if !wants_new => {
                if is_stored {
                    self.buckets.reopen(key, id, start_ms, closed);
                }
                return Ok((id, start_ms, is_stored));
            }
            Candidate::Search if !wants_new => {
                let meta = meta.map(OwnedValue::view);
                let found = self.search_bucket(operation, target.collection, options, meta, time_ms).await?;
                if let Some((id, start_ms)) = found {
                    self.buckets.tell(target.collection.uuid, |counts| &counts.queried);
                    self.buckets.reopen(key, id, start_ms, closed);
                    return Ok((id, start_ms, true));
                }
                self.buckets.tell(target.collection.uuid, |counts| &counts.queries_failed);
            }
            _ => {}
        }
        let id = bucket_id(options.rounded_time(time_ms), self.object_ids.next(&operation.env));
        Ok(self.buckets.begin(key, id, time_ms, options, wants_new, closed))
    }

    /// Adds measurements to a bucket, as many as it takes, in one unit of work.
    async fn add(
        &self,
        operation: &mut Operation,
        target: &Target<'_>,
        meta: Option<&OwnedValue>,
        measurements: &[Measurement<'_>],
        (id, start_ms, is_stored): (ObjectId, i64, bool),
    ) -> Result<Added> {
        let collection = target.collection;
        let active_count = self.buckets.active_count();
        operation.recovery_unit.abandon_snapshot()?;
        write_conflict_retry(operation, "insert", &collection.namespace, |operation| {
            let found = self.write_path.find_by_id(operation, collection, Value::ObjectId(id))?;
            let bucket = match &found {
                None if is_stored => return Ok(Added::Unusable),
                None => Bucket::new(id, start_ms, meta.cloned(), &target.options),
                Some((_, stored)) if Bucket::is_closed(stored.view()) => return Ok(Added::Unusable),
                Some((_, stored)) => match Bucket::reopen(stored.view(), &target.options) {
                    Ok(bucket) if bucket.is_of(meta.map(OwnedValue::view)) => bucket,
                    _ => return Ok(Added::Unusable),
                },
            };
            let was_kept_open = bucket.is_kept_open();
            let (bucket, count, reason) = target.fill(bucket, measurements, active_count);
            if count == 0 {
                return Ok(reason.map_or(Added::Unusable, Added::Full));
            }
            let new = bucket.to_doc();
            let ids = statement_ids(measurements.get(..count).unwrap_or_default());
            match &found {
                Some((record_id, old)) => {
                    let change = bucket.change().or_else(|| update_object(old.view(), new.view()));
                    let change = change.unwrap_or_else(|| new.clone());
                    let arguments = UpdateArguments {
                        statement_ids: ids,
                        bypass_validation: true,
                        ..UpdateArguments::new(record_id.clone(), old.view(), new.view(), change.view())
                    };
                    self.write_path.update_document(operation, collection, &arguments)?;
                }
                None => {
                    let statement = InsertStatement { statement_ids: ids, ..InsertStatement::new(new.view()) };
                    let options = InsertOptions { bypass_validation: true, ..InsertOptions::default() };
                    self.write_path.insert_documents(operation, collection, &[statement], options)?;
                }
            }
            let is_kept_open = bucket.is_kept_open() && !was_kept_open;
            Ok(Added::Stored { count, is_new: found.is_none(), reason, is_kept_open })
        })
        .await
    }
}

impl Target<'_> {
    /// Adds measurements until one does not fit.
    fn fill(
        &self,
        mut bucket: Bucket,
        measurements: &[Measurement<'_>],
        active_count: usize,
    ) -> (Bucket, usize, Option<Rollover>) {
        let strings = self.collator.as_deref().map(|collator| collator as &dyn StringComparator);
        for (count, measurement) in measurements.iter().enumerate() {
            let document = measurement.insert.document.view();
            let added = bucket.add(document, measurement.time_ms, &self.options, &self.limits, active_count, strings);
            if added.is_some() {
                return (bucket, count, added);
            }
        }
        let count = measurements.len();
        (bucket, count, None)
    }
}

/// True if nothing more goes into the bucket, whatever comes.
fn is_final(reason: Rollover) -> bool {
    !matches!(reason, Rollover::TimeForward | Rollover::TimeBackward)
}

/// The statements of all measurements that are written together.
fn statement_ids(measurements: &[Measurement<'_>]) -> StatementIds {
    let ids: Vec<i32> =
        measurements.iter().flat_map(|measurement| measurement.insert.statement_ids.as_slice().to_vec()).collect();
    match ids.as_slice() {
        [] => StatementIds::None,
        [id] => StatementIds::One(*id),
        _ => StatementIds::Many(ids),
    }
}
