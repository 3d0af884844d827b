//! Time-series collections as commands see them: a name that is a view's, on buckets that are a collection's.
//!
//! A command that is given the name of a time-series collection works on its buckets; what it is told about measurements (keys of
//! indexes, hints, options) is translated, and what it tells is translated back.

mod create;
mod indexes;
mod statistics;

pub(crate) use create::{
    bucket_options, check_options, check_same_timeseries, check_timeseries_options, create_timeseries, default_index,
    timeseries_view,
};
pub(crate) use indexes::buckets_index;
pub(crate) use statistics::append_timeseries_stats;

use crate::arguments::SafeBool;
use crate::{Data, Invocation};
use pando_base::{Error, ErrorCode, Namespace, Result, ensure};
use pando_catalog::Collection;
use pando_query::timeseries::options_of;
use pando_timeseries::TimeseriesOptions;
use std::sync::Arc;

/// The buckets of a time-series collection.
pub(crate) struct Timeseries {
    /// Their collection.
    pub(crate) buckets: Arc<Collection>,
    /// What the collection is like.
    pub(crate) options: TimeseriesOptions,
}

/// The buckets behind a name, if it is a time-series collection's.
pub(crate) fn timeseries(data: &Data, namespace: &Namespace) -> Result<Option<Timeseries>> {
    let latest = data.catalog.latest();
    if latest.collection(namespace).is_some() {
        return Ok(None);
    }
    let is_timeseries = latest.view(namespace)?.is_some_and(|view| view.is_timeseries());
    match latest.collection(&namespace.timeseries_buckets()).filter(|_| is_timeseries) {
        Some(buckets) if buckets.options.timeseries.is_some() => {
            let options = options_of(buckets)?;
            Ok(Some(Timeseries { buckets: Arc::clone(buckets), options }))
        }
        _ => Ok(None),
    }
}

/// The name of the buckets for that of a time-series collection; any other name as it is.
pub(crate) fn on_buckets(data: &Data, namespace: &Namespace) -> Result<Namespace> {
    let timeseries = timeseries(data, namespace)?;
    Ok(timeseries.map_or_else(|| namespace.clone(), |timeseries| timeseries.buckets.namespace.clone()))
}

/// The name of the buckets that a write goes to, if it is one to a time-series collection; `is_told` if the client says so and names the buckets itself.
pub(crate) fn buckets_to_write(
    data: &Data,
    namespace: &Namespace,
    is_told: Option<SafeBool>,
) -> Result<Option<Namespace>> {
    match is_told {
        Some(SafeBool(true)) if namespace.is_timeseries_buckets() => Ok(Some(namespace.clone())),
        Some(SafeBool(true)) => Err(Error::location(
            5_916_400,
            "'isTimeseriesNamespace' parameter can only be set when the request is sent on system.buckets namespace",
        )),
        // Most writes: nothing else is looked at.
        _ if data.catalog.peek().collection(namespace).is_some() => Ok(None),
        _ => {
            check_buckets(data, namespace)?;
            Ok(timeseries(data, namespace)?.map(|found| found.buckets.namespace.clone()))
        }
    }
}

/// Buckets that a client has made itself take no measurements if something is missing of what makes them such.
fn check_buckets(data: &Data, namespace: &Namespace) -> Result<()> {
    let latest = data.catalog.latest();
    let buckets = latest.collection(&namespace.timeseries_buckets());
    let Some((buckets, options)) = buckets.and_then(|found| found.options.timeseries.as_ref().map(|own| (found, own)))
    else {
        return Ok(());
    };
    let has = |name: &str| options.view().contains(name);
    ensure!(
        buckets.is_clustered() && has("bucketMaxSpanSeconds") && (has("granularity") || has("bucketRoundingSeconds")),
        ErrorCode::InvalidOptions,
        "Time-series buckets collection is missing time-series options or is not clustered: {}",
        buckets.namespace
    );
    Ok(())
}

/// The same for a delete or an update, which no transaction may have.
pub(crate) fn buckets_to_change(
    invocation: &Invocation,
    data: &Data,
    namespace: &Namespace,
    is_told: Option<SafeBool>,
) -> Result<Option<Namespace>> {
    let buckets = buckets_to_write(data, namespace, is_told)?;
    ensure!(
        buckets.is_none() || invocation.transaction().is_none(),
        ErrorCode::OperationNotSupportedInTransaction,
        "Cannot perform a multi-document transaction on a time-series collection: {namespace}"
    );
    Ok(buckets)
}

/// Buckets that a client writes itself are looked at, whatever it asks for.
pub(crate) fn check_bypass(data: &Data, namespace: &Namespace, bypasses: bool) -> Result<()> {
    if !bypasses || !namespace.is_timeseries_buckets() {
        return Ok(());
    }
    let latest = data.catalog.latest();
    let is_timeseries = latest.collection(namespace).is_some_and(|buckets| buckets.options.timeseries.is_some());
    ensure!(
        !is_timeseries,
        ErrorCode::BadValue,
        "'bypassDocumentValidation' cannot be used for writes to the buckets of a time-series collection"
    );
    Ok(())
}
