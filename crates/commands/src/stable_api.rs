//! What the Stable API, version 1, leaves out, for clients that keep to it (`apiStrict: true`).
//!
//! A command is in the API or not; its row says so, and another name of it never is. Of a command in the API, some fields, stages and
//! operators are not. All of that is found by looking at the request alone, before it is run: the lists here are the whole truth.

use crate::{ApiParameters, CommandRow, Invocation};
use bstr::BStr;
use pando_base::{Error, ErrorCode, Result, ensure};
use pando_doc::{Doc, DocRef, Value};

/// Fields that every write has.
const OF_WRITES: &[&str] = &[
    "isTimeseriesNamespace",
    "collectionUUID",
    "encryptionInformation",
    "bypassEmptyTsReplacement",
    "runtimeConstants",
    "legacyRuntimeConstants",
];

/// By command, the fields that are not in the API.
const FIELDS: &[(&str, &[&str])] = &[
    (
        "aggregate",
        &[
            "explain",
            "needsMerge",
            "fromMongos",
            "$queryOptions",
            "$_requestReshardingResumeToken",
            "runtimeConstants",
            "legacyRuntimeConstants",
            "isMapReduceCommand",
            "collectionUUID",
            "$_passthroughToShard",
            "$_generateV2ResumeTokens",
            "encryptionInformation",
            "sampleId",
            "stmtId",
        ],
    ),
    (
        "collMod",
        &["changeStreamPreAndPostImages", "timeseriesBucketsMayHaveMixedSchemaData", "dryRun", "collectionUUID"],
    ),
    ("count", &["fields", "encryptionInformation", "mirrored", "sampleId"]),
    (
        "create",
        &[
            "autoIndexId",
            "size",
            "max",
            "storageEngine",
            "indexOptionDefaults",
            "changeStreamPreAndPostImages",
            "flags",
        ],
    ),
    ("createIndexes", &["ignoreUnknownIndexOptions", "returnOnStart", "isTimeseriesNamespace", "collectionUUID"]),
    ("delete", OF_WRITES),
    ("drop", &["collectionUUID"]),
    ("dropIndexes", &["isTimeseriesNamespace", "collectionUUID"]),
    (
        "find",
        &[
            "min",
            "max",
            "returnKey",
            "showRecordId",
            "$queryOptions",
            "tailable",
            "oplogReplay",
            "noCursorTimeout",
            "awaitData",
            "term",
            "readOnce",
            "allowSpeculativeMajorityRead",
            "$_requestResumeToken",
            "$_resumeAfter",
            "runtimeConstants",
            "legacyRuntimeConstants",
            "collectionUUID",
            "encryptionInformation",
            "mirrored",
            "sampleId",
        ],
    ),
    ("findAndModify", &["stmtId", "encryptionInformation", "bypassEmptyTsReplacement", "sampleId"]),
    ("getMore", &["term", "lastKnownCommittedOpTime"]),
    ("insert", OF_WRITES),
    ("listCollections", &["includePendingDrops"]),
    ("listIndexes", &["includeBuildUUIDs", "includeIndexBuildInfo", "isTimeseriesNamespace"]),
    ("update", OF_WRITES),
];

/// The same below a field, which is a document or an array of them.
const FIELDS_BELOW: &[(&str, &str, &[&str])] = &[
    ("collMod", "index", &["unique", "prepareUnique", "forceNonUnique"]),
    (
        "createIndexes",
        "indexes",
        &["background", "sparse", "storageEngine", "bucketSize", "columnstoreProjection", "dropDups", "prepareUnique"],
    ),
    ("delete", "deletes", &["sampleId"]),
    ("update", "updates", &["upsertSupplied", "sampleId"]),
];

/// Stages and operators that are not in the API, sorted.
const OPERATORS: &[&str] = &[
    "$_internalAllCollectionStats",
    "$_internalApplyOplogUpdate",
    "$_internalInhibitOptimization",
    "$backupCursor",
    "$backupCursorExtend",
    "$bitAnd",
    "$bitNot",
    "$bitOr",
    "$bitXor",
    "$changeStreamSplitLargeEvent",
    "$currentOp",
    "$fill",
    "$indexStats",
    "$listCatalog",
    "$listLocalSessions",
    "$listSampledQueries",
    "$listSessions",
    "$median",
    "$operationMetrics",
    "$percentile",
    "$planCacheStats",
    "$queryStats",
];

/// Where stages and operators stand in requests; elsewhere such names are data.
const EXPRESSIONS: &[&str] = &["pipeline", "filter", "query", "projection", "fields", "validator"];

/// The kinds of indexes that are not in the API.
const INDEX_KINDS: &[&str] = &["text", "geoHaystack", "columnstore"];

/// Refuses what a client that keeps to the API must not use.
pub fn check_strict(invocation: &Invocation) -> Result<()> {
    let (row, version) = (invocation.row, invocation.generic.api.version.as_deref().unwrap_or_default());
    let sent = invocation.request.name();
    let is_in_version = if version == "2" { row.is_in_api_version_2 } else { row.is_in_api_version_1 };
    ensure!(
        is_in_version && row.name.as_bytes() == sent,
        ErrorCode::APIStrictError,
        "Provided apiStrict:true, but the command {} is not in API Version {version}. Information on supported commands \
         and migrations in API Version {version} can be found at https://dochub.mongodb.org/core/manual-versioned-api",
        BStr::new(sent)
    );
    check_command(row.name, invocation.body())?;
    check_kept(invocation, check_operators)?;
    match row.name {
        // Only what is asked to be explained is looked at, and it is a command as well.
        "explain" => match invocation.target().as_document() {
            Some(inner) => inner.first().map_or(Ok(()), |first| check_command(&first.name.to_string(), inner)),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn check_command(command: &str, body: DocRef<'_>) -> Result<()> {
    let of_command = FIELDS.iter().filter(|(name, _)| *name == command);
    for field in of_command.flat_map(|(_, fields)| fields.iter()) {
        ensure!(!body.contains(*field), ErrorCode::APIStrictError, "{}", refusal(&[command, field]));
    }
    for (_, outer, fields) in FIELDS_BELOW.iter().filter(|(name, ..)| *name == command) {
        for below in documents(body.get(*outer)) {
            let found = fields.iter().find(|field| below.contains(**field));
            ensure!(
                found.is_none(),
                ErrorCode::APIStrictError,
                "{}",
                refusal(&[command, outer, found.copied().unwrap_or_default()])
            );
        }
    }
    if command == "createIndexes" {
        documents(body.get("indexes")).try_for_each(check_index)?;
    }
    let statements = documents(body.get("updates")).chain(documents(body.get("deletes")));
    let of_statements = statements.flat_map(|statement| ["q", "u"].map(|field| statement.get(field)));
    // A document is the new one, or has operators of its own; a pipeline has stages.
    let of_statements = of_statements.flatten().filter(|value| !matches!(value, Value::Document(_)));
    let of_command = EXPRESSIONS.iter().filter_map(|field| body.get(*field));
    of_command.chain(of_statements).try_for_each(check_operators)
}

fn refusal(path: &[&str]) -> String {
    format!("BSON field '{}' is not allowed with apiStrict:true.", path.join("."))
}

/// The documents that a field is.
fn documents(value: Option<Value<'_>>) -> impl Iterator<Item = DocRef<'_>> {
    let single = value.and_then(|value| value.as_document());
    let several = value.and_then(|value| value.as_array()).map(|array| array.values());
    single.into_iter().chain(several.into_iter().flatten().filter_map(|value| value.as_document()))
}

fn check_index(specification: DocRef<'_>) -> Result<()> {
    let key = specification.get("key").and_then(|key| key.as_document()).unwrap_or(DocRef::EMPTY);
    for kind in key.elements().filter_map(|part| part.value.as_str().map(str::to_owned)) {
        // An index of this kind there is not at all, which is another error.
        let is_outside = INDEX_KINDS.contains(&kind.as_str()) && kind != "geoHaystack";
        ensure!(!is_outside, ErrorCode::APIStrictError, "{kind} indexes cannot be created with apiStrict: true");
    }
    Ok(())
}

/// Looks for stages and operators that are not in the API, at every depth.
pub(crate) fn check_operators(value: Value<'_>) -> Result<()> {
    match value {
        Value::Array(array) => array.values().try_for_each(check_operators),
        Value::Document(document) => document.elements().try_for_each(|element| {
            let name = element.name;
            if !name.starts_with(b"$") {
                return check_operators(element.value);
            }
            let is_outside = OPERATORS.binary_search_by(|known| known.as_bytes().cmp(name)).is_ok();
            ensure!(
                !is_outside,
                ErrorCode::APIStrictError,
                "{name} is not allowed with 'apiStrict: true' in API Version 1"
            );
            match &**name {
                b"$literal" => Ok(()),
                b"$collStats" => check_coll_stats(element.value),
                b"$changeStream" => check_change_stream(element.value),
                b"$_testApiVersion" => {
                    let is_unstable = is_test_of(element.value, "unstable");
                    let reason = "Provided apiStrict is true with an unstable parameter.";
                    ensure!(!is_unstable, ErrorCode::APIStrictError, "{reason}");
                    Ok(())
                }
                _ => check_operators(element.value),
            }
        }),
        _ => Ok(()),
    }
}

/// True for a test's operator that says of itself that it is such.
fn is_test_of(value: Value<'_>, field: &str) -> bool {
    value.as_document().and_then(|fields| fields.get(field)).is_some_and(|value| value.is_true())
}

/// Looks for operators that are to go, at every depth, for clients that want them refused (`apiDeprecationErrors: true`).
pub fn check_deprecated(invocation: &Invocation) -> Result<()> {
    fn check(value: Value<'_>) -> Result<()> {
        let reason = "Provided apiDeprecatedErrors is true with a deprecated parameter.";
        match value {
            Value::Array(array) => array.values().try_for_each(check),
            Value::Document(document) => document.elements().try_for_each(|element| match &**element.name {
                b"$literal" => Ok(()),
                b"$_testApiVersion" => {
                    ensure!(!is_test_of(element.value, "deprecated"), ErrorCode::APIDeprecationError, "{reason}");
                    Ok(())
                }
                _ => check(element.value),
            }),
            _ => Ok(()),
        }
    }
    let body = match (invocation.row.name, invocation.target()) {
        ("explain", Value::Document(inner)) => inner,
        _ => invocation.body(),
    };
    EXPRESSIONS.iter().filter_map(|field| body.get(*field)).try_for_each(check)?;
    check_kept(invocation, check)
}

/// Looks at the pipeline of the view that is read, and at the validator of the collection that is written.
fn check_kept(invocation: &Invocation, check: impl Fn(Value<'_>) -> Result<()>) -> Result<()> {
    let (Ok(data), namespace) = (invocation.data(), &invocation.namespace) else { return Ok(()) };
    let latest = data.catalog.latest();
    if let Some(views) = latest.views(&namespace.database_name())
        && let Ok(Some(view)) = views.resolve(namespace)
    {
        check(Value::Array(view.pipeline.view()))?;
    }
    let is_write = matches!(invocation.row.name, "insert" | "update" | "findAndModify");
    match latest.collection(namespace).filter(|_| is_write).and_then(|known| known.options.validator.as_ref()) {
        Some(validator) => check(Value::Document(validator.view())),
        None => Ok(()),
    }
}

fn check_coll_stats(options: Value<'_>) -> Result<()> {
    let mut options = options.as_document().unwrap_or(DocRef::EMPTY).elements();
    ensure!(
        options.all(|option| option.name == "count"),
        ErrorCode::APIStrictError,
        "only the 'count' option to $collStats is supported in API Version 1"
    );
    Ok(())
}

fn check_change_stream(options: Value<'_>) -> Result<()> {
    let options = options.as_document().unwrap_or(DocRef::EMPTY);
    let outside = ["showExpandedEvents", "showRawUpdateDescription", "showSystemEvents"];
    match outside.iter().find(|name| options.contains(*name)) {
        Some(name) => {
            let reason = format!("The '{name}' parameter to $changeStream is not supported in API Version 1");
            Err(Error::new(ErrorCode::APIStrictError, reason))
        }
        None => Ok(()),
    }
}

/// A cursor goes on under the API that it was made with.
pub(crate) fn check_same(row: &CommandRow, own: &ApiParameters, making: &Doc) -> Result<()> {
    let made_with = ApiParameters {
        version: making.get("apiVersion").and_then(|version| version.as_str().map(str::to_owned)),
        strict: truth(making, "apiStrict"),
        deprecation_errors: truth(making, "apiDeprecationErrors"),
    };
    if *own == made_with {
        return Ok(());
    }
    let reason = format!(
        "API parameter mismatch: {} used params {}, the cursor-creating command used {}",
        row.name,
        own.to_doc(),
        made_with.to_doc()
    );
    Err(Error::new(ErrorCode::APIMismatchError, reason))
}

fn truth(document: &Doc, name: &str) -> Option<bool> {
    match document.get(name) {
        Some(Value::Bool(truth)) => Some(truth),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn u16_the_operators_are_sorted_and_found_at_every_depth() {
        assert!(OPERATORS.is_sorted());
        let find = |value: Doc| check_operators(Value::Document(value.view()));
        assert!(find(doc! { "$lookup": { "from": "x", "pipeline": [{ "$indexStats": {} }] } }).is_err());
        assert!(find(doc! { "$project": { "x": { "$bitAnd": [1, 2] } } }).is_err());
        assert!(find(doc! { "$facet": { "a": [], "b": [{ "$collStats": { "latencyStats": {} } }] } }).is_err());
        assert!(find(doc! { "$project": { "x": { "$literal": { "$bitAnd": 1 } } } }).is_ok());
        assert!(find(doc! { "$match": { "fill": { "$gt": 1 } } }).is_ok());
    }
}
