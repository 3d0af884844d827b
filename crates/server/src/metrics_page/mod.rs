//! `/metrics`: the numbers of serverStatus in the text form that Prometheus reads, over plain HTTP.
//!
//! It is off unless a port is given, and then listens on the node's addresses. Nobody has to log in: what it shows is numbers of
//! the node, no names of databases or clients. One request a connection, few connections at once, and little patience, so that
//! nobody can hold anything here.

mod http;
mod text;

use crate::diagnostic_data::ask;
use pando_base::{Component, Error, ErrorCode, Log, Result, Severity, log};
use pando_commands::Node;
use pando_doc::doc;
use pando_env::{Connection, Env, Listener};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Connections that are served at once; others wait.
const CONNECTION_COUNT_MAX: usize = 8;
/// How long a request may take to come, and its answer to go.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where the page is served from.
pub(crate) struct MetricsPage {
    env: Env,
    node: Weak<Node>,
    log: Log,
    /// Clients may take as long as they like. Only for simulated time, which passes as soon as somebody waits.
    is_patient: bool,
    free: Arc<Semaphore>,
}

impl MetricsPage {
    /// A page of this node.
    pub(crate) fn new(env: &Env, node: &Arc<Node>, is_patient: bool) -> Arc<MetricsPage> {
        let (env, log, free) = (env.clone(), node.log.clone(), Arc::new(Semaphore::new(CONNECTION_COUNT_MAX)));
        Arc::new(MetricsPage { env, node: Arc::downgrade(node), log, is_patient, free })
    }

    /// Binds an address.
    pub(crate) async fn listen(&self, address: &str) -> Result<Box<dyn Listener>> {
        let failed = |error: std::io::Error| {
            let reason = format!("Failed to set up listener for /metrics: {address}: {error}");
            Error::new(ErrorCode::SocketException, reason)
        };
        let listener = self.env.network().listen(address).await.map_err(failed)?;
        log!(self.log, Severity::Info, Component::Network, 9_700_100, "Serving /metrics", "address" = address);
        Ok(listener)
    }

    /// Serves until the node is gone.
    pub(crate) async fn serve(self: Arc<Self>, mut listener: Box<dyn Listener>) {
        while self.node.strong_count() > 0 {
            let Ok(permit) = Arc::clone(&self.free).acquire_owned().await else { return };
            match listener.accept().await {
                Ok(connection) => {
                    let page = Arc::clone(&self);
                    let task = async move {
                        page.answer(connection).await;
                        drop(permit);
                    };
                    if self.env.tasks().spawn(Box::pin(task)).is_err() {
                        return;
                    }
                }
                Err(error) => {
                    let message = "Error accepting a connection for /metrics";
                    log!(
                        self.log,
                        Severity::Warning,
                        Component::Network,
                        9_700_101,
                        message,
                        "error" = error.to_string()
                    );
                    self.env.clock().sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn answer(&self, mut connection: Box<dyn Connection>) {
        let exchange = async {
            // Whoever does not get an answer asks again.
            let _ = http::exchange(&mut *connection, self.body()).await;
        };
        if self.is_patient {
            return exchange.await;
        }
        tokio::select! {
            biased;
            () = exchange => {}
            () = self.env.clock().sleep(PATIENCE) => {}
        }
    }

    /// The page; none if the node cannot say.
    async fn body(&self) -> Option<String> {
        let node = self.node.upgrade()?;
        let status = ask(&node, "admin", &doc! { "serverStatus": 1 }).await.ok()?;
        Some(text::page(status.view()))
    }
}
