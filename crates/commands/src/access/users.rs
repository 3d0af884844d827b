//! The checks of what changes and shows users and roles.
//!
//! Granting and revoking a role is a right on the role's database; a privilege counts as being of its resource's database,
//! or of "admin" if it reaches beyond one. What cannot be read is the command's to refuse.

use super::AccessRequest;
use pando_base::{Namespace, Result};
use pando_doc::Value;
use pando_security::{Action, ActionSet, Privilege, RoleName, Target, UserName};

impl AccessRequest<'_> {
    fn may_on_database(&self, database: &str, action: Action) -> bool {
        self.may(Target::Database(database), action)
    }

    fn may_here(&self, action: Action) -> bool {
        self.may_on_database(self.database.as_str(), action)
    }

    fn roles(&self) -> Result<Vec<RoleName>> {
        let roles = self.body.get("roles").map(|roles| RoleName::read_all(roles, self.database.as_str()));
        Ok(roles.transpose()?.unwrap_or_default())
    }

    fn may_with_roles(&self, action: Action) -> Result<bool> {
        Ok(self.roles()?.iter().all(|role| self.may_on_database(&role.database, action)))
    }

    fn may_with_privileges(&self, action: Action) -> Result<bool> {
        let privileges = self.body.get("privileges").map(Privilege::read_all).transpose()?.unwrap_or_default();
        let may =
            |privilege: &Privilege| self.may_on_database(privilege.resource.database().unwrap_or("admin"), action);
        Ok(privileges.iter().all(may))
    }

    fn may_restrict(&self) -> bool {
        !self.body.contains("authenticationRestrictions") || self.may_here(Action::SetAuthenticationRestriction)
    }

    /// The user or role that the command's own field names.
    fn target_name(&self) -> &str {
        self.body.first().and_then(|first| first.value.as_str()).unwrap_or_default()
    }
}

pub(crate) fn may_create_user(request: &AccessRequest<'_>) -> Result<bool> {
    Ok(request.may_here(Action::CreateUser) && request.may_with_roles(Action::GrantRole)? && request.may_restrict())
}

/// A user may have the right to change their own password and data.
pub(crate) fn may_update_user(request: &AccessRequest<'_>) -> Result<bool> {
    let is_own = request.invocation.is_user(&UserName::new(request.target_name(), request.database.as_str()));
    let may_change = |any: Action, own: Action| request.may_here(any) || is_own && request.may_here(own);
    let changes_password = request.body.contains("pwd") || request.body.contains("mechanisms");
    if changes_password && !may_change(Action::ChangePassword, Action::ChangeOwnPassword) {
        return Ok(false);
    }
    if request.body.contains("customData") && !may_change(Action::ChangeCustomData, Action::ChangeOwnCustomData) {
        return Ok(false);
    }
    if request.body.contains("roles") {
        // Which roles are taken away by it is not known here.
        let may = request.may(Target::AnyNormal, Action::RevokeRole) && request.may_with_roles(Action::GrantRole)?;
        return Ok(may && request.may_restrict());
    }
    Ok(request.may_restrict())
}

pub(crate) fn may_grant_roles(request: &AccessRequest<'_>) -> Result<bool> {
    request.may_with_roles(Action::GrantRole)
}

pub(crate) fn may_revoke_roles(request: &AccessRequest<'_>) -> Result<bool> {
    request.may_with_roles(Action::RevokeRole)
}

pub(crate) fn may_grant_privileges(request: &AccessRequest<'_>) -> Result<bool> {
    request.may_with_privileges(Action::GrantRole)
}

pub(crate) fn may_revoke_privileges(request: &AccessRequest<'_>) -> Result<bool> {
    request.may_with_privileges(Action::RevokeRole)
}

pub(crate) fn may_create_role(request: &AccessRequest<'_>) -> Result<bool> {
    Ok(request.may_here(Action::CreateRole)
        && request.may_with_roles(Action::GrantRole)?
        && request.may_with_privileges(Action::GrantRole)?
        && request.may_restrict())
}

pub(crate) fn may_update_role(request: &AccessRequest<'_>) -> Result<bool> {
    Ok(request.may(Target::AnyNormal, Action::RevokeRole)
        && request.may_with_roles(Action::GrantRole)?
        && request.may_with_privileges(Action::GrantRole)?
        && request.may_restrict())
}

/// Everybody may look at themselves.
pub(crate) fn may_show_users(request: &AccessRequest<'_>) -> Result<bool> {
    let database = request.database.as_str();
    let shown = request.body.first().map_or(Value::Null, |first| first.value);
    let may_see = |value: Value<'_>| {
        let name = UserName::read(value, database)?;
        let is_own = request.invocation.is_user(&name);
        Ok(is_own || request.may_on_database(&name.database, Action::ViewUser))
    };
    match shown {
        Value::String(_) => may_see(shown),
        Value::Document(document) if document.contains("forAllDBs") => {
            Ok(request.may(Target::Cluster, Action::ViewUser))
        }
        Value::Document(_) => may_see(shown),
        Value::Array(names) => names.values().map(may_see).try_fold(true, |all, one| Ok(all && one?)),
        _ => Ok(request.may_here(Action::ViewUser)),
    }
}

/// Everybody may look at the roles they have.
pub(crate) fn may_show_roles(request: &AccessRequest<'_>) -> Result<bool> {
    let database = request.database.as_str();
    let shown = request.body.first().map_or(Value::Null, |first| first.value);
    let identity = request.invocation.connection.identity();
    let may_see = |value: Value<'_>| {
        let name = RoleName::read(value, database)?;
        let is_own = identity.as_ref().is_some_and(|identity| identity.user.resolved.roles.contains(&name));
        Ok(is_own || request.may_on_database(&name.database, Action::ViewRole))
    };
    match shown {
        Value::String(_) | Value::Document(_) => may_see(shown),
        Value::Array(names) => names.values().map(may_see).try_fold(true, |all, one| Ok(all && one?)),
        _ => Ok(request.may_here(Action::ViewRole)),
    }
}

/// Users and roles of all databases, and what they are read from.
pub(crate) fn may_merge_users_and_roles(request: &AccessRequest<'_>) -> Result<bool> {
    let mut actions = vec![Action::CreateUser, Action::CreateRole, Action::GrantRole, Action::RevokeRole];
    if request.is_on("drop") {
        actions.extend([Action::DropUser, Action::DropRole]);
    }
    let may_read = |field: &str| -> Result<bool> {
        match request.body.get(field).and_then(|name| name.as_str()) {
            None | Some("") => Ok(true),
            Some(name) => Ok(request.may(Target::of(&Namespace::parse(name)?), Action::Find)),
        }
    };
    Ok(request.may(Target::AnyNormal, ActionSet::of(&actions))
        && may_read("tempUsersCollection")?
        && may_read("tempRolesCollection")?)
}
