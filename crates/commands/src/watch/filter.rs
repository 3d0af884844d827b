//! The filter of the profiler: which operations are logged and profiled, said as a query on the documents of `system.profile`.

use pando_base::{Error, ErrorCode, Result, bail};
use pando_doc::{Doc, DocRef, Value};
use pando_expr::{MatchExpression, ParseContext};
use std::fmt;

/// The fields that a filter may ask for: all that are ever told, but those of storage.
const FIELDS: &[&str] = &[
    "ts",
    "client",
    "appName",
    "allUsers",
    "user",
    "op",
    "ns",
    "command",
    "originatingCommand",
    "nShards",
    "cursorid",
    "mongot",
    "exhaust",
    "keysExamined",
    "docsExamined",
    "hasSortStage",
    "usedDisk",
    "fromMultiPlanner",
    "fromPlanCache",
    "replanned",
    "replanReason",
    "nMatched",
    "nBatches",
    "nModified",
    "ninserted",
    "ndeleted",
    "nUpserted",
    "cursorExhausted",
    "keysInserted",
    "keysDeleted",
    "prepareReadConflicts",
    "writeConflicts",
    "temporarilyUnavailableErrors",
    "dataThroughputLastSecond",
    "dataThroughputAverage",
    "numYield",
    "nreturned",
    "queryHash",
    "planCacheKey",
    "queryFramework",
    "locks",
    "authorization",
    "flowControl",
    "writeConcern",
    "readConcern",
    "storage",
    "ok",
    "errMsg",
    "errName",
    "errCode",
    "responseLength",
    "protocol",
    "remoteOpWaitMillis",
    "cpuNanos",
    "millis",
    "planSummary",
    "planningTimeMicros",
    "totalOplogSlotDurationMicros",
    "execStats",
    "operationMetrics",
];

/// A filter as it was read.
#[derive(Clone)]
pub struct ProfileFilter(MatchExpression);

impl ProfileFilter {
    /// Reads it. A field that is never told is a mistake.
    pub fn parse(filter: DocRef<'_>, now_ms: i64) -> Result<ProfileFilter> {
        let expression = MatchExpression::parse(filter, &ParseContext::new(now_ms))?;
        let unknown: Vec<String> = expression
            .paths()
            .unwrap_or_default()
            .iter()
            .filter_map(|path| path.parts().next().map(|first| first.to_string()))
            .filter(|first| !FIELDS.contains(&first.as_str()))
            .collect();
        if !unknown.is_empty() {
            bail!(
                ErrorCode::location(4910200),
                "No such field (or unable to use it) in the profile filter: {}",
                unknown.join(", ")
            );
        }
        Ok(ProfileFilter(expression.optimize()))
    }

    /// True if the operation that this document tells of is wanted. A filter that fails wants nothing.
    pub fn matches(&self, told: DocRef<'_>) -> bool {
        self.0.try_matches(told).unwrap_or(false)
    }

    /// The filter as it is shown.
    pub fn to_document(&self) -> Doc {
        self.0.to_document()
    }
}

impl fmt::Debug for ProfileFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProfileFilter({})", self.to_document())
    }
}

/// The value that a client gives: a filter, or the word that takes it away.
pub(crate) fn parse_filter(value: Value<'_>, now_ms: i64) -> Result<Option<ProfileFilter>> {
    match (value.as_document(), value.as_str()) {
        (Some(filter), _) => ProfileFilter::parse(filter, now_ms).map(Some),
        (None, Some("unset")) => Ok(None),
        _ => Err(Error::bad_value("Expected an object, or the string 'unset'.")),
    }
}
