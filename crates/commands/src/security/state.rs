//! What a node knows about who may do what, beyond the documents of users and roles.

use super::parameters::{AUTHENTICATION_MECHANISMS, ENABLE_LOCALHOST_AUTH_BYPASS};
use crate::{ConnectionState, Data};
use pando_base::{Counter, Namespace, ParameterSet};
use pando_env::Random;
use pando_security::scram::{Mechanism, ScramCredentials};
use pando_security::{Action, ActionSet, EXTERNAL_DATABASE, KeyFile, Privileges, Resource, User, UserCache};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The name of authentication by certificate.
pub const X509: &str = "MONGODB-X509";

/// How often clients have tried to prove who they are.
#[derive(Debug, Default)]
pub struct MechanismCounters {
    /// In all.
    pub received: Counter,
    /// With success.
    pub successful: Counter,
    /// Of these, within hello.
    pub speculative_received: Counter,
    /// Of these, with success.
    pub speculative_successful: Counter,
    /// Members of the deployment.
    pub cluster_received: Counter,
    /// Of these, with success.
    pub cluster_successful: Counter,
}

/// What a node knows.
pub struct Security {
    /// Must clients prove who they are?
    pub is_enabled: bool,
    /// The users that are known.
    pub cache: Arc<UserCache>,
    /// The servers of the deployment.
    pub(super) internal: Arc<User>,
    internal_credentials: Vec<ScramCredentials>,
    /// What the credentials of nobody are made of.
    pub(super) secret: [u8; 32],
    /// Users or roles were seen; then the exception for the first user is over.
    has_users: AtomicBool,
    /// Users and roles are changed one command at a time.
    pub(super) changing: tokio::sync::Mutex<()>,
    counters: [(&'static str, MechanismCounters); 3],
}

impl Security {
    /// With or without authentication; members share a key, if there is one.
    pub fn new(is_enabled: bool, key_file: Option<&KeyFile>, random: &dyn Random) -> Security {
        let mut secret = [0; 32];
        random.fill(&mut secret);
        let credentials = |key: &KeyFile| {
            let of = |mechanism: Mechanism| {
                let mut salt = vec![0; mechanism.salt_bytes()];
                random.fill(&mut salt);
                key.credentials(mechanism, &salt)
            };
            Mechanism::ALL.into_iter().flat_map(of).collect()
        };
        Security {
            is_enabled,
            cache: Arc::default(),
            internal: Arc::new(User::internal()),
            internal_credentials: key_file.map(credentials).unwrap_or_default(),
            secret,
            has_users: AtomicBool::new(false),
            changing: tokio::sync::Mutex::new(()),
            counters: [X509, Mechanism::ScramSha1.name(), Mechanism::ScramSha256.name()]
                .map(|name| (name, MechanismCounters::default())),
        }
    }

    /// The credentials of the deployment's servers; none without a key.
    pub(super) fn internal_credentials(&self, mechanism: Mechanism) -> Vec<ScramCredentials> {
        self.internal_credentials.iter().filter(|one| one.mechanism == mechanism).cloned().collect()
    }

    /// The counters of a mechanism.
    pub(super) fn counters_of(&self, mechanism: &str) -> Option<&MechanismCounters> {
        self.counters.iter().find(|(name, _)| *name == mechanism).map(|(_, counters)| counters)
    }

    /// The counters by mechanism.
    pub fn counters(&self) -> impl Iterator<Item = (&'static str, &MechanismCounters)> {
        self.counters.iter().map(|(name, counters)| (*name, counters))
    }

    /// May a client that is nobody make the first user? Only from this machine, and only while there is none.
    pub(crate) fn allows_first_user(
        &self,
        connection: &ConnectionState,
        parameters: &ParameterSet,
        data: Option<&Arc<Data>>,
    ) -> bool {
        self.is_enabled
            && !self.has_users.load(Ordering::Relaxed)
            && connection.is_local()
            && parameters.get(&ENABLE_LOCALHOST_AUTH_BYPASS)
            && !self.look_for_users(data)
    }

    /// Are there users or roles? Once there are, the answer stays.
    fn look_for_users(&self, data: Option<&Arc<Data>>) -> bool {
        let Some(data) = data else { return true };
        let latest = data.catalog.latest();
        let has_documents = |namespace: &Namespace| {
            // A count that cannot be read is not taken for none.
            latest
                .collection(namespace)
                .is_some_and(|found| found.records.num_records().map_or(true, |count| count > 0))
        };
        let found = [users(), roles()].into_iter().any(has_documents);
        if found {
            self.has_users.store(true, Ordering::Relaxed);
        }
        found
    }
}

/// Where users are.
pub(super) fn users() -> &'static Namespace {
    Namespace::users()
}

/// Where roles are.
pub(super) fn roles() -> &'static Namespace {
    Namespace::roles()
}

/// May clients use this mechanism?
pub(super) fn is_mechanism_enabled(parameters: &ParameterSet, name: &str) -> bool {
    parameters.get(&AUTHENTICATION_MECHANISMS).split(',').any(|enabled| enabled.trim() == name)
}

/// What one who makes the first user may do.
pub(crate) fn privileges_for_first_user() -> Privileges {
    let mut privileges = Privileges::new();
    let admin = Resource::Database("admin".to_owned());
    privileges.grant(&admin, ActionSet::of(&[Action::CreateUser, Action::GrantRole]));
    privileges.grant(&Resource::Database(EXTERNAL_DATABASE.to_owned()), Action::CreateUser.into());
    let set =
        [Action::AddShard, Action::ReplSetConfigure, Action::ReplSetGetStatus, Action::IssueDirectShardOperations];
    privileges.grant(&Resource::Cluster, ActionSet::of(&set));
    privileges
}
