//! The commands for roles.

mod create_role;
mod drop_role;
mod privileges_of_role;
mod roles_info;
mod roles_of_role;
mod update_role;

pub(super) use create_role::ROW as CREATE_ROLE;
pub(super) use drop_role::{ALL as DROP_ALL_ROLES_FROM_DATABASE, ROW as DROP_ROLE};
pub(super) use privileges_of_role::{GRANT as GRANT_PRIVILEGES_TO_ROLE, REVOKE as REVOKE_PRIVILEGES_FROM_ROLE};
pub(super) use roles_info::ROW as ROLES_INFO;
pub(super) use roles_of_role::{GRANT as GRANT_ROLES_TO_ROLE, REVOKE as REVOKE_ROLES_FROM_ROLE};
pub(super) use update_role::ROW as UPDATE_ROLE;

use super::writing::Change;
use crate::Invocation;
use pando_base::{Error, Result};
use pando_security::RoleName;
use pando_security::roles::{KnownRoles, check_grant_to_role};

/// The role that the command's own field names.
fn target(invocation: &Invocation) -> Result<RoleName> {
    match invocation.target_text()? {
        "" => Err(Error::bad_value("Role name must be non-empty")),
        name => Ok(RoleName::new(name, invocation.database.as_str())),
    }
}

/// Can these roles become part of a role?
async fn check_grant(change: &mut Change<'_>, role: &RoleName, granted: &[RoleName]) -> Result<()> {
    let known: KnownRoles = change.known_roles(granted).await?;
    check_grant_to_role(role, granted, &known)
}
