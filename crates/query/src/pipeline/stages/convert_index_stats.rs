//! `$_internalConvertBucketIndexStats`: what `$indexStats` tells of buckets, as if it were told of measurements. Indexes that measurements
//! cannot have are left out.

use super::transform::transformed;
use crate::pipeline::{DocumentSource, SharedStage, StageSpec};
use crate::timeseries::measurements_index;
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, Value, doc};
use pando_timeseries::{TimeseriesOptions, index_keys};
use std::sync::Arc;

#[derive(Debug)]
struct ConvertIndexStats {
    options: TimeseriesOptions,
}

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>) -> Result<SharedStage> {
    let wrong = || Error::location(5_480_000, "$_internalConvertBucketIndexStats specification must be an object");
    let options = value.as_document().ok_or_else(wrong)?;
    let text = |name: &str| options.get(name).and_then(|value| value.as_str()).map(str::to_owned);
    let options = TimeseriesOptions {
        time_field: text("timeField").ok_or_else(wrong)?,
        meta_field: text("metaField"),
        granularity: None,
        bucket_rounding_seconds: None,
        bucket_max_span_seconds: None,
    };
    Ok(Arc::new(ConvertIndexStats { options }))
}

fn converted(told: &Doc, options: &TimeseriesOptions) -> Option<Doc> {
    let specification = measurements_index(told.get("spec")?.as_document()?, options)?;
    let key = index_keys::measurements_key(told.get("key")?.as_document()?, options)?;
    let mut out = DocBuilder::new();
    for element in told.elements() {
        match &**element.name {
            b"spec" => out.append("spec", &specification),
            b"key" => out.append("key", &key),
            _ => out.append_element(element),
        }
    }
    Some(out.finish())
}

impl StageSpec for ConvertIndexStats {
    fn name(&self) -> &'static str {
        "$_internalConvertBucketIndexStats"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let options = self.options.clone();
        Ok(transformed(source, move |told| Ok(converted(&told, &options))))
    }

    fn to_doc(&self) -> Doc {
        let mut out = DocBuilder::new();
        out.append("timeField", self.options.time_field.as_str());
        out.append_some("metaField", self.options.meta_field.as_deref());
        doc! { "$_internalConvertBucketIndexStats": out.finish() }
    }
}
