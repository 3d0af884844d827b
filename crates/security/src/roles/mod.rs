//! Roles: the built-in ones ([`built_in_privileges`]), those that people define ([`RoleDocument`]), and what a set of roles
//! comes to ([`resolve`]).
//!
//! A role of people's is a document of `admin.system.roles`: its own privileges and the roles that are part of it. Cycles
//! are refused when they are made; resolving survives them all the same, since documents can be written by hand.

mod built_in;

pub use built_in::{built_in_privileges, built_in_roles_of, is_built_in};

use crate::names::{RoleName, refuse_repeated};
use crate::privilege::{Privilege, Privileges};
use crate::restrictions::Restrictions;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{ArrayBuilder, Doc, DocBuilder, DocRef, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A role that somebody defined.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleDocument {
    /// The role.
    pub name: RoleName,
    /// What it allows by itself.
    pub privileges: Privileges,
    /// The roles that are part of it.
    pub roles: Vec<RoleName>,
    /// From where its users may come.
    pub restrictions: Restrictions,
}

impl RoleDocument {
    /// Reads a document of `admin.system.roles`.
    pub fn read(document: DocRef<'_>) -> Result<RoleDocument> {
        refuse_repeated(document, "role")?;
        let text = |field: &str| {
            let wrong = || {
                let reason = format!("Role document needs '{field}' field to be a string");
                Error::new(ErrorCode::UnsupportedFormat, reason)
            };
            document.get(field).and_then(|value| value.as_str()).map(str::to_owned).ok_or_else(wrong)
        };
        let name = RoleName { role: text("role")?, database: text("db")? };
        let privileges = document.get("privileges").map(Privilege::read_all).transpose()?.unwrap_or_default();
        let roles = document.get("roles").map(|roles| RoleName::read_all(roles, &name.database)).transpose()?;
        let restrictions = document.get("authenticationRestrictions").map(Restrictions::read).transpose()?;
        Ok(RoleDocument {
            name,
            privileges: privileges.into_iter().collect(),
            roles: roles.unwrap_or_default(),
            restrictions: restrictions.unwrap_or_default(),
        })
    }

    /// Its document.
    pub fn to_doc(&self) -> Doc {
        let mut document = DocBuilder::new();
        document.append("_id", self.name.id());
        self.name.append_to(&mut document);
        document.array("privileges", |array| self.privileges.append_to(array));
        document.array("roles", |array| append_roles(array, &self.roles));
        if !self.restrictions.is_empty() {
            document.append("authenticationRestrictions", self.restrictions.document());
        }
        document.finish()
    }
}

/// Writes roles as `{role, db}`.
pub fn append_roles<'a>(array: &mut ArrayBuilder, roles: impl IntoIterator<Item = &'a RoleName>) {
    roles.into_iter().for_each(|role| array.document(|document| role.append_to(document)));
}

/// The roles that people defined, as far as they are known.
pub type KnownRoles = BTreeMap<RoleName, RoleDocument>;

/// What a set of roles comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolved {
    /// All roles, those that are part of others included.
    pub roles: BTreeSet<RoleName>,
    /// The roles that are part of others.
    pub inherited: BTreeSet<RoleName>,
    /// All they allow.
    pub privileges: Privileges,
    /// From where users with these roles may come: each must be met.
    pub restrictions: Vec<Restrictions>,
    /// The roles that are named but not there.
    pub missing: BTreeSet<RoleName>,
}

/// Adds up roles. What [`Resolved::missing`] then names may only not be loaded yet.
pub fn resolve<'a>(roles: impl IntoIterator<Item = &'a RoleName>, known: &KnownRoles) -> Resolved {
    let mut resolved = Resolved::default();
    let mut open: Vec<RoleName> = roles.into_iter().cloned().collect();
    while let Some(role) = open.pop() {
        if !resolved.roles.insert(role.clone()) {
            continue;
        }
        if let Some(privileges) = built_in_privileges(&role) {
            resolved.privileges.grant_all(&privileges);
        } else if let Some(document) = known.get(&role) {
            resolved.privileges.grant_all(&document.privileges);
            resolved.inherited.extend(document.roles.iter().cloned());
            open.extend(document.roles.iter().cloned());
            if !document.restrictions.is_empty() {
                resolved.restrictions.push(document.restrictions.clone());
            }
        } else {
            resolved.roles.remove(&role);
            resolved.missing.insert(role);
        }
    }
    resolved
}

/// May these roles become part of a role? All must be there, none may contain it, and it may not reach beyond its database.
pub fn check_grant_to_role(role: &RoleName, granted: &[RoleName], known: &KnownRoles) -> Result<()> {
    for other in granted {
        if other == role {
            return Err(Error::new(ErrorCode::InvalidRoleModification, format!("Cannot grant role {role} to itself.")));
        }
        if role.database != "admin" && other.database != role.database {
            return Err(Error::new(
                ErrorCode::InvalidRoleModification,
                format!("Roles on the '{}' database cannot be granted roles from other databases", role.database),
            ));
        }
    }
    let resolved = resolve(granted, known);
    check_found(&resolved)?;
    if resolved.roles.contains(role) {
        return Err(Error::new(
            ErrorCode::InvalidRoleModification,
            format!("Granting roles to {role} would introduce a cycle in the role graph"),
        ));
    }
    Ok(())
}

/// Are all roles there?
pub fn check_found(resolved: &Resolved) -> Result<()> {
    match resolved.missing.first() {
        None => Ok(()),
        Some(role) => Err(Error::new(ErrorCode::RoleNotFound, format!("Could not find role: {role}"))),
    }
}

/// May a role have these privileges? One of a database other than "admin" may not reach beyond it.
pub fn check_privileges_of_role(role: &RoleName, privileges: &[Privilege]) -> Result<()> {
    let is_own = |privilege: &Privilege| privilege.resource.database() == Some(&role.database);
    if role.database == "admin" || privileges.iter().all(is_own) {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::InvalidRoleModification,
        format!(
            "Roles on the '{}' database cannot be granted privileges that target other databases or the cluster",
            role.database
        ),
    ))
}

/// The `_id` of a role's document as a value.
pub fn role_id(role: &RoleName) -> Doc {
    let mut document = DocBuilder::new();
    document.append("_id", Value::String(role.id().as_str().into()));
    document.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Action;
    use crate::resource::Target;
    use pando_doc::doc;

    fn known(documents: &[Doc]) -> KnownRoles {
        let read = documents.iter().map(|document| RoleDocument::read(document.view()).unwrap());
        read.map(|document| (document.name.clone(), document)).collect()
    }

    fn role(name: &str, part: &str) -> Doc {
        doc! {
            "_id": (format!("d.{name}")), "role": name, "db": "d",
            "privileges": [{ "resource": { "db": "d", "collection": name }, "actions": ["find"] }],
            "roles": [{ "role": part, "db": "d" }],
        }
    }

    #[test]
    fn u10_roles_of_people_are_added_up_even_in_circles() {
        let known = known(&[role("a", "b"), role("b", "c"), role("c", "a"), role("x", "read")]);
        let resolved = resolve(&[RoleName::new("a", "d")], &known);
        assert_eq!(resolved.roles.len(), 3);
        assert!(resolved.privileges.allow(Target::Collection("d", "c"), Action::Find));
        assert!(!resolved.privileges.allow(Target::Collection("d", "x"), Action::Find));
        let resolved = resolve(&[RoleName::new("x", "d"), RoleName::new("no", "d")], &known);
        assert!(resolved.privileges.allow(Target::Collection("d", "y"), Action::Find));
        assert_eq!(resolved.missing.len(), 1);
        assert_eq!(check_found(&resolved).unwrap_err().code(), ErrorCode::RoleNotFound);
    }

    #[test]
    fn u10_grants_that_make_no_sense_are_refused() {
        let known = known(&[role("a", "b"), role("b", "read")]);
        let name = |name: &str, database: &str| RoleName::new(name, database);
        assert!(check_grant_to_role(&name("b", "d"), &[name("readWrite", "d")], &known).is_ok());
        assert!(check_grant_to_role(&name("b", "d"), &[name("a", "d")], &known).is_err());
        assert!(check_grant_to_role(&name("b", "d"), &[name("b", "d")], &known).is_err());
        assert!(check_grant_to_role(&name("b", "d"), &[name("read", "e")], &known).is_err());
        assert!(check_grant_to_role(&name("b", "admin"), &[name("read", "e")], &known).is_ok());
        let cluster = Privilege { resource: crate::Resource::Cluster, actions: Action::Shutdown.into() };
        assert!(check_privileges_of_role(&name("b", "d"), std::slice::from_ref(&cluster)).is_err());
        assert!(check_privileges_of_role(&name("b", "admin"), &[cluster]).is_ok());
    }

    #[test]
    fn u10_role_documents_are_read_as_they_are_written() {
        let document = role("a", "b");
        assert_eq!(RoleDocument::read(document.view()).unwrap().to_doc(), document);
        assert!(RoleDocument::read(doc! { "role": "a" }.view()).is_err());
    }
}
