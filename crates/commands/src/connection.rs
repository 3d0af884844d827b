//! What is remembered of a client between its requests.
//!
//! Locks: a few small ones, never held together.

use crate::security::{Attempt, Conversation, Identity};
use arc_swap::ArcSwapOption;
use bstr::BStr;
use pando_base::{Client, ClientUser, ErrorCode, Namespace, OperationContext};
use pando_env::Address;
use pando_security::UserName;
use pando_wire::Compressor;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// A client's connection.
#[derive(Debug)]
pub struct ConnectionState {
    /// As operations and the log name it.
    pub client: Arc<Client>,
    /// The client's address.
    pub remote: Address,
    /// The address that the client reached.
    pub local: Address,
    /// A first hello has come; its metadata, or their absence, stands.
    is_greeted: AtomicBool,
    /// The client knows the words of hello.
    supports_hello: AtomicBool,
    /// The client is a server of ours.
    is_internal: AtomicBool,
    compressors: Mutex<Vec<Compressor>>,
    /// Whom the client has proved to be.
    identity: ArcSwapOption<Identity>,
    /// Has the client ever proved to be somebody? Most never do, and every request asks.
    had_identity: AtomicBool,
    /// A proof that has begun.
    conversation: Mutex<Option<Conversation>>,
    /// What the log will tell of it.
    attempt: Mutex<Option<Attempt>>,
    /// The versions of the API that were asked for, by their bits.
    api_versions: AtomicU8,
    /// The subject of the certificate that the client has shown, which was checked.
    certificate_subject: Option<String>,
    /// The operation that is stopped if the client goes away.
    stopped_when_abandoned: Mutex<Option<OperationContext>>,
    /// The collection that the last command named with its first field. The next one mostly names the same.
    last_named: Mutex<Option<Namespace>>,
}

impl ConnectionState {
    /// A connection that has said nothing yet.
    pub fn new(connection_id: i64, remote: Address, local: Address) -> ConnectionState {
        ConnectionState {
            client: Arc::new(Client::of_connection(connection_id, remote.to_string())),
            remote,
            local,
            is_greeted: AtomicBool::new(false),
            supports_hello: AtomicBool::new(false),
            is_internal: AtomicBool::new(false),
            compressors: Mutex::default(),
            identity: ArcSwapOption::empty(),
            had_identity: AtomicBool::new(false),
            conversation: Mutex::default(),
            attempt: Mutex::default(),
            api_versions: AtomicU8::new(0),
            certificate_subject: None,
            stopped_when_abandoned: Mutex::default(),
            last_named: Mutex::default(),
        }
    }

    /// The namespace of these two names, if it is the one that was remembered last: made, checked and in memory already.
    pub fn namespace_as_before(&self, database: &BStr, collection: &BStr) -> Option<Namespace> {
        let last = self.last_named.lock();
        let is_same = |last: &&Namespace| last.collection() == collection && last.database() == database;
        last.as_ref().filter(is_same).cloned()
    }

    /// Remembers a collection for the next command. One of a tenant has more to it than the two names.
    pub fn remember_namespace(&self, namespace: &Namespace) {
        if namespace.has_collection() && namespace.tenant().is_none() {
            *self.last_named.lock() = Some(namespace.clone());
        }
    }

    /// One for commands that the server runs for this client: it may do what the client may, and is known as a server.
    #[must_use]
    pub fn of_server_itself(&self) -> ConnectionState {
        let own = ConnectionState::new(self.client.connection_id(), self.remote.clone(), self.local.clone());
        own.client.set_user(self.client.user().map(|user| (*user).clone()));
        own.client.set_roles(self.client.roles());
        own.identity.store(self.identity.load_full());
        own.had_identity.store(self.had_identity.load(Ordering::Acquire), Ordering::Release);
        own.set_internal();
        own
    }

    /// The same, of a client that has shown a certificate.
    #[must_use]
    pub fn with_certificate(self, subject: Option<String>) -> ConnectionState {
        ConnectionState { certificate_subject: subject, ..self }
    }

    /// The subject of the client's certificate.
    pub fn certificate_subject(&self) -> Option<&str> {
        self.certificate_subject.as_deref()
    }

    /// Whom the client has proved to be.
    pub fn identity(&self) -> Option<Arc<Identity>> {
        match self.had_identity.load(Ordering::Acquire) {
            true => self.identity.load_full(),
            false => None,
        }
    }

    /// Notes whom the client has proved to be; none for nobody.
    pub fn set_identity(&self, identity: Option<Identity>) {
        let user = identity.as_ref().map(|identity| identity.user.name());
        let user = user.map(|name| ClientUser { user: name.user.clone(), database: name.database.clone() });
        let is_server = |known: &Arc<Identity>| *known.user.name() == UserName::internal();
        if identity.is_none() && self.identity().as_ref().is_some_and(is_server) {
            self.is_internal.store(false, Ordering::Relaxed);
        }
        self.client.set_roles(identity.as_ref().map(|identity| identity.roles()).unwrap_or_default());
        self.client.set_user(user);
        self.identity.store(identity.map(Arc::new));
        self.had_identity.store(true, Ordering::Release);
    }

    /// Keeps a proof that has begun; one before it is given up.
    pub(crate) fn begin_conversation(&self, conversation: Conversation) {
        *self.conversation.lock() = Some(conversation);
    }

    /// The proof that has begun; it is over unless it is kept again.
    pub(crate) fn take_conversation(&self) -> Option<Conversation> {
        self.conversation.lock().take()
    }

    /// Is this version of the API asked for over this connection for the first time? It is given by a bit.
    pub(crate) fn is_new_api_version(&self, bit: u8) -> bool {
        self.api_versions.load(Ordering::Relaxed) & bit != bit
            && self.api_versions.fetch_or(bit, Ordering::Relaxed) & bit != bit
    }

    /// Keeps an attempt to log in that has begun.
    pub(crate) fn set_attempt(&self, attempt: Attempt) {
        *self.attempt.lock() = Some(attempt);
    }

    /// The attempt that has begun; it is over unless it is kept again.
    pub(crate) fn take_attempt(&self) -> Option<Attempt> {
        self.attempt.lock().take()
    }

    /// Notes a hello; true for the first.
    pub fn greet(&self) -> bool {
        !self.is_greeted.swap(true, Ordering::Relaxed)
    }

    /// Has there been a hello?
    pub fn is_greeted(&self) -> bool {
        self.is_greeted.load(Ordering::Relaxed)
    }

    /// Does the client know the words of hello, rather than those of isMaster?
    pub fn supports_hello(&self) -> bool {
        self.supports_hello.load(Ordering::Relaxed)
    }

    /// Notes which words the client knows.
    pub fn set_supports_hello(&self, supports: bool) {
        self.supports_hello.store(supports, Ordering::Relaxed);
    }

    /// Is the client a server of ours?
    pub fn is_internal(&self) -> bool {
        self.is_internal.load(Ordering::Relaxed)
    }

    /// Notes that the client is a server of ours; it stays one until it logs out.
    pub fn set_internal(&self) {
        self.is_internal.store(true, Ordering::Relaxed);
    }

    /// Is the client on this machine?
    pub fn is_local(&self) -> bool {
        self.remote.is_local()
    }

    /// The compressors that both sides agreed on.
    pub fn compressors(&self) -> Vec<Compressor> {
        self.compressors.lock().clone()
    }

    /// Keeps what both sides agreed on.
    pub fn set_compressors(&self, agreed: Vec<Compressor>) {
        *self.compressors.lock() = agreed;
    }

    /// The operation to stop if the client goes away; none when it is over.
    pub fn set_stopped_when_abandoned(&self, context: Option<OperationContext>) {
        *self.stopped_when_abandoned.lock() = context;
    }

    /// The client went away.
    pub fn abandon(&self) {
        let context = self.stopped_when_abandoned.lock().clone();
        if let Some(context) = context {
            context.kill(ErrorCode::ClientDisconnect);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_collection_that_was_named_last_is_taken_as_before() {
        let address = || Address::Unix(None);
        let connection = ConnectionState::new(1, address(), address());
        let as_before = |database: &str, collection: &str| {
            let found = connection.namespace_as_before(BStr::new(database), BStr::new(collection));
            found.map(|namespace| namespace.as_str().to_owned())
        };
        assert_eq!(as_before("a", "b"), None);
        connection.remember_namespace(&Namespace::of("a", "b.c").unwrap());
        assert_eq!(as_before("a", "b.c"), Some("a.b.c".to_owned()));
        for (database, collection) in [("a", "b"), ("a.b", "c"), ("b", "b.c"), ("A", "b.c"), ("a", ""), ("", "a.b.c")] {
            assert_eq!(as_before(database, collection), None);
        }
        // A database alone is not what commands with a collection are about.
        connection.remember_namespace(&Namespace::of("d", "").unwrap());
        assert_eq!((as_before("d", ""), as_before("a", "b.c")), (None, Some("a.b.c".to_owned())));
        let tenant = Some(pando_base::TenantId([7; 12]));
        connection.remember_namespace(&Namespace::parse_with_tenant(tenant, "t.c").unwrap());
        assert_eq!(as_before("t", "c"), None);
    }
}
