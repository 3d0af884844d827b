//! `grantRolesToUser` and `revokeRolesFromUser`.

use super::target;
use crate::security::storage::not_found;
use crate::security::writing::{CHANGE, Change, add_roles, roles_in_question};
use crate::{Access, CommandRow, Invocation, access, run_boxed};
use pando_base::Result;

pub(in crate::security) const GRANT: CommandRow = CommandRow {
    name: "grantRolesToUser",
    help: "Grants roles to a user.",
    run: |invocation, _| run_boxed(run(invocation, true)),
    privileges: Access::Checked(access::may_grant_roles),
    ..CHANGE
};

pub(in crate::security) const REVOKE: CommandRow = CommandRow {
    name: "revokeRolesFromUser",
    help: "Revokes roles from a user.",
    run: |invocation, _| run_boxed(run(invocation, false)),
    privileges: Access::Checked(access::may_revoke_roles),
    ..CHANGE
};

async fn run(invocation: &Invocation, is_grant: bool) -> Result<()> {
    let roles = roles_in_question(invocation)?;
    let name = target(invocation)?;
    let mut change = Change::begin(invocation).await?;
    let mut user = change.user(&name).await?.ok_or_else(|| not_found(&name))?;
    change.known_roles(&roles).await?;
    match is_grant {
        true => add_roles(&mut user.roles, roles),
        false => user.roles.retain(|role| !roles.contains(role)),
    }
    change.save_user(&user).await
}
