//! Inserting measurements.
//!
//! Measurements of one source that fit into one bucket are written together, and the buckets of several sources in one unit of work. A
//! bucket is looked up in the catalog, read, added to as long as it has room, and stored; with what is left the next bucket is tried. What
//! is stored is also kept in the catalog as it is filled, so that the next batch need not take the bucket apart: it compares bytes.

use super::fail_points::{BEFORE_COMMIT, BEFORE_WRITE, FAIL_ATOMIC, check_source};
use super::options::{catalog_bytes_max, limits, options_of};
use crate::QueryEngine;
use crate::write::InsertDocument;
use pando_base::{Error, ErrorCode, Result};
use pando_catalog::Collection;
use pando_collection::{InsertOptions, InsertStatement, UpdateArguments};
use pando_doc::{Doc, DocRef, FieldPath, ObjectId, OwnedValue, SharedCollator, StringComparator, Value};
use pando_env::Env;
use pando_operation::{Operation, write_conflict_retry};
use pando_oplog::{StatementIds, update_object};
use pando_timeseries::{
    Bucket, BucketLimits, Candidate, Closed, Kept, Rollover, SourceKey, Stored, TimeseriesOptions, bucket_id,
    measurement_meta, measurement_time,
};
use std::collections::HashMap;
use std::sync::Arc;

/// A bucket that is not what the catalog says is given up for another; so often.
const ATTEMPTS_MAX: u32 = 16;
/// So many buckets are written in one unit of work.
const GROUP_COUNT_MAX: usize = 64;
/// After so many bytes of buckets a unit of work ends.
const GROUP_BYTES_MAX: usize = 512 * 1024;
/// A larger bucket is not kept in memory.
const KEPT_BUCKET_BYTES_MAX: usize = 64 * 1024;

/// A measurement on its way into a bucket.
struct Measurement<'a> {
    /// Its place among those to be inserted.
    place: usize,
    insert: &'a InsertDocument,
    time_ms: i64,
}

/// The measurements of one source.
struct Source<'a> {
    key: SourceKey,
    meta: Option<OwnedValue>,
    measurements: Vec<Measurement<'a>>,
    /// So many are stored.
    done: usize,
    /// The last one was full, and the next has to be a new one.
    wants_new: bool,
    /// So many buckets were tried for the next.
    attempts: u32,
}

impl<'a> Source<'a> {
    fn rest(&self) -> &[Measurement<'a>] {
        self.measurements.get(self.done..).unwrap_or_default()
    }

    fn meta(&self) -> Option<Value<'_>> {
        self.meta.as_ref().map(OwnedValue::view)
    }
}

/// A bucket that is tried for the next measurements of a source.
struct Plan {
    /// The place of the source.
    source: usize,
    id: ObjectId,
    start_ms: i64,
    /// It was stored before: if it is not there, somebody removed it.
    is_stored: bool,
    /// What the catalog has kept of it.
    kept: Option<Box<Kept>>,
}

/// What came of adding to a bucket.
enum Added {
    /// So many were stored.
    Stored { count: usize, is_new: bool, reason: Option<Rollover>, is_kept_open: bool, kept: Box<Kept> },
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
    /// The fields of measurements that an index is on.
    indexed: Vec<FieldPath>,
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
        let (mut sources, mut outcomes) = target.sources(documents, is_ordered);
        let mut next = 0;
        while next < sources.len() {
            let group: Vec<usize> = (next..sources.len().min(next + GROUP_COUNT_MAX)).collect();
            next += group.len();
            // A group that fails is inserted source by source to see which it was.
            let is_together = group.len() > 1 && !FAIL_ATOMIC.should_fail();
            if is_together && self.insert_sources(operation, &target, &mut sources, &group).await.is_ok() {
                continue;
            }
            for place in group {
                while let Some(first) =
                    sources.get(place).and_then(|source| source.rest().first().map(|first| first.place))
                {
                    let passed = check_source(sources.get(place).and_then(Source::meta));
                    let inserted = match passed {
                        Ok(()) => self.insert_sources(operation, &target, &mut sources, &[place]).await,
                        Err(error) => Err(error),
                    };
                    let Err(error) = inserted else { continue };
                    if let Some(outcome) = outcomes.get_mut(first) {
                        *outcome = Err(error);
                    }
                    if is_ordered {
                        outcomes.truncate(first + 1);
                        return outcomes;
                    }
                    if let Some(source) = sources.get_mut(place) {
                        source.done += 1;
                        source.attempts = 0;
                    }
                }
            }
        }
        outcomes
    }

    fn target<'a>(&self, operation: &Operation, collection: &'a Arc<Collection>) -> Result<Target<'a>> {
        let options = options_of(collection)?;
        self.buckets.name_statistics(collection.uuid, collection.namespace.as_str());
        let context = self.parse_context(operation, &Doc::new(), &Doc::new(), Some(collection))?;
        let indexed = indexed_fields(collection, &options);
        Ok(Target { collection, options, limits: limits(&self.parameters), collator: context.collator, indexed })
    }

    /// Inserts all measurements of some sources, as many as possible in one unit of work.
    async fn insert_sources(
        &self,
        operation: &mut Operation,
        target: &Target<'_>,
        sources: &mut [Source<'_>],
        group: &[usize],
    ) -> Result<()> {
        let mut waiting: Vec<usize> = group.to_vec();
        let mut closed = Vec::new();
        while !waiting.is_empty() {
            operation.context.check()?;
            self.buckets.expire(catalog_bytes_max(&self.parameters), &mut closed);
            let mut plans = Vec::with_capacity(waiting.len());
            for place in &waiting {
                let Some(source) = sources.get_mut(*place) else { continue };
                if let Some(time_ms) = source.rest().first().map(|first| first.time_ms) {
                    plans.push(self.choose(operation, target, source, *place, time_ms, &mut closed).await?);
                }
            }
            if plans.is_empty() {
                break;
            }
            BEFORE_COMMIT.rest(&operation.context).await?;
            BEFORE_WRITE.rest(&operation.context).await?;
            let added = match self.add_all(operation, target, sources, &mut plans).await {
                Ok(added) => added,
                Err(error) => {
                    self.give_up(&operation.env, target, sources, &plans, error)?;
                    continue;
                }
            };
            let mut added = added.into_iter();
            for plan in plans {
                let Some(source) = sources.get_mut(plan.source) else { continue };
                match added.next() {
                    Some(added) => self.account(operation, target, source, &plan, added, &mut closed),
                    None => self.put_back(source, plan),
                }
            }
            self.compress_closed(operation, target.collection, &target.options, std::mem::take(&mut closed)).await?;
            waiting.retain(|place| sources.get(*place).is_some_and(|source| !source.rest().is_empty()));
        }
        Ok(())
    }

    /// Nothing was stored. Of a single bucket it may be that another one will do.
    fn give_up(
        &self,
        env: &Env,
        target: &Target<'_>,
        sources: &[Source<'_>],
        plans: &[Plan],
        error: Error,
    ) -> Result<()> {
        let [plan] = plans else { return Err(error) };
        if let Some(source) = sources.get(plan.source) {
            self.buckets.forget(&source.key, plan.id);
        }
        match error.code() {
            // Somebody else was faster, or has made buckets by ids of ours; or the bucket has no room for what it would have become.
            ErrorCode::DuplicateKey => {
                self.object_ids.leap(env);
                Ok(())
            }
            ErrorCode::BSONObjectTooLarge if plan.is_stored => {
                self.buckets.tell(target.collection.uuid, |counts| &counts.too_large_updates);
                Ok(())
            }
            // Both extremes of a measurement's field are in its index, place by place.
            ErrorCode::CannotIndexParallelArrays if has_measurement_index(target.collection) => Err(array_in_index()),
            _ => Err(error),
        }
    }

    /// The bucket was not tried.
    fn put_back(&self, source: &mut Source<'_>, plan: Plan) {
        source.attempts -= 1;
        if let Some(kept) = plan.kept {
            self.buckets.keep(&source.key, kept, catalog_bytes_max(&self.parameters) / 2);
        }
    }

    /// The catalog learns what was stored.
    fn account(
        &self,
        operation: &Operation,
        target: &Target<'_>,
        source: &mut Source<'_>,
        plan: &Plan,
        added: Added,
        closed: &mut Vec<Closed>,
    ) {
        let (key, id) = (&source.key, plan.id);
        match added {
            Added::Stored { count, is_new, reason, is_kept_open, kept } => {
                self.buckets.stored(key, id, is_new, count as u64);
                if is_kept_open {
                    self.buckets.tell(target.collection.uuid, |counts| &counts.kept_open_due_to_large_measurements);
                }
                match reason.filter(|reason| is_final(*reason)) {
                    Some(reason) => {
                        source.wants_new = true;
                        self.buckets.full(key, id, reason, closed);
                    }
                    None if kept.stored.size_bytes() <= KEPT_BUCKET_BYTES_MAX => {
                        self.buckets.keep(key, kept, catalog_bytes_max(&self.parameters) / 2);
                    }
                    None => {}
                }
                operation.context.statistics().inserted.add(count as u64);
                source.done += count;
                source.attempts = 0;
            }
            Added::Full(reason) => {
                // A search would find the same bucket again.
                source.wants_new = is_final(reason);
                self.buckets.full(key, id, reason, closed);
            }
            Added::Unusable => {
                // Somebody else has made buckets by ids of ours.
                if !plan.is_stored {
                    self.object_ids.leap(&operation.env);
                }
                self.buckets.forget(key, id);
            }
        }
    }

    /// The bucket to try for the next measurement of a source.
    async fn choose(
        &self,
        operation: &mut Operation,
        target: &Target<'_>,
        source: &mut Source<'_>,
        place: usize,
        time_ms: i64,
        closed: &mut Vec<Closed>,
    ) -> Result<Plan> {
        source.attempts += 1;
        if source.attempts > ATTEMPTS_MAX {
            return Err(Error::internal("no bucket takes the measurement"));
        }
        let wants_new = std::mem::take(&mut source.wants_new) || source.attempts == ATTEMPTS_MAX;
        let (options, key) = (&target.options, &source.key);
        let plan = |id, start_ms, is_stored, kept| Plan { source: place, id, start_ms, is_stored, kept };
        match self.buckets.candidate(key, time_ms, options) {
            Candidate::Known { id, start_ms, is_stored } if !wants_new => {
                if is_stored {
                    self.buckets.reopen(key, id, start_ms, closed);
                }
                return Ok(plan(id, start_ms, is_stored, self.buckets.take_kept(key, id)));
            }
            Candidate::Search if !wants_new => {
                let found = self.search_bucket(operation, target.collection, options, source.meta(), time_ms).await?;
                if let Some((id, start_ms)) = found {
                    self.buckets.tell(target.collection.uuid, |counts| &counts.queried);
                    self.buckets.reopen(key, id, start_ms, closed);
                    return Ok(plan(id, start_ms, true, None));
                }
                self.buckets.tell(target.collection.uuid, |counts| &counts.queries_failed);
            }
            _ => {}
        }
        let id = bucket_id(options.rounded_time(time_ms), self.object_ids.next(&operation.env));
        let (id, start_ms, is_stored) = self.buckets.begin(key, id, time_ms, options, wants_new, closed);
        Ok(plan(id, start_ms, is_stored, None))
    }

    /// Adds to the buckets in one unit of work; of the first ones what came of it, of the others nothing if the unit became too large.
    async fn add_all(
        &self,
        operation: &mut Operation,
        target: &Target<'_>,
        sources: &[Source<'_>],
        plans: &mut [Plan],
    ) -> Result<Vec<Added>> {
        let active_count = self.buckets.active_count();
        operation.recovery_unit.abandon_snapshot()?;
        write_conflict_retry(operation, "insert", &target.collection.namespace, |operation| {
            let mut unit = operation.unit_of_work();
            let (mut all, mut written_bytes) = (Vec::with_capacity(plans.len()), 0);
            for plan in plans.iter_mut() {
                let Some(source) = sources.get(plan.source).filter(|_| written_bytes <= GROUP_BYTES_MAX) else { break };
                let added = self.add(&mut unit, target, source, plan, active_count)?;
                if let Added::Stored { kept, .. } = &added {
                    written_bytes += kept.stored.size_bytes();
                }
                all.push(added);
            }
            unit.commit()?;
            Ok(all)
        })
        .await
    }

    /// Adds measurements to a bucket, as many as it takes.
    fn add(
        &self,
        operation: &mut Operation,
        target: &Target<'_>,
        source: &Source<'_>,
        plan: &mut Plan,
        active_count: usize,
    ) -> Result<Added> {
        let collection = target.collection;
        let found = self.write_path.find_by_id(operation, collection, Value::ObjectId(plan.id))?;
        // After a conflict it is not what is stored: it is taken once.
        let kept = plan.kept.take();
        let bucket = match (&found, kept) {
            (None, _) if plan.is_stored => return Ok(Added::Unusable),
            (None, _) => Bucket::new(plan.id, plan.start_ms, source.meta.clone(), &target.options),
            (Some((_, stored)), Some(kept)) if kept.stored.view().bytes() == stored.view().bytes() => kept.bucket,
            (Some((_, stored)), _) if Bucket::is_closed(stored.view()) => return Ok(Added::Unusable),
            (Some((_, stored)), _) => match Bucket::reopen(stored.view(), &target.options) {
                Ok(bucket) if bucket.is_of(source.meta()) => bucket,
                _ => return Ok(Added::Unusable),
            },
        };
        let was_kept_open = bucket.is_kept_open();
        let (mut bucket, count, reason) = target.fill(bucket, source.rest(), active_count);
        if count == 0 {
            return Ok(reason.map_or(Added::Unusable, Added::Full));
        }
        let Stored { document, change } = bucket.store(&target.options);
        let ids = statement_ids(source.rest().get(..count).unwrap_or_default());
        match &found {
            Some((record_id, old)) => {
                let change = change.or_else(|| update_object(old.view(), document.view()));
                let change = change.unwrap_or_else(|| document.clone());
                let arguments = UpdateArguments {
                    statement_ids: ids,
                    bypass_validation: true,
                    ..UpdateArguments::new(record_id.clone(), old.view(), document.view(), change.view())
                };
                self.write_path.update_document(operation, collection, &arguments)?;
            }
            None => {
                let statement = InsertStatement { statement_ids: ids, ..InsertStatement::new(document.view()) };
                let options = InsertOptions { bypass_validation: true, ..InsertOptions::default() };
                self.write_path.insert_documents(operation, collection, &[statement], options)?;
            }
        }
        let is_kept_open = bucket.is_kept_open() && !was_kept_open;
        let kept = Box::new(Kept { bucket, stored: document });
        Ok(Added::Stored { count, is_new: found.is_none(), reason, is_kept_open, kept })
    }
}

impl<'t> Target<'t> {
    /// The measurements by their sources, in the order in which these come, and the outcomes so far: what is no measurement has failed.
    fn sources<'a>(&self, documents: &'a [InsertDocument], is_ordered: bool) -> (Vec<Source<'a>>, Vec<Result<()>>) {
        let mut outcomes: Vec<Result<()>> = Vec::with_capacity(documents.len());
        let mut sources: Vec<Source<'a>> = Vec::new();
        let mut known: HashMap<SourceKey, usize> = HashMap::new();
        // By the values as they are given: of most nothing more has to be known.
        let mut given: HashMap<Option<(u8, &[u8])>, usize> = HashMap::new();
        for (place, insert) in documents.iter().enumerate() {
            let measurement = insert.document.view();
            match self.check_indexed(measurement).and_then(|()| measurement_time(measurement, &self.options)) {
                Err(error) => {
                    outcomes.push(Err(error));
                    if is_ordered {
                        break;
                    }
                }
                Ok(time_ms) => {
                    outcomes.push(Ok(()));
                    let meta = measurement_meta(measurement, &self.options);
                    let meta = meta.map(|meta| (meta.value_type as u8, meta.value_bytes));
                    let source = *given.entry(meta).or_insert_with(|| {
                        let meta = Bucket::meta_of(measurement, &self.options);
                        let key = SourceKey::new(self.collection.uuid, meta.as_ref().map(OwnedValue::view));
                        *known.entry(key).or_insert_with_key(|key| {
                            let (key, measurements) = (key.clone(), Vec::new());
                            sources.push(Source { key, meta, measurements, done: 0, wants_new: false, attempts: 0 });
                            sources.len() - 1
                        })
                    });
                    if let Some(source) = sources.get_mut(source) {
                        source.measurements.push(Measurement { place, insert, time_ms });
                    }
                }
            }
        }
        (sources, outcomes)
    }

    /// Refuses arrays where an index is: it has the extremes of a bucket, which are none of an array.
    fn check_indexed(&self, measurement: DocRef<'_>) -> Result<()> {
        match self.indexed.iter().any(|path| leads_to_array(measurement, path)) {
            true => Err(array_in_index()),
            false => Ok(()),
        }
    }

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

/// True if an index is on the extremes of buckets.
fn has_measurement_index(collection: &Collection) -> bool {
    let is_extreme = |name: &[u8]| name.starts_with(b"control.min.") || name.starts_with(b"control.max.");
    collection.indexes.iter().any(|index| index.descriptor.key_pattern.elements().any(|part| is_extreme(part.name)))
}

/// The fields of measurements that an index without a filter is on, other than the time.
fn indexed_fields(collection: &Collection, options: &TimeseriesOptions) -> Vec<FieldPath> {
    let mut paths = Vec::new();
    for index in collection.indexes.iter().filter(|index| index.descriptor.partial_filter.is_none()) {
        for part in index.descriptor.key_pattern.elements().filter(|part| part.value.is_number()) {
            let path = part.name.strip_prefix(b"control.min.").filter(|path| *path != options.time_field.as_bytes());
            paths.extend(path.and_then(|path| FieldPath::lenient(path).ok()));
        }
    }
    paths
}

fn leads_to_array(measurement: DocRef<'_>, path: &FieldPath) -> bool {
    let mut at = Some(Value::Document(measurement));
    for part in path.parts() {
        at = match at {
            Some(Value::Document(document)) => document.get(part),
            Some(Value::Array(_)) => return true,
            _ => return false,
        };
    }
    matches!(at, Some(Value::Array(_)))
}

fn array_in_index() -> Error {
    Error::location(5_930_501, "Indexed measurement field contains an array value")
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
