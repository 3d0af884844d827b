//! Whom a client has proved to be, and what follows from it.
//!
//! A connection keeps its user with the generation of users and roles that it was read in. When something has changed, the
//! user is read again before the next request is looked at; one that is gone, or may no longer come from there, is nobody.

use super::parameters::CLUSTER_SOURCES;
use super::state::privileges_for_first_user;
use super::storage::load_user;
use crate::{AccessRequest, ConnectionState, Invocation, Node};
use bytes::Bytes;
use pando_base::{Client, ClientUser, Component, Error, ErrorCode, Result, Severity, ensure, log};
use pando_doc::{ArrayBuilder, DocBuilder, JsonFormat, doc_to_json};
use pando_security::{Action, ActionSet, Networks, Privileges, Target, User, UserName};
use pando_session::{NO_USER, UserDigest, user_digest};
use std::sync::{Arc, LazyLock};

static FOR_FIRST_USER: LazyLock<Privileges> = LazyLock::new(privileges_for_first_user);

/// Whom a client has proved to be.
#[derive(Debug)]
pub struct Identity {
    /// The user.
    pub user: Arc<User>,
    /// Whose sessions are theirs.
    pub digest: UserDigest,
    generation: u64,
}

impl Identity {
    fn new(user: Arc<User>, generation: u64) -> Identity {
        let digest = user_digest(&user.name().user, &user.name().database);
        Identity { user, digest, generation }
    }

    /// The user's roles, with those that they bring, as the array of `$$USER_ROLES`.
    pub(crate) fn roles(&self) -> Bytes {
        let mut roles = ArrayBuilder::new();
        for name in &self.user.resolved.roles {
            let mut role = DocBuilder::new();
            role.append("_id", format!("{}.{}", name.database, name.role));
            name.append_to(&mut role);
            roles.push(role.finish());
        }
        roles.finish().as_doc().clone().into_bytes()
    }
}

impl Invocation {
    /// May the client do this? Everything is allowed where nobody has to prove who they are.
    pub fn may(&self, target: Target<'_>, actions: impl Into<ActionSet>) -> bool {
        if !self.node.security.is_enabled {
            return true;
        }
        let actions = actions.into();
        let is_allowed =
            self.connection.identity().is_some_and(|identity| identity.user.privileges().allow(target, actions));
        is_allowed || (self.makes_first_user() && FOR_FIRST_USER.allow(target, actions))
    }

    /// May the client do anything at all in the database?
    pub(crate) fn may_anything_in(&self, database: &str) -> bool {
        !self.node.security.is_enabled
            || self.connection.identity().is_some_and(|identity| identity.user.privileges().allow_anything_in(database))
    }

    /// May the client do anything at all with the target?
    pub(crate) fn may_anything_on(&self, target: Target<'_>) -> bool {
        !self.node.security.is_enabled
            || self.connection.identity().is_some_and(|identity| identity.user.privileges().allow_anything_on(target))
    }

    /// Is this the client's own user?
    pub(crate) fn is_user(&self, name: &UserName) -> bool {
        self.connection.identity().is_some_and(|identity| identity.user.name() == name)
    }

    /// Does the other connection belong to the same user?
    pub(crate) fn is_own_client(&self, other: &Client) -> bool {
        if !self.node.security.is_enabled {
            return true;
        }
        let own = self.connection.client.user();
        own.is_some() && own == other.user()
    }

    /// The client's user, as cursors remember it.
    pub(crate) fn client_user(&self) -> Option<Arc<ClientUser>> {
        self.connection.client.user()
    }

    /// Is what this user has made the client's own?
    pub(crate) fn is_own(&self, user: Option<&ClientUser>) -> bool {
        !self.node.security.is_enabled || user == self.connection.client.user().as_deref()
    }

    /// Whose sessions are the client's.
    pub fn user_digest(&self) -> UserDigest {
        self.connection.identity().map_or(NO_USER, |identity| identity.digest)
    }

    /// May the client act for other users? Without authentication nobody does.
    pub fn acts_for_others(&self) -> bool {
        self.node.security.is_enabled && self.may(Target::Cluster, Action::Impersonate)
    }

    fn makes_first_user(&self) -> bool {
        let node = &self.node;
        node.security.allows_first_user(&self.connection, &node.parameters, node.data.as_ref())
    }
}

/// Has the client's user to be read again?
pub fn is_outdated(node: &Node, connection: &ConnectionState) -> bool {
    connection.identity().is_some_and(|identity| identity.generation != node.security.cache.generation())
}

/// Reads the client's user again.
pub async fn refresh(node: &Node, connection: &ConnectionState) {
    let Some(identity) = connection.identity() else { return };
    let log = node.log.with_context(connection.client.description());
    let name = identity.user.name();
    let generation = node.security.cache.generation();
    match load_user(node, name).await {
        // Somebody of the same name is not the same user.
        Ok(user)
            if user.document.id == identity.user.document.id
                && may_come(&user, connection)
                && (*name != UserName::internal() || may_members_come(node, connection)) =>
        {
            connection.set_identity(Some(Identity::new(user, generation)));
        }
        Err(error) if error.code() != ErrorCode::UserNotFound && error.code() != ErrorCode::UnsupportedFormat => {
            let message = "Could not fetch updated user privilege information, continuing to use old information";
            let user = name.to_string();
            log!(log, Severity::Warning, Component::AccessControl, 20247, message, "user" = user, "error" = &error);
        }
        _ => {
            connection.set_identity(None);
            let message = "Removed deleted user from session cache of user information";
            log!(log, Severity::Info, Component::AccessControl, 20245, message, "user" = name.to_string());
        }
    }
}

fn may_come(user: &User, connection: &ConnectionState) -> bool {
    match (connection.remote.internet(), connection.local.internet()) {
        (Some(client), Some(server)) => user.may_come(client.ip(), server.ip()),
        // A socket in the file system has no address.
        _ => !user.is_restricted(),
    }
}

/// The deployment's servers may be told where to come from.
fn may_members_come(node: &Node, connection: &ConnectionState) -> bool {
    let allowed = node.parameters.get(&CLUSTER_SOURCES);
    let from = connection.remote.internet().map(|address| address.ip());
    allowed.is_empty()
        || from.is_some_and(|from| Networks::read(&allowed).is_some_and(|networks| networks.contain(from)))
}

/// Takes the client for a user who has proved it. A connection belongs to one user. The generation is the one before the user
/// was read: what has changed since then is read before the first request.
pub(super) fn log_in(
    node: &Node,
    connection: &ConnectionState,
    user: Arc<User>,
    generation: u64,
    is_strict: bool,
) -> Result<()> {
    let log = node.log.with_context(connection.client.description());
    if let Some(before) = connection.identity() {
        let before = before.user.name();
        ensure!(
            before == user.name(),
            ErrorCode::location(5626701),
            "Each client connection may only be authenticated once. Previously authenticated as: {before}"
        );
        let message = "Client has attempted to reauthenticate as a single user";
        log!(log, Severity::Warning, Component::AccessControl, 5626700, message, "user" = before.to_string());
        let code = ErrorCode::location(5626703);
        ensure!(!is_strict, code, "Each client connection may only be authenticated once");
        return Ok(());
    }
    if !may_come(&user, connection) || (*user.name() == UserName::internal() && !may_members_come(node, connection)) {
        let message = "Failed to acquire user because of unmet authentication restrictions";
        log!(log, Severity::Info, Component::AccessControl, 20240, message, "user" = user.name().to_string());
        return Err(failed());
    }
    if *user.name() == UserName::internal() {
        connection.set_internal();
    }
    connection.set_identity(Some(Identity::new(user, generation)));
    Ok(())
}

/// What a client is told whose proof did not hold, whatever was wrong with it.
pub(super) fn failed() -> Error {
    Error::new(ErrorCode::AuthenticationFailed, "Authentication failed.")
}

/// May the request run? What is said to one who may not is the same whatever is missing.
pub fn authorize(invocation: &Invocation) -> Result<()> {
    let row = invocation.row;
    let makes_first_user = invocation.makes_first_user();
    ensure!(
        makes_first_user || row.is_allowed_before_authentication || invocation.connection.identity().is_some(),
        ErrorCode::Unauthorized,
        "Command {} requires authentication",
        row.name
    );
    ensure!(
        !invocation.generic.impersonates || invocation.may(Target::Cluster, Action::Impersonate),
        ErrorCode::Unauthorized,
        "Unauthorized use of impersonation metadata."
    );
    ensure!(
        invocation.generic.may_bypass_write_blocking.is_none() || invocation.may(Target::Cluster, Action::Internal),
        ErrorCode::location(6_317_500),
        "Client is not properly authorized to propagate mayBypassWriteBlocking"
    );
    match AccessRequest::of(invocation).is_allowed() {
        Ok(true) => Ok(()),
        Err(error) if error.code() != ErrorCode::Unauthorized => Err(error),
        _ => Err(refused(invocation)),
    }
}

#[cold]
fn refused(invocation: &Invocation) -> Error {
    let command = doc_to_json(invocation.shown_body().view(), JsonFormat::Relaxed);
    let reason = format!("not authorized on {} to execute command {command}", invocation.database);
    let error = Error::new(ErrorCode::Unauthorized, reason);
    let log = invocation.node.log.with_context(invocation.connection.client.description());
    log!(log, Severity::Info, Component::AccessControl, 20436, "Checking authorization failed", "error" = &error);
    error
}
