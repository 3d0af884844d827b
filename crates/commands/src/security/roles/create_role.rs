//! `createRole`.

use super::{check_grant, target};
use crate::security::writing::{CHANGE, Change, each_once, restrictions};
use crate::{Access, CommandRow, Invocation, access, run_boxed};
use pando_base::{ErrorCode, Result, ensure};
use pando_doc::Value;
use pando_security::roles::{RoleDocument, check_privileges_of_role, is_built_in};
use pando_security::{EXTERNAL_DATABASE, Privilege, RoleName};

pub(in crate::security) const ROW: CommandRow = CommandRow {
    name: "createRole",
    help: "Adds a role to the system",
    run: |invocation, _| run_boxed(run(invocation)),
    privileges: Access::Checked(access::may_create_role),
    ..CHANGE
};

crate::arguments! {
    /// What createRole takes.
    struct Arguments<'a> of "createRole" {
        /// What it allows.
        privileges: Value<'a> = "privileges",
        /// The roles that are part of it.
        roles: Value<'a> = "roles",
        /// From where its users may come.
        restrictions: Option<Value<'a>> = "authenticationRestrictions",
    }
}

async fn run(invocation: &Invocation) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let name = target(invocation)?;
    ensure!(name.database != "local", ErrorCode::BadValue, "Cannot create roles in the local database");
    ensure!(name.database != EXTERNAL_DATABASE, ErrorCode::BadValue, "Cannot create roles in the $external database");
    ensure!(!is_built_in(&name), ErrorCode::BadValue, "Cannot create roles with the same name as a built-in role");
    let privileges = Privilege::read_all(arguments.privileges)?;
    let roles = each_once(RoleName::read_all(arguments.roles, &name.database)?);
    let mut change = Change::begin(invocation).await?;
    check_grant(&mut change, &name, &roles).await?;
    check_privileges_of_role(&name, &privileges)?;
    let is_new = change.role(&name).await?.is_none();
    ensure!(is_new, ErrorCode::location(51002), "Role \"{name}\" already exists");
    let role = RoleDocument {
        name,
        privileges: privileges.into_iter().collect(),
        roles,
        restrictions: restrictions(arguments.restrictions)?,
    };
    change.save_role(&role).await
}
