//! Deletes of measurements, and updates of meta values.
//!
//! The buckets that may be concerned are found first; then each is read again and changed in a unit of work of its own. What is left of a
//! bucket after a delete keeps its `_id`. Counts are of measurements.

use super::options::{is_out_of_range, limits, options_of};
use super::translate;
use crate::executor::drive;
use crate::pipeline::Facts;
use crate::request::{DeleteRequest, UpdateRequest};
use crate::stage::ReturnedImage;
use crate::timeseries::hint_on_buckets;
use crate::write::UpdateResult;
use crate::{CanonicalQuery, QueryEngine};
use pando_base::{Error, ErrorCode, Result, ensure};
use pando_catalog::Collection;
use pando_collection::{DeleteArguments, UpdateArguments};
use pando_doc::{Doc, DocBuilder, FieldPath, ObjectId, OwnedValue, SharedCollator, StringComparator, Value};
use pando_expr::MatchExpression;
use pando_expr::matcher::{Comparison, ComparisonOperator, Node, Predicate};
use pando_operation::{Operation, write_conflict_retry};
use pando_oplog::{StatementIds, update_object};
use pando_timeseries::{
    Bucket, BucketReader, FieldSet, TimeseriesOptions, compress, is_compressed, measurement_count, measurement_time,
};
use std::sync::Arc;

/// A delete that was read, and how it finds its buckets.
pub(crate) struct PlannedDeletion {
    /// What finds the buckets.
    pub(crate) query: CanonicalQuery,
    /// What is done to each.
    pub(crate) deletion: Deletion,
    /// The part of the filter that is exact for buckets.
    pub(crate) bucket_filter: Doc,
}

/// A delete that was read.
pub(crate) struct Deletion {
    options: TimeseriesOptions,
    /// Which measurements; none for all of a bucket that was found.
    residual: Option<MatchExpression>,
    is_single: bool,
    collator: Option<SharedCollator>,
    statement_ids: StatementIds,
}

impl QueryEngine {
    /// Deletes measurements; how many. The request names the buckets, its filter is on measurements.
    pub async fn delete_measurements(&self, operation: &mut Operation, request: &DeleteRequest) -> Result<u64> {
        let missing = || {
            let reason = "Could not find time-series buckets collection for write";
            Error::new(ErrorCode::NamespaceNotFound, reason)
        };
        let collection = self.collections.open_for_write(operation, &request.namespace)?.ok_or_else(missing)?;
        let PlannedDeletion { query, deletion, .. } = self.plan_deletion(operation, request, &collection)?;
        let ids = self.bucket_ids(operation, query, &collection).await?;
        let mut deleted = 0;
        for id in ids {
            operation.context.check()?;
            deleted += self.delete_from_bucket(operation, &collection, &deletion, id).await?;
            if deletion.is_single && deleted > 0 {
                break;
            }
        }
        operation.context.statistics().deleted.add(deleted);
        Ok(deleted)
    }

    /// Reads a delete of measurements.
    pub(crate) fn plan_deletion(
        &self,
        operation: &mut Operation,
        request: &DeleteRequest,
        collection: &Collection,
    ) -> Result<PlannedDeletion> {
        let options = options_of(collection)?;
        let context = self.parse_context(operation, &request.collation, &request.variables, Some(collection))?;
        let filter = MatchExpression::parse(request.filter.view(), &context)?.optimize();
        let are_ids_in_order = !is_out_of_range(operation, collection)?;
        let Split { on_buckets, exact, residual } = split(&filter, &options, collection, are_ids_in_order);
        let mut query = CanonicalQuery::of_expression(&request.namespace, Arc::new(on_buckets));
        query.hint = hint_on_buckets(&request.hint, &options);
        query.natural = query.hint.natural();
        query.collator = context.collator.clone();
        let deletion = Deletion {
            collator: self.own_collator(operation, collection)?,
            options,
            residual,
            is_single: !request.multi,
            statement_ids: request.statement_ids.clone(),
        };
        Ok(PlannedDeletion { query, deletion, bucket_filter: exact.to_document() })
    }

    fn own_collator(&self, operation: &Operation, collection: &Collection) -> Result<Option<SharedCollator>> {
        Ok(self.parse_context(operation, &Doc::new(), &Doc::new(), Some(collection))?.collator)
    }

    /// The `_id`s of the buckets that a query finds.
    async fn bucket_ids(
        &self,
        operation: &mut Operation,
        query: CanonicalQuery,
        collection: &Arc<Collection>,
    ) -> Result<Vec<ObjectId>> {
        let mut executor = self.run(&Arc::new(query), Some(collection), |root, _| Ok(root))?;
        operation.context.describe(|description| description.plan_summary = executor.plan_summary().to_owned().into());
        let mut ids = Ids::default();
        while !drive(&mut executor, operation, &*self.collections, &mut ids).await? {}
        drop(executor);
        operation.recovery_unit.abandon_snapshot()?;
        Ok(ids.0)
    }

    async fn delete_from_bucket(
        &self,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        deletion: &Deletion,
        id: ObjectId,
    ) -> Result<u64> {
        operation.recovery_unit.abandon_snapshot()?;
        write_conflict_retry(operation, "delete", &collection.namespace, |operation| {
            let found = self.write_path.find_by_id(operation, collection, Value::ObjectId(id))?;
            let Some((record_id, old)) = found else { return Ok(0) };
            let (kept, deleted) = deletion.part(&old)?;
            if deleted == 0 {
                return Ok(0);
            }
            let statement_ids = deletion.statement_ids.clone();
            match kept.is_empty() {
                true => {
                    let arguments = DeleteArguments { statement_ids, ..DeleteArguments::new(record_id, old.view()) };
                    self.write_path.delete_document(operation, collection, &arguments)?;
                }
                false => {
                    let new = deletion.bucket_of(&old, &kept, self)?;
                    let change = update_object(old.view(), new.view()).unwrap_or_else(|| new.clone());
                    let arguments = UpdateArguments {
                        statement_ids,
                        bypass_validation: true,
                        ..UpdateArguments::new(record_id, old.view(), new.view(), change.view())
                    };
                    self.write_path.update_document(operation, collection, &arguments)?;
                }
            }
            Ok(deleted)
        })
        .await
    }

    /// Updates the meta value of buckets; counts their measurements. The request names the buckets, its filter and update are on
    /// measurements.
    pub async fn update_meta(&self, operation: &mut Operation, request: &UpdateRequest) -> Result<UpdateResult> {
        let missing = || {
            let reason = "Could not find time-series buckets collection for update";
            Error::new(ErrorCode::NamespaceNotFound, reason)
        };
        let collection = self.collections.open_for_write(operation, &request.namespace)?.ok_or_else(missing)?;
        let options = options_of(&collection)?;
        let translated = translated(request, &options)?;
        let parsed = self.parse_update(operation, &translated, Some(&collection), ReturnedImage::Nothing, None)?;
        let query =
            CanonicalQuery { hint: hint_on_buckets(&request.hint, &options), ..CanonicalQuery::clone(&parsed.query) };
        let filter = Arc::clone(&query.filter);
        let ids = self.bucket_ids(operation, query, &collection).await?;
        let mut result = UpdateResult::default();
        for id in ids {
            operation.context.check()?;
            operation.recovery_unit.abandon_snapshot()?;
            let (matched, modified) = write_conflict_retry(operation, "update", &collection.namespace, |operation| {
                let found = self.write_path.find_by_id(operation, &collection, Value::ObjectId(id))?;
                let Some((record_id, old)) = found else { return Ok((0, 0)) };
                let Some(details) = filter.matches_with_details(old.view())? else { return Ok((0, 0)) };
                let count = measurement_count(old.view(), &options) as u64;
                let Some(changed) = parsed.change.apply(old.view(), Some(&details))? else { return Ok((count, 0)) };
                let arguments = UpdateArguments {
                    bypass_validation: true,
                    ..UpdateArguments::new(record_id, old.view(), changed.document.view(), changed.oplog_object.view())
                };
                self.write_path.update_document(operation, &collection, &arguments)?;
                Ok((count, count))
            })
            .await?;
            result.n += matched;
            result.modified += modified;
        }
        Ok(result)
    }
}

/// Collects the `_id`s of buckets.
#[derive(Default)]
struct Ids(Vec<ObjectId>);

impl crate::executor::DocumentSink for Ids {
    fn offer(&mut self, document: &Doc) -> bool {
        self.0.extend(document.get("_id").and_then(|id| id.as_object_id()));
        true
    }

    fn is_full(&self) -> bool {
        false
    }
}

/// The update as it is for buckets.
fn translated(request: &UpdateRequest, options: &TimeseriesOptions) -> Result<UpdateRequest> {
    let Some(meta) = &options.meta_field else {
        let reason = "Cannot perform an update on a time-series collection that does not have a metaField";
        return Err(Error::new(ErrorCode::InvalidOptions, reason));
    };
    ensure!(request.multi, ErrorCode::InvalidOptions, "Cannot perform a non-multi update on a time-series collection");
    ensure!(!request.upsert, ErrorCode::InvalidOptions, "Cannot perform an upsert on a time-series collection");
    Ok(UpdateRequest {
        filter: translate::query(request.filter.view(), meta)?,
        update: OwnedValue::Document(translate::update(&request.update, meta)?),
        ..request.clone()
    })
}

/// A condition on measurements, taken apart.
struct Split {
    /// What buckets fulfil that may have such measurements.
    on_buckets: MatchExpression,
    /// The part of it that decides for all measurements of a bucket.
    exact: MatchExpression,
    /// What is left for measurements.
    residual: Option<MatchExpression>,
}

fn split(
    filter: &MatchExpression,
    options: &TimeseriesOptions,
    collection: &Collection,
    are_ids_in_order: bool,
) -> Split {
    let own = collection.options.collation.as_ref();
    let facts = Facts {
        options,
        is_same_collation: filter.collator().map(|collator| collator.specification()) == own,
        has_one_schema: collection.timeseries_mixed_schema != Some(true),
        are_ids_in_order,
    };
    let parts = match filter.root() {
        Node::And(parts) => parts.clone(),
        other => vec![other.clone()],
    };
    let (mut exact, mut on_buckets, mut residual) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        match facts.on_meta(&part) {
            Some(same) => exact.push(same),
            None => {
                on_buckets.extend(facts.on_bucket(&part));
                residual.push(part);
            }
        }
    }
    exact.extend(is_not_closed());
    on_buckets.extend(exact.iter().cloned());
    let expression = |parts: Vec<Node>| MatchExpression::from_node(Node::And(parts), filter.collator().cloned());
    Split {
        on_buckets: expression(on_buckets).optimize(),
        exact: expression(exact).optimize(),
        residual: (!residual.is_empty()).then(|| expression(residual).optimize()),
    }
}

/// A closed bucket is not written to.
fn is_not_closed() -> Option<Node> {
    let path = FieldPath::lenient("control.closed").ok()?;
    let closed = Comparison { operator: ComparisonOperator::Equal, value: OwnedValue::Bool(true) };
    Some(Node::negate(Node::leaf(path, Predicate::Comparison(closed))))
}

impl Deletion {
    /// Whether buckets are deleted whole, without a look into them.
    pub(crate) fn takes_whole_buckets(&self) -> bool {
        self.residual.is_none() && !self.is_single
    }

    /// Whether one measurement is enough.
    pub(crate) fn is_single(&self) -> bool {
        self.is_single
    }

    /// The stage as `explain` shows it.
    pub(crate) fn describe(&self, bucket_filter: &Doc) -> Doc {
        let mut out = DocBuilder::new();
        out.append("stage", "TS_MODIFY");
        out.append("opType", if self.is_single { "deleteOne" } else { "deleteMany" });
        out.append("bucketFilter", bucket_filter);
        let residual = self.residual.as_ref().map(|residual| residual.to_document());
        out.append("residualFilter", residual.unwrap_or_default());
        out.finish()
    }

    /// The measurements of a bucket that stay, and how many go.
    pub(crate) fn part(&self, bucket: &Doc) -> Result<(Vec<Doc>, u64)> {
        if self.takes_whole_buckets() {
            return Ok((Vec::new(), measurement_count(bucket.view(), &self.options).max(1) as u64));
        }
        let mut reader = BucketReader::new(bucket, &self.options, &FieldSet::all())?;
        let (mut kept, mut deleted) = (Vec::new(), 0);
        while let Some(measurement) = reader.read()? {
            let is_over = self.is_single && deleted > 0;
            let goes = !is_over
                && match &self.residual {
                    None => true,
                    Some(filter) => filter.try_matches(measurement.view())?,
                };
            match goes {
                true => deleted += 1,
                false => kept.push(measurement),
            }
        }
        Ok((kept, deleted))
    }

    /// The bucket with the measurements that stay.
    fn bucket_of(&self, old: &Doc, kept: &[Doc], engine: &QueryEngine) -> Result<Doc> {
        let options = &self.options;
        let was = Bucket::reopen(old.view(), options)?;
        let mut bucket = Bucket::new(was.id, was.start_ms(), was.meta().map(Value::to_owned), options);
        let strings = self.collator.as_deref().map(|collator| collator as &dyn StringComparator);
        // What fitted before fits now.
        let limits = limits(&engine.parameters).unbounded();
        for measurement in kept {
            let time_ms = measurement_time(measurement.view(), options)?;
            let refused = bucket.add(measurement.view(), time_ms, options, &limits, 0, strings);
            if refused.is_some() {
                return Err(Error::internal("a bucket does not take its own measurements"));
            }
        }
        let plain = bucket.to_doc();
        match is_compressed(old.view()) {
            true => Ok(compress(plain.view(), options).unwrap_or(plain)),
            false => Ok(plain),
        }
    }
}
