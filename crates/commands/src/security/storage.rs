//! Users and roles as documents: reading them, and adding up what a user may do.

use super::state::{roles, users};
use crate::stored::find_one;
use crate::{Data, Node};
use pando_base::{Error, ErrorCode, Result};
use pando_operation::Operation;
use pando_security::roles::{KnownRoles, Resolved, RoleDocument, resolve};
use pando_security::{RoleName, User, UserDocument, UserName};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The user with everything that their roles come to, from the cache or from the documents.
pub(super) async fn load_user(node: &Node, name: &UserName) -> Result<Arc<User>> {
    let security = &node.security;
    if *name == UserName::internal() {
        return Ok(Arc::clone(&security.internal));
    }
    if let Some(user) = security.cache.get(name) {
        return Ok(user);
    }
    let generation = security.cache.generation();
    let data = node.data.as_ref().ok_or_else(|| not_found(name))?;
    let mut operation = data.services.internal_operation("UserLookup");
    let document = read_user(data, &mut operation, name).await?;
    let known = read_roles(data, &mut operation, &document.roles).await?;
    let resolved = resolve(&document.roles, &known);
    let user = Arc::new(User::new(document, resolved));
    security.cache.keep(&user, generation);
    Ok(user)
}

/// The document of a user, who has to be there.
pub(super) async fn read_user(data: &Data, operation: &mut Operation, name: &UserName) -> Result<UserDocument> {
    let found = find_one(data, operation, users(), &name.id()).await?.ok_or_else(|| not_found(name))?;
    UserDocument::read(found.view())
}

/// What is said of a user who is not there.
pub(super) fn not_found(name: &UserName) -> Error {
    Error::new(ErrorCode::UserNotFound, format!("Could not find user \"{}\" for db \"{}\"", name.user, name.database))
}

/// The document of a role that somebody defined.
pub(super) async fn read_role(data: &Data, operation: &mut Operation, name: &RoleName) -> Result<Option<RoleDocument>> {
    let found = find_one(data, operation, roles(), &name.id()).await?;
    found.map(|document| RoleDocument::read(document.view())).transpose()
}

/// The documents of these roles and of all that are part of them, as far as they are there.
pub(super) async fn read_roles<'a>(
    data: &Data,
    operation: &mut Operation,
    names: impl IntoIterator<Item = &'a RoleName>,
) -> Result<KnownRoles> {
    let names: Vec<&RoleName> = names.into_iter().collect();
    let (mut known, mut looked_for) = (KnownRoles::new(), BTreeSet::new());
    loop {
        let Resolved { missing, .. } = resolve(names.iter().copied(), &known);
        let open: Vec<RoleName> = missing.into_iter().filter(|name| looked_for.insert(name.clone())).collect();
        if open.is_empty() {
            return Ok(known);
        }
        for name in open {
            if let Some(document) = read_role(data, operation, &name).await? {
                known.insert(name, document);
            }
        }
    }
}
