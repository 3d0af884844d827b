//! Which read concerns the stages of a pipeline can be run with: those that tell of the node itself have no other than "local",
//! those that write cannot know that nobody else is primary. Also inside the pipelines of other stages.
//!
//! Change streams are not looked at here: they have a read concern of their own.

use super::transaction_stages::{inner_pipelines, name_of};
use pando_base::{ErrorCode, Result, bail};
use pando_doc::DocRef;

/// What says nothing of documents. In alphabetical order.
const LOCAL: &[&str] = &["$currentOp", "$listCachedAndActiveUsers", "$listLocalSessions", "$planCacheStats"];

/// Looks at a pipeline with the level that the client gave.
pub(super) fn check<'a>(
    pipeline: impl IntoIterator<Item = DocRef<'a>>,
    level: Option<&str>,
    is_explained: bool,
) -> Result<()> {
    let Some(level) = level else { return Ok(()) };
    if is_explained && level != "local" {
        return refused(
            level,
            &format!(
                "Explain for the aggregate command cannot run with a readConcern other than 'local'. Current readConcern \
                 level: {level}"
            ),
        );
    }
    pipeline.into_iter().try_for_each(|stage| check_stage(stage, level))
}

fn check_stage(stage: DocRef<'_>, level: &str) -> Result<()> {
    let Some(name) = name_of(stage) else { return Ok(()) };
    if let Some(name) = LOCAL.iter().find(|local| name == **local)
        && level != "local"
    {
        let reason = format!(
            "Aggregation stage {name} cannot run with a readConcern other than 'local'. Current readConcern: {level}"
        );
        return refused(level, &reason);
    }
    if (name == "$out" || name == "$merge") && level == "linearizable" {
        return refused(level, &format!("{name} cannot be used with a 'linearizable' read concern level"));
    }
    inner_pipelines(stage).flatten().try_for_each(|stage| check_stage(stage, level))
}

fn refused(level: &str, reason: &str) -> Result<()> {
    bail!(
        ErrorCode::InvalidOptions,
        "Command aggregate does not support {{ readConcern: {{ level: \"{level}\", provenance: \"clientSupplied\" }} }} :: \
         caused by :: {reason}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::{Doc, doc};

    fn refusal(stage: &Doc, level: &str, is_explained: bool) -> Option<String> {
        let error = check([stage.view()], Some(level), is_explained).err()?;
        assert_eq!(error.code(), ErrorCode::InvalidOptions);
        error.reason().split_once(":: caused by :: ").map(|(_, reason)| reason.to_owned())
    }

    #[test]
    fn u10_stages_are_refused_with_read_concerns_that_they_do_not_have() {
        for name in LOCAL {
            let stage = doc! { (*name): {} };
            assert_eq!(refusal(&stage, "local", false), None);
            let reason = format!(
                "Aggregation stage {name} cannot run with a readConcern other than 'local'. Current readConcern: majority"
            );
            assert_eq!(refusal(&stage, "majority", false), Some(reason));
        }
        let written = doc! { "$merge": "b" };
        assert_eq!(refusal(&written, "majority", false), None);
        let reason = "$merge cannot be used with a 'linearizable' read concern level".to_owned();
        assert_eq!(refusal(&written, "linearizable", false), Some(reason));
        let inner = doc! { "$facet": { "a": [{ "$currentOp": {} }] } };
        assert!(refusal(&inner, "snapshot", false).is_some());
        let plain = doc! { "$match": { "$currentOp": 1 } };
        assert_eq!(refusal(&plain, "majority", false), None);
        let reason = "Explain for the aggregate command cannot run with a readConcern other than 'local'. Current \
                      readConcern level: majority";
        assert_eq!(refusal(&plain, "majority", true), Some(reason.to_owned()));
        assert!(check([plain.view()], None, true).is_ok());
        assert!(LOCAL.is_sorted());
    }
}
