//! Sorts of measurements that need not keep all of them, because their buckets come nearly in order.
//!
//! Whether they do is known when the plan is: the sort behind an unpacking is read before ([`wanted_order`]), so that scans go the way that
//! helps, and replaced afterwards ([`bounded`]), if the chosen plan does help.

use super::stages::{bounded_sort, match_stage};
use super::{Pushdown, SharedStage};
use crate::executor::Executor;
use crate::planner::{BucketEnd, BucketOrder, HelpfulScan};
use crate::stage::{CollectionScanStage, IndexScanStage, StageNode};
use crate::timeseries::is_timeseries;
use pando_base::Result;
use pando_catalog::Collection;
use pando_doc::{Value, doc};
use pando_expr::{MatchExpression, ParseContext};
use pando_operation::Operation;
use pando_timeseries::TimeseriesOptions;
use std::sync::Arc;

/// The place of the sort behind an unpacking that comes first, if nothing between them changes what it goes by.
fn sort_place(stages: &[SharedStage]) -> Option<usize> {
    stages.first()?.unpacking()?;
    let is_sort = |stage: &SharedStage| matches!(stage.pushdown(), Pushdown::Sort(_));
    let place = stages.iter().position(is_sort)?;
    let Pushdown::Sort(pattern) = stages.get(place)?.pushdown() else { return None };
    let passes = |stage: &SharedStage| match stage.pushdown() {
        Pushdown::Match(_) => true,
        _ => {
            let is_projection = matches!(stage.name(), "$project" | "$addFields" | "$set" | "$unset");
            let modified = stage.modified();
            is_projection && pattern.paths().all(|path| modified.leaves(path))
        }
    };
    stages.get(1..place)?.iter().all(passes).then_some(place)
}

/// The order of measurements that stages want.
pub(super) fn wanted_order(stages: &[SharedStage], collection: &Collection) -> Option<Arc<BucketOrder>> {
    let place = sort_place(stages).filter(|_| is_timeseries(collection))?;
    let unpacking = stages.first()?.unpacking()?;
    let Pushdown::Sort(pattern) = stages.get(place)?.pushdown() else { return None };
    BucketOrder::of(pattern, &unpacking.options, unpacking.is_out_of_range).map(Arc::new)
}

/// The scan that all buckets come from in the order in which it finds them.
fn scan(root: &StageNode) -> &StageNode {
    match (root.name(), root.children()) {
        ("MULTI_PLAN" | "FETCH", [child]) => scan(child),
        _ => root,
    }
}

/// How the plan that was chosen helps.
fn help(executor: &Executor, order: &BucketOrder) -> Option<HelpfulScan> {
    let scan = scan(executor.root());
    if !scan.children().is_empty() {
        return None;
    }
    let (helpful, direction) = match (scan.find::<IndexScanStage>(), scan.find::<CollectionScanStage>()) {
        (Some(stage), _) => (order.of_scan(stage.plan())?, stage.plan().direction),
        (None, Some(stage)) => {
            executor.collection().filter(|collection| collection.is_clustered())?;
            (order.of_records()?, stage.plan().direction)
        }
        (None, None) => return None,
    };
    (helpful.direction == direction).then_some(helpful)
}

/// The stages behind the query with the sort replaced, if the plan that was chosen helps it.
pub(super) fn bounded(
    stages: &[SharedStage],
    executor: &mut Executor,
    order: &BucketOrder,
    operation: &mut Operation,
) -> Result<Option<Vec<SharedStage>>> {
    if !executor.settle_plan(operation)? {
        return Ok(None);
    }
    let Some(HelpfulScan { end, .. }) = help(executor, order) else { return Ok(None) };
    let found = sort_place(stages).and_then(|place| Some((place, stages.get(place)?.sorting()?)));
    let Some((place, sorting)) = found else { return Ok(None) };
    let Some(unpacking) = stages.first().and_then(|first| first.unpacking()) else { return Ok(None) };
    let span_ms = i64::from(unpacking.options.span_seconds()) * 1000;
    let offset_ms = match (order.is_exact(end), end) {
        (true, _) => 0,
        (false, BucketEnd::Min) => span_ms,
        (false, BucketEnd::Max) => -span_ms,
    };
    let Some(sort) = bounded_sort::of(sorting, bounded_sort::Bound { end, offset_ms }) else { return Ok(None) };
    let mut better = stages.to_vec();
    if let Some(stage) = better.get_mut(place) {
        *stage = sort;
    }
    if offset_ms != 0 {
        better.insert(0, spans_at_most(&unpacking.options, span_ms)?);
    }
    Ok(Some(better))
}

/// Lets buckets through whose span is the collection's at most: the other end of their times is told from it.
fn spans_at_most(options: &TimeseriesOptions, span_ms: i64) -> Result<SharedStage> {
    let end = |end: &str| format!("$control.{end}.{}", options.time_field);
    let filter = doc! {
        "$expr": { "$lte": [{ "$subtract": [(end("max")), (end("min"))] }, { "$const": (Value::Int64(span_ms)) }] },
    };
    let filter = MatchExpression::parse(filter.view(), &ParseContext::default())?;
    Ok(match_stage::of(Arc::new(filter)))
}
