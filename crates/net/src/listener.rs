//! Accepting connections, counting them, and letting all of them end.

use crate::books::{Counted, Entered};
use crate::connection::{Arrival, Shared, serve};
use crate::counters::{ConnectionCounters, NetworkCounters};
use crate::handler::{Peer, RequestHandler};
use crate::options::NetOptions;
use crate::stop::Stop;
use crate::tls::Tls;
use pando_base::{Component, Error, ErrorCode, Log, Result, Severity, log};
use pando_env::{Connection, Env, Listener, Place};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::time::Duration;

/// How long to wait after a failed accept: the usual cause, too many open files, does not pass by itself.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How many turns idle connections get to close before the time of those that are busy is measured.
const TURNS_TO_CLOSE: usize = 64;

/// The listening node.
pub struct Net<H: RequestHandler> {
    shared: Arc<Shared<H>>,
    addresses: Vec<SocketAddr>,
    paths: Vec<PathBuf>,
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
            env: env.clone(),
            books: Arc::default(),
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
        let mut net = Net { shared, addresses: Vec::new(), paths: Vec::new() };
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
            () = self.shared.env.clock().sleep(patience) => {}
        }
        self.shared.stop.abort();
        self.all_ended().await;
    }

    async fn all_ended(&self) {
        loop {
            let ended = self.shared.books.ended();
            if self.is_over() {
                return;
            }
            ended.await;
        }
    }

    /// True if there are neither connections nor listeners, and nobody works on an answer.
    fn is_over(&self) -> bool {
        self.shared.connections.current.get() == 0 && self.shared.books.has_only_connections()
    }

    fn accept_from(&self, listener: Box<dyn Listener>) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let entered = Entered::new(&self.shared.books);
        let task = async move {
            // The listener goes before it is said to have ended.
            let (_entered, mut listener) = (entered, listener);
            if let Err(error) = listener.move_here() {
                tell_refusal(&shared.log, &error);
            }
            loop {
                let accepted = tokio::select! {
                    biased;
                    () = shared.stop.stopped() => return,
                    accepted = listener.accept() => accepted,
                };
                match accepted {
                    Ok(stream) => admit(&shared, stream),
                    Err(error) => {
                        tell_refusal(&shared.log, &error);
                        shared.env.clock().sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        };
        let tasks = self.shared.env.tasks();
        tasks.spawn_at(Place::Control, Box::pin(task)).map_err(|error| Error::internal(error.to_string()))
    }
}

fn tell_refusal(log: &Log, error: &std::io::Error) {
    let message = "Error accepting new connection on local endpoint";
    log!(log, Severity::Warning, Component::Network, 23023, message, "error" = error.to_string());
}

/// Starts the connection's task, unless there are too many.
fn admit<H: RequestHandler>(shared: &Arc<Shared<H>>, stream: Box<dyn Connection>) {
    // A client that is already gone has no address.
    let (Ok(remote), Ok(local)) = (stream.peer_address(), stream.local_address()) else { return };
    let counters = &shared.connections;
    let current = counters.current.add(1);
    let counted = Counted::new(counters, &shared.books);
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
    let connection_id = shared.books.next_connection_id();
    log!(
        shared.log,
        shared.log.client_severity(),
        Component::Network,
        22943,
        "Connection accepted",
        "remote" = remote.to_string(),
        "connectionId" = connection_id,
        "connectionCount" = current
    );
    let peer = Peer { connection_id, remote, local, certificate_subject: None };
    serve(Arc::clone(shared), Arrival { stream, peer, counted });
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
