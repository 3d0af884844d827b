//! `invalidateUserCache`: all users are read again.

use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::Result;

pub(super) const ROW: CommandRow = CommandRow {
    name: "invalidateUserCache",
    help: "Invalidates the cache of user information",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::InvalidateUserCache]),
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// Nothing.
    struct Arguments<'a> of "invalidateUserCache" {}
}

fn run(invocation: &Invocation) -> Result<()> {
    Arguments::parse(&invocation.request)?;
    invocation.node.security.cache.invalidate();
    Ok(())
}
