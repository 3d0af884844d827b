//! Places where tests hold inserts of measurements, or have them fail, by MongoDB's names.

use pando_base::{AnyFailPoint, Error, ErrorCode, FailPoint, Result};
use pando_doc::{DocRef, OwnedValue, Value, compare};
use std::cmp::Ordering;

/// Measurements of several sources are not written together.
pub(super) static FAIL_ATOMIC: FailPoint = FailPoint::new("failAtomicTimeseriesWrites");
/// Measurements of the source that the data names are not written by themselves.
static FAIL_SOURCE: FailPoint<Option<OwnedValue>> = FailPoint::with_data("failUnorderedTimeseriesInsert", |bytes| {
    let data = if bytes.is_empty() { DocRef::EMPTY } else { DocRef::parse(bytes)? };
    Ok(data.get("metadata").map(|metadata| metadata.to_owned()))
});
/// Which buckets take the measurements is known; nothing is written.
pub(super) static BEFORE_WRITE: FailPoint = FailPoint::new("hangTimeseriesInsertBeforeWrite");
/// The same, a little earlier: nothing is known of the buckets that others could not change.
pub(super) static BEFORE_COMMIT: FailPoint = FailPoint::new("hangTimeseriesInsertBeforeCommit");

/// A bucket that was compressed cannot be read again.
pub(super) static LOSE_COMPRESSED: FailPoint = FailPoint::new("simulateBsonColumnCompressionDataLoss");

/// All of them.
pub const FAIL_POINTS: &[&dyn AnyFailPoint] =
    &[&FAIL_ATOMIC, &FAIL_SOURCE, &BEFORE_WRITE, &BEFORE_COMMIT, &LOSE_COMPRESSED];

/// Fails if a test wants the source to.
pub(super) fn check_source(meta: Option<Value<'_>>) -> Result<()> {
    let is_meant = |named: &Option<OwnedValue>| match (named, meta) {
        (None, _) => true,
        (Some(named), Some(meta)) => compare(named.view(), meta) == Ordering::Equal,
        (Some(_), None) => false,
    };
    match FAIL_SOURCE.hit_if(is_meant) {
        Some(_) => Err(Error::new(
            ErrorCode::FailPointEnabled,
            "Failed unordered time-series insert due to failUnorderedTimeseriesInsert fail point",
        )),
        None => Ok(()),
    }
}
