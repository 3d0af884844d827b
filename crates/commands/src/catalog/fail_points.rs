//! Places where tests hold commands that change the catalog, or have them fail, by MongoDB's names.

use pando_base::{AnyFailPoint, FailPoint, Namespace, OperationContext, Result};
use pando_doc::DocRef;

/// A point whose data may name a collection, and then means no other.
pub(crate) type OfNamespace = FailPoint<Option<String>>;

pub(crate) const fn of_namespace(name: &'static str) -> OfNamespace {
    FailPoint::with_data(name, |bytes| {
        let data = if bytes.is_empty() { DocRef::EMPTY } else { DocRef::parse(bytes)? };
        let named = data.get("nss").or_else(|| data.get("collectionNS")).or_else(|| data.get("namespace"));
        Ok(named.and_then(|name| name.as_str()).map(str::to_owned))
    })
}

/// `drop` has its locks.
pub(crate) static DURING_DROP: OfNamespace = of_namespace("hangDuringDropCollection");
/// `dropDatabase` has ended all index builds, and has no lock.
pub(crate) static AFTER_BUILDS_OF_DATABASE: FailPoint = FailPoint::new("dropDatabaseHangAfterWaitingForIndexBuilds");
/// `dropDatabase` meets another writer.
pub(crate) static CONFLICT_OF_DROP_DATABASE: FailPoint =
    FailPoint::new("throwWriteConflictExceptionDuringDropDatabase");
/// `dropIndexes` has ended the builds that stood in its way, and has no lock.
pub(crate) static AFTER_ABORTING_INDEXES: FailPoint = FailPoint::new("hangAfterAbortingIndexes");
/// `collMod` has looked for duplicates in an index that is to be unique, and has no lock.
pub(crate) static AFTER_UNIQUE_CHECK: OfNamespace = of_namespace("hangAfterCollModIndexUniqueReleaseIXLock");
/// `collMod` has its locks.
pub(crate) static AFTER_LOCKS_OF_CHANGE: OfNamespace = of_namespace("hangAfterDatabaseLock");
/// `reIndex` ends the process when the indexes are gone.
pub(crate) static RE_INDEX_CRASH: FailPoint = FailPoint::new("reIndexCrashAfterDrop");
/// `collMod` takes validators that are none.
pub(crate) static MALFORMED_VALIDATORS: FailPoint = FailPoint::new("allowSettingMalformedCollectionValidators");
/// `createIndexes` has made an index by which documents expire.
pub(crate) static TTL_REGISTERED: FailPoint = FailPoint::new("hangTTLCollectionCacheAfterRegisteringInfo");
/// `validate` has gone through the documents, and has its locks.
pub(crate) static DURING_VALIDATION: FailPoint = FailPoint::new("pauseCollectionValidationWithLock");

pub(crate) static ALL: &[&dyn AnyFailPoint] = &[
    &DURING_DROP,
    &AFTER_BUILDS_OF_DATABASE,
    &CONFLICT_OF_DROP_DATABASE,
    &AFTER_ABORTING_INDEXES,
    &AFTER_UNIQUE_CHECK,
    &AFTER_LOCKS_OF_CHANGE,
    &RE_INDEX_CRASH,
    &MALFORMED_VALIDATORS,
    &TTL_REGISTERED,
    &DURING_VALIDATION,
];

/// Rests at a point that is on and means this collection.
pub(crate) async fn rest_at(point: &OfNamespace, context: &OperationContext, namespace: &Namespace) -> Result<()> {
    point.rest_if(context, |named| named.as_deref().is_none_or(|named| named == namespace.as_str())).await
}
