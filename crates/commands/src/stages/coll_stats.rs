//! `$collStats`: one document that says how large a collection is.

use super::{Asked, Make, options};
use crate::arguments::{Place, SafeInt};
use crate::catalog::append_storage_stats;
use crate::timeseries::{append_timeseries_stats, timeseries};
use pando_base::{Error, ErrorCode, Namespace, Result, bail, ensure};
use pando_catalog::Collection;
use pando_doc::{Doc, DocBuilder, DocRef, Number, Value};
use pando_operation::Operation;
use std::sync::Arc;

crate::arguments! {
    struct CollStats<'a> of "$collStats" {
        latency_stats: Option<DocRef<'a>> = "latencyStats",
        storage_stats: Option<DocRef<'a>> = "storageStats",
        count: Option<DocRef<'a>> = "count",
        query_exec_stats: Option<DocRef<'a>> = "queryExecStats",
    }
}

crate::arguments! {
    struct LatencyStats<'a> of "$collStats.latencyStats" {
        histograms: bool = "histograms" or false,
    }
}

crate::arguments! {
    struct StorageStats<'a> of "$collStats.storageStats" {
        scale: SafeInt = "scale" or SafeInt(1),
        verbose: Option<bool> = "verbose",
        wait_for_lock: Option<bool> = "waitForLock",
        numeric_only: Option<bool> = "numericOnly",
    }
}

/// What is wanted.
#[derive(Clone, Copy)]
struct Wanted {
    /// With or without the buckets.
    latencies: Option<bool>,
    storage_scale: Option<i64>,
    count: bool,
    scans: bool,
}

pub(super) fn parse(value: Value<'_>, namespace: &Namespace) -> Result<Make> {
    let options = options("$collStats", value, ErrorCode::location(5447000))?;
    let arguments = CollStats::parse_fields(options, &Place::of_command("$collStats"), false)?;
    if namespace.is_collectionless_aggregate() {
        bail!(ErrorCode::InvalidNamespace, "$collStats must be run against a collection");
    }
    let latencies = |wish: DocRef<'_>| {
        let wish = LatencyStats::parse_fields(wish, &Place::of_command("$collStats.latencyStats"), false)?;
        Ok::<bool, Error>(wish.histograms)
    };
    let scale = |storage: DocRef<'_>| {
        let storage = StorageStats::parse_fields(storage, &Place::of_command("$collStats.storageStats"), false)?;
        let scale = i64::from(storage.scale.0);
        ensure!(
            scale >= 1,
            ErrorCode::location(51024),
            "BSON field 'storageStats.scale' value must be >= 1, actual value '{scale}'"
        );
        Ok::<i64, Error>(scale)
    };
    ensure!(
        arguments.count.is_none_or(DocRef::is_empty),
        ErrorCode::location(31170),
        "count argument to $collStats must be an empty object, but got {}",
        arguments.count.unwrap_or(DocRef::EMPTY)
    );
    let wanted = Wanted {
        latencies: arguments.latency_stats.map(latencies).transpose()?,
        storage_scale: arguments.storage_stats.map(scale).transpose()?,
        count: arguments.count.is_some(),
        scans: arguments.query_exec_stats.is_some(),
    };
    let namespace = namespace.clone();
    Ok(Arc::new(move |asked: &Asked, operation: &mut Operation| make(asked, operation, &namespace, wanted)))
}

fn make(asked: &Asked, operation: &mut Operation, namespace: &Namespace, wanted: Wanted) -> Result<Vec<Doc>> {
    let catalog = &asked.data()?.catalog;
    let mut view = catalog.establish(operation)?;
    let collection = view.collection(catalog, operation, namespace)?;
    let series = timeseries(asked.data()?, namespace)?;
    let collection = series.as_ref().map(|series| Arc::clone(&series.buckets)).or(collection);
    let is_view = collection.is_none() && view.latest().view(namespace)?.is_some();
    let is_about_data = wanted.storage_scale.is_some() || wanted.count || wanted.scans;
    ensure!(
        !is_view || !is_about_data,
        ErrorCode::CommandNotSupportedOnView,
        "Namespace {namespace} is a view, not a collection"
    );
    let mut document = DocBuilder::new();
    document.append("ns", namespace.as_str());
    document.append("host", &asked.node.options.host);
    document.append("localTime", Value::DateTime(asked.node.now_ms()));
    if let Some(with_buckets) = wanted.latencies {
        let latencies = document.begin_document("latencyStats");
        asked.data()?.top.append_latencies(namespace, with_buckets, &mut document);
        document.end(latencies);
    }
    if let Some(scale) = wanted.storage_scale {
        let collection = found(collection.as_deref(), namespace, "storageStats")?;
        let stats = document.begin_document("storageStats");
        match &series {
            Some(series) => append_timeseries_stats(asked.data()?, series, scale, &mut document)?,
            None => append_storage_stats(Some(collection), scale, &mut document)?,
        }
        document.end(stats);
    }
    if wanted.count {
        let collection = found(collection.as_deref(), namespace, "count")?;
        document.append("count", Number::narrowest(collection.records.num_records()?.max(0)));
    }
    if wanted.scans {
        found(collection.as_deref(), namespace, "queryExecStats")?;
        let scans = document.begin_document("queryExecStats");
        asked.data()?.top.append_scans(namespace, &mut document);
        document.end(scans);
    }
    Ok(vec![document.finish()])
}

fn found<'c>(collection: Option<&'c Collection>, namespace: &Namespace, what: &str) -> Result<&'c Collection> {
    let missing = || {
        Error::new(ErrorCode::NamespaceNotFound, format!("Collection [{namespace}] not found."))
            .context(format!("Unable to retrieve {what} in $collStats stage"))
    };
    collection.ok_or_else(missing)
}
