//! `setYieldAllLocksHang` and `setYieldAllLocksWait`: a test holds whoever reads or writes a collection where it has given up its locks, until
//! it says otherwise or for a while.

use pando_base::{FailPoint, Result};
use pando_doc::DocRef;
use pando_operation::Operation;
use std::time::Duration;

/// The data may name a namespace, and then means no other.
pub(crate) static YIELD_HANG: FailPoint<Option<String>> =
    FailPoint::with_data("setYieldAllLocksHang", |bytes| Ok(named(parsed(bytes)?)));

/// How long to wait, and for whom.
pub(crate) static YIELD_WAIT: FailPoint<(Option<String>, Duration)> =
    FailPoint::with_data("setYieldAllLocksWait", |bytes| {
        let data = parsed(bytes)?;
        let millis = data.get("waitForMillis").and_then(|millis| millis.to_double()).unwrap_or(0.0);
        Ok((named(data), Duration::from_millis(millis as u64)))
    });

fn parsed(bytes: &[u8]) -> Result<DocRef<'_>> {
    if bytes.is_empty() { Ok(DocRef::EMPTY) } else { DocRef::parse(bytes) }
}

fn named(data: DocRef<'_>) -> Option<String> {
    data.get("namespace").and_then(|name| name.as_str()).filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Rests if a test wants the operation to, which has no locks.
#[inline]
pub async fn rest_while_yielded(operation: &mut Operation) -> Result<()> {
    match YIELD_HANG.is_on() || YIELD_WAIT.is_on() {
        true => rest(operation).await,
        false => Ok(()),
    }
}

#[cold]
async fn rest(operation: &mut Operation) -> Result<()> {
    let namespace = operation.context.description().namespace;
    let is_own = |name: &str| namespace.as_ref().is_some_and(|own| own.as_str() == name);
    if let Some(hit) = YIELD_WAIT.hit_if(|(named, _)| named.as_deref().is_none_or(is_own)) {
        let pause = operation.env.clock().sleep(hit.1);
        operation.context.interruptible(pause).await?;
    }
    YIELD_HANG.rest_if(&operation.context, |named| named.as_deref().is_none_or(is_own)).await
}
