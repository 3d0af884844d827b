//! Stages as documents.

use super::Verbosity;
use crate::executor::Executor;
use crate::stage::{Counts, MultiPlanStage, StageNode};
use pando_base::{Error, Namespace};
use pando_doc::{Doc, DocBuilder, doc};

/// What is told of a query beside its plans.
pub(super) struct Shown<'s> {
    pub(super) namespace: &'s Namespace,
    pub(super) parsed_query: Doc,
    pub(super) collation: Option<Doc>,
    pub(super) query_hash: String,
    pub(super) plan_cache_key: String,
    /// Only some indexes are allowed.
    pub(super) has_index_filter: bool,
    /// A whole pipeline became this query.
    pub(super) is_whole_pipeline: bool,
    /// A stage that is told on top of the plan.
    pub(super) on_top: Option<OnTop>,
}

/// What a command does with the results of its plan by itself, told as a stage.
pub(super) enum OnTop {
    /// It counts them.
    Count {
        /// So many are left out.
        skipped: u64,
    },
    /// It takes the values of an index's keys.
    Projection {
        /// What the stage is called.
        stage: &'static str,
        /// Which.
        projection: Doc,
    },
    /// It takes buckets of a time series apart.
    Modify {
        /// The stage.
        plan: Doc,
        /// What it did.
        run: Doc,
    },
}

/// The plans of a query.
pub fn query_planner(executor: &Executor, namespace: &Namespace, parsed_query: Doc) -> Doc {
    let shown = Shown {
        namespace,
        parsed_query,
        collation: None,
        query_hash: String::new(),
        plan_cache_key: String::new(),
        has_index_filter: false,
        is_whole_pipeline: false,
        on_top: None,
    };
    planner_section(executor, &shown)
}

pub(super) fn planner_section(executor: &Executor, shown: &Shown<'_>) -> Doc {
    let mut out = DocBuilder::new();
    out.append("namespace", shown.namespace.as_str());
    out.append("indexFilterSet", shown.has_index_filter);
    out.append("parsedQuery", &shown.parsed_query);
    out.append_some("collation", shown.collation.as_ref());
    if !shown.query_hash.is_empty() {
        out.append("queryHash", shown.query_hash.as_str());
        out.append("planCacheKey", shown.plan_cache_key.as_str());
    }
    if shown.is_whole_pipeline {
        out.append("optimizedPipeline", true);
    }
    out.append("maxIndexedOrSolutionsReached", false);
    out.append("maxIndexedAndSolutionsReached", false);
    out.append("maxScansToExplodeReached", false);
    let plan = stage_document(executor.root(), false);
    match &shown.on_top {
        Some(OnTop::Count { .. }) => {
            out.append("winningPlan", doc! { "stage": "COUNT", "inputStage": plan });
        }
        Some(OnTop::Projection { stage, projection }) => {
            let stage = doc! { "stage": *stage, "transformBy": projection, "inputStage": plan };
            out.append("winningPlan", stage);
        }
        Some(OnTop::Modify { plan: stage, .. }) => {
            let mut whole = DocBuilder::new();
            whole.append_all(stage.view());
            whole.append("inputStage", plan);
            out.append("winningPlan", whole.finish());
        }
        None => out.append("winningPlan", plan),
    }
    out.array("rejectedPlans", |rejected| {
        for root in trials(executor).into_iter().skip(1) {
            let plan = stage_document(root, false);
            match &shown.on_top {
                Some(OnTop::Count { .. }) => rejected.push(doc! { "stage": "COUNT", "inputStage": plan }),
                _ => rejected.push(plan),
            }
        }
    });
    out.finish()
}

/// What running a plan cost, with what the command did on top of it.
pub(super) fn execution_section(
    executor: &Executor,
    shown: &Shown<'_>,
    duration_ms: u64,
    verbosity: Verbosity,
    failure: Option<&Error>,
) -> Doc {
    let plain = execution_stats(executor, duration_ms, verbosity, failure);
    let root = visible(executor.root());
    let below = stage_document(root, true);
    let (stages, returned) = match &shown.on_top {
        None => return plain,
        Some(OnTop::Count { skipped }) => {
            let counted = root.counts().advanced;
            (count_stage("COUNT", &root.counts(), counted, *skipped, Some(below)), 0)
        }
        Some(OnTop::Projection { stage: name, projection }) => {
            let mut stage = DocBuilder::new();
            stage.append("stage", *name);
            append_counts(&root.counts(), root.counts().advanced, &mut stage);
            stage.append("transformBy", projection);
            stage.append("inputStage", below);
            (stage.finish(), root.counts().advanced)
        }
        Some(OnTop::Modify { plan, run }) => {
            let mut stage = DocBuilder::new();
            for element in plan.elements() {
                stage.append_element(element);
                if element.name == "stage" {
                    append_counts(&root.counts(), 0, &mut stage);
                }
            }
            stage.append_all(run.view());
            stage.append("inputStage", below);
            (stage.finish(), 0)
        }
    };
    let mut out = DocBuilder::new();
    for element in plain.elements() {
        match &**element.name {
            b"nReturned" => out.append("nReturned", int(returned)),
            b"executionStages" => out.append("executionStages", &stages),
            _ => out.append_element(element),
        }
    }
    out.finish()
}

/// A stage that counts what comes out of another, or what is known without one.
pub(super) fn count_stage(name: &str, counts: &Counts, counted: u64, skipped: u64, below: Option<Doc>) -> Doc {
    let mut stage = DocBuilder::new();
    stage.append("stage", name);
    append_counts(counts, 0, &mut stage);
    stage.append("nCounted", int(counted));
    stage.append("nSkipped", int(skipped));
    stage.append_some("inputStage", below);
    stage.finish()
}

/// What running a plan cost.
pub fn execution_stats(executor: &Executor, duration_ms: u64, verbosity: Verbosity, failure: Option<&Error>) -> Doc {
    let examined = executor.root().examined();
    let mut out = DocBuilder::new();
    out.append("executionSuccess", failure.is_none());
    if let Some(failure) = failure {
        out.append("errorMessage", failure.reason());
        out.append("errorCode", failure.code().number());
    }
    out.append("nReturned", int(visible(executor.root()).counts().advanced));
    out.append("executionTimeMillis", int(duration_ms));
    out.append("totalKeysExamined", int(examined.keys));
    out.append("totalDocsExamined", int(examined.documents));
    out.append("executionStages", stage_document(executor.root(), true));
    if verbosity >= Verbosity::AllPlansExecution {
        out.array("allPlansExecution", |all| {
            let roots = trials(executor);
            let scores = executor.root().find::<MultiPlanStage>().map(MultiPlanStage::scores).unwrap_or_default();
            for (place, root) in roots.iter().enumerate().filter(|_| roots.len() > 1) {
                let examined = root.examined();
                all.document(|plan| {
                    plan.append_some("score", scores.get(place).copied());
                    plan.append("nReturned", int(root.counts().advanced));
                    plan.append("executionTimeMillisEstimate", 0_i32);
                    plan.append("totalKeysExamined", int(examined.keys));
                    plan.append("totalDocsExamined", int(examined.documents));
                    plan.append("executionStages", stage_document(root, true));
                });
            }
        });
    }
    out.finish()
}

/// The first of several plans that were tried, and what each has done.
pub(crate) fn plan_documents<'t>(ranked: impl Iterator<Item = &'t StageNode>) -> (Doc, Vec<Doc>) {
    let mut plan = Doc::new();
    let mut trials = Vec::new();
    for (place, root) in ranked.enumerate() {
        if place == 0 {
            plan = stage_document(root, false);
        }
        let examined = root.examined();
        let mut trial = DocBuilder::new();
        trial.append("nReturned", int(root.counts().advanced));
        trial.append("executionTimeMillisEstimate", 0_i32);
        trial.append("totalKeysExamined", int(examined.keys));
        trial.append("totalDocsExamined", int(examined.documents));
        trial.append("executionStages", stage_document(root, true));
        trials.push(trial.finish());
    }
    (plan, trials)
}

/// The plans that were tried, the chosen one first.
fn trials(executor: &Executor) -> Vec<&StageNode> {
    executor.root().find::<MultiPlanStage>().map(MultiPlanStage::ranked).unwrap_or_default()
}

/// The stage that counts where several plans were tried: the chosen one.
fn visible(node: &StageNode) -> &StageNode {
    match (node.name(), node.children()) {
        ("MULTI_PLAN", [chosen]) => visible(chosen),
        _ => node,
    }
}

pub(super) fn stage_document(node: &StageNode, with_run: bool) -> Doc {
    let node = visible(node);
    let mut out = DocBuilder::new();
    out.append("stage", node.name());
    if with_run {
        append_counts(&node.counts(), node.counts().advanced, &mut out);
    }
    node.stage().describe(&mut out);
    if with_run {
        node.stage().describe_run(&mut out);
    }
    match node.children() {
        [] => {}
        [only] => out.append("inputStage", stage_document(only, with_run)),
        several => out.array("inputStages", |array| {
            several.iter().for_each(|child| array.push(stage_document(child, with_run)));
        }),
    }
    out.finish()
}

fn append_counts(counts: &Counts, returned: u64, out: &mut DocBuilder) {
    out.append("nReturned", int(returned));
    out.append("executionTimeMillisEstimate", 0_i32);
    out.append("works", int(counts.works));
    out.append("advanced", int(returned));
    out.append("needTime", int(counts.need_time));
    out.append("needYield", int(counts.need_yield));
    out.append("saveState", int(counts.saves));
    out.append("restoreState", int(counts.restores));
    out.append("isEOF", i32::from(counts.is_finished));
}

fn int(count: u64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
