//! A plan: a tree that says which stages to run.
//!
//! Plans know indexes and bounds but hold no cursors; `stage::build` makes stages of them. A plan can be made into stages many
//! times.

use super::{ClusterRange, IndexBounds, IndexInfo, NearPlan, TextPlan};
use crate::request::{ResumePoint, SortPattern};
use pando_base::RecordId;
use pando_doc::{Doc, Element, OwnedValue};
use pando_expr::{MatchExpression, Projection};
use pando_storage::Direction;
use std::sync::Arc;

/// A filter that stages share.
pub type SharedFilter = Arc<MatchExpression>;

/// A scan of the records.
#[derive(Clone, Debug)]
pub struct CollectionScanPlan {
    /// Which way.
    pub direction: Direction,
    /// What documents must match.
    pub filter: Option<SharedFilter>,
    /// From this record on, itself included.
    pub min: Option<RecordId>,
    /// Up to this record, itself included.
    pub max: Option<RecordId>,
    /// It goes on when new records come.
    pub tailable: bool,
    /// It begins behind this record.
    pub resume: Option<ResumePoint>,
    /// It keeps where it is, to be told.
    pub keeps_place: bool,
    /// The bounds as values of the cluster key, if it is of a clustered collection.
    pub cluster: Box<ClusterRange>,
    /// The records come in the order of their `_id`s as the query compares them.
    pub key_order: Option<Box<str>>,
    /// The client has said which way; otherwise either is as good.
    pub is_direction_given: bool,
}

impl CollectionScanPlan {
    /// What the stage is called.
    pub fn stage_name(&self) -> &'static str {
        if self.cluster.is_bounded() { "CLUSTERED_IXSCAN" } else { "COLLSCAN" }
    }
}

/// A scan of an index.
#[derive(Clone, Debug)]
pub struct IndexScanPlan {
    /// Which one.
    pub info: IndexInfo,
    /// Which part of it.
    pub bounds: IndexBounds,
    /// Which way.
    pub direction: Direction,
    /// The index compares strings as the query does.
    pub is_same_collation: bool,
    /// The least and the greatest key, where a client gave them in place of bounds. The second is left out.
    pub key_range: Option<KeyRange>,
}

/// Keys that a client gave.
#[derive(Clone, Debug, Default)]
pub struct KeyRange {
    /// From here on.
    pub min: Option<Doc>,
    /// Up to here, itself left out.
    pub max: Option<Doc>,
    /// The least key is left out, too.
    pub leaves_min_out: bool,
    /// The greatest key is wanted, too.
    pub takes_max_in: bool,
}

/// How a projection is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectionKind {
    /// By the projection itself.
    Default,
    /// Top-level fields are kept or left out.
    Simple,
    /// From the keys of an index.
    Covered,
}

/// One node of a plan.
#[derive(Clone, Debug)]
pub enum PlanNode {
    /// Nothing at all.
    Eof,
    /// All records.
    CollectionScan(CollectionScanPlan),
    /// Part of an index.
    IndexScan(Box<IndexScanPlan>),
    /// The documents of what was found.
    Fetch {
        /// Finds.
        child: Box<PlanNode>,
        /// What documents must match.
        filter: Option<SharedFilter>,
    },
    /// The document with this `_id`.
    IdHack {
        /// The `_id`.
        id: OwnedValue,
    },
    /// What any of these finds, each record once.
    Or {
        /// They find.
        children: Vec<PlanNode>,
        /// A record comes as often as it is found.
        keeps_duplicates: bool,
    },
    /// What all of these find.
    And {
        /// They find.
        children: Vec<PlanNode>,
        /// Each in the order of the records, so that nothing has to be kept.
        is_sorted: bool,
    },
    /// What these find, each in order, merged in order.
    SortMerge {
        /// They find.
        children: Vec<PlanNode>,
        /// The order of all of them.
        pattern: SortPattern,
    },
    /// Sorted in memory.
    Sort {
        /// Finds.
        child: Box<PlanNode>,
        /// The order.
        pattern: SortPattern,
        /// So many are enough.
        limit: Option<u64>,
    },
    /// All but the first.
    Skip {
        /// Finds.
        child: Box<PlanNode>,
        /// How many are left out.
        count: u64,
    },
    /// The first.
    Limit {
        /// Finds.
        child: Box<PlanNode>,
        /// How many.
        count: u64,
    },
    /// Some of the fields.
    Projection {
        /// Finds.
        child: Box<PlanNode>,
        /// Which fields.
        projection: Arc<Projection>,
        /// How.
        kind: ProjectionKind,
        /// Documents may come whole.
        is_advice: bool,
        /// As it was written.
        specification: Doc,
    },
    /// A search in a text index, with the documents.
    Text(Box<TextPlan>),
    /// A search by distance, with the documents.
    Near(Box<NearPlan>),
    /// The keys of the index.
    ReturnKey {
        /// Finds.
        child: Box<PlanNode>,
    },
    /// How many keys of an index there are.
    CountScan(Box<IndexScanPlan>),
    /// One record for each value of a field of an index.
    DistinctScan {
        /// Which part of which index.
        scan: Box<IndexScanPlan>,
        /// Which field, by its place in the key.
        field: usize,
    },
}

impl PlanNode {
    /// The nodes right below.
    pub fn children(&self) -> &[PlanNode] {
        match self {
            PlanNode::Fetch { child, .. }
            | PlanNode::Sort { child, .. }
            | PlanNode::Skip { child, .. }
            | PlanNode::Limit { child, .. }
            | PlanNode::Projection { child, .. }
            | PlanNode::ReturnKey { child } => std::slice::from_ref(child),
            PlanNode::Or { children, .. } | PlanNode::And { children, .. } | PlanNode::SortMerge { children, .. } => {
                children
            }
            PlanNode::Eof
            | PlanNode::CollectionScan(_)
            | PlanNode::IndexScan(_)
            | PlanNode::IdHack { .. }
            | PlanNode::Text(_)
            | PlanNode::Near(_)
            | PlanNode::CountScan(_)
            | PlanNode::DistinctScan { .. } => &[],
        }
    }

    /// How much there is to tell of it: nodes, and intervals of their bounds.
    pub fn weight(&self) -> usize {
        let own = match self {
            PlanNode::IndexScan(scan) => {
                1 + scan.bounds.fields.iter().map(|field| field.intervals.intervals().len()).sum::<usize>()
            }
            _ => 1,
        };
        own + self.children().iter().map(PlanNode::weight).sum::<usize>()
    }

    /// How many nodes it has.
    pub fn count(&self) -> u64 {
        1 + self.children().iter().map(PlanNode::count).sum::<u64>()
    }

    /// True if this node or one below is picked.
    pub fn any(&self, picks: &impl Fn(&PlanNode) -> bool) -> bool {
        picks(self) || self.children().iter().any(|child| child.any(picks))
    }

    /// True if documents come with their fields.
    pub fn is_fetched(&self) -> bool {
        match self {
            PlanNode::CollectionScan(_)
            | PlanNode::Fetch { .. }
            | PlanNode::IdHack { .. }
            | PlanNode::Text(_)
            | PlanNode::Near(_)
            | PlanNode::Eof => true,
            PlanNode::IndexScan(_) | PlanNode::CountScan(_) | PlanNode::DistinctScan { .. } => false,
            other => other.children().iter().all(PlanNode::is_fetched),
        }
    }

    /// The node with documents that have their fields.
    #[must_use]
    pub fn fetched(self) -> PlanNode {
        if self.is_fetched() { self } else { PlanNode::Fetch { child: Box::new(self), filter: None } }
    }

    /// True if nothing comes out before everything went in.
    pub fn has_blocking_sort(&self) -> bool {
        self.any(&|node| matches!(node, PlanNode::Sort { .. }))
    }

    /// The indexes that are scanned.
    pub fn index_scans(&self) -> Vec<&IndexScanPlan> {
        let mut found = Vec::new();
        self.collect_index_scans(&mut found);
        found
    }

    fn collect_index_scans<'a>(&'a self, found: &mut Vec<&'a IndexScanPlan>) {
        match self {
            PlanNode::IndexScan(scan) | PlanNode::CountScan(scan) | PlanNode::DistinctScan { scan, .. } => {
                found.push(scan);
            }
            other => other.children().iter().for_each(|child| child.collect_index_scans(found)),
        }
    }

    /// In few words, as the log and `currentOp` have it.
    pub fn summary(&self) -> String {
        match self {
            PlanNode::IdHack { .. } => "IDHACK".to_owned(),
            PlanNode::CollectionScan(plan) => plan.stage_name().to_owned(),
            PlanNode::Eof => "EOF".to_owned(),
            PlanNode::Text(plan) => format!("TEXT_MATCH {}", key_text(&plan.index.descriptor.key_pattern)),
            PlanNode::Near(plan) => {
                format!("{} {}", plan.stage_name(), key_text(&plan.info.index.descriptor.key_pattern))
            }
            PlanNode::IndexScan(scan) => format!("IXSCAN {}", key_text(scan.info.key_pattern())),
            PlanNode::CountScan(scan) => format!("COUNT_SCAN {}", key_text(scan.info.key_pattern())),
            PlanNode::DistinctScan { scan, .. } => {
                format!("DISTINCT_SCAN {}", key_text(scan.info.key_pattern()))
            }
            other => {
                let parts: Vec<String> = other.children().iter().map(PlanNode::summary).collect();
                parts.join(", ")
            }
        }
    }
}

/// A key pattern in few words: of numbers only the direction is told.
pub(crate) fn key_text(pattern: &Doc) -> String {
    let field = |element: Element<'_>| match element.value.to_double() {
        Some(direction) => format!("{}: {}", element.name, if direction >= 0.0 { 1 } else { -1 }),
        None => format!("{}: {}", element.name, element.value),
    };
    format!("{{ {} }}", pattern.view().elements().map(field).collect::<Vec<_>>().join(", "))
}
