//! The check of a pipeline: what each of its stages reads or writes, those of nested pipelines
//! included.
//!
//! What it touches is told by the query engine, with the functions that read the stages when they
//! run. A pipeline reads its collection unless its first stage makes documents itself. What a view
//! reads does not matter to who may read the view: only names that the request itself has are
//! looked at. What makes no sense is refused here as it would be later.

use super::AccessRequest;
use crate::crud::AggregateArguments;
use crate::session::WantedSessions;
use crate::stages;
use pando_base::{Namespace, Result};
use pando_doc::{ArrayRef, Element};
use pando_query::pipeline::{MergeOutput, OutputStage, Touch, Watched, WhenMatched, WhenNotMatched, touches};
use pando_query::request::Seen;
use pando_security::{Action, ActionSet, Target};

/// Stages that make documents and read none of the collection's.
const SOURCES: &[&str] = &[
    "$backupCursor",
    "$backupCursorExtend",
    "$collStats",
    "$currentOp",
    "$indexStats",
    "$listCachedAndActiveUsers",
    "$listCatalog",
    "$listLocalSessions",
    "$listSampledQueries",
    "$listSessions",
    "$mergeCursors",
    "$operationMetrics",
    "$planCacheStats",
    "$queryStats",
    "$searchMeta",
    "$shardedDataDistribution",
];

pub(crate) fn may_aggregate(request: &AccessRequest<'_>) -> Result<bool> {
    let arguments = AggregateArguments::parse_document(request.body)?;
    let bypass = match arguments.bypass_validation.0 {
        true => Action::BypassDocumentValidation.into(),
        false => ActionSet::EMPTY,
    };
    let (may, seen) = check(request, &request.namespace, arguments.pipeline, bypass)?;
    request.invocation.set_seen_by_pipeline(seen);
    Ok(may)
}

/// May the client define a view with this pipeline on this collection?
pub(super) fn may_define_pipeline(
    request: &AccessRequest<'_>,
    namespace: &Namespace,
    pipeline: ArrayRef<'_>,
) -> Result<bool> {
    check(request, namespace, pipeline, ActionSet::EMPTY).map(|(may, _)| may)
}

fn check(
    request: &AccessRequest<'_>,
    namespace: &Namespace,
    pipeline: ArrayRef<'_>,
    bypass: ActionSet,
) -> Result<(bool, Seen)> {
    let touches = touches(pipeline.values().filter_map(|stage| stage.as_document()), namespace)?;
    let check = PipelineCheck { request, bypass };
    let mut may = true;
    for touch in &touches.found {
        may = may && check.may(touch)?;
    }
    Ok((may, Seen::new(touches.named)))
}

struct PipelineCheck<'a> {
    request: &'a AccessRequest<'a>,
    /// What writing needs beyond its own actions.
    bypass: ActionSet,
}

impl PipelineCheck<'_> {
    fn may(&self, touch: &Touch<'_>) -> Result<bool> {
        match touch {
            Touch::Read(namespace) => Ok(self.finds(namespace)),
            Touch::Write(OutputStage::Out { namespace, .. }) => {
                Ok(self.writes(namespace, ActionSet::of(&[Action::Insert, Action::Remove])))
            }
            Touch::Write(OutputStage::Merge(merge)) => Ok(self.writes(&merge.namespace, merge_actions(merge))),
            Touch::Watch(watched) => Ok(self.watches(watched)),
            Touch::Other { stage, namespace, is_first } => {
                let replaces_source = SOURCES.iter().any(|source| stage.name == *source);
                Ok((!is_first || replaces_source || self.finds(namespace)) && self.asks(*stage, namespace)?)
            }
        }
    }

    fn finds(&self, namespace: &Namespace) -> bool {
        self.request.may(Target::of(namespace), Action::Find)
    }

    fn writes(&self, namespace: &Namespace, actions: ActionSet) -> bool {
        self.request.may(Target::of(namespace), actions.with(self.bypass))
    }

    fn watches(&self, watched: &Watched) -> bool {
        let target = match watched {
            Watched::Cluster => Target::AnyNormal,
            Watched::Database(database) => Target::Database(database),
            Watched::Collection(namespace) => Target::of(namespace),
        };
        self.request.may(target, ActionSet::of(&[Action::ChangeStream, Action::Find]))
    }

    /// Stages that ask the node, not its collections.
    fn asks(&self, stage: Element<'_>, namespace: &Namespace) -> Result<bool> {
        let on_cluster = |action: Action| self.request.may(Target::Cluster, action);
        let on_own = |actions: ActionSet| self.request.may(Target::of(namespace), actions);
        let name = stage.name.to_string();
        Ok(match name.as_str() {
            "$backupCursor" | "$backupCursorExtend" => on_cluster(Action::Fsync),
            "$collStats" => on_own(Action::CollStats.into()),
            "$indexStats" => on_own(Action::IndexStats.into()),
            "$planCacheStats" => on_own(Action::PlanCacheRead.into()),
            "$currentOp" => !stages::wants_operations_of_all(stage.value)? || on_cluster(Action::Inprog),
            "$operationMetrics" => on_cluster(Action::OperationMetrics),
            "$shardedDataDistribution" => on_cluster(Action::ShardedDataDistribution),
            "$listSampledQueries" => on_cluster(Action::ListSampledQueries),
            "$queryStats" => {
                let is_transformed = stage.value.as_document().is_some_and(|it| it.contains("transformIdentifiers"));
                on_cluster(Action::QueryStatsReadTransformed) && (is_transformed || on_cluster(Action::QueryStatsRead))
            }
            "$listCachedAndActiveUsers" => self.request.may(Target::AnyNormal, Action::ListCachedAndActiveUsers),
            "$listSessions" | "$listLocalSessions" => {
                on_cluster(Action::ListSessions) || self.are_own(&WantedSessions::read(&name, stage.value)?)
            }
            "$listCatalog" => {
                let actions = ActionSet::of(&[Action::ListCollections, Action::ListIndexes]);
                match namespace.is_collectionless_aggregate() {
                    true => on_cluster(Action::ListDatabases) && self.request.may(Target::AnyNormal, actions),
                    false => on_own(actions),
                }
            }
            name if name.starts_with("$_internal") || name == "$mergeCursors" => on_cluster(Action::Internal),
            _ => true,
        })
    }

    /// Are these the client's own sessions?
    fn are_own(&self, wanted: &WantedSessions) -> bool {
        match wanted {
            WantedSessions::Own => true,
            WantedSessions::All => false,
            WantedSessions::Of(users) => users.iter().all(|user| self.request.invocation.is_user(user)),
        }
    }
}

/// What is written depends on what happens to documents that are there already, and to those that
/// are not.
fn merge_actions(merge: &MergeOutput) -> ActionSet {
    let (updates, keeps) = match merge.matched {
        WhenMatched::Fail => (false, false),
        WhenMatched::Keep => (true, true),
        WhenMatched::Merge | WhenMatched::Replace | WhenMatched::Pipeline(_) => (true, false),
    };
    let inserts = keeps || merge.not_matched == WhenNotMatched::Insert;
    let update = if updates { Action::Update.into() } else { ActionSet::EMPTY };
    let insert = if inserts { Action::Insert.into() } else { ActionSet::EMPTY };
    update.with(insert)
}
