//! `$_internalUnpackBucket`: the measurements of buckets.
//!
//! What a time-series view consists of. What stands behind it is rewritten onto the buckets where that gives the same
//! ([`rewrite`]): buckets that cannot have a wanted measurement are not read, and of those that are only the fields that somebody needs
//! are unpacked.

mod groups;
mod near;
mod parse;
mod predicates;
mod rewrite;

pub(in crate::pipeline) use near::expanded;
pub(in crate::pipeline) use parse::parse;
pub(crate) use predicates::Facts;
pub(in crate::pipeline) use rewrite::rewrite;

use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::{DocumentSource, PipelineContext, Pulled, PulledRows, SharedStage, StageSpec};
use pando_base::Result;
use pando_doc::{Doc, DocBuilder, doc};
use pando_expr::MatchExpression;
use pando_timeseries::{BucketReader, FieldSet, TimeseriesOptions};
use std::sync::Arc;

/// After so many measurements that the filter refuses somebody may want to stop.
const CHECK_INTERVAL: u32 = 1024;

/// What an unpacking does.
#[derive(Clone, Debug)]
pub struct Unpacking {
    /// The names of the fields, and the span of a bucket.
    pub(in crate::pipeline) options: TimeseriesOptions,
    /// Which fields are wanted.
    pub(super) fields: FieldSet,
    /// Only measurements that match this.
    pub(super) event_filter: Option<Arc<MatchExpression>>,
    /// A bucket that matches this has only measurements that match the other.
    pub(super) whole_filter: Option<Arc<MatchExpression>>,
    /// Only the extremes of these fields matter.
    pub(super) extremes: Option<Vec<String>>,
    /// As written by who says that buckets have one kind of value at a path.
    pub(super) assumes_one_schema: bool,
    /// Some bucket starts before 1970 or after 2038, so that ids and starts of buckets do not tell the order of their times.
    pub(in crate::pipeline) is_out_of_range: bool,
    /// It was written as `$_unpackBucket`.
    pub(super) is_short: bool,
}

struct UnpackSource {
    source: Box<dyn DocumentSource>,
    unpacking: Unpacking,
    bucket: Option<BucketReader>,
    /// The least and the greatest time of the bucket that was taken up last.
    times: Option<(i64, i64)>,
    /// All measurements of the bucket are wanted.
    is_whole: bool,
    /// Measurements of extremes that were not given yet.
    ready: Vec<Doc>,
}

impl UnpackSource {
    /// Goes on with this bucket.
    fn take_up(&mut self, bucket: &Doc) -> Result<()> {
        let Unpacking { options, fields, extremes, whole_filter, .. } = &self.unpacking;
        let extremes = extremes.as_ref().and_then(|fields| groups::extreme_measurements(bucket, options, fields));
        if let Some(extremes) = extremes {
            self.ready.extend(extremes);
            return Ok(());
        }
        let reader = BucketReader::new(bucket, options, fields)?;
        self.times = times_of(bucket, options);
        self.is_whole = match whole_filter {
            None => false,
            Some(filter) => filter.try_matches(bucket.view())?,
        };
        self.bucket = Some(reader);
        Ok(())
    }

    /// The next measurement of the bucket at hand that is wanted.
    fn measurement(&mut self, context: &mut PipelineContext<'_>) -> Result<Option<Doc>> {
        let Some(bucket) = &mut self.bucket else { return Ok(None) };
        let mut refused = 0;
        while let Some(measurement) = bucket.read()? {
            let is_wanted = match &self.unpacking.event_filter {
                None => true,
                Some(_) if self.is_whole => true,
                Some(filter) => filter.try_matches(measurement.view())?,
            };
            if is_wanted {
                return Ok(Some(measurement));
            }
            refused += 1;
            if refused % CHECK_INTERVAL == 0 {
                context.operation.context.check()?;
            }
        }
        self.bucket = None;
        Ok(None)
    }
}

impl DocumentSource for UnpackSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        loop {
            if let Some(measurement) = self.ready.pop() {
                return Ok(Pulled::Document(measurement));
            }
            if let Some(measurement) = self.measurement(context)? {
                return Ok(Pulled::Document(measurement));
            }
            match self.source.next(context)? {
                Pulled::Document(bucket) => self.take_up(&bucket)?,
                other => return Ok(other),
            }
        }
    }

    fn next_rows(&mut self, context: &mut PipelineContext<'_>) -> Result<PulledRows> {
        while self.ready.is_empty() && self.bucket.is_none() {
            match self.source.next(context)? {
                Pulled::Document(bucket) => self.take_up(&bucket)?,
                other => return Ok(PulledRows::Other(other)),
            }
            let is_whole = self.is_whole || self.unpacking.event_filter.is_none();
            let rows = match self.bucket.as_ref().filter(|_| is_whole) {
                Some(bucket) => bucket.rows()?,
                None => None,
            };
            if let Some(rows) = rows {
                self.bucket = None;
                return Ok(PulledRows::Rows(rows));
            }
        }
        self.next(context).map(PulledRows::Other)
    }

    fn bucket_times(&self) -> Option<(i64, i64)> {
        self.times
    }

    pass_on_to_source!();
}

/// The least and the greatest time of a bucket.
fn times_of(bucket: &Doc, options: &TimeseriesOptions) -> Option<(i64, i64)> {
    let control = bucket.get("control")?.as_document()?;
    let end = |end: &str| control.get(end)?.as_document()?.get(&options.time_field)?.as_date();
    Some((end("min")?, end("max")?))
}

impl StageSpec for Unpacking {
    fn name(&self) -> &'static str {
        if self.is_short { "$_unpackBucket" } else { "$_internalUnpackBucket" }
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(UnpackSource {
            source,
            unpacking: self.clone(),
            bucket: None,
            times: None,
            is_whole: false,
            ready: Vec::new(),
        }))
    }

    fn unpacking(&self) -> Option<&Unpacking> {
        Some(self)
    }

    fn to_doc(&self) -> Doc {
        let mut out = DocBuilder::new();
        let (kind, names) = match &self.fields {
            FieldSet::Only(names) => ("include", names),
            FieldSet::AllBut(names) => ("exclude", names),
        };
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.sort_unstable();
        out.array(kind, |array| names.iter().for_each(|name| array.push(*name)));
        out.append("timeField", self.options.time_field.as_str());
        out.append_some("metaField", self.options.meta_field.as_deref());
        out.append("bucketMaxSpanSeconds", self.options.span_seconds());
        if self.assumes_one_schema {
            out.append("assumeNoMixedSchemaData", true);
        }
        if self.is_out_of_range {
            out.append("usesExtendedRange", true);
        }
        out.append_some("wholeBucketFilter", self.whole_filter.as_ref().map(|filter| filter.to_document()));
        out.append_some("eventFilter", self.event_filter.as_ref().map(|filter| filter.to_document()));
        doc! { "$_internalUnpackBucket": out.finish() }
    }
}

/// The unpacking among stages, if there is one.
pub(super) fn place_of(stages: &[SharedStage]) -> Option<(usize, Unpacking)> {
    stages.iter().enumerate().find_map(|(place, stage)| Some((place, stage.unpacking()?.clone())))
}
