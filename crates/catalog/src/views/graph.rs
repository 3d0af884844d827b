//! What a new or changed view must not do to the graph of views: close a circle, go too deep, get too large, or mix
//! collations.
//!
//! The graph is not kept: a database has few views, and changing one is rare. It is walked from the changed view down (what
//! it stands on and refers to) and up (what stands on it). Circles that were there before (somebody wrote into
//! `system.views`) end a walk by its depth.

use super::{VIEW_DEPTH_MAX, VIEW_PIPELINE_BYTES_MAX, ViewCatalog, ViewDefinition, referenced_collections};
use pando_base::{Error, ErrorCode, Namespace, Result, bail, ensure};
use std::collections::BTreeMap;

/// Views above and below another: how many at most, and how many bytes of pipeline at most.
#[derive(Clone, Copy, Default)]
struct Extent {
    height: usize,
    bytes: usize,
}

/// The graph of a database's views with one changed.
struct Graph<'a> {
    views: BTreeMap<&'a Namespace, (&'a ViewDefinition, Vec<Namespace>)>,
}

/// Fails if the view cannot be in this catalog; a view of the same name is taken as replaced.
pub(super) fn validate(catalog: &ViewCatalog, changed: &ViewDefinition) -> Result<()> {
    let others = catalog.iter().filter(|view| view.namespace != changed.namespace);
    let views = others.chain([changed]).map(|view| (&view.namespace, (view, references(view)))).collect();
    let graph = Graph { views };
    let below = graph.below(changed, changed, &mut Vec::new(), &mut BTreeMap::new())?;
    let above = graph.above(changed, 0, &mut BTreeMap::new())?;
    // The view itself is in both.
    let depth = (below.height + above.height).saturating_sub(1);
    ensure!(depth <= VIEW_DEPTH_MAX, ErrorCode::ViewDepthLimitExceeded, "{}", too_deep().reason());
    let bytes = (below.bytes + above.bytes).saturating_sub(changed.pipeline_bytes());
    ensure!(
        bytes <= VIEW_PIPELINE_BYTES_MAX,
        ErrorCode::ViewPipelineMaxSizeExceeded,
        "Operation would result in a resolved view pipeline that exceeds the maximum size of {VIEW_PIPELINE_BYTES_MAX} bytes"
    );
    Ok(())
}

/// Fails if one of these names, which a request refers to, is a view as deep as views may be: with the request above it,
/// it would be too deep.
pub(super) fn check_referenced(catalog: &ViewCatalog, names: &[Namespace]) -> Result<()> {
    let views = catalog.iter().map(|view| (&view.namespace, (view, references(view)))).collect();
    let graph = Graph { views };
    let mut known = BTreeMap::new();
    for (view, _) in names.iter().filter_map(|name| graph.views.get(name)) {
        let below = graph.below(view, view, &mut Vec::new(), &mut known)?;
        if below.height >= VIEW_DEPTH_MAX {
            return Err(too_deep());
        }
    }
    Ok(())
}

fn references(view: &ViewDefinition) -> Vec<Namespace> {
    let referenced = referenced_collections(view.pipeline.view());
    let siblings = referenced.iter().filter_map(|name| view.namespace.sibling(name).ok());
    siblings.chain([view.view_on.clone()]).collect()
}

fn too_deep() -> Error {
    let reason = format!("View depth limit exceeded; maximum depth is {VIEW_DEPTH_MAX}");
    Error::new(ErrorCode::ViewDepthLimitExceeded, reason)
}

impl<'a> Graph<'a> {
    fn below(
        &'a self,
        start: &ViewDefinition,
        view: &'a ViewDefinition,
        path: &mut Vec<&'a Namespace>,
        known: &mut BTreeMap<&'a Namespace, Extent>,
    ) -> Result<Extent> {
        if !path.is_empty() && view.namespace == start.namespace {
            let back = path.iter().rev().map(|name| format!(" => {name}")).collect::<String>();
            bail!(ErrorCode::GraphContainsCycle, "View cycle detected: {}{back}", view.namespace);
        }
        if path.len() > VIEW_DEPTH_MAX {
            return Err(too_deep());
        }
        if let Some(extent) = known.get(&view.namespace) {
            return Ok(*extent);
        }
        path.push(&view.namespace);
        let mut largest = Extent::default();
        let children = self.views.get(&view.namespace).map_or(&[][..], |(_, references)| references);
        for child in children.iter().filter_map(|child| self.views.get(child)).map(|(child, _)| *child) {
            require_same_collation(view, child)?;
            let extent = self.below(start, child, path, known)?;
            largest.height = largest.height.max(extent.height);
            largest.bytes = largest.bytes.max(extent.bytes);
        }
        path.pop();
        let extent = Extent { height: largest.height + 1, bytes: largest.bytes + view.pipeline_bytes() };
        known.insert(&view.namespace, extent);
        Ok(extent)
    }

    fn above(
        &'a self,
        view: &'a ViewDefinition,
        depth: usize,
        known: &mut BTreeMap<&'a Namespace, Extent>,
    ) -> Result<Extent> {
        if depth > VIEW_DEPTH_MAX {
            return Err(too_deep());
        }
        if let Some(extent) = known.get(&view.namespace) {
            return Ok(*extent);
        }
        let mut largest = Extent::default();
        let parents = self.views.values().filter(|(_, references)| references.contains(&view.namespace));
        for (parent, _) in parents {
            require_same_collation(view, parent)?;
            let extent = self.above(parent, depth + 1, known)?;
            largest.height = largest.height.max(extent.height);
            largest.bytes = largest.bytes.max(extent.bytes);
        }
        let extent = Extent { height: largest.height + 1, bytes: largest.bytes + view.pipeline_bytes() };
        known.insert(&view.namespace, extent);
        Ok(extent)
    }
}

fn require_same_collation(view: &ViewDefinition, other: &ViewDefinition) -> Result<()> {
    ensure!(
        view.collation == other.collation || view.is_timeseries() || other.is_timeseries(),
        ErrorCode::OptionNotSupportedOnView,
        "View {} has a collation that does not match the collation of view {}",
        view.namespace,
        other.namespace
    );
    Ok(())
}
