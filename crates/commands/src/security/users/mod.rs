//! The commands for users.

mod create_user;
mod drop_user;
mod password;
mod roles_of_user;
mod update_user;
mod users_info;

pub(super) use create_user::ROW as CREATE_USER;
pub(super) use drop_user::{ALL as DROP_ALL_USERS_FROM_DATABASE, ROW as DROP_USER};
pub(super) use roles_of_user::{GRANT as GRANT_ROLES_TO_USER, REVOKE as REVOKE_ROLES_FROM_USER};
pub(super) use update_user::ROW as UPDATE_USER;
pub(super) use users_info::ROW as USERS_INFO;

use crate::Invocation;
use pando_base::{Error, Result};
use pando_security::UserName;

/// The user that the command's own field names.
fn target(invocation: &Invocation) -> Result<UserName> {
    let name = invocation.target_text()?;
    match name {
        "" => Err(Error::bad_value("User name must be non-empty")),
        name if name.contains('\0') => Err(Error::bad_value("Username cannot contain NULL characters")),
        name => Ok(UserName::new(name, invocation.database.as_str())),
    }
}
