//! Deleting what has expired: the documents whose date in one index, or in the cluster key, is not after a given one.
//!
//! The way to them is known and not planned: a scan of that index, hidden or partial as it may be, or of the records. A run ends when
//! nothing is left or when it has done as much as it was given; it tells which.

use crate::QueryEngine;
use crate::executor::{Executor, drive};
use crate::planner::{
    CollectionScanPlan, FieldBounds, IndexBounds, IndexInfo, IndexScanPlan, Interval, IntervalList, PlanNode,
};
use crate::stage::{DeleteBatch, DeleteParameters, DeleteStage, DeleteTarget, StageNode, build};
use pando_base::{Error, Result};
use pando_catalog::{Collection, Index};
use pando_collection::cluster_key;
use pando_doc::{Doc, DocBuilder, ObjectId, OwnedValue, Value, doc};
use pando_expr::MatchExpression;
use pando_operation::Operation;
use pando_oplog::StatementIds;
use pando_storage::Direction;
use std::sync::Arc;

/// What has expired.
#[derive(Clone, Debug)]
pub struct Expired<'a> {
    /// Where the dates are; none for the cluster key.
    pub index: Option<&'a Arc<Index>>,
    /// Documents with this date, in milliseconds since 1970, or an earlier one.
    pub until_ms: i64,
    /// How much is done at once.
    pub target: DeleteTarget,
    /// Several documents are deleted in one unit of work.
    pub is_batched: bool,
}

/// What became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpireResult {
    /// Documents that are gone.
    pub deleted: u64,
    /// It has done as much as it was given; there may be more.
    pub has_more: bool,
}

impl QueryEngine {
    /// Deletes what has expired. The operation holds the collection in IX.
    pub async fn delete_expired(
        &self,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        expired: &Expired<'_>,
    ) -> Result<ExpireResult> {
        // Buckets of measurements have the time of the first one in the id that they are clustered by.
        let field = collection.cluster_field().unwrap_or("_id");
        let ids = Ids { field, are_buckets: collection.options.timeseries.is_some(), until_ms: expired.until_ms };
        let filter = match collection.options.timeseries.as_ref().filter(|_| expired.index.is_none()) {
            Some(options) => filter_of_buckets(expired, &ids, options)?,
            None => filter_of(expired, &ids)?,
        };
        let context = self.parse_context(operation, &Doc::new(), &Doc::new(), Some(collection))?;
        let filter = Arc::new(MatchExpression::parse(filter.view(), &context)?);
        let plan = match expired.index {
            Some(index) => index_plan(index, expired.until_ms)?,
            None => cluster_plan(&ids, &filter)?,
        };
        let child = build(&plan, &self.build_context(collection, &filter, None))?;
        let parameters = DeleteParameters {
            write_path: Arc::clone(&self.write_path),
            filter,
            multi: true,
            returns_deleted: false,
            statement_ids: StatementIds::None,
            retry_image: None,
            is_explain: false,
            target: expired.target,
            batch: expired.is_batched.then(|| DeleteBatch::of(&self.parameters, &self.counters.delete_batches)),
        };
        let root = StageNode::new(DeleteStage::new(child, collection, parameters));
        let (namespace, known) = (collection.namespace.clone(), Some(Arc::clone(collection)));
        let mut executor = Executor::new(root, namespace, known, self.yield_policy(), plan.summary());
        operation.context.describe(|description| description.plan_summary = plan.summary().into());
        let mut nothing: Vec<Doc> = Vec::new();
        drive(&mut executor, operation, &*self.collections, &mut nothing).await?;
        let stage = executor.root().find::<DeleteStage>();
        Ok(stage.map_or_else(ExpireResult::default, |stage| ExpireResult {
            deleted: stage.deleted(),
            has_more: stage.has_met_target(),
        }))
    }
}

fn dates(until_ms: i64) -> Doc {
    doc! { "$gte": (Value::DateTime(i64::MIN)), "$lte": (Value::DateTime(until_ms)) }
}

/// What a document has to match still when its turn comes: it may have been given another date, or have left the index.
fn filter_of(expired: &Expired<'_>, ids: &Ids<'_>) -> Result<Doc> {
    let Some(index) = expired.index else {
        let [first, last] = ids.bounds();
        let mut by_key = DocBuilder::new();
        by_key.append(ids.field, doc! { "$gte": first, "$lte": last });
        return Ok(by_key.finish());
    };
    let mut own = DocBuilder::new();
    own.append(field_of(index)?, dates(expired.until_ms));
    let own = own.finish();
    Ok(match &index.descriptor.partial_filter {
        Some(partial) => doc! { "$and": [own, (partial.clone())] },
        None => own,
    })
}

/// Times before 1970 and after 2106 do not fit into ids: the bucket itself says whether it is that old.
fn filter_of_buckets(expired: &Expired<'_>, ids: &Ids<'_>, options: &Doc) -> Result<Doc> {
    let time_field = options.get("timeField").and_then(|name| name.as_str()).unwrap_or_default();
    let mut start = DocBuilder::new();
    start.append(format!("control.min.{time_field}"), dates(expired.until_ms));
    let by_id = filter_of(expired, ids)?;
    Ok(doc! { "$and": [by_id, (start.finish())] })
}

fn field_of(index: &Index) -> Result<String> {
    let first = index.descriptor.key_pattern.view().first();
    first.map(|first| first.name.to_string()).ok_or_else(|| Error::internal("an index without fields"))
}

fn index_plan(index: &Arc<Index>, until_ms: i64) -> Result<PlanNode> {
    let Some(info) = IndexInfo::of(index)?.filter(|info| info.fields.len() == 1 && info.wildcard.is_none()) else {
        return Err(Error::bad_value("special index can't be used as a TTL index"));
    };
    let date = |at_ms| OwnedValue::DateTime(at_ms);
    let intervals = IntervalList::of([Interval::new(date(i64::MIN), true, date(until_ms), true)]);
    let bounds = IndexBounds { fields: vec![FieldBounds { name: field_of(index)?.into(), intervals }] };
    // The oldest first.
    let is_descending = info.fields.first().is_some_and(|field| field.is_descending);
    let direction = if is_descending { Direction::Reverse } else { Direction::Forward };
    let scan = IndexScanPlan { info, bounds, direction, is_same_collation: true, key_range: None };
    Ok(PlanNode::IndexScan(Box::new(scan)).fetched())
}

/// The ids of expired documents in a clustered collection.
struct Ids<'c> {
    /// What the collection is clustered by.
    field: &'c str,
    are_buckets: bool,
    until_ms: i64,
}

impl Ids<'_> {
    /// The first and the last.
    fn bounds(&self) -> [Value<'static>; 2] {
        if !self.are_buckets {
            return [Value::DateTime(i64::MIN), Value::DateTime(self.until_ms)];
        }
        let seconds = u32::try_from(self.until_ms.div_euclid(1000).max(0)).unwrap_or(u32::MAX);
        let mut last = [0xff; 12];
        last[..4].copy_from_slice(&seconds.to_be_bytes());
        [Value::ObjectId(ObjectId::from_bytes([0; 12])), Value::ObjectId(ObjectId::from_bytes(last))]
    }
}

fn cluster_plan(ids: &Ids<'_>, filter: &Arc<MatchExpression>) -> Result<PlanNode> {
    let [first, last] = ids.bounds();
    Ok(PlanNode::CollectionScan(CollectionScanPlan {
        direction: Direction::Forward,
        filter: Some(Arc::clone(filter)),
        min: Some(cluster_key(first, None)?),
        max: Some(cluster_key(last, None)?),
        tailable: false,
        resume: None,
        keeps_place: false,
        cluster: Box::default(),
        key_order: None,
        is_direction_given: true,
    }))
}
