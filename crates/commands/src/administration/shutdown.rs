//! `shutdown`: ends the process in good order. There is no reply: the connection closes.

use crate::arguments::SafeLong;
use crate::{Access, Action, CommandRow, Invocation, NextInvocation, run_boxed};
use pando_base::{Component, Result, Severity, log};
use pando_env::Place;

pub(super) const ROW: CommandRow = CommandRow {
    name: "shutdown",
    help: "shutdown the database.  must be ran against admin db and either (1) ran from localhost or (2) authenticated.",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    is_admin_only: true,
    is_local_without_authentication: true,
    privileges: Access::Cluster(&[Action::Shutdown]),
    place: Place::Control,
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// What shutdown takes.
    struct Arguments<'a> of "shutdown" {
        /// Even if no other member can take over.
        force: bool = "force" or false,
        /// How long others have to catch up.
        timeout_seconds: SafeLong = "timeoutSecs" or SafeLong(15),
    }
}

fn run(invocation: &Invocation) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let timeout_seconds = u64::try_from(arguments.timeout_seconds.0).unwrap_or(0);
    log!(
        invocation.node.log,
        Severity::Info,
        Component::Command,
        4695400,
        "Terminating via shutdown command",
        "force" = arguments.force,
        "timeoutSecs" = timeout_seconds
    );
    invocation.set_next(NextInvocation::Close);
    invocation.node.control.shut_down(timeout_seconds);
    Ok(())
}
