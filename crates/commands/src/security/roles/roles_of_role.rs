//! `grantRolesToRole` and `revokeRolesFromRole`.

use super::{check_grant, target};
use crate::security::writing::{CHANGE, Change, add_roles, check_not_built_in, role_not_found, roles_in_question};
use crate::{Access, CommandRow, Invocation, access, run_boxed};
use pando_base::Result;

pub(in crate::security) const GRANT: CommandRow = CommandRow {
    name: "grantRolesToRole",
    help: "Grants roles to another role.",
    run: |invocation, _| run_boxed(run(invocation, true)),
    privileges: Access::Checked(access::may_grant_roles),
    ..CHANGE
};

pub(in crate::security) const REVOKE: CommandRow = CommandRow {
    name: "revokeRolesFromRole",
    help: "Revokes roles from another role.",
    run: |invocation, _| run_boxed(run(invocation, false)),
    privileges: Access::Checked(access::may_revoke_roles),
    ..CHANGE
};

async fn run(invocation: &Invocation, is_grant: bool) -> Result<()> {
    let roles = roles_in_question(invocation)?;
    let name = target(invocation)?;
    check_not_built_in(&name)?;
    let mut change = Change::begin(invocation).await?;
    let mut role = change.role(&name).await?.ok_or_else(|| role_not_found(&name))?;
    match is_grant {
        true => {
            check_grant(&mut change, &name, &roles).await?;
            add_roles(&mut role.roles, roles);
        }
        false => {
            change.known_roles(&roles).await?;
            role.roles.retain(|other| !roles.contains(other));
        }
    }
    change.save_role(&role).await
}
