//! Buckets of an earlier run, found by the index on meta value and time.

use crate::QueryEngine;
use crate::executor::drive;
use crate::request::FindRequest;
use pando_base::Result;
use pando_catalog::Collection;
use pando_doc::{Doc, DocBuilder, ObjectId, Value, doc};
use pando_operation::Operation;
use pando_timeseries::{TimeseriesOptions, VERSION_OPEN};
use std::sync::Arc;

impl QueryEngine {
    /// An open bucket of the source that takes a measurement of this time, and when it starts. Without an index nobody looks: it would
    /// take longer than a new bucket costs.
    pub(super) async fn search_bucket(
        &self,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        options: &TimeseriesOptions,
        meta: Option<Value<'_>>,
        time_ms: i64,
    ) -> Result<Option<(ObjectId, i64)>> {
        if !has_index(collection, options) {
            return Ok(None);
        }
        let filter = filter(options, meta, time_ms);
        let collation = doc! { "locale": "simple" };
        let request =
            FindRequest { filter, collation, limit: Some(1), ..FindRequest::new(collection.namespace.clone()) };
        let mut executor = self.find_in(operation, &request, Some(Arc::clone(collection)))?;
        let mut found: Vec<Doc> = Vec::new();
        drive(&mut executor, operation, &*self.collections, &mut found).await?;
        drop(executor);
        operation.recovery_unit.abandon_snapshot()?;
        Ok(found.first().and_then(|bucket| {
            let id = bucket.get("_id")?.as_object_id()?;
            let least = bucket.get("control")?.as_document()?.get("min")?.as_document()?;
            Some((id, least.get(&options.time_field)?.as_date()?))
        }))
    }
}

/// True if an index leads to the buckets of a source by time.
fn has_index(collection: &Collection, options: &TimeseriesOptions) -> bool {
    let time = format!("control.min.{}", options.time_field);
    let wanted: Vec<&str> = options.meta_field.iter().map(|_| "meta").chain([time.as_str()]).collect();
    collection.indexes.iter().any(|index| {
        let key = &index.descriptor.key_pattern;
        index.descriptor.partial_filter.is_none()
            && index.descriptor.collation.is_none()
            && wanted.len() <= key.view().field_count()
            && key.elements().zip(&wanted).all(|(element, name)| element.name == *name && element.value.is_number())
    })
}

fn filter(options: &TimeseriesOptions, meta: Option<Value<'_>>, time_ms: i64) -> Doc {
    let span_ms = i64::from(options.span_seconds()) * 1000;
    let mut filter = DocBuilder::new();
    filter.document("meta", |condition| match meta {
        Some(meta) => condition.append("$eq", meta),
        None => condition.append("$exists", false),
    });
    filter.document(format!("control.min.{}", options.time_field), |condition| {
        condition.append("$lte", Value::DateTime(time_ms));
        condition.append("$gt", Value::DateTime(time_ms.saturating_sub(span_ms)));
    });
    filter.append("control.version", VERSION_OPEN);
    filter.document("control.closed", |condition| condition.append("$ne", true));
    filter.finish()
}
