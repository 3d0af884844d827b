//! Places where tests hold a build, by MongoDB's names. A build waits there without locks, and can be ended meanwhile.

use crate::builds::shown;
use pando_base::{AnyFailPoint, Component, FailPoint, Log, LogValue, Result, Severity, Uuid};
use pando_catalog::Index;
use pando_doc::{Doc, DocRef, JsonFormat, Value, compare, doc_to_json};
use pando_operation::Operation;
use std::cmp::Ordering;
use std::sync::Arc;

/// A point whose data says where exactly.
type Hang = FailPoint<Doc>;

const fn hang(name: &'static str) -> Hang {
    FailPoint::with_data(
        name,
        |bytes| if bytes.is_empty() { Ok(Doc::new()) } else { Ok(DocRef::parse(bytes)?.to_doc()) },
    )
}

pub(crate) static AFTER_SETTING_UP: Hang = hang("hangAfterSettingUpIndexBuild");
pub(crate) static AFTER_SETTING_UP_UNLOCKED: Hang = hang("hangAfterSettingUpIndexBuildUnlocked");
pub(crate) static AFTER_INITIALIZING: Hang = hang("hangAfterInitializingIndexBuild");
pub(crate) static BEFORE_BUILDING: Hang = hang("hangBeforeBuildingIndex");
pub(crate) static BEFORE_MAJORITY: Hang = hang("hangIndexBuildBeforeWaitingUntilMajorityOpTime");
pub(crate) static BEFORE_INITIALIZING: Hang = hang("hangBeforeInitializingIndexBuild");
pub(crate) static SCAN_BEFORE_INSERTION: Hang = hang("hangIndexBuildDuringCollectionScanPhaseBeforeInsertion");
pub(crate) static SCAN_AFTER_INSERTION: Hang = hang("hangIndexBuildDuringCollectionScanPhaseAfterInsertion");
pub(crate) static AFTER_STARTING: Hang = hang("hangAfterStartingIndexBuild");
pub(crate) static AFTER_STARTING_UNLOCKED: Hang = hang("hangAfterStartingIndexBuildUnlocked");
pub(crate) static DURING_BULK_LOAD: Hang = hang("hangIndexBuildDuringBulkLoadPhase");
pub(crate) static BULK_LOAD_YIELD: Hang = hang("hangDuringIndexBuildBulkLoadYield");
pub(crate) static AFTER_BULK_LOAD: Hang = hang("hangAfterIndexBuildDumpsInsertsFromBulk");
pub(crate) static DURING_DRAIN: Hang = hang("hangIndexBuildDuringDrainWritesPhase");
pub(crate) static DRAIN_YIELD: Hang = hang("hangDuringIndexBuildDrainYield");
pub(crate) static AFTER_FIRST_DRAIN: Hang = hang("hangAfterIndexBuildFirstDrain");
pub(crate) static AFTER_SECOND_DRAIN: Hang = hang("hangAfterIndexBuildSecondDrain");
pub(crate) static BEFORE_VOTE: Hang = hang("hangBeforeVoteCommitIndexBuild");
pub(crate) static BEFORE_ENTRY: Hang = hang("hangBeforeGettingIndexBuildEntry");
pub(crate) static AFTER_VOTE: Hang = hang("hangIndexBuildAfterSignalPrimaryForCommitReadiness");
pub(crate) static BEFORE_COMMIT: Hang = hang("hangIndexBuildBeforeCommit");
pub(crate) static AFTER_COMMIT: Hang = hang("hangBeforeUnregisteringAfterCommit");
pub(crate) static BEFORE_OWN_ABORT: Hang = hang("hangIndexBuildBeforeTransitioningReplStateTokAwaitPrimaryAbort");
pub(crate) static BEFORE_ABORT_CLEAN_UP: Hang = hang("hangIndexBuildBeforeAbortCleanUp");

/// All of them.
pub const FAIL_POINTS: &[&dyn AnyFailPoint] = &[
    &AFTER_SETTING_UP,
    &AFTER_SETTING_UP_UNLOCKED,
    &AFTER_INITIALIZING,
    &BEFORE_BUILDING,
    &BEFORE_MAJORITY,
    &BEFORE_INITIALIZING,
    &SCAN_BEFORE_INSERTION,
    &SCAN_AFTER_INSERTION,
    &AFTER_STARTING,
    &AFTER_STARTING_UNLOCKED,
    &DURING_BULK_LOAD,
    &BULK_LOAD_YIELD,
    &AFTER_BULK_LOAD,
    &DURING_DRAIN,
    &DRAIN_YIELD,
    &AFTER_FIRST_DRAIN,
    &AFTER_SECOND_DRAIN,
    &BEFORE_VOTE,
    &BEFORE_ENTRY,
    &AFTER_VOTE,
    &BEFORE_COMMIT,
    &AFTER_COMMIT,
    &BEFORE_OWN_ABORT,
    &BEFORE_ABORT_CLEAN_UP,
];

/// Where a build is, as the data of points names it.
pub(crate) struct Place<'a> {
    pub(crate) build_uuid: Uuid,
    pub(crate) indexes: &'a [Arc<Index>],
    /// Documents, keys or side writes that were taken before.
    pub(crate) iteration: u64,
    /// How many more are taken in this step.
    pub(crate) step: u64,
    /// The document that is taken next.
    pub(crate) document: Option<&'a Doc>,
}

impl Place<'_> {
    /// What the log tells of it.
    fn attributes(&self, point: &'static Hang, data: &Doc) -> Vec<(&'static str, LogValue)> {
        let mut attributes = vec![("buildUUID", shown(&self.build_uuid)), ("iteration", self.iteration.into())];
        let names = data.get("indexNames").and_then(|names| names.as_array());
        let is_named = |index: &&Arc<Index>| {
            names.is_none_or(|names| names.values().any(|name| name.as_str() == Some(index.name())))
        };
        if let Some(index) = self.indexes.iter().find(is_named) {
            attributes.push(("index", index.name().into()));
        }
        if let Some(document) = self.document {
            let is_before = std::ptr::eq(point, &SCAN_BEFORE_INSERTION);
            attributes.push(("where", if is_before { "before" } else { "after" }.into()));
            attributes.push(("doc", LogValue::Json(doc_to_json(document.view(), JsonFormat::Relaxed))));
        }
        attributes
    }

    /// Does the point's data mean this place? What it does not say may be anything.
    fn is_meant(&self, point: &'static Hang, data: &Doc) -> bool {
        let text = self.build_uuid.to_string();
        let is_build = |uuid: Value<'_>| match uuid {
            Value::Binary { bytes, .. } => bytes == self.build_uuid.as_bytes(),
            uuid => uuid.as_str() == Some(text.as_str()),
        };
        let is_index = |name: Value<'_>| self.indexes.iter().any(|index| name.as_str() == Some(index.name()));
        let builds = data.get("buildUUIDs").and_then(|uuids| uuids.as_array());
        let names = data.get("indexNames").and_then(|names| names.as_array());
        // Where nothing is counted, it does not matter at which one to wait.
        let counting: [&Hang; 4] = [&SCAN_BEFORE_INSERTION, &SCAN_AFTER_INSERTION, &DURING_BULK_LOAD, &DURING_DRAIN];
        let is_counting = counting.iter().any(|counting| std::ptr::eq(*counting, point));
        let iteration =
            data.get("iteration").filter(|_| is_counting).map(|iteration| iteration.to_i64_or_zero().max(0) as u64);
        let fields = data.get("fieldsToMatch").and_then(|fields| fields.as_document());
        let has = |document: &Doc, fields: DocRef<'_>| {
            fields.elements().all(|field| {
                document.view().get(field.name).is_some_and(|found| compare(found, field.value) == Ordering::Equal)
            })
        };
        builds.is_none_or(|builds| builds.values().any(is_build))
            && names.is_none_or(|names| names.values().any(is_index))
            && iteration.is_none_or(|at| (self.iteration..self.iteration + self.step.max(1)).contains(&at))
            && fields.is_none_or(|fields| self.document.is_some_and(|document| has(document, fields)))
    }
}

/// The line that tells of a build that waits at a point, where tests look for one.
fn line_of(point: &'static Hang) -> Option<(i32, &'static str)> {
    let lines: [(&'static Hang, i32, &'static str); 9] = [
        (&BEFORE_BUILDING, 4_940_900, "Hanging before building index"),
        (&BEFORE_MAJORITY, 4_940_901, "Hanging index build before waiting until the majority opTime"),
        (&SCAN_BEFORE_INSERTION, 20_386, "Hanging index build during collection scan phase"),
        (&SCAN_AFTER_INSERTION, 20_386, "Hanging index build during collection scan phase"),
        (&DURING_BULK_LOAD, 4_924_400, "Hanging index build during bulk load phase"),
        (&AFTER_BULK_LOAD, 20_665, "Hanging after dumping inserts from bulk builder"),
        (&AFTER_FIRST_DRAIN, 20_666, "Hanging after index build first drain"),
        (&AFTER_SECOND_DRAIN, 20_667, "Hanging after index build second drain"),
        (&DURING_DRAIN, 4_841_800, "Hanging index build during drain writes phase"),
    ];
    lines.into_iter().find(|(line, ..)| std::ptr::eq(*line, point)).map(|(_, id, message)| (id, message))
}

/// Waits at a point that is on and means this place. Whoever looks for it finds it in the log.
pub(crate) async fn wait_at(
    point: &'static Hang,
    place: Place<'_>,
    operation: &mut Operation,
    log: &Log,
) -> Result<()> {
    if !point.is_on() {
        return Ok(());
    }
    let Some(hit) = point.hit_if(|data| place.is_meant(point, data)) else { return Ok(()) };
    if let Some((id, message)) = line_of(point) {
        log.write(Severity::Info, Component::Index, id, message, place.attributes(point, &hit));
    }
    operation.locker.unlock_everything();
    operation.context.interruptible(point.until_off()).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn i1_the_data_of_points_names_builds_and_iterations() {
        let build_uuid = Uuid::from_bytes([7; 16]);
        let other = Uuid::from_bytes([8; 16]);
        let place = Place { build_uuid, indexes: &[], iteration: 3, step: 2, document: None };
        let named = |uuid: Uuid| doc! { "buildUUIDs": [(uuid.to_string())] };
        assert!(place.is_meant(&BEFORE_BUILDING, &Doc::new()));
        assert!(place.is_meant(&BEFORE_BUILDING, &named(build_uuid)));
        assert!(!place.is_meant(&BEFORE_BUILDING, &named(other)));
        let bytes = Value::Binary { subtype: 4, bytes: build_uuid.as_bytes() };
        assert!(place.is_meant(&BEFORE_BUILDING, &doc! { "buildUUIDs": [bytes] }));
        for (iteration, is_there) in [(2, false), (3, true), (4, true), (5, false)] {
            let data = doc! { "iteration": iteration };
            assert_eq!(place.is_meant(&DURING_DRAIN, &data), is_there, "{iteration}");
            // Nothing is counted there.
            assert!(place.is_meant(&BEFORE_MAJORITY, &data));
        }
    }
}
