//! `$geoNear` behind an unpacking.
//!
//! Of places in the meta value the buckets are searched by their index, and come nearest first. Places of measurements have no index that
//! tells distances: what lies within the greatest distance is found, measured and sorted.

use crate::pipeline::stages::geo_near::GeoNear;
use crate::pipeline::stages::{match_stage, near_distance, sort};
use crate::pipeline::{PipelineParser, Pushdown, SharedStage};
use crate::request::{SortKey, SortPart, SortPattern};
use pando_base::{Error, Result};
use pando_doc::FieldPath;
use pando_expr::MatchExpression;
use pando_timeseries::index_keys;
use std::sync::Arc;

/// The stages with those that a `$geoNear` right behind an unpacking stands for.
pub(in crate::pipeline) fn expanded(stages: Vec<SharedStage>, parser: &PipelineParser) -> Result<Vec<SharedStage>> {
    let place = stages.windows(2).position(|pair| match pair {
        [unpack, near] => unpack.unpacking().is_some() && matches!(near.pushdown(), Pushdown::GeoNear(_)),
        _ => false,
    });
    let Some(place) = place else { return Ok(stages) };
    let (before, rest) = stages.split_at(place);
    let [unpack, search, behind @ ..] = rest else { return Ok(stages) };
    let (Some(unpacking), Pushdown::GeoNear(search)) = (unpack.unpacking(), search.pushdown()) else {
        return Ok(stages);
    };
    let key = search.key_on_measurements()?;
    let mut out = before.to_vec();
    match index_keys::meta_path(&key.text().to_string(), &unpacking.options) {
        Some(meta) => {
            out.push(Arc::new(search.on_buckets(FieldPath::lenient(meta)?)?));
            out.push(Arc::clone(unpack));
            out.push(near_distance::of(key.clone(), search.near_query()?, search.output()));
        }
        None => {
            out.push(Arc::clone(unpack));
            out.extend(of_measurements(search, key, parser)?);
        }
    }
    out.extend(behind.iter().cloned());
    Ok(out)
}

fn of_measurements(search: &GeoNear, key: &FieldPath, parser: &PipelineParser) -> Result<Vec<SharedStage>> {
    let output = search.output();
    if output.location.is_some() {
        return Err(Error::location(5_860_208, "$geoNear 'includeLocs' is not supported on time-series metrics"));
    }
    let near = search.near_query()?;
    let part = SortPart { key: SortKey::Meta("geoNearDistance".to_owned()), descending: false };
    let region = MatchExpression::parse(search.region(key, &near).view(), &parser.context)?.optimize();
    Ok(vec![
        match_stage::of(Arc::new(region)),
        near_distance::of(key.clone(), near, output),
        sort::of(SortPattern::from_parts(vec![part]), parser),
    ])
}
