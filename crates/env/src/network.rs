//! Sockets, as a trait.

use crate::BoxedFuture;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncWrite};

/// A byte stream to a peer.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {
    /// The other side's address.
    fn peer_address(&self) -> io::Result<SocketAddr>;
    /// This side's address.
    fn local_address(&self) -> io::Result<SocketAddr>;
}

/// Accepts connections.
pub trait Listener: Send {
    /// The next connection.
    fn accept(&mut self) -> BoxedFuture<'_, io::Result<Box<dyn Connection>>>;
    /// The address that is listened on, with the port that was assigned.
    fn local_address(&self) -> io::Result<SocketAddr>;
}

/// Where sockets come from.
pub trait Network: Send + Sync {
    /// Listens on `host:port`.
    fn listen(&self, address: &str) -> BoxedFuture<'static, io::Result<Box<dyn Listener>>>;
    /// Connects to `host:port`.
    fn connect(&self, address: &str) -> BoxedFuture<'static, io::Result<Box<dyn Connection>>>;
}
