//! `updateRole`.

use super::{check_grant, target};
use crate::security::writing::{CHANGE, Change, check_not_built_in, each_once, restrictions, role_not_found};
use crate::{Access, CommandRow, Invocation, access, run_boxed};
use pando_base::{ErrorCode, Result, ensure};
use pando_doc::Value;
use pando_security::roles::check_privileges_of_role;
use pando_security::{Privilege, RoleName};

pub(in crate::security) const ROW: CommandRow = CommandRow {
    name: "updateRole",
    help: "Used to update a role",
    run: |invocation, _| run_boxed(run(invocation)),
    privileges: Access::Checked(access::may_update_role),
    ..CHANGE
};

crate::arguments! {
    /// What updateRole takes.
    struct Arguments<'a> of "updateRole" {
        /// What it allows from now on.
        privileges: Option<Value<'a>> = "privileges",
        /// The roles that are part of it from now on.
        roles: Option<Value<'a>> = "roles",
        /// From where its users may come.
        restrictions: Option<Value<'a>> = "authenticationRestrictions",
    }
}

async fn run(invocation: &Invocation) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let name = target(invocation)?;
    let changes_nothing =
        arguments.privileges.is_none() && arguments.roles.is_none() && arguments.restrictions.is_none();
    ensure!(!changes_nothing, ErrorCode::BadValue, "Must specify at least one field to update in updateRole");
    check_not_built_in(&name)?;
    let privileges = arguments.privileges.map(Privilege::read_all).transpose()?;
    let roles = arguments.roles.map(|roles| RoleName::read_all(roles, &name.database)).transpose()?.map(each_once);
    let mut change = Change::begin(invocation).await?;
    let mut role = change.role(&name).await?.ok_or_else(|| role_not_found(&name))?;
    if let Some(roles) = roles {
        check_grant(&mut change, &name, &roles).await?;
        role.roles = roles;
    }
    if let Some(privileges) = privileges {
        check_privileges_of_role(&name, &privileges)?;
        role.privileges = privileges.into_iter().collect();
    }
    if arguments.restrictions.is_some() {
        role.restrictions = restrictions(arguments.restrictions)?;
    }
    change.save_role(&role).await
}
