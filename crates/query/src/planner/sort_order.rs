//! Whether a plan gives its results in a wanted order by itself.
//!
//! An index gives the order of its keys, forwards or backwards. A field that is bounded to one value does not disturb the
//! order of those behind it. With arrays the first key of a document in the order of the scan has to be the value that the
//! sort goes by: the least or greatest of all, which only an unbounded field can promise. An index with another collation
//! has the order of values without strings only.

use super::{IndexInfo, IndexScanPlan, IntervalList, PlanNode, type_range};
use crate::request::{SortKey, SortPart, SortPattern};
use pando_base::operation;
use pando_storage::Direction;

/// Putting one of many scans in order is so many steps.
const ORDER_STEPS: u64 = 64;

/// The plan in the wanted order without a sort, if there is one. A list of points is split into as many scans at most to have it.
pub fn in_order(node: PlanNode, pattern: &SortPattern, scans_max: usize) -> Result<PlanNode, PlanNode> {
    match node {
        PlanNode::IndexScan(mut scan) => match direction(&scan, pattern) {
            Some(direction) => {
                scan.direction = direction;
                Ok(PlanNode::IndexScan(scan))
            }
            None => explode(scan, pattern, scans_max),
        },
        PlanNode::Fetch { child, filter } => match in_order(*child, pattern, scans_max) {
            Ok(child) => Ok(PlanNode::Fetch { child: Box::new(child), filter }),
            Err(child) => Err(PlanNode::Fetch { child: Box::new(child), filter }),
        },
        PlanNode::Or { children, .. } => merge_in_order(children, pattern, scans_max),
        PlanNode::Text(plan) if plan.is_by_score => Ok(PlanNode::Text(plan)),
        PlanNode::Near(plan) if pattern.is_by_distance() => Ok(PlanNode::Near(plan)),
        PlanNode::CollectionScan(mut plan) => {
            match plan.key_order.as_deref().and_then(|key| key_direction(key, pattern)) {
                Some(direction) if !plan.is_direction_given || direction == plan.direction => {
                    plan.direction = direction;
                    Ok(PlanNode::CollectionScan(plan))
                }
                _ => Err(PlanNode::CollectionScan(plan)),
            }
        }
        node @ (PlanNode::IdHack { .. } | PlanNode::Eof) => Ok(node),
        other => Err(other),
    }
}

/// Which way a scan in the order of the cluster key has to go. What else the order goes by decides nothing: no two are equal.
fn key_direction(key: &str, pattern: &SortPattern) -> Option<Direction> {
    let first = pattern.parts().iter().next()?;
    (path_of(first)?.text() == key).then_some(if first.descending { Direction::Reverse } else { Direction::Forward })
}

/// Alternatives that are each in order can be merged.
fn merge_in_order(children: Vec<PlanNode>, pattern: &SortPattern, scans_max: usize) -> Result<PlanNode, PlanNode> {
    let mut ordered = Vec::with_capacity(children.len());
    for child in &children {
        if !operation::goes_on(ORDER_STEPS) {
            return Err(PlanNode::Or { children, keeps_duplicates: false });
        }
        match in_order(child.clone(), pattern, scans_max) {
            Ok(child) => ordered.push(child),
            Err(_) => return Err(PlanNode::Or { children, keeps_duplicates: false }),
        }
    }
    Ok(PlanNode::SortMerge { children: ordered, pattern: pattern.clone() })
}

/// Which way the scan has to go for this order.
pub fn direction(scan: &IndexScanPlan, pattern: &SortPattern) -> Option<Direction> {
    let lists = match &scan.key_range {
        Some(_) => everything(&scan.info),
        None => scan.bounds.fields.iter().map(|field| field.intervals.clone()).collect(),
    };
    direction_of(scan, &lists, pattern)
}

fn everything(info: &IndexInfo) -> Vec<IntervalList> {
    info.fields.iter().map(|_| IntervalList::everything()).collect()
}

fn direction_of(scan: &IndexScanPlan, lists: &[IntervalList], pattern: &SortPattern) -> Option<Direction> {
    let info = &scan.info;
    let mut wanted: Option<Direction> = None;
    let mut next_field = 0;
    for part in pattern.parts() {
        if is_constant(info, lists, part) {
            continue;
        }
        let field = next_unless_point(info, lists, part, next_field)?;
        if !scan.is_same_collation && lists.get(field).is_none_or(has_strings) {
            return None;
        }
        if !is_sorted_by(info, lists, field) {
            return None;
        }
        let is_descending = info.fields.get(field)?.is_descending;
        let direction = if is_descending == part.descending { Direction::Forward } else { Direction::Reverse };
        if wanted.is_some_and(|known| known != direction) {
            return None;
        }
        wanted = Some(direction);
        next_field = field + 1;
    }
    Some(wanted.unwrap_or_default())
}

/// True if there may be strings among the values, or inside of them.
pub(super) fn has_strings(list: &IntervalList) -> bool {
    !list.intersect(&IntervalList::of([type_range::holding_strings()])).is_nothing()
}

fn path_of(part: &SortPart) -> Option<&pando_doc::FieldPath> {
    match &part.key {
        SortKey::Path(path) => Some(path),
        SortKey::Meta(_) => None,
    }
}

/// True if every result has the same single value there.
fn is_constant(info: &IndexInfo, lists: &[IntervalList], part: &SortPart) -> bool {
    let Some(path) = path_of(part) else { return false };
    info.fields.iter().enumerate().any(|(index, field)| {
        field.path == *path
            && !field.is_hashed
            && !info.is_field_multikey(index)
            && lists.get(index).is_some_and(IntervalList::is_point)
    })
}

/// The field of the part, if only points lie before it.
fn next_unless_point(info: &IndexInfo, lists: &[IntervalList], part: &SortPart, from: usize) -> Option<usize> {
    let path = path_of(part)?;
    for index in from..info.fields.len() {
        let field = info.fields.get(index)?;
        if field.path == *path && !field.is_hashed {
            return Some(index);
        }
        if !lists.get(index).is_some_and(IntervalList::is_point) {
            return None;
        }
    }
    None
}

/// With arrays, only an unbounded field shows the least value first.
fn is_sorted_by(info: &IndexInfo, lists: &[IntervalList], field: usize) -> bool {
    if !info.is_field_multikey(field) {
        return true;
    }
    // A sparse index leaves out the null of an element without the field.
    if info.is_sparse || !lists.get(field).is_some_and(IntervalList::is_everything) {
        return false;
    }
    let is_bounded = |other: &usize| !lists.get(*other).is_some_and(IntervalList::is_everything);
    (0..info.fields.len())
        .filter(|other| *other != field)
        .filter(is_bounded)
        .all(|other| info.shared_multikey_prefix(field, other) == 0)
}

/// Splits lists of points into scans of one point each that are in order, and merges these.
fn explode(scan: Box<IndexScanPlan>, pattern: &SortPattern, scans_max: usize) -> Result<PlanNode, PlanNode> {
    let leading: Vec<usize> = scan
        .bounds
        .fields
        .iter()
        .map(|field| field.intervals.intervals().len())
        .zip(&scan.bounds.fields)
        .take_while(|(_, field)| field.intervals.is_all_points())
        .map(|(count, _)| count)
        .collect();
    let count = leading.iter().try_fold(1_usize, |product, count| product.checked_mul(*count)).unwrap_or(usize::MAX);
    if scan.key_range.is_some() || !(2..=scans_max).contains(&count) {
        return Err(PlanNode::IndexScan(scan));
    }
    let mut children = Vec::with_capacity(count);
    for number in 0..count {
        let mut single = scan.clone();
        choose_points(&mut single, &leading, number);
        match direction(&single, pattern) {
            Some(direction) => single.direction = direction,
            None => return Err(PlanNode::IndexScan(scan)),
        }
        children.push(PlanNode::IndexScan(single));
    }
    Ok(PlanNode::SortMerge { children, pattern: pattern.clone() })
}

/// Takes the points of one combination, counted through like the digits of a number.
fn choose_points(scan: &mut IndexScanPlan, counts: &[usize], mut number: usize) {
    for (field, count) in scan.bounds.fields.iter_mut().zip(counts) {
        let chosen = field.intervals.intervals().get(number % count).cloned();
        field.intervals = IntervalList::of(chosen);
        number /= count;
    }
}
