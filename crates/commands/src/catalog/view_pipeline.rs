//! Whether a pipeline may be a view's: it can be read, and has no stages that a view cannot have.

use crate::settings::check_kept_expression;
use crate::stages::NodeStages;
use crate::{Data, Invocation};
use pando_base::{ErrorCode, Namespace, Result, ensure};
use pando_catalog::ViewDefinition;
use pando_doc::{Array, Doc, DocRef, Value};
use pando_operation::Operation;
use pando_query::request::AggregateRequest;

/// Stages that are about no collection: a view is on one.
const OF_NO_COLLECTION: [&str; 11] = [
    "$backupCursor",
    "$backupCursorExtend",
    "$currentOp",
    "$documents",
    "$listCachedAndActiveUsers",
    "$listLocalSessions",
    "$listSampledQueries",
    "$operationMetrics",
    "$queryStats",
    "$shardedDataDistribution",
    "$_internalAllCollectionStats",
];

/// Refuses stages that a view cannot have.
pub(super) fn check_view_pipeline(
    invocation: &Invocation,
    data: &Data,
    operation: &Operation,
    view: &ViewDefinition,
) -> Result<()> {
    let (namespace, pipeline) = (&view.namespace, &view.pipeline);
    // One that came in by another way than this one's checks is in the way of all.
    let latest = data.catalog.latest();
    for other in latest.views(&namespace.database_name()).into_iter().flat_map(|views| views.iter()) {
        check_stages(&other.namespace, &other.view_on, &other.pipeline)?;
    }
    check_stages(namespace, &view.view_on, pipeline)?;
    check_kept_expression(&invocation.node.parameters, Value::Array(pipeline.view()))?;
    let stages: Vec<Doc> = pipeline.values().filter_map(|stage| stage.as_document()).map(DocRef::to_doc).collect();
    let request = AggregateRequest {
        collation: view.collation.clone().unwrap_or_default(),
        ..AggregateRequest::new(view.view_on.clone(), stages)
    };
    data.query.check_pipeline(operation, &request, Some(NodeStages::of(invocation)))
}

fn check_stages(namespace: &Namespace, view_on: &Namespace, pipeline: &Array) -> Result<()> {
    for (place, stage) in pipeline.values().enumerate() {
        ensure!(
            stage.as_document().is_some_and(|stage| stage.field_count() == 1),
            ErrorCode::location(40323),
            "A pipeline stage specification object must contain exactly one field."
        );
        let stage = stage.as_document().and_then(|stage| stage.first());
        let name = stage.map_or_else(String::new, |stage| stage.name.to_string());
        ensure!(name.starts_with('$'), ErrorCode::location(40324), "Unrecognized pipeline stage name: '{name}'");
        ensure!(
            !matches!(name.as_str(), "$out" | "$merge"),
            ErrorCode::OptionNotSupportedOnView,
            "The aggregation stage {name} in location {place} of the pipeline cannot be used in the view definition of \
             {namespace} because it writes to disk"
        );
        ensure!(
            name != "$changeStream",
            ErrorCode::OptionNotSupportedOnView,
            "$changeStream cannot be used in a view definition"
        );
        let is_elsewhere = name == "$listSessions" && view_on.as_str() != "config.system.sessions";
        ensure!(
            !is_elsewhere && !OF_NO_COLLECTION.contains(&name.as_str()),
            ErrorCode::InvalidNamespace,
            "'{name}' cannot be used in a view definition"
        );
    }
    Ok(())
}
