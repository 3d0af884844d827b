//! Places where tests have the catalog take what it would refuse, by MongoDB's names.

use pando_base::{AnyFailPoint, FailPoint};
use pando_doc::DocRef;

/// Specifications of indexes may have fields that no index has.
pub(crate) static SKIP_FIELD_NAMES: FailPoint = FailPoint::new("skipIndexCreateFieldNameValidation");
/// Capped collections may have indexes by which documents expire.
pub(crate) static EXPIRE_IN_CAPPED: FailPoint = FailPoint::new("ignoreTTLIndexCappedCollectionCheck");
/// New collections have no index on `_id`.
pub(crate) static SKIP_ID_INDEX: FailPoint = FailPoint::new("skipIdIndex");

/// Changes have committed and are not in the catalog's newest version yet; the data may name the collection that is meant.
pub(crate) static BEFORE_PUBLISHING: FailPoint<Option<String>> =
    FailPoint::with_data("hangBeforePublishingCatalogUpdates", |bytes| {
        let data = if bytes.is_empty() { DocRef::EMPTY } else { DocRef::parse(bytes)? };
        Ok(data.get("collectionNS").and_then(|name| name.as_str()).map(str::to_owned))
    });

/// All of them.
pub const FAIL_POINTS: &[&dyn AnyFailPoint] =
    &[&SKIP_FIELD_NAMES, &EXPIRE_IN_CAPPED, &SKIP_ID_INDEX, &BEFORE_PUBLISHING];
