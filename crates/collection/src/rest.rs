//! `setYieldAllLocksHang`: a test holds whoever reads or writes a collection where it has given up its locks.

use pando_base::{FailPoint, Result};
use pando_doc::DocRef;
use pando_operation::Operation;

/// The data may name a namespace, and then means no other.
pub(crate) static YIELD_HANG: FailPoint<Option<String>> = FailPoint::with_data("setYieldAllLocksHang", |bytes| {
    let data = if bytes.is_empty() { DocRef::EMPTY } else { DocRef::parse(bytes)? };
    Ok(data.get("namespace").and_then(|name| name.as_str()).filter(|name| !name.is_empty()).map(str::to_owned))
});

/// Rests if a test wants the operation to, which has no locks.
#[inline]
pub async fn rest_while_yielded(operation: &mut Operation) -> Result<()> {
    if !YIELD_HANG.is_on() {
        return Ok(());
    }
    let namespace = operation.context.description().namespace;
    let is_own = |name: &str| namespace.as_ref().is_some_and(|own| own.as_str() == name);
    YIELD_HANG.rest_if(&operation.context, |named| named.as_deref().is_none_or(is_own)).await
}
