//! What stands behind an unpacking, rewritten onto the buckets.

use super::predicates::Facts;
use super::{Unpacking, groups, place_of};
use crate::pipeline::stages::match_stage;
use crate::pipeline::{Pushdown, SharedStage, dependencies};
use crate::request::{SortKey, SortPart, SortPattern};
use crate::timeseries::{is_out_of_range, is_timeseries};
use pando_base::Result;
use pando_catalog::Collection;
use pando_doc::{Doc, FieldPath};
use pando_expr::MatchExpression;
use pando_expr::matcher::Node;
use pando_operation::Operation;
use pando_timeseries::{FieldSet, index_keys};
use std::collections::HashSet;
use std::sync::Arc;

/// The same pipeline with as much as possible done on the buckets.
pub(in crate::pipeline) fn rewrite(
    stages: Vec<SharedStage>,
    operation: &mut Operation,
    collection: Option<&Collection>,
) -> Result<Vec<SharedStage>> {
    let Some((place, mut unpacking)) = place_of(&stages) else { return Ok(stages) };
    let buckets = collection.filter(|collection| is_timeseries(collection));
    if let Some(buckets) = buckets {
        unpacking.is_out_of_range |= is_out_of_range(operation, buckets)?;
    }
    let mut before: Vec<SharedStage> = stages.iter().take(place).cloned().collect();
    let mut behind: Vec<SharedStage> = stages.into_iter().skip(place + 1).collect();
    let has_one_schema = collection.is_none_or(|collection| collection.timeseries_mixed_schema != Some(true));
    unpacking.assumes_one_schema |= has_one_schema && collection.is_some();
    take_filter(&mut unpacking, &mut before, &mut behind, collection, has_one_schema);
    if unpacking.event_filter.is_none() && unpacking.fields == FieldSet::all() {
        if let Some(one_bucket) = groups::last_point(&unpacking, &behind) {
            before.extend(one_bucket);
        }
        let is_same_collation = |group: &SharedStage| group.has_collation(own_collation(collection));
        if has_one_schema && behind.first().is_some_and(is_same_collation) {
            unpacking.extremes = groups::extremes(&unpacking, &behind);
        }
    }
    take_sort(&unpacking, &mut before, &mut behind);
    take_fields(&mut unpacking, &behind);
    if let Some(group) = behind.first_mut()
        && let Some(over_rows) = group.over_rows(&unpacking.options)
    {
        *group = over_rows;
    }
    before.push(Arc::new(unpacking));
    before.extend(behind);
    Ok(before)
}

/// The collation of the collection, by which the extremes of its buckets were told.
fn own_collation(collection: Option<&Collection>) -> Option<&Doc> {
    collection.and_then(|collection| collection.options.collation.as_ref())
}

/// A filter right behind: what it says of buckets goes in front, what it says of measurements into the unpacking.
fn take_filter(
    unpacking: &mut Unpacking,
    before: &mut Vec<SharedStage>,
    behind: &mut Vec<SharedStage>,
    collection: Option<&Collection>,
    has_one_schema: bool,
) {
    let Some(Pushdown::Match(filter)) = behind.first().map(|stage| stage.pushdown()) else { return };
    if filter.is_random() || filter.has_text() || filter.root().near_count() > 0 {
        return;
    }
    let filter = Arc::clone(filter);
    let own = own_collation(collection);
    let facts = Facts {
        options: &unpacking.options.clone(),
        is_same_collation: filter.collator().map(|collator| collator.specification()) == own,
        has_one_schema,
        are_ids_in_order: collection.is_some_and(is_timeseries) && !unpacking.is_out_of_range,
    };
    let parts = match filter.root() {
        Node::And(parts) => parts.clone(),
        other => vec![other.clone()],
    };
    let (mut on_buckets, mut on_measurements) = (Vec::new(), Vec::new());
    for part in parts {
        match facts.on_meta(&part) {
            Some(exact) => on_buckets.push(exact),
            None => {
                on_buckets.extend(facts.on_bucket(&part));
                on_measurements.push(part);
            }
        }
    }
    let collator = filter.collator().cloned();
    let expression =
        |parts: Vec<Node>| Arc::new(MatchExpression::from_node(Node::And(parts), collator.clone()).optimize());
    if !on_buckets.is_empty() {
        before.push(match_stage::of(expression(on_buckets)));
    }
    if !on_measurements.is_empty() {
        let is_first = unpacking.event_filter.is_none();
        let whole = on_measurements.iter().map(|part| facts.on_whole_bucket(part)).collect::<Option<Vec<_>>>();
        unpacking.whole_filter = whole.filter(|_| is_first).map(&expression);
        on_measurements.extend(unpacking.event_filter.as_ref().map(|filter| filter.root().clone()));
        unpacking.event_filter = Some(expression(on_measurements));
    }
    behind.remove(0);
}

/// An order by the meta value is the order of the buckets.
fn take_sort(unpacking: &Unpacking, before: &mut Vec<SharedStage>, behind: &mut Vec<SharedStage>) {
    let Some(first) = behind.first() else { return };
    if first.is_limited() {
        return;
    }
    let Pushdown::Sort(pattern) = first.pushdown() else { return };
    let on_bucket = |part: &SortPart| match &part.key {
        SortKey::Path(path) => {
            let path = index_keys::meta_path(&path.text().to_string(), &unpacking.options)?;
            Some(SortPart { key: SortKey::Path(FieldPath::lenient(path).ok()?), descending: part.descending })
        }
        SortKey::Meta(_) => None,
    };
    let parts: Option<Vec<SortPart>> = pattern.parts().iter().map(on_bucket).collect();
    let on_buckets = parts.and_then(|parts| first.with_pattern(SortPattern::from_parts(parts)));
    if let Some(on_buckets) = on_buckets {
        before.push(on_buckets);
        behind.remove(0);
    }
}

/// Only the fields that somebody needs are unpacked.
fn take_fields(unpacking: &mut Unpacking, behind: &[SharedStage]) {
    if unpacking.fields != FieldSet::all() {
        return;
    }
    let Some(mut paths) = dependencies::of_stages(behind) else { return };
    if let Some(filter) = &unpacking.event_filter {
        match filter.paths() {
            None => return,
            Some(looked_at) => paths.extend(looked_at),
        }
    }
    let first = |path: &FieldPath| path.parts().next().map(ToString::to_string);
    let names: HashSet<String> = paths.iter().filter_map(first).collect();
    // What stages know beside the document is not among its fields.
    if names.iter().any(|name| name.starts_with('\u{1}')) {
        return;
    }
    unpacking.fields = FieldSet::Only(names);
}
