//! Whether a pipeline may be a view's. Stages are known by name here; whether they make sense is found by those who run
//! pipelines.

use pando_base::{ErrorCode, Namespace, Result, ensure};
use pando_doc::Array;

/// Refuses stages that a view cannot have.
pub(super) fn check_view_pipeline(namespace: &Namespace, pipeline: &Array) -> Result<()> {
    for (place, stage) in pipeline.values().enumerate() {
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
    }
    Ok(())
}
