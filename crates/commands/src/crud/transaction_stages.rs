//! Stages that do not run in multi-document transactions: those that write, and those that tell of the node, which has no snapshots
//! of itself. Also inside the pipelines of other stages.

use bstr::BStr;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::DocRef;

/// In alphabetical order.
const REFUSED: &[&str] = &[
    "$backupCursor",
    "$backupCursorExtend",
    "$changeStream",
    "$collStats",
    "$currentOp",
    "$indexStats",
    "$listCachedAndActiveUsers",
    "$listCatalog",
    "$listLocalSessions",
    "$listSampledQueries",
    "$listSessions",
    "$merge",
    "$operationMetrics",
    "$out",
    "$planCacheStats",
    "$queryStats",
    "$shardedDataDistribution",
    "$unionWith",
];

/// Refuses a pipeline with such a stage.
pub(super) fn check<'a>(pipeline: impl IntoIterator<Item = DocRef<'a>>) -> Result<()> {
    pipeline.into_iter().try_for_each(check_stage)
}

fn check_stage(stage: DocRef<'_>) -> Result<()> {
    let Some(element) = stage.first() else { return Ok(()) };
    if let Some(name) = REFUSED.iter().find(|name| element.name == **name) {
        let reason = format!(
            "Operation not permitted in transaction :: caused by :: Aggregation stage {name} cannot run within a \
             multi-document transaction"
        );
        return Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, reason));
    }
    inner_pipelines(stage).flatten().try_for_each(check_stage)
}

/// The stage's name.
pub(super) fn name_of(stage: DocRef<'_>) -> Option<&BStr> {
    stage.first().map(|element| element.name)
}

/// The pipelines inside a stage.
pub(super) fn inner_pipelines(stage: DocRef<'_>) -> impl Iterator<Item = impl Iterator<Item = DocRef<'_>>> {
    let element = stage.first();
    let is_facet = element.is_some_and(|element| element.name == "$facet");
    let options = element.and_then(|element| element.value.as_document()).unwrap_or(DocRef::EMPTY);
    let inner = options.elements().filter(move |option| is_facet || option.name == "pipeline");
    let stages = inner.filter_map(|option| option.value.as_array());
    stages.map(|stages| stages.values().filter_map(|stage| stage.as_document()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn r9_stages_that_do_not_run_in_transactions_are_found_where_they_are() {
        let refused = [
            doc! { "$collStats": { "count": {} } },
            doc! { "$lookup": { "from": "b", "pipeline": [{ "$indexStats": {} }], "as": "c" } },
            doc! { "$unionWith": "b" },
            doc! { "$lookup": { "from": "b", "pipeline": [{ "$unionWith": { "coll": "c" } }], "as": "d" } },
            doc! { "$facet": { "a": [{ "$match": {} }, { "$out": "b" }] } },
        ];
        for stage in &refused {
            assert_eq!(check([stage.view()]).unwrap_err().code(), ErrorCode::OperationNotSupportedInTransaction);
        }
        let allowed = doc! { "$lookup": { "from": "b", "pipeline": [{ "$match": { "$out": 1 } }], "as": "$out" } };
        check([allowed.view()]).unwrap();
        assert!(REFUSED.is_sorted());
    }
}
