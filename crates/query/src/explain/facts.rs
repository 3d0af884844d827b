//! What is told of a plan when the operation that ran it is slow or watched: for the profiler and the log.

use super::render::stage_document;
use crate::executor::Executor;
use crate::plan_cache::{cache_key, indexes_of};
use crate::planner::key_text;
use crate::shape::{plan_cache_key, query_hash, shape};
use crate::stage::{MultiPlanStage, StageNode};
use pando_base::{OperationContext, PlanFacts};
use pando_doc::DocBuilder;

impl Executor {
    /// Tells the operation what plan it has run, and how. `sorts` and `used_disk` say what is above the plan.
    pub(crate) fn tell_plan(&self, context: &OperationContext, sorts: bool, used_disk: bool) {
        let root = self.root();
        let trial = root.find::<MultiPlanStage>();
        let is_from_cache = trial.is_some_and(MultiPlanStage::is_from_cache);
        let mut facts = PlanFacts {
            has_sort_stage: sorts || root.has("SORT"),
            used_disk: used_disk || root.used_disk(),
            from_multi_planner: trial.is_some() && !is_from_cache,
            from_plan_cache: is_from_cache,
            replan_reason: trial.and_then(MultiPlanStage::replan_reason).map(str::to_owned),
            query_hash: String::new(),
            plan_cache_key: String::new(),
            execution: Some(stage_document(root, true).shared_bytes().clone()),
        };
        if let (Some(query), false) = (self.query(), root.has("IDHACK")) {
            let shape = shape(query);
            let indexes = self.collection().map_or(0, |collection| indexes_of(collection));
            (facts.query_hash, facts.plan_cache_key) = {
                let key = cache_key(&shape, &self.usable_indexes());
                (query_hash(&shape), plan_cache_key(&key, indexes))
            };
        }
        // Of several plans the one that won is what was run.
        let summary = if trial.is_some() { summary_of(root) } else { self.plan_summary().to_owned() };
        context.describe(|description| {
            description.plan_summary = summary.into();
            description.plan = Some(Box::new(facts));
        });
    }
}

/// The plan in few words, from its stages.
fn summary_of(node: &StageNode) -> String {
    match node.children() {
        [] => {
            let mut described = DocBuilder::new();
            node.stage().describe(&mut described);
            match described.finish().get("keyPattern").and_then(|pattern| pattern.as_document()) {
                Some(pattern) => format!("{} {}", node.name(), key_text(&pattern.to_doc())),
                None => node.name().to_owned(),
            }
        }
        children => children.iter().map(summary_of).collect::<Vec<_>>().join(", "),
    }
}
