//! What may be stored under a lower feature compatibility version.
//!
//! A version that is lower than this server's says that an older server may have to read the data again. So what that server does
//! not know must not get into the catalog: expressions of views and validators, kinds of index, sizes of capped collections.
//! What is only asked and not kept is not gated, as in MongoDB. The way down is refused while such things are there.

use super::compatibility::{State, Version};
use crate::{Data, FEATURE_COMPATIBILITY_VERSION};
use pando_base::{Error, ErrorCode, Parameter, ParameterSet, Result, Settable, bail, ensure};
use pando_catalog::{Collection, Index};
use pando_doc::{DocRef, Value};
use std::sync::Arc;

/// Sizes of capped collections were multiples of this.
const CAPPED_SIZE_STEP: i64 = 256;

const LINK: &str = "https://docs.mongodb.com/master/release-notes/6.0-compatibility/#feature-compatibility";

/// Whether a lower version refuses what it does not know.
pub(crate) static GATES_NEW_FEATURES: Parameter<bool> = Parameter::new(
    "internalValidateFeaturesAsPrimary",
    true,
    "Refuses validators and views with operators that the feature compatibility version does not know; not with a set.",
)
.aliases(&["internalValidateFeaturesAsMaster"])
.settable(Settable::AtStartup);

/// Operators of expressions, and since when they are there.
const OPERATORS: &[(&str, Version)] = &[
    ("$bitAnd", Version::LastContinuous),
    ("$bitNot", Version::LastContinuous),
    ("$bitOr", Version::LastContinuous),
    ("$bitXor", Version::LastContinuous),
    ("$median", Version::Latest),
    ("$percentile", Version::Latest),
];

/// The version in force. On the way between two it is the lower one.
fn in_force(parameters: &ParameterSet) -> Version {
    match State::of_shown(DocRef::trusted(&parameters.get(&FEATURE_COMPATIBILITY_VERSION))) {
        Ok(State::At(version)) => version,
        Ok(State::Between { from, to }) => from.min(to),
        // The parameter follows a document that was checked before it was written.
        Err(_) => Version::Latest,
    }
}

/// Refuses an expression, or a pipeline, that is to be kept and has operators that the version does not know.
pub(crate) fn check_kept_expression(parameters: &ParameterSet, kept: Value<'_>) -> Result<()> {
    match in_force(parameters) {
        Version::Latest => Ok(()),
        _ if !parameters.get(&GATES_NEW_FEATURES) => Ok(()),
        version => check_value(version, kept),
    }
}

fn check_value(version: Version, value: Value<'_>) -> Result<()> {
    match value {
        Value::Document(document) => document.elements().try_for_each(|element| {
            let newer = OPERATORS.iter().find(|(name, since)| *since > version && element.name == *name);
            match newer {
                Some((name, _)) => Err(unknown(name)),
                // What stands for itself is no expression.
                None if element.name == "$literal" => Ok(()),
                None => check_value(version, element.value),
            }
        }),
        Value::Array(array) => array.values().try_for_each(|item| check_value(version, item)),
        Value::String(text) if version < Version::Latest => {
            let is_variable =
                text.strip_prefix(b"$$USER_ROLES").is_some_and(|rest| matches!(rest.first(), None | Some(b'.')));
            if is_variable { Err(unknown("$$USER_ROLES")) } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

fn unknown(name: &str) -> Error {
    let reason =
        format!("{name} is not allowed in the current feature compatibility version. See {LINK} for more information.");
    Error::new(ErrorCode::QueryFeatureNotAllowed, reason)
}

/// Refuses an index that the version does not know: a wildcard among other fields, or descending.
pub(crate) fn check_new_index(parameters: &ParameterSet, specification: DocRef<'_>) -> Result<()> {
    let Some(Value::Document(key)) = specification.get("key") else { return Ok(()) };
    let is_wildcard = key.elements().any(|element| element.name == "$**" || element.name.ends_with(b".$**"));
    if !is_wildcard || in_force(parameters) == Version::Latest {
        return Ok(());
    }
    ensure!(key.elements().count() == 1, ErrorCode::CannotCreateIndex, "wildcard indexes do not allow compounding");
    let is_descending = key.elements().any(|element| element.value.to_double().is_some_and(|number| number < 0.0));
    ensure!(
        !is_descending,
        ErrorCode::CannotCreateIndex,
        "A numeric value in a $** index key pattern must be positive."
    );
    Ok(())
}

/// The size that a capped collection gets.
pub(crate) fn capped_size(parameters: &ParameterSet, size_bytes: i64) -> i64 {
    if in_force(parameters) >= Version::LastContinuous {
        return size_bytes;
    }
    let rest = size_bytes.rem_euclid(CAPPED_SIZE_STEP);
    if rest == 0 { size_bytes } else { size_bytes.saturating_add(CAPPED_SIZE_STEP - rest) }
}

/// Refuses to go down while there is something that the lower version does not know.
pub(super) fn check_downgrade(data: &Data, to: Version) -> Result<()> {
    if to >= Version::LastContinuous {
        return Ok(());
    }
    let catalog = data.catalog.latest();
    for collection in catalog.all_collections() {
        let options = &collection.options;
        ensure!(
            !collection.is_capped() || options.capped_size_bytes.rem_euclid(CAPPED_SIZE_STEP) == 0,
            ErrorCode::CannotDowngrade,
            "Cannot downgrade the cluster when there are capped collection with a size that is non multiple of 256 bytes. \
             Drop or resize the following collection: '{}'",
            collection.namespace
        );
        let has_ranges = options.encrypted_fields.as_ref().is_some_and(|fields| has_range_queries(fields.view()));
        ensure!(
            !has_ranges,
            ErrorCode::CannotDowngrade,
            "Cannot downgrade the cluster as collection {} has 'encryptedFields' with range indexes",
            collection.namespace
        );
        if let Some(timeseries) = &options.timeseries {
            check_timeseries_downgrade(collection, timeseries.view())?;
        }
    }
    Ok(())
}

/// Spans of buckets without a granularity, and documents that expire by an index on some of the buckets, are newer.
fn check_timeseries_downgrade(collection: &Collection, timeseries: DocRef<'_>) -> Result<()> {
    ensure!(
        timeseries.contains("granularity") && !timeseries.contains("bucketRoundingSeconds"),
        ErrorCode::CannotDowngrade,
        "Cannot downgrade the cluster when there are time-series collections with custom bucketing parameters. Set the \
         granularity of the following collection, or drop it: '{}'",
        collection.namespace
    );
    let is_newer = |index: &&Arc<Index>| {
        index.descriptor.expire_after_seconds.is_some() && index.descriptor.partial_filter.is_some()
    };
    if let Some(index) = collection.indexes.iter().find(is_newer) {
        bail!(
            ErrorCode::CannotDowngrade,
            "Cannot downgrade the cluster when there are partial TTL indexes on time-series collections. Drop the index \
             '{}' of the following collection: '{}'",
            index.name(),
            collection.namespace
        );
    }
    Ok(())
}

fn has_range_queries(value: DocRef<'_>) -> bool {
    fn within(value: Value<'_>) -> bool {
        match value {
            Value::Document(document) => has_range_queries(document),
            Value::Array(array) => array.values().any(within),
            _ => false,
        }
    }
    value.elements().any(|element| {
        (element.name == "queryType" && element.value.as_str() == Some("rangePreview")) || within(element.value)
    })
}
