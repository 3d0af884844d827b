//! Specifications of indexes on measurements, as specifications on buckets and back.

use pando_base::{Error, ErrorCode, Result, bail, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_query::timeseries::filter_on_buckets;
use pando_timeseries::{TimeseriesOptions, index_keys};

/// The specification on buckets for one on measurements.
pub(crate) fn buckets_index(specification: DocRef<'_>, options: &TimeseriesOptions) -> Result<Doc> {
    let Some(Value::Document(key)) = specification.get("key") else { return Ok(specification.to_doc()) };
    check(specification, key, options)?;
    let buckets_key = index_keys::buckets_key(key, options).map_err(|error| {
        let reason = format!("{error} Command request: {{ createIndexes: {specification} }}");
        Error::new(ErrorCode::CannotCreateIndex, reason)
    })?;
    let mut keeps_original = !index_keys::is_plain(buckets_key.view(), options);
    let mut is_filter_on_meta = false;
    let mut out = DocBuilder::new();
    for element in specification.elements() {
        match &**element.name {
            b"key" => {}
            b"partialFilterExpression" => {
                keeps_original = true;
                ensure!(
                    !specification.contains("collation"),
                    ErrorCode::IndexOptionsConflict,
                    "On a time-series collection, partialFilterExpression and collation arguments are incompatible"
                );
                let Value::Document(filter) = element.value else {
                    out.append_element(element);
                    continue;
                };
                let (filter, is_on_meta) = filter_on_buckets(filter, options)?;
                is_filter_on_meta = is_on_meta;
                out.append("partialFilterExpression", filter);
            }
            _ => out.append_element(element),
        }
    }
    if specification.contains("expireAfterSeconds") {
        ensure!(
            is_filter_on_meta,
            ErrorCode::InvalidOptions,
            "TTL indexes on time-series collections require a partialFilterExpression on the metaField"
        );
        out.append("key", expiry_key(key, options)?);
    } else {
        out.append("key", buckets_key);
    }
    if keeps_original {
        out.document("originalSpec", |original| {
            if !specification.contains("v") {
                original.append("v", 2);
            }
            original.append_all(specification);
        });
    }
    Ok(out.finish())
}

fn check(specification: DocRef<'_>, key: DocRef<'_>, options: &TimeseriesOptions) -> Result<()> {
    if specification.get("unique").is_some_and(|unique| unique.is_true()) {
        bail!(ErrorCode::InvalidOptions, "Unique indexes are not supported on time-series collections");
    }
    if key.elements().any(|element| element.value.as_str() == Some("text")) {
        bail!(ErrorCode::InvalidOptions, "Text indexes are not supported on time-series collections");
    }
    let is_source = |name: &str| name == options.time_field || index_keys::meta_path(name, options).is_some();
    if specification.contains("sparse") && !key.elements().all(|element| is_source(&element.name.to_string())) {
        bail!(ErrorCode::InvalidOptions, "Sparse indexes are not supported on time-series measurements");
    }
    Ok(())
}

/// Buckets expire by their start.
fn expiry_key(key: DocRef<'_>, options: &TimeseriesOptions) -> Result<Doc> {
    ensure!(
        key.field_count() == 1,
        ErrorCode::CannotCreateIndex,
        "TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: {key}"
    );
    match key.first().filter(|first| first.name == options.time_field.as_str()) {
        Some(time) => Ok(Doc::from_iter([(format!("control.min.{}", options.time_field), time.value)])),
        None => bail!(
            ErrorCode::InvalidOptions,
            "TTL indexes on non-time fields are not supported on time-series collections"
        ),
    }
}
