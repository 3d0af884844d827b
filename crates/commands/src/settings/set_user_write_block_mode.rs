//! `setUserWriteBlockMode`: clients do not write to databases of their own any more, until they may again. It is kept in the
//! deployment's settings, so that it holds after a restart and on whoever becomes primary.

use super::Kept;
use super::get_default_rw_concern::check_in_set;
use crate::{Access, Action, Class, CommandRow, Invocation, SecondaryOk, run_boxed};
use pando_base::{ErrorCode, Namespace, Result, ensure};
use pando_doc::{DocBuilder, doc};
use pando_security::Target;

pub(super) const ROW: CommandRow = CommandRow {
    name: "setUserWriteBlockMode",
    help: "Set whether user write blocking is enabled.",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Write,
    is_admin_only: true,
    secondary_ok: SecondaryOk::Never,
    takes_write_concern: true,
    privileges: Access::Cluster(&[Action::SetUserWriteBlockMode]),
    ..CommandRow::DEFAULT
};

/// The `_id` of the document that blocks the writes to all namespaces.
pub(super) const EVERYWHERE: &str = "";

crate::arguments! {
    struct Arguments<'a> of "setUserWriteBlockMode" {
        is_blocking: bool = "global",
    }
}

async fn run(invocation: &Invocation, _reply: &mut DocBuilder) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let data = invocation.data()?;
    check_in_set(invocation, data)?;
    let _alone = invocation.context.interruptible(data.settings.changing.lock()).await?;
    let mut operation = invocation.operation()?;
    let namespace = Kept::WriteBlocks.namespace();
    if arguments.is_blocking {
        let block = doc! { "_id": EVERYWHERE, "blockNewUserShardedDDL": true, "blockUserWrites": true };
        crate::stored::save(data, &mut operation, namespace, &block).await?;
    } else {
        crate::stored::delete(data, &mut operation, namespace, doc! { "_id": EVERYWHERE }).await?;
    }
    super::wait_for_majority(invocation, data).await
}

/// Refuses what a client would change while that is blocked. The server's own databases stay open, and those who may pass do.
pub fn check_user_write(invocation: &Invocation, namespace: &Namespace) -> Result<()> {
    let is_blocked = invocation.node.data.as_ref().is_some_and(|data| data.settings.are_user_writes_blocked());
    if !is_blocked {
        return Ok(());
    }
    let may_pass =
        invocation.node.security.is_enabled && invocation.may(Target::Cluster, Action::BypassWriteBlockingMode);
    ensure!(namespace.is_internal() || may_pass, ErrorCode::UserWritesBlocked, "User writes blocked");
    Ok(())
}
