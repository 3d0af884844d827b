//! `connectionStatus`: who the client is taken for.

use crate::arguments::SafeBool;
use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::DocBuilder;
use pando_security::roles::append_roles;

pub(super) const ROW: CommandRow = CommandRow {
    name: "connectionStatus",
    help: "Returns connection-specific information such as logged-in users and their roles",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_allowed_before_authentication: true,
    privileges: Access::Nothing,
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
    let identity = invocation.connection.identity();
    let user = identity.as_ref().map(|identity| &identity.user);
    reply.document("authInfo", |info| {
        info.array("authenticatedUsers", |array| {
            user.iter().for_each(|user| array.document(|document| user.name().append_to(document)));
        });
        info.array("authenticatedUserRoles", |array| {
            user.iter().for_each(|user| append_roles(array, &user.resolved.roles));
        });
        if arguments.show_privileges.0 {
            info.array("authenticatedUserPrivileges", |array| {
                user.iter().for_each(|user| user.privileges().append_to(array));
            });
        }
    });
    Ok(())
}
