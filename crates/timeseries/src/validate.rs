//! Whether a bucket is what it claims to be, for `validate` and for clients that write buckets themselves.

use crate::bucket::measurement_time;
use crate::extent::{End, Extent};
use crate::unpack::{BucketReader, FieldSet, count};
use crate::{TimeseriesOptions, VERSION_COMPRESSED, VERSION_OPEN, is_compressed};
use pando_doc::{Doc, DocBuilder, DocRef, StringComparator, Value};

/// What is wrong with a bucket; nothing if it is whole.
pub fn check_bucket(
    bucket: &Doc,
    options: &TimeseriesOptions,
    strings: Option<&dyn StringComparator>,
) -> Option<String> {
    let view = bucket.view();
    view.get("_id").and_then(|id| id.as_object_id())?;
    if let Some(fault) = check_claims(view, options) {
        return Some(fault);
    }
    let control = view.get("control").and_then(|control| control.as_document()).unwrap_or(DocRef::EMPTY);
    let start_ms = start(control, options).unwrap_or_default();
    let mut reader = match BucketReader::new(bucket, options, &FieldSet::all()) {
        Ok(reader) => reader,
        Err(error) => return Some(error.reason().to_owned()),
    };
    let mut start = DocBuilder::new();
    start.append(&options.time_field, pando_doc::Value::DateTime(start_ms));
    let mut found = (Extent::parse(start.finish().view()), Extent::default());
    let is_meta = |name: &[u8]| options.meta_field.as_deref().is_some_and(|meta| meta.as_bytes() == name);
    loop {
        match reader.read() {
            Err(error) => return Some(error.reason().to_owned()),
            Ok(None) => break,
            Ok(Some(measurement)) => {
                let Ok(time_ms) = measurement_time(measurement.view(), options) else {
                    return Some("a measurement has no time".into());
                };
                if time_ms < start_ms {
                    return Some("a measurement is earlier than its bucket".into());
                }
                found.0.update(measurement.view(), End::Least, strings, is_meta);
                found.1.update(measurement.view(), End::Greatest, strings, is_meta);
            }
        }
    }
    let written = |extent: &Extent, name: &str| {
        let mut out = DocBuilder::new();
        extent.append_to(name, &mut out);
        sorted(out.finish().get(name))
    };
    let is_same = |extent: &Extent, name: &str| written(extent, name) == sorted(control.get(name));
    if !is_same(&found.0, "min") || !is_same(&found.1, "max") {
        return Some("mismatch between time-series control and observed min or max".into());
    }
    None
}

/// What is wrong with a bucket as far as its id, its version and its count tell, without looking at its measurements.
pub fn check_claims(bucket: DocRef<'_>, options: &TimeseriesOptions) -> Option<String> {
    let control = bucket.get("control").and_then(|control| control.as_document());
    let Some(control) = control else { return Some("the control field is missing".into()) };
    let Some(start_ms) = start(control, options) else { return Some("control.min has no time".into()) };
    let id = bucket.get("_id").and_then(|id| id.as_object_id());
    if id.is_none_or(|id| start_ms.div_euclid(1000) as u32 != id.seconds()) {
        return Some("mismatch between the embedded timestamp in the time-series bucket '_id' field and the timestamp in 'control.min'".into());
    }
    if let Some(fault) = check_version(bucket, control) {
        return Some(fault);
    }
    if is_compressed(bucket) {
        let told = control.get("count").and_then(|count| count.to_i64_exact());
        if told.and_then(|told| usize::try_from(told).ok()) != count(bucket, options) {
            return Some("control.count does not match the number of measurements".into());
        }
    }
    None
}

/// When the bucket starts.
fn start(control: DocRef<'_>, options: &TimeseriesOptions) -> Option<i64> {
    let least = control.get("min").and_then(|least| least.as_document());
    least.and_then(|least| least.get(&options.time_field)).and_then(|time| time.as_date())
}

/// An open bucket has its columns as documents, a compressed one as binary data.
fn check_version(bucket: DocRef<'_>, control: DocRef<'_>) -> Option<String> {
    let version = control.get("version").and_then(|version| version.to_i64_exact()).unwrap_or_default();
    let data = bucket.get("data").and_then(|data| data.as_document()).unwrap_or(DocRef::EMPTY);
    let is_open = version == i64::from(VERSION_OPEN);
    let is_as_told = |value: Value<'_>| match value {
        Value::Document(_) => is_open,
        Value::Binary { subtype: 7, .. } => !is_open,
        _ => false,
    };
    if !is_open && !is_compressed(bucket) || version > i64::from(VERSION_COMPRESSED) {
        return Some(format!("unsupported time-series bucket version: {version}"));
    }
    let wrong = data.elements().find(|column| !is_as_told(column.value));
    wrong.map(|column| {
        format!("mismatch between time-series schema version {version} and data field type of '{}'", column.name)
    })
}

/// The same whatever the order of fields is.
fn sorted(value: Option<pando_doc::Value<'_>>) -> Option<pando_doc::OwnedValue> {
    value.map(crate::normalized)
}
