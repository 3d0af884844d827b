//! The options of time-series collections, and the parameters that bound their buckets.

use crate::request::Hint;
use pando_base::{AnyParameter, Error, Parameter, ParameterSet, Result, Settable};
use pando_catalog::{Collection, ResolvedView};
use pando_doc::DocRef;
use pando_operation::Operation;
use pando_storage::Direction;
use pando_timeseries::{BucketLimits, TimeseriesOptions, index_keys};

/// So many measurements in a bucket.
pub static BUCKET_COUNT_MAX: Parameter<i32> =
    Parameter::new("timeseriesBucketMaxCount", 1000, "Most measurements in a bucket of a time-series collection.")
        .settable(Settable::AtStartup)
        .at_least(1);

/// So many bytes in a bucket.
pub static BUCKET_BYTES_MAX: Parameter<i32> = Parameter::new(
    "timeseriesBucketMaxSize",
    128_000,
    "Most bytes of measurements in a bucket of a time-series collection.",
)
.settable(Settable::AtStartup)
.at_least(1);

/// A bucket with fewer may be larger.
pub static BUCKET_COUNT_MIN: Parameter<i32> = Parameter::new(
    "timeseriesBucketMinCount",
    10,
    "A bucket with fewer measurements than this may be larger than others.",
)
.settable(Settable::AtStartup)
.at_least(1);

/// No less, however many sources there are.
pub static BUCKET_BYTES_MIN: Parameter<i32> = Parameter::new(
    "timeseriesBucketMinSize",
    5120,
    "Least size in bytes at which a bucket is full, however many there are.",
)
.at_least(1);

/// The memory of the catalog of buckets.
pub static CATALOG_BYTES_MAX: Parameter<i64> = Parameter::new(
    "timeseriesIdleBucketExpiryMemoryUsageThreshold",
    0,
    "Memory in bytes above which buckets that were not used for long are closed; 0 for 128 MB.",
);

/// Clients may write buckets that are not what they claim to be.
pub static STRICT_VALIDATOR_DISABLED: Parameter<bool> = Parameter::new(
    "timeseriesDisableStrictBucketValidator",
    false,
    "What clients write to buckets directly is not looked into beyond the collection's validator.",
);

/// The parameters.
pub static PARAMETERS: &[&dyn AnyParameter] = &[
    &BUCKET_COUNT_MAX,
    &BUCKET_BYTES_MAX,
    &BUCKET_COUNT_MIN,
    &BUCKET_BYTES_MIN,
    &CATALOG_BYTES_MAX,
    &STRICT_VALIDATOR_DISABLED,
];

const CATALOG_BYTES_DEFAULT: usize = 128 * 1024 * 1024;

/// The limits of buckets.
pub(super) fn limits(parameters: &ParameterSet) -> BucketLimits {
    let of = |parameter: &'static Parameter<i32>| usize::try_from(parameters.get(parameter)).unwrap_or(1);
    BucketLimits {
        count_max: of(&BUCKET_COUNT_MAX),
        size_bytes_max: of(&BUCKET_BYTES_MAX),
        count_min: of(&BUCKET_COUNT_MIN),
        size_bytes_min: of(&BUCKET_BYTES_MIN),
        ..BucketLimits::default()
    }
}

/// How much memory the catalog of buckets may take.
pub(super) fn catalog_bytes_max(parameters: &ParameterSet) -> usize {
    let given = usize::try_from(parameters.get(&CATALOG_BYTES_MAX)).unwrap_or(0);
    if given == 0 { CATALOG_BYTES_DEFAULT } else { given }
}

/// True for the collection of a time series' buckets.
pub fn is_timeseries(collection: &Collection) -> bool {
    collection.namespace.is_timeseries_buckets() && collection.options.timeseries.is_some()
}

/// True if some bucket of the collection starts before 1970 or after 2038.
pub fn is_out_of_range(operation: &mut Operation, collection: &Collection) -> Result<bool> {
    let mut cursor = collection.records.cursor(Direction::Reverse);
    let last = cursor.next(&mut operation.recovery_unit)?;
    let id = last.and_then(|record| DocRef::trusted(record.value).get("_id").and_then(|id| id.as_object_id()));
    Ok(id.is_some_and(pando_timeseries::is_out_of_range))
}

/// The options of a collection of buckets.
pub fn options_of(collection: &Collection) -> Result<TimeseriesOptions> {
    let options = collection
        .options
        .timeseries
        .as_ref()
        .ok_or_else(|| Error::internal(format!("{} has no time-series options", collection.namespace)))?;
    TimeseriesOptions::parse(options.view())
}

/// The names of the fields and the span of a time-series view, from its first stage.
pub fn options_of_view(view: &ResolvedView) -> Option<TimeseriesOptions> {
    let stage = view.pipeline.values().next()?.as_document().filter(|_| view.is_timeseries)?;
    let unpack = stage.get("$_internalUnpackBucket")?.as_document()?;
    let text = |name: &str| unpack.get(name).and_then(|value| value.as_str()).map(str::to_owned);
    Some(TimeseriesOptions {
        time_field: text("timeField")?,
        meta_field: text("metaField"),
        granularity: None,
        bucket_rounding_seconds: None,
        bucket_max_span_seconds: unpack
            .get("bucketMaxSpanSeconds")
            .and_then(|span| span.to_i64_exact())
            .and_then(|span| i32::try_from(span).ok()),
    })
}

/// The hint as it is for buckets: a key on measurements becomes the key on buckets.
pub fn hint_on_buckets(hint: &Hint, options: &TimeseriesOptions) -> Hint {
    match hint {
        Hint::KeyPattern(key) => {
            index_keys::buckets_key(key.view(), options).map_or_else(|_| hint.clone(), Hint::KeyPattern)
        }
        other => other.clone(),
    }
}
