//! Who asks for operations: a connection, or a task of the server's own.

use bytes::Bytes;
use parking_lot::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A connection or an internal task, as logs and currentOp name it.
#[derive(Debug, Default)]
pub struct Client {
    connection_id: i64,
    description: String,
    remote: String,
    application: OnceLock<String>,
    metadata: OnceLock<Bytes>,
    is_ending: AtomicBool,
    user: RwLock<Option<Arc<ClientUser>>>,
    roles: RwLock<Bytes>,
}

/// Whom a client has proved to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientUser {
    /// The user's name.
    pub user: String,
    /// The database that defines the user.
    pub database: String,
}

impl Client {
    /// The client behind a connection, "conn7".
    pub fn of_connection(connection_id: i64, remote: impl Into<String>) -> Client {
        let description = format!("conn{connection_id}");
        Client { connection_id, description, remote: remote.into(), ..Client::default() }
    }

    /// A task of the server's own, e.g. "TTLMonitor".
    pub fn internal(description: impl Into<String>) -> Client {
        Client { description: description.into(), ..Client::default() }
    }

    /// The connection's number; zero for a task of ours.
    pub fn connection_id(&self) -> i64 {
        self.connection_id
    }

    /// True for a task of ours.
    pub fn is_internal(&self) -> bool {
        self.connection_id == 0
    }

    /// The name in log lines.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The other side's address and port; empty for a task of ours.
    pub fn remote(&self) -> &str {
        &self.remote
    }

    /// Asks for the end of the connection: what is under way goes on, but gets no reply.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// True if the connection is to end.
    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Keeps what the first hello said: the application's name and the whole document. Later ones change nothing; false
    /// tells that there was one before.
    pub fn set_metadata(&self, application: &str, metadata: Bytes) -> bool {
        let is_first = self.metadata.set(metadata).is_ok();
        if is_first {
            // Nobody else gets here: only one call can be the first.
            let _ = self.application.set(application.to_owned());
        }
        is_first
    }

    /// The application's name; empty if it gave none.
    pub fn application(&self) -> &str {
        self.application.get().map_or("", String::as_str)
    }

    /// Whom the client has proved to be; none for nobody.
    pub fn user(&self) -> Option<Arc<ClientUser>> {
        self.user.read().clone()
    }

    /// Notes whom the client has proved to be.
    pub fn set_user(&self, user: Option<ClientUser>) {
        *self.user.write() = user.map(Arc::new);
    }

    /// The roles of the user as an array of BSON; no bytes for nobody.
    pub fn roles(&self) -> Bytes {
        self.roles.read().clone()
    }

    /// Notes the roles of the user.
    pub fn set_roles(&self, roles: Bytes) {
        *self.roles.write() = roles;
    }

    /// The client document of the first hello.
    pub fn metadata(&self) -> Option<&Bytes> {
        self.metadata.get()
    }
}
