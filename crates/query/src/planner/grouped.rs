//! Plans for a `$group` by one field that wants only the first document of each group: a scan that skips from value to value.
//!
//! Groups have to lie side by side in the index: every field before the one that is grouped by is bounded to one value. Nothing may be left
//! to look at in documents, and no document may have several keys.

use super::PlanNode;
use super::plan::{Planner, everything_of};
use crate::limits::PlannerLimits;
use crate::{CanonicalQuery, IndexFilter};
use pando_base::Result;
use pando_catalog::Collection;
use pando_doc::FieldPath;

/// The plan that gives one document for each value of a field, the first in the query's order; none if no index can.
pub fn grouped_plan(
    query: &CanonicalQuery,
    collection: &Collection,
    filter: Option<&IndexFilter>,
    path: &FieldPath,
    limits: PlannerLimits,
) -> Result<Option<PlanNode>> {
    let root = query.filter.root();
    let is_special = query.natural.is_some() || query.tailable || root.has_text() || root.near_count() > 0;
    if is_special || query.limit.is_some() || query.skip > 0 || !query.metadata.is_empty() {
        return Ok(None);
    }
    let planner = Planner::new(query, collection, filter, limits)?;
    let mut found = planner.plans()?;
    if query.sort.is_none() && root.is_trivially_true() {
        found.extend(everything_of(&planner, path));
    }
    let skipping = found.into_iter().filter_map(|plan| skipping(plan, path));
    // Without documents is better than with them.
    Ok(skipping.min_by_key(|plan| plan.any(&|node| matches!(node, PlanNode::Fetch { .. }))))
}

/// The plan with a scan that skips, if it can have one.
fn skipping(plan: PlanNode, path: &FieldPath) -> Option<PlanNode> {
    match plan {
        PlanNode::Projection { child, projection, kind, is_advice, specification } => {
            let child = Box::new(skipping(*child, path)?);
            Some(PlanNode::Projection { child, projection, kind, is_advice, specification })
        }
        PlanNode::Fetch { child, filter: None } => {
            Some(PlanNode::Fetch { child: Box::new(skipping(*child, path)?), filter: None })
        }
        PlanNode::IndexScan(scan) => {
            let info = &scan.info;
            let is_plain = !info.is_multikey && info.wildcard.is_none() && !info.is_for_places();
            let is_ordered = scan.is_same_collation && scan.key_range.is_none();
            let field = info.fields.iter().position(|field| field.path == *path && !field.is_hashed)?;
            let is_contiguous = scan.bounds.fields.iter().take(field).all(|field| field.intervals.is_point());
            (is_plain && is_ordered && is_contiguous).then(|| PlanNode::DistinctScan { scan, field })
        }
        _ => None,
    }
}
