//! `_getUserCacheGeneration`: whether the users that a router knows are still what the config servers have.
//!
//! Only config servers answer; there are none yet, so that every node refuses, as a member of a plain set does.

use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::{ErrorCode, Result, bail};

pub(super) const ROW: CommandRow = CommandRow {
    name: "_getUserCacheGeneration",
    help: "Internal command. Gets the current cache generation of the user data.",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::Internal]),
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// Nothing.
    struct Arguments<'a> of "_getUserCacheGeneration" {}
}

fn run(invocation: &Invocation) -> Result<()> {
    Arguments::parse(&invocation.request)?;
    bail!(ErrorCode::IllegalOperation, "_getUserCacheGeneration can only be run on config servers");
}
