//! What a node knows about who may do what, beyond the documents of users and roles.

use super::parameters::{AUTHENTICATION_MECHANISMS, CLUSTER_AUTH_MODE, ENABLE_LOCALHOST_AUTH_BYPASS};
use crate::{ConnectionState, Data};
use pando_base::{Counter, ErrorCode, Namespace, ParameterSet, Result, bail, ensure};
use pando_env::Random;
use pando_security::scram::{Mechanism, ScramCredentials};
use pando_security::{
    Action, ActionSet, ClusterAuthMode, EXTERNAL_DATABASE, KeyFile, MemberNames, Privileges, Resource, TimeSigner,
    User, UserCache,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

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
    /// What the certificates of members have in common; nothing without certificates.
    members: OnceLock<MemberNames>,
    /// What the credentials of nobody are made of.
    pub(super) secret: [u8; 32],
    /// Users or roles were seen; then the exception for the first user is over.
    has_users: AtomicBool,
    /// Signs the cluster times in replies.
    pub times: TimeSigner,
    /// Users and roles are changed one command at a time.
    pub(super) changing: tokio::sync::Mutex<()>,
    counters: [(&'static str, MechanismCounters); 3],
    /// How often hello was asked how somebody may log in.
    pub mechanisms_asked: Counter,
    /// What all attempts to log in took together.
    pub authentication_micros: Counter,
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
            members: OnceLock::new(),
            secret,
            has_users: AtomicBool::new(false),
            times: TimeSigner::default(),
            changing: tokio::sync::Mutex::new(()),
            counters: [X509, Mechanism::ScramSha1.name(), Mechanism::ScramSha256.name()]
                .map(|name| (name, MechanismCounters::default())),
            mechanisms_asked: Counter::default(),
            authentication_micros: Counter::default(),
        }
    }

    /// Says what subject this node's certificate for other members has.
    pub fn set_member_subject(&self, subject: &str) {
        if let Some(names) = MemberNames::of(subject) {
            // Certificates may be read again, but nobody changes where a node belongs while it runs.
            let _ = self.members.set(names);
        }
    }

    /// Is this the subject of a member's certificate?
    pub(crate) fn is_member(&self, subject: &str) -> bool {
        self.members.get().is_some_and(|members| members.include(subject))
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

/// How members authenticate.
pub(super) fn cluster_auth_mode(parameters: &ParameterSet) -> ClusterAuthMode {
    ClusterAuthMode::parse(&parameters.get(&CLUSTER_AUTH_MODE)).unwrap_or_default()
}

/// A running node goes from one mode to the next only.
pub(crate) fn check_cluster_auth_mode(parameters: &ParameterSet, wanted: &str) -> Result<()> {
    let present = cluster_auth_mode(parameters);
    let Some(next) = ClusterAuthMode::parse(wanted) else {
        bail!(
            ErrorCode::BadValue,
            "Invalid clusterAuthMode '{wanted}', expected one of: 'keyFile', 'sendKeyFile', 'sendX509', or 'x509'"
        );
    };
    ensure!(
        present.may_become(next),
        ErrorCode::BadValue,
        "Illegal state transition for clusterAuthMode, change from {} to {}",
        present.name(),
        next.name()
    );
    Ok(())
}
