//! Reads of views: they become aggregations on what the view stands on.

use super::aggregate::run_to_end;
use super::reading::{FirstBatch, cursor_options, reply_with_first_batch};
use crate::{Data, Invocation};
use pando_base::Result;
use pando_catalog::ResolvedView;
use pando_doc::{Array, ArrayBuilder, DocBuilder, Value, compare, doc};
use pando_operation::Operation;
use pando_query::executor::BatchLimits;
use pando_query::pipeline::find_as_pipeline;
use pando_query::request::{AggregateRequest, CountRequest, DistinctRequest, FindRequest};

pub(super) async fn find(
    invocation: &Invocation,
    data: &Data,
    operation: &mut Operation,
    request: &FindRequest,
    reply: &mut DocBuilder,
) -> Result<()> {
    let aggregation = data.query.aggregate(operation, &find_as_pipeline(request)?, None)?;
    let first = FirstBatch {
        limits: BatchLimits::first(request.batch_size),
        is_single: request.single_batch,
        limit: request.limit.and_then(|limit| u64::try_from(limit).ok()).filter(|limit| *limit > 0),
        options: cursor_options(invocation, &request.namespace),
    };
    reply_with_first_batch(invocation, data, operation, Box::new(aggregation.executor), first, reply).await
}

/// A count as an aggregation.
pub(super) fn count_as_pipeline(request: &CountRequest) -> AggregateRequest {
    let mut pipeline = vec![doc! { "$match": &request.filter }];
    if let Some(skip) = request.skip.filter(|skip| *skip > 0) {
        pipeline.push(doc! { "$skip": skip });
    }
    // A limit of zero is none for a collection, but a view knows it only as a stage, which refuses it.
    if let Some(limit) = request.limit.and_then(i64::checked_abs) {
        pipeline.push(doc! { "$limit": limit });
    }
    pipeline.push(doc! { "$count": "count" });
    AggregateRequest {
        hint: request.hint.clone(),
        collation: request.collation.clone(),
        ..AggregateRequest::new(request.namespace.clone(), pipeline)
    }
}

/// The documents of a view that match, counted.
pub(super) async fn count(data: &Data, operation: &mut Operation, request: &CountRequest) -> Result<u64> {
    let found = run_to_end(data, operation, &count_as_pipeline(request)).await?;
    let count = found.first().and_then(|only| only.get("count")).and_then(|count| count.to_i64_exact());
    Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
}

/// The distinct values as an aggregation: arrays on the way count by their elements.
pub(super) fn distinct_as_pipeline(request: &DistinctRequest) -> Result<AggregateRequest> {
    const UNWOUND: &str = "_internalUnwoundArray";
    let mut pipeline = Vec::new();
    if !request.filter.is_empty() {
        pipeline.push(doc! { "$match": &request.filter });
    }
    let values = doc! { "$_internalFindAllValuesAtPath": request.key.as_str() };
    let of_unwound = format!("${UNWOUND}");
    pipeline.push(doc! { "$replaceRoot": { "newRoot": { (UNWOUND): values } } });
    pipeline.push(doc! { "$unwind": { "path": of_unwound.as_str(), "preserveNullAndEmptyArrays": true } });
    pipeline.push(doc! { "$group": { "_id": Value::Null, "distinct": { "$addToSet": of_unwound.as_str() } } });
    Ok(AggregateRequest {
        hint: request.hint.clone(),
        collation: request.collation.clone(),
        ..AggregateRequest::new(request.namespace.clone(), pipeline)
    })
}

/// The distinct values of a view.
pub(super) async fn distinct(data: &Data, operation: &mut Operation, request: &DistinctRequest) -> Result<Array> {
    let found = run_to_end(data, operation, &distinct_as_pipeline(request)?).await?;
    let mut values = ArrayBuilder::new();
    if let Some(Value::Array(distinct)) = found.first().and_then(|group| group.get("distinct")) {
        let mut sorted: Vec<Value<'_>> = distinct.values().collect();
        sorted.sort_by(|left, right| compare(*left, *right));
        sorted.into_iter().for_each(|value| values.push(value));
    }
    Ok(values.finish())
}

/// True if the name is a view's.
pub(super) fn is_view(data: &Data, namespace: &pando_base::Namespace) -> Result<bool> {
    let view: Option<ResolvedView> = data.collections().view(namespace)?;
    Ok(view.is_some())
}
