//! From a plan to stages.

use super::and::{AndHashStage, AndSortedStage};
use super::collection_scan::CollectionScanStage;
use super::count_scan::CountScanStage;
use super::distinct_scan::DistinctScanStage;
use super::fetch::FetchStage;
use super::limit::LimitStage;
use super::near::NearStage;
use super::or::OrStage;
use super::projection::ProjectionStage;
use super::return_key::ReturnKeyStage;
use super::skip::SkipStage;
use super::sort::SortStage;
use super::sort_merge::SortMergeStage;
use super::text::TextStage;
use super::{EofStage, IdHackStage, IndexScanStage, SortKeyGenerator, StageNode};
use crate::planner::{PlanNode, SharedFilter};
use crate::request::SortPattern;
use crate::spill::Spilling;
use pando_base::Result;
use pando_catalog::Collection;
use pando_expr::SharedCollator;
use pando_expr::metadata::{Meta, MetaSet};
use std::sync::Arc;

/// What all stages of a tree share.
#[derive(Clone)]
pub struct BuildContext {
    /// The collection that is read.
    pub collection: Arc<Collection>,
    /// The whole filter of the query.
    pub filter: SharedFilter,
    /// The collation of its order.
    pub collator: Option<SharedCollator>,
    /// Where a large sort goes on.
    pub spilling: Arc<Spilling>,
    /// What the client said about the disk.
    pub allow_disk_use: Option<bool>,
    /// What is asked for that is not in documents.
    pub metadata: MetaSet,
    /// The order of the query.
    pub sort: Option<SortPattern>,
    /// Everything that is found is wanted: nothing ends the query early.
    pub wants_all: bool,
}

/// The stages of a plan.
pub fn build(plan: &PlanNode, context: &BuildContext) -> Result<StageNode> {
    Builder { context, wants_all: context.wants_all }.node(plan, context.metadata.contains(Meta::IndexKey))
}

struct Builder<'b> {
    context: &'b BuildContext,
    wants_all: bool,
}

impl Builder<'_> {
    /// The stages of a node; `wants_keys` if somebody above reads keys.
    fn node(&self, plan: &PlanNode, wants_keys: bool) -> Result<StageNode> {
        let collection = &self.context.collection;
        Ok(match plan {
            PlanNode::Eof => StageNode::new(EofStage),
            PlanNode::CollectionScan(plan) => StageNode::new(CollectionScanStage::new(plan.clone(), collection)),
            PlanNode::IndexScan(plan) => StageNode::new(IndexScanStage::new((**plan).clone(), wants_keys)?),
            PlanNode::IdHack { id } => {
                StageNode::new(IdHackStage::new(collection, id.clone(), self.context.collator.clone()))
            }
            PlanNode::CountScan(plan) => {
                StageNode::new(CountScanStage::new(IndexScanStage::new((**plan).clone(), false)?))
            }
            PlanNode::DistinctScan { scan, field } => StageNode::new(DistinctScanStage::new((**scan).clone(), *field)?),
            PlanNode::Fetch { child, filter } => {
                let child = self.node(child, wants_keys)?;
                let whole = Arc::clone(&self.context.filter);
                let fetch = FetchStage::new(child, collection, filter.clone(), whole);
                StageNode::new(fetch.reading_ahead(self.wants_all))
            }
            PlanNode::Or { children, keeps_duplicates } => {
                let stage = OrStage::new(self.nodes(children, wants_keys)?);
                StageNode::new(if *keeps_duplicates { stage.keeping_duplicates() } else { stage })
            }
            PlanNode::And { children, is_sorted: true } => {
                StageNode::new(AndSortedStage::new(self.nodes(children, wants_keys)?))
            }
            PlanNode::And { children, .. } => StageNode::new(AndHashStage::new(self.nodes(children, wants_keys)?)),
            PlanNode::SortMerge { children, pattern } => {
                let children = self.nodes(children, true)?;
                let generator = SortKeyGenerator::new(pattern, self.context.collator.clone())?;
                StageNode::new(SortMergeStage::new(children, pattern.clone(), generator))
            }
            PlanNode::Sort { child, pattern, limit } => {
                let generator = SortKeyGenerator::new(pattern, self.context.collator.clone())?;
                let others =
                    [Meta::TextScore, Meta::GeoNearDistance, Meta::GeoNearPoint, Meta::IndexKey, Meta::RecordId];
                let wants_others = others.into_iter().any(|kind| self.context.metadata.contains(kind));
                let is_of_documents = child.is_fetched() && !wants_others && !pattern.needs_metadata();
                let child = Builder { wants_all: true, ..*self }.node(child, wants_keys)?;
                let resources = self.context.spilling.resources(self.context.allow_disk_use);
                let stage = SortStage::new(child, pattern.clone(), generator, *limit, resources);
                StageNode::new(if is_of_documents { stage } else { stage.of_more_than_documents() })
            }
            PlanNode::Skip { child, count } => StageNode::new(SkipStage::new(self.node(child, wants_keys)?, *count)),
            PlanNode::Limit { child, count } => StageNode::new(LimitStage::new(self.node(child, wants_keys)?, *count)),
            PlanNode::Projection { child, projection, kind, specification, is_advice } => {
                let wants_keys = wants_keys || *kind == crate::planner::ProjectionKind::Covered;
                let child = self.node(child, wants_keys)?;
                let filter = Arc::clone(&self.context.filter);
                let projection = Arc::clone(projection);
                let stage = ProjectionStage::new(child, projection, *kind, specification.clone(), filter);
                let metadata = self.context.metadata;
                let pattern = self.context.sort.as_ref().filter(|_| metadata.contains(Meta::SortKey));
                let sort = pattern.map(|pattern| SortKeyGenerator::new(pattern, self.context.collator.clone()));
                StageNode::new(stage.with_advice(*is_advice).with_metadata(metadata, sort.transpose()?))
            }
            PlanNode::Text(plan) => StageNode::new(TextStage::new((**plan).clone(), collection)?),
            PlanNode::Near(plan) => StageNode::new(NearStage::new((**plan).clone(), collection, &self.context.filter)?),
            PlanNode::ReturnKey { child } => StageNode::new(ReturnKeyStage::new(self.node(child, true)?)),
        })
    }

    fn nodes(&self, plans: &[PlanNode], wants_keys: bool) -> Result<Vec<StageNode>> {
        plans.iter().map(|plan| self.node(plan, wants_keys)).collect()
    }
}
