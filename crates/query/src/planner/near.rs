//! Plans of searches by distance: one for each index that can serve them.

use super::condition::{Condition, conditions, conjuncts};
use super::plan::Planner;
use super::{IndexBounds, IndexInfo, PlanNode, SharedFilter, accesses};
use pando_base::{ErrorCode, Result};
use pando_doc::FieldPath;
use pando_expr::matcher::{Node, Predicate};
use pando_geo::NearQuery;
use std::sync::Arc;

/// A search by distance in an index of places.
#[derive(Clone, Debug)]
pub struct NearPlan {
    /// The index.
    pub info: IndexInfo,
    /// The point and the distances.
    pub near: Arc<NearQuery>,
    /// The field of the place, by its place in the key.
    pub field: usize,
    /// What else bounds the scans.
    pub bounds: IndexBounds,
    /// The index compares strings as the query does.
    pub is_same_collation: bool,
    /// What documents must match besides.
    pub filter: Option<SharedFilter>,
    /// Where results get their distances.
    pub output: Option<NearOutput>,
}

/// Where a `$geoNear` puts what it found.
#[derive(Clone, Debug, PartialEq)]
pub struct NearOutput {
    /// The field that gets the distance.
    pub distance: FieldPath,
    /// What distances are multiplied by.
    pub multiplier: f64,
    /// The field that gets the place that was nearest.
    pub location: Option<FieldPath>,
}

impl NearPlan {
    /// MongoDB's name of its stage.
    pub fn stage_name(&self) -> &'static str {
        match self.info.fields.get(self.field).and_then(|field| field.place) {
            Some(super::PlaceField::Plane(_)) => "GEO_NEAR_2D",
            _ => "GEO_NEAR_2DSPHERE",
        }
    }
}

impl Planner<'_> {
    /// The plans of the filter's search by distance; none if it has none.
    pub(super) fn near_plans(&self) -> Result<Option<Vec<PlanNode>>> {
        let root = self.query.filter.root();
        let parts = conjuncts(root);
        let Some((path, near)) = parts.iter().find_map(|part| near_of(part)) else { return Ok(None) };
        let all = conditions(&parts);
        let rest: Vec<&Node> = parts.iter().copied().filter(|part| near_of(part).is_none()).collect();
        let filter = (!rest.is_empty()).then(|| self.filter_of(&rest));
        let mut found = Vec::new();
        for info in self.places.iter().filter(|info| self.may_serve(info, root)) {
            let serves = |field: &super::IndexField| {
                field.path == *path && field.place.as_ref().is_some_and(|place| place.serves(near))
            };
            let Some(field) = info.fields.iter().position(serves) else { continue };
            // With several places, other conditions may be about others of them.
            let is_multikey = info.is_field_multikey(field);
            let is_apart = |condition: &&Condition<'_>| {
                !is_multikey || condition.path != *path || matches!(condition.predicate, Predicate::Near(_))
            };
            let conditions: Vec<Condition<'_>> = all.iter().filter(is_apart).cloned().collect();
            for access in accesses(info, &conditions, self.collation(info), self.limits.plans_max) {
                found.push(PlanNode::Near(Box::new(NearPlan {
                    info: info.clone(),
                    near: Arc::clone(near),
                    field,
                    bounds: access.bounds,
                    is_same_collation: self.has_same_collation(info),
                    filter: filter.clone(),
                    output: self.query.near_output.clone(),
                })));
            }
        }
        if found.is_empty() {
            let error = self.query.refused("unable to find index for $geoNear query");
            return Err(error.with_code(ErrorCode::NoQueryExecutionPlans));
        }
        Ok(Some(found.into_iter().map(|node| self.finished(node)).collect()))
    }
}

/// The search that a part of a filter is, with its path.
fn near_of(part: &Node) -> Option<(&FieldPath, &Arc<NearQuery>)> {
    match part {
        Node::Leaf(leaf) => match &leaf.predicate {
            Predicate::Near(near) => Some((&leaf.path, near)),
            _ => None,
        },
        _ => None,
    }
}
