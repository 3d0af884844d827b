//! `connectionStatus`: who the client is taken for.

use crate::arguments::SafeBool;
use crate::{CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::DocBuilder;

pub(super) const ROW: CommandRow = CommandRow {
    name: "connectionStatus",
    help: "Returns connection-specific information such as logged-in users and their roles",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_allowed_before_authentication: true,
    is_in_api_version_1: true,
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// What connectionStatus takes.
    struct Arguments<'a> of "connectionStatus" {
        /// With what the users may do.
        show_privileges: SafeBool = "showPrivileges" or SafeBool(false),
    }
}

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    reply.document("authInfo", |info| {
        info.array("authenticatedUsers", |_| {});
        info.array("authenticatedUserRoles", |_| {});
        if arguments.show_privileges.0 {
            info.array("authenticatedUserPrivileges", |_| {});
        }
    });
    Ok(())
}
