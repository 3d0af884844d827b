//! `updateUser`.

use super::password::{Password, credentials, mechanisms_named};
use super::target;
use crate::arguments::SafeBool;
use crate::security::storage::not_found;
use crate::security::writing::{CHANGE, Change, restrictions};
use crate::{Access, CommandRow, Invocation, access, run_boxed};
use pando_base::{ErrorCode, Result, ensure};
use pando_doc::{DocRef, Value};
use pando_security::{EXTERNAL_DATABASE, RoleName, UserDocument};

pub(in crate::security) const ROW: CommandRow = CommandRow {
    name: "updateUser",
    help: "Used to update a user, for example to change its password",
    run: |invocation, _| run_boxed(run(invocation)),
    privileges: Access::Checked(access::may_update_user),
    secret_fields: &["pwd"],
    ..CHANGE
};

crate::arguments! {
    /// What updateUser takes.
    struct Arguments<'a> of "updateUser" {
        /// Another password.
        password: Option<&'a str> = "pwd",
        /// What the administrator notes.
        custom_data: Option<DocRef<'a>> = "customData",
        /// What the user may do from now on.
        roles: Option<Value<'a>> = "roles",
        /// The password is plain, and not a digest.
        digest: SafeBool = "digestPassword" or SafeBool(true),
        /// From where the user may come.
        restrictions: Option<Value<'a>> = "authenticationRestrictions",
        /// How the user may log in.
        mechanisms: Option<Vec<&'a str>> = "mechanisms",
    }
}

async fn run(invocation: &Invocation) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let name = target(invocation)?;
    let changes_nothing = arguments.password.is_none()
        && arguments.custom_data.is_none()
        && arguments.roles.is_none()
        && arguments.restrictions.is_none()
        && arguments.mechanisms.is_none();
    ensure!(!changes_nothing, ErrorCode::BadValue, "Must specify at least one field to update in updateUser");
    ensure!(
        arguments.password.is_none() || name.database != EXTERNAL_DATABASE,
        ErrorCode::BadValue,
        "Cannot set the password for users defined on the '$external' database"
    );
    let password = arguments.password.map(|password| Password {
        password,
        is_plain: arguments.digest.0,
        mechanisms: arguments.mechanisms.as_deref(),
    });
    let credentials = password.map(|password| credentials(invocation, &name, &password)).transpose()?;
    let roles = arguments.roles.map(|roles| RoleName::read_all(roles, &name.database)).transpose()?;
    let mut change = Change::begin(invocation).await?;
    let mut user = change.user(&name).await?.ok_or_else(|| not_found(&name))?;
    match (credentials, arguments.mechanisms.as_deref()) {
        (Some(credentials), _) => user.credentials = credentials,
        (None, Some(names)) => keep_mechanisms(invocation, &mut user, names)?,
        (None, None) => {}
    }
    if let Some(roles) = roles {
        change.known_roles(&roles).await?;
        user.roles = roles;
    }
    if let Some(data) = arguments.custom_data {
        user.custom_data = Some(data.to_doc());
    }
    if arguments.restrictions.is_some() {
        user.restrictions = restrictions(arguments.restrictions)?;
    }
    change.save_user(&user).await
}

/// Without the password, mechanisms can only be taken away.
fn keep_mechanisms(invocation: &Invocation, user: &mut UserDocument, names: &[&str]) -> Result<()> {
    let kept = mechanisms_named(&invocation.node, names)?;
    ensure!(
        kept.iter().all(|mechanism| user.credentials_for(*mechanism).is_some()),
        ErrorCode::BadValue,
        "mechanisms field must be a subset of previously set mechanisms"
    );
    user.credentials.retain(|credentials| kept.contains(&credentials.mechanism));
    Ok(())
}
