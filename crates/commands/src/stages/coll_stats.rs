//! `$collStats`: one document that says how large a collection is.

use super::{Asked, Make, options};
use crate::arguments::{Argument, Place, PlainBool, SafeInt, at_least};
use crate::catalog::append_storage_stats;
use crate::timeseries::{append_timeseries_stats, timeseries};
use pando_base::{Error, ErrorCode, Namespace, Result, bail, ensure};
use pando_catalog::Collection;
use pando_doc::{Doc, DocBuilder, DocRef, Number, Value, ValueType};
use pando_operation::Operation;
use std::sync::Arc;

crate::arguments! {
    struct CollStats<'a> of "$collStats" {
        latency_stats: Option<LatencyStats<'a>> = "latencyStats",
        storage_stats: Option<StorageStats<'a>> = "storageStats",
        count: Option<Empty> = "count",
        query_exec_stats: Option<Empty> = "queryExecStats",
    }
}

crate::arguments! {
    struct LatencyStats<'a> of "$collStats.latencyStats" {
        histograms: PlainBool = "histograms" or PlainBool(false),
    }
}

crate::arguments! {
    struct StorageStats<'a> of "$collStats.storageStats" lenient {
        scale: Scale = "scale" or Scale(1),
        verbose: Option<PlainBool> = "verbose",
        wait_for_lock: Option<PlainBool> = "waitForLock",
        numeric_only: Option<PlainBool> = "numericOnly",
    }
}

/// A document without anything in it.
#[derive(Clone, Copy, Debug)]
struct Empty;

impl<'a> Argument<'a> for Empty {
    const TYPES: &'static [ValueType] = &[ValueType::Document];

    fn read(place: &Place<'_>, value: Value<'a>) -> Result<Empty> {
        ensure!(
            value.as_document().is_none_or(DocRef::is_empty),
            ErrorCode::location(31170),
            "{} argument to $collStats must be an empty object, but got {value}",
            place.name()
        );
        Ok(Empty)
    }
}

/// What sizes are divided by.
#[derive(Clone, Copy, Debug)]
struct Scale(i32);

impl<'a> Argument<'a> for Scale {
    const TYPES: &'static [ValueType] = SafeInt::TYPES;

    fn read(place: &Place<'_>, value: Value<'a>) -> Result<Scale> {
        let scale = SafeInt::read(place, value)?.0;
        at_least("storageStats.scale", i64::from(scale), 1)?;
        Ok(Scale(scale))
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
    let wanted = Wanted {
        latencies: arguments.latency_stats.map(|wish| wish.histograms.0),
        storage_scale: arguments.storage_stats.map(|wish| i64::from(wish.scale.0)),
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
