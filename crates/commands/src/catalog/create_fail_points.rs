//! Places where tests hold the creation of a collection, or have it fail, by MongoDB's names.

use crate::Data;
use pando_base::{Error, FailPoint, Namespace, Result};
use pando_doc::DocRef;
use pando_operation::Operation;
use pando_storage::StorageError;

/// In a transaction it meets somebody else's.
pub static THROW_IN_TRANSACTION: FailPoint = FailPoint::new("throwWCEDuringTxnCollCreate");

/// It has a place in the oplog, rests there, and fails. The data names the collection.
pub static HANG_AND_FAIL: FailPoint<String> =
    FailPoint::with_data("hangAndFailAfterCreateCollectionReservesOpTime", |bytes| {
        let data = if bytes.is_empty() { DocRef::EMPTY } else { DocRef::parse(bytes)? };
        Ok(data.get("nss").and_then(|name| name.as_str()).unwrap_or_default().to_owned())
    });

/// Does what the points say of a collection that is about to be made.
pub(crate) async fn pass(data: &Data, operation: &mut Operation, namespace: &Namespace) -> Result<()> {
    data.drops_pending.check(namespace)?;
    if operation.in_multi_document_transaction() && THROW_IN_TRANSACTION.should_fail() {
        return Err(StorageError::WriteConflict.into());
    }
    if !HANG_AND_FAIL.is_on() || HANG_AND_FAIL.hit_if(|name| name == namespace.as_str()).is_none() {
        return Ok(());
    }
    let mut beside = operation.beside();
    let mut unit = beside.unit_of_work();
    data.oplog_writer().reserve(&mut unit, 1)?;
    operation.context.interruptible(HANG_AND_FAIL.until_off()).await?;
    Err(Error::location(51267, "hangAndFailAfterCreateCollectionReservesOpTime fail point enabled"))
}
