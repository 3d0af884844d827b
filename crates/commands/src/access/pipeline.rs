//! The check of a pipeline: what each of its stages reads or writes, those of nested pipelines included.
//!
//! A pipeline reads its collection unless its first stage makes documents itself. What a view reads does not matter to who
//! may read the view: only names that the request itself has are looked at. Stages that make no sense are left to the
//! command, which refuses them.

use super::AccessRequest;
use super::crud::with_bypass;
use pando_base::{DatabaseName, Namespace, Result};
use pando_doc::{ArrayRef, DocRef, Value};
use pando_security::{Action, ActionSet, Target};

/// Pipelines inside of pipelines, at most; deeper ones are refused by whoever reads them.
const DEPTH_MAX: usize = 20;

/// Stages that make documents and read none of the collection's.
const SOURCES: &[&str] = &[
    "$backupCursor",
    "$backupCursorExtend",
    "$changeStream",
    "$collStats",
    "$currentOp",
    "$documents",
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
    let Some(Value::Array(pipeline)) = request.body.get("pipeline") else { return Ok(true) };
    may_run_pipeline(request, &request.namespace, pipeline, true)
}

/// May the client run this pipeline on this collection?
pub(super) fn may_run_pipeline(
    request: &AccessRequest<'_>,
    namespace: &Namespace,
    pipeline: ArrayRef<'_>,
    may_write: bool,
) -> Result<bool> {
    let bypass = match may_write {
        true => with_bypass(request, ActionSet::EMPTY),
        false => ActionSet::EMPTY,
    };
    Ok(Walk { request, bypass }.pipeline(namespace, pipeline, 0))
}

struct Walk<'a> {
    request: &'a AccessRequest<'a>,
    /// What writing needs beyond its own actions.
    bypass: ActionSet,
}

impl Walk<'_> {
    fn pipeline(&self, namespace: &Namespace, pipeline: ArrayRef<'_>, depth: usize) -> bool {
        if depth > DEPTH_MAX {
            return false;
        }
        let first = pipeline.get(0).and_then(|stage| stage.as_document()).and_then(|stage| stage.first());
        let is_source = first.is_some_and(|first| SOURCES.iter().any(|source| first.name == *source));
        (is_source || self.finds(namespace)) && self.stages(namespace, pipeline, depth)
    }

    fn stages(&self, namespace: &Namespace, pipeline: ArrayRef<'_>, depth: usize) -> bool {
        let stages = pipeline.values().filter_map(|stage| stage.as_document()).filter_map(|stage| stage.first());
        stages.into_iter().all(|stage| match std::str::from_utf8(stage.name) {
            Ok(name) => self.stage(namespace, name, stage.value, depth),
            Err(_) => true,
        })
    }

    fn stage(&self, namespace: &Namespace, name: &str, value: Value<'_>, depth: usize) -> bool {
        let on_cluster = |action: Action| self.request.may(Target::Cluster, action);
        let on_own = |actions: ActionSet| self.request.may(Target::of(namespace), actions);
        let options = value.as_document().unwrap_or(DocRef::EMPTY);
        let is_on = |field: &str| options.get(field).is_some_and(|value| value.is_true());
        match name {
            "$backupCursor" | "$backupCursorExtend" => on_cluster(Action::Fsync),
            "$collStats" => on_own(Action::CollStats.into()),
            "$indexStats" => on_own(Action::IndexStats.into()),
            "$planCacheStats" => on_own(Action::PlanCacheRead.into()),
            "$currentOp" => !is_on("allUsers") || on_cluster(Action::Inprog),
            "$operationMetrics" => on_cluster(Action::OperationMetrics),
            "$shardedDataDistribution" => on_cluster(Action::ShardedDataDistribution),
            "$listSampledQueries" => on_cluster(Action::ListSampledQueries),
            "$queryStats" => {
                let is_transformed = options.contains("transformIdentifiers");
                on_cluster(Action::QueryStatsReadTransformed) && (is_transformed || on_cluster(Action::QueryStatsRead))
            }
            "$listCachedAndActiveUsers" => self.request.may(Target::AnyNormal, Action::ListCachedAndActiveUsers),
            "$listSessions" | "$listLocalSessions" => {
                on_cluster(Action::ListSessions) || !is_on("allUsers") && self.are_own(options.get("users"))
            }
            "$listCatalog" => {
                let actions = ActionSet::of(&[Action::ListCollections, Action::ListIndexes]);
                match namespace.is_collectionless_aggregate() {
                    true => on_cluster(Action::ListDatabases) && self.request.may(Target::AnyNormal, actions),
                    false => on_own(actions),
                }
            }
            "$changeStream" => {
                let actions = ActionSet::of(&[Action::ChangeStream, Action::Find]);
                let database = Target::Database(namespace.database());
                match (is_on("allChangesForCluster"), namespace.is_collectionless_aggregate()) {
                    (true, _) => self.request.may(Target::AnyNormal, actions),
                    (false, true) => self.request.may(database, actions),
                    (false, false) => on_own(actions),
                }
            }
            "$lookup" => self.lookup(namespace, options, depth),
            "$graphLookup" => {
                options.get("from").and_then(|from| self.other(namespace, from)).is_none_or(|from| self.finds(&from))
            }
            "$unionWith" => self.union_with(namespace, value, depth),
            "$facet" => options.elements().all(|facet| match facet.value {
                Value::Array(pipeline) => self.stages(namespace, pipeline, depth + 1),
                _ => true,
            }),
            "$out" => self.other(namespace, value).is_none_or(|to| self.writes(&to, &[Action::Insert, Action::Remove])),
            "$merge" => self.merge(namespace, value),
            _ if name.starts_with("$_internal") || name == "$mergeCursors" => on_cluster(Action::Internal),
            _ => true,
        }
    }

    fn finds(&self, namespace: &Namespace) -> bool {
        self.request.may(Target::of(namespace), Action::Find)
    }

    fn writes(&self, namespace: &Namespace, actions: &[Action]) -> bool {
        self.request.may(Target::of(namespace), ActionSet::of(actions).with(self.bypass))
    }

    /// Another collection: by its name, or by its database and name. None for what makes no sense.
    fn other(&self, namespace: &Namespace, value: Value<'_>) -> Option<Namespace> {
        match value {
            Value::Document(named) => {
                let text = |field: &str| named.get(field).and_then(|part| part.as_str());
                let database = match text("db") {
                    Some(database) => DatabaseName::new(database).ok()?,
                    None => namespace.database_name(),
                };
                Namespace::new(&database, text("coll")?).ok()
            }
            name => Namespace::new(&namespace.database_name(), name.as_str()?).ok(),
        }
    }

    fn lookup(&self, namespace: &Namespace, options: DocRef<'_>, depth: usize) -> bool {
        let from = options.get("from").and_then(|from| self.other(namespace, from));
        let from = from.unwrap_or_else(|| Namespace::collectionless_aggregate(&namespace.database_name()));
        match options.get("pipeline") {
            Some(Value::Array(pipeline)) => {
                let needs_from = !options.contains("localField") || self.finds(&from);
                needs_from && self.pipeline(&from, pipeline, depth + 1)
            }
            _ => self.finds(&from),
        }
    }

    fn union_with(&self, namespace: &Namespace, value: Value<'_>, depth: usize) -> bool {
        let options = value.as_document().unwrap_or(DocRef::EMPTY);
        let from = self.other(namespace, value);
        let from = from.unwrap_or_else(|| Namespace::collectionless_aggregate(&namespace.database_name()));
        match options.get("pipeline") {
            Some(Value::Array(pipeline)) => self.pipeline(&from, pipeline, depth + 1),
            _ => self.finds(&from),
        }
    }

    /// What is written depends on what happens to documents that are there already, and to those that are not.
    fn merge(&self, namespace: &Namespace, value: Value<'_>) -> bool {
        let options = value.as_document().unwrap_or(DocRef::EMPTY);
        let into = options.get("into").unwrap_or(value);
        let Some(into) = self.other(namespace, into) else { return true };
        let mode = |field: &str| options.get(field).and_then(|mode| mode.as_str());
        let (is_updating, is_keeping) = match mode("whenMatched") {
            Some("fail") => (false, false),
            Some("keepExisting") => (true, true),
            _ => (true, false),
        };
        let is_inserting = is_keeping || matches!(mode("whenNotMatched"), None | Some("insert"));
        let mut actions = Vec::new();
        actions.extend(is_updating.then_some(Action::Update));
        actions.extend(is_inserting.then_some(Action::Insert));
        self.writes(&into, &actions)
    }

    /// Are these users the client itself? Nobody in particular is.
    fn are_own(&self, users: Option<Value<'_>>) -> bool {
        let Some(Value::Array(users)) = users else { return true };
        users.values().filter_map(|user| user.as_document()).all(|user| {
            let part = |field: &str| user.get(field).and_then(|part| part.as_str()).unwrap_or_default();
            self.request.invocation.is_user(part("user"), part("db"))
        })
    }
}
