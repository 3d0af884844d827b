//! What `$out` replaces: a plain collection, or the buckets of a time series.

use crate::Data;
use crate::crud::collections::refuse_view;
use crate::timeseries::{Timeseries, bucket_options, check_options, default_index, timeseries, timeseries_view};
use pando_base::{ErrorCode, Namespace, Result, ensure};
use pando_catalog::{Collection, CollectionOptions, ViewDefinition};
use pando_doc::Doc;
use pando_timeseries::TimeseriesOptions;

/// The collection that results are to become.
pub(super) struct Target {
    /// Its name, which for a time series is that of its buckets.
    pub(super) written: Namespace,
    /// What it will be like.
    pub(super) options: CollectionOptions,
    /// The indexes that it gets.
    pub(super) indexes: Vec<Doc>,
    /// The view on it, if it is of buckets.
    pub(super) view: Option<ViewDefinition>,
}

impl Target {
    /// The target of this name; `given` if it is to be a time series.
    pub(super) fn of(data: &Data, namespace: &Namespace, given: Option<&Doc>) -> Result<Target> {
        let there = timeseries(data, namespace)?;
        if given.is_none() && there.is_none() {
            return Target::plain(data, namespace);
        }
        let latest = data.catalog.latest();
        ensure!(
            latest.collection(namespace).is_none(),
            ErrorCode::location(7_268_700),
            "Cannot create a time-series collection from a non time-series collection: {namespace}"
        );
        ensure!(
            there.is_some() || latest.view(namespace)?.is_none(),
            ErrorCode::location(7_268_703),
            "Cannot create a time-series collection from a view: {namespace}"
        );
        let given = given.map(|given| check_options(namespace, given.view())).transpose()?;
        match (there, given) {
            (Some(there), given) => Target::existing_series(namespace, &there, given),
            (None, Some(options)) => Target::new_series(namespace, options),
            (None, None) => Target::plain(data, namespace),
        }
    }

    fn plain(data: &Data, namespace: &Namespace) -> Result<Target> {
        refuse_view(data, namespace)?;
        let latest = data.catalog.latest();
        let existing = latest.collection(namespace).map(|there| &**there);
        let is_capped = existing.is_some_and(Collection::is_capped);
        ensure!(
            !is_capped,
            ErrorCode::location(17152),
            "namespace '{namespace}' is capped so it can't be used for $out"
        );
        let options = existing.map_or_else(CollectionOptions::default, |there| (*there.options).clone());
        Ok(Target {
            written: namespace.clone(),
            options,
            indexes: existing.map(indexes_of).unwrap_or_default(),
            view: None,
        })
    }

    fn existing_series(namespace: &Namespace, there: &Timeseries, given: Option<TimeseriesOptions>) -> Result<Target> {
        ensure!(
            given.is_none_or(|given| given == there.options),
            ErrorCode::location(7_406_103),
            "Time-series options in $out must match those of the existing time-series collection: {namespace}"
        );
        let buckets = &there.buckets;
        Ok(Target {
            written: buckets.namespace.clone(),
            options: (*buckets.options).clone(),
            indexes: indexes_of(buckets),
            view: Some(timeseries_view(namespace, &there.options, buckets.options.collation.clone())),
        })
    }

    fn new_series(namespace: &Namespace, options: TimeseriesOptions) -> Result<Target> {
        Ok(Target {
            written: namespace.timeseries_buckets(),
            options: bucket_options(&CollectionOptions::default(), &options),
            indexes: default_index(&options)?.into_iter().collect(),
            view: Some(timeseries_view(namespace, &options, None)),
        })
    }

    /// True if results are measurements.
    pub(super) fn is_timeseries(&self) -> bool {
        self.view.is_some()
    }
}

fn indexes_of(collection: &Collection) -> Vec<Doc> {
    let others = collection.indexes.iter().filter(|index| !index.descriptor.is_id_index());
    others.map(|index| index.descriptor.specification.clone()).collect()
}
