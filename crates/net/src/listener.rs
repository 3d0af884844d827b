//! Accepting connections, counting them, and letting all of them end.

use crate::connection::{Shared, serve};
use crate::counters::{ConnectionCounters, NetworkCounters};
use crate::handler::{Peer, RequestHandler};
use crate::options::NetOptions;
use crate::stop::Stop;
use crate::tls::Tls;
use pando_base::{Component, Error, ErrorCode, Log, Result, Severity, log};
use pando_env::{Connection, Env, Listener};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// How long to wait after a failed accept: the usual cause, too many open files, does not pass by itself.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How many turns idle connections get to close before the time of those that are busy is measured.
const TURNS_TO_CLOSE: usize = 64;

/// The listening node.
pub struct Net<H: RequestHandler> {
    env: Env,
    shared: Arc<Shared<H>>,
    addresses: Vec<SocketAddr>,
    paths: Vec<PathBuf>,
    books: Arc<Books>,
}

/// What accepting keeps.
struct Books {
    last_connection_id: AtomicI64,
    /// Listeners that have not ended; a socket in the file system is removed by its listener.
    listening: AtomicUsize,
    ended: Notify,
}

/// Counts a listener.
struct Listening(Arc<Books>);

impl Listening {
    fn new(books: &Arc<Books>) -> Listening {
        books.listening.fetch_add(1, Ordering::SeqCst);
        Listening(Arc::clone(books))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.listening.fetch_sub(1, Ordering::SeqCst);
        self.0.ended.notify_waiters();
    }
}

/// Counts a connection, whatever way it ends.
struct Counted {
    connections: Arc<ConnectionCounters>,
    books: Arc<Books>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.connections.current.add(-1);
        self.books.ended.notify_waiters();
    }
}

impl<H: RequestHandler> Net<H> {
    /// Binds the addresses and begins to accept, encrypted if there is `tls`. The counters are the caller's, who shows them.
    pub async fn listen(
        env: &Env,
        options: &NetOptions,
        handler: H,
        tls: Option<Arc<Tls>>,
        log: Log,
        connections: Arc<ConnectionCounters>,
        network: Arc<NetworkCounters>,
    ) -> Result<Net<H>> {
        connections.max.set(i64::try_from(options.connections_max).unwrap_or(i64::MAX));
        let shared = Arc::new(Shared {
            handler,
            tls,
            log: log.with_context("listener"),
            stop: Stop::default(),
            connections,
            network,
            compressors: options.compressors.clone(),
            buffers: Default::default(),
            last_reply_id: AtomicI32::new(0),
        });
        let books = Arc::new(Books {
            last_connection_id: AtomicI64::new(0),
            listening: AtomicUsize::new(0),
            ended: Notify::new(),
        });
        let mut net = Net { env: env.clone(), shared, addresses: Vec::new(), paths: Vec::new(), books };
        let mut listeners = Vec::new();
        for address in &options.addresses {
            let listener = env.network().listen(address).await.map_err(|error| cannot_listen(address, &error))?;
            let local = listener.local_address().map_err(|error| cannot_listen(address, &error))?;
            net.addresses.extend(local.internet());
            listeners.push(listener);
        }
        net.paths = socket_paths(options, net.addresses.first());
        for path in &net.paths {
            let listening = env.network().listen_at_path(path, options.socket_permissions).await;
            listeners.push(listening.map_err(|error| cannot_listen(&path.display().to_string(), &error))?);
        }
        for listener in listeners {
            net.accept_from(listener)?;
        }
        Ok(net)
    }

    /// The addresses that are listened on, with the ports that were assigned.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The sockets in the file system that are listened on.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The handler.
    pub fn handler(&self) -> &H {
        &self.shared.handler
    }

    /// Ends all: no new connections, idle ones close, busy ones have `patience` to finish and are then dropped.
    pub async fn shut_down(&self, patience: Duration) {
        self.shared.stop.stop();
        for _ in 0..TURNS_TO_CLOSE {
            if self.is_over() {
                return;
            }
            tokio::task::yield_now().await;
        }
        tokio::select! {
            biased;
            () = self.all_ended() => return,
            () = self.env.clock().sleep(patience) => {}
        }
        self.shared.stop.abort();
        self.all_ended().await;
    }

    async fn all_ended(&self) {
        loop {
            let ended = self.books.ended.notified();
            if self.is_over() {
                return;
            }
            ended.await;
        }
    }

    /// True if there are neither connections nor listeners.
    fn is_over(&self) -> bool {
        self.shared.connections.current.get() == 0 && self.books.listening.load(Ordering::SeqCst) == 0
    }

    fn accept_from(&self, listener: Box<dyn Listener>) -> Result<()> {
        let (env, shared, books) = (self.env.clone(), Arc::clone(&self.shared), Arc::clone(&self.books));
        let listening = Listening::new(&self.books);
        let task = async move {
            // The listener goes before it is said to have ended.
            let (_listening, mut listener) = (listening, listener);
            loop {
                let accepted = tokio::select! {
                    biased;
                    () = shared.stop.stopped() => return,
                    accepted = listener.accept() => accepted,
                };
                match accepted {
                    Ok(stream) => admit(&env, &shared, &books, stream),
                    Err(error) => {
                        let message = "Error accepting new connection on local endpoint";
                        log!(
                            shared.log,
                            Severity::Warning,
                            Component::Network,
                            23023,
                            message,
                            "error" = error.to_string()
                        );
                        env.clock().sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        };
        self.env.tasks().spawn(Box::pin(task)).map_err(|error| Error::internal(error.to_string()))
    }
}

/// Starts the connection's task, unless there are too many.
fn admit<H: RequestHandler>(env: &Env, shared: &Arc<Shared<H>>, books: &Arc<Books>, stream: Box<dyn Connection>) {
    // A client that is already gone has no address.
    let (Ok(remote), Ok(local)) = (stream.peer_address(), stream.local_address()) else { return };
    let counters = &shared.connections;
    let current = counters.current.add(1);
    let counted = Counted { connections: Arc::clone(counters), books: Arc::clone(books) };
    if current > counters.max.get() {
        counters.rejected.increment();
        let message = "Connection refused because there are too many open connections";
        log!(
            shared.log,
            Severity::Info,
            Component::Network,
            22942,
            message,
            "remote" = remote.to_string(),
            "connectionCount" = current - 1
        );
        return;
    }
    counters.created.increment();
    let connection_id = books.last_connection_id.fetch_add(1, Ordering::Relaxed) + 1;
    log!(
        shared.log,
        Severity::Info,
        Component::Network,
        22943,
        "Connection accepted",
        "remote" = remote.to_string(),
        "connectionId" = connection_id,
        "connectionCount" = current
    );
    let name = remote.to_string();
    let (peer, shared) = (Peer { connection_id, remote, local, certificate_subject: None }, Arc::clone(shared));
    let task = async move {
        serve(&shared, stream, peer).await;
        let left = shared.connections.current.get() - 1;
        drop(counted);
        let log = shared.log.with_context(format!("conn{connection_id}"));
        log!(
            log,
            Severity::Info,
            Component::Network,
            22944,
            "Connection ended",
            "remote" = name,
            "connectionId" = connection_id,
            "connectionCount" = left
        );
    };
    // Without a runtime nobody could have accepted.
    let spawned = env.tasks().spawn(Box::pin(task));
    debug_assert!(spawned.is_ok(), "accepting runs on the runtime");
}

/// The sockets in the file system: the usual one of this port, and those by name.
fn socket_paths(options: &NetOptions, first: Option<&SocketAddr>) -> Vec<PathBuf> {
    let usual = options.socket_directory.as_ref().zip(first);
    let usual = usual.map(|(directory, address)| directory.join(format!("mongodb-{}.sock", address.port())));
    usual.into_iter().chain(options.socket_paths.iter().cloned()).collect()
}

fn cannot_listen(address: &str, error: &std::io::Error) -> Error {
    Error::new(ErrorCode::SocketException, format!("Failed to set up listener: {address}: {error}"))
}
