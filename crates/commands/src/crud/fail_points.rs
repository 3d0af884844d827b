//! Places where tests hold batches of writes, or have them fail, by MongoDB's names. A place before a statement's lock is taken may be
//! meant for one collection; so may one with it.

use crate::catalog::fail_points::{OfNamespace, of_namespace};
use pando_base::{AnyFailPoint, Error, ErrorCode, Namespace, OperationContext, Result};

/// The places of one kind of write.
pub(super) struct WritePoints {
    before_lock: OfNamespace,
    with_lock: OfNamespace,
    fail_all: OfNamespace,
}

pub(super) static INSERT: WritePoints =
    WritePoints::new("hangDuringBatchInsert", "hangWithLockDuringBatchInsert", "failAllInserts");
pub(super) static UPDATE: WritePoints =
    WritePoints::new("hangDuringBatchUpdate", "hangWithLockDuringBatchUpdate", "failAllUpdates");
pub(super) static DELETE: WritePoints =
    WritePoints::new("hangDuringBatchRemove", "hangWithLockDuringBatchRemove", "failAllRemoves");
/// An update has been carried out, and has its lock.
static AFTER_UPDATE: OfNamespace = of_namespace("hangAfterBatchUpdate");

pub(crate) static ALL: &[&dyn AnyFailPoint] = &[
    &INSERT.before_lock,
    &INSERT.with_lock,
    &INSERT.fail_all,
    &UPDATE.before_lock,
    &UPDATE.with_lock,
    &UPDATE.fail_all,
    &DELETE.before_lock,
    &DELETE.with_lock,
    &DELETE.fail_all,
    &AFTER_UPDATE,
];

impl WritePoints {
    const fn new(before_lock: &'static str, with_lock: &'static str, fail_all: &'static str) -> WritePoints {
        WritePoints {
            before_lock: of_namespace(before_lock),
            with_lock: of_namespace(with_lock),
            fail_all: of_namespace(fail_all),
        }
    }

    /// Before a statement takes its lock.
    pub(super) async fn before_lock(&self, context: &OperationContext, namespace: &Namespace) -> Result<()> {
        if self.before_lock.is_on() {
            rest(&self.before_lock, context, namespace).await?;
        }
        let is_meant = |named: &Option<String>| named.as_deref().is_none_or(|named| named == namespace.as_str());
        match self.fail_all.hit_if(is_meant).is_some() {
            true => {
                let reason = format!("{} failpoint active!", self.fail_all.name());
                Err(Error::new(ErrorCode::InternalError, reason))
            }
            false => Ok(()),
        }
    }

    /// When it has it.
    pub(super) async fn with_lock(&self, context: &OperationContext, namespace: &Namespace) -> Result<()> {
        match self.with_lock.is_on() {
            true => rest(&self.with_lock, context, namespace).await,
            false => Ok(()),
        }
    }
}

/// When an update is done.
pub(super) async fn after_update(context: &OperationContext, namespace: &Namespace) -> Result<()> {
    match AFTER_UPDATE.is_on() {
        true => rest(&AFTER_UPDATE, context, namespace).await,
        false => Ok(()),
    }
}

/// Boxed, since the ordinary way does not come here.
async fn rest(point: &OfNamespace, context: &OperationContext, namespace: &Namespace) -> Result<()> {
    Box::pin(crate::catalog::fail_points::rest_at(point, context, namespace)).await
}
