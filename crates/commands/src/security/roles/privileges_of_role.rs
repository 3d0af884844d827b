//! `grantPrivilegesToRole` and `revokePrivilegesFromRole`.

use super::target;
use crate::security::writing::{CHANGE, Change, check_not_built_in, role_not_found};
use crate::{Access, CommandRow, Invocation, access, run_boxed};
use pando_base::{ErrorCode, Result, ensure};
use pando_doc::Value;
use pando_security::Privilege;
use pando_security::roles::check_privileges_of_role;

pub(in crate::security) const GRANT: CommandRow = CommandRow {
    name: "grantPrivilegesToRole",
    help: "Grants privileges to a role",
    run: |invocation, _| run_boxed(run(invocation, true)),
    privileges: Access::Checked(access::may_grant_privileges),
    ..CHANGE
};

pub(in crate::security) const REVOKE: CommandRow = CommandRow {
    name: "revokePrivilegesFromRole",
    help: "Revokes privileges from a role",
    run: |invocation, _| run_boxed(run(invocation, false)),
    privileges: Access::Checked(access::may_revoke_privileges),
    ..CHANGE
};

crate::arguments! {
    /// What both take.
    struct Arguments<'a> of "grantPrivilegesToRole" {
        /// The privileges.
        privileges: Value<'a> = "privileges",
    }
}

async fn run(invocation: &Invocation, is_grant: bool) -> Result<()> {
    let arguments = Arguments::parse_as(&invocation.request, invocation.row.name)?;
    let name = target(invocation)?;
    let privileges = Privilege::read_all(arguments.privileges)?;
    let command = invocation.row.name;
    ensure!(!privileges.is_empty(), ErrorCode::BadValue, "{command} command requires a non-empty \"privileges\" array");
    check_not_built_in(&name)?;
    let mut change = Change::begin(invocation).await?;
    if is_grant {
        check_privileges_of_role(&name, &privileges)?;
    }
    let mut role = change.role(&name).await?.ok_or_else(|| role_not_found(&name))?;
    for Privilege { resource, actions } in privileges {
        match is_grant {
            true => role.privileges.grant(&resource, actions),
            false => role.privileges.revoke(&resource, actions),
        }
    }
    change.save_role(&role).await
}
