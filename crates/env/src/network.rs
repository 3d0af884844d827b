//! Sockets, as a trait.

use crate::BoxedFuture;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// Where one end of a connection is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// On a network.
    Internet(SocketAddr),
    /// A socket in the file system; clients of one have no name of their own.
    Unix(Option<Arc<Path>>),
}

impl Address {
    /// True if it can only be reached from this machine.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Internet(address) => address.ip().to_canonical().is_loopback(),
            Address::Unix(_) => true,
        }
    }

    /// The address on a network, if it is one.
    pub fn internet(&self) -> Option<SocketAddr> {
        match self {
            Address::Internet(address) => Some(*address),
            Address::Unix(_) => None,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::Internet(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Internet(address) => address.fmt(f),
            Address::Unix(Some(path)) => path.display().fmt(f),
            Address::Unix(None) => f.write_str("anonymous unix socket"),
        }
    }
}

/// A byte stream to a peer.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {
    /// The other side's address.
    fn peer_address(&self) -> io::Result<Address>;
    /// This side's address.
    fn local_address(&self) -> io::Result<Address>;
    /// Has the runtime of the caller watch it from now on. After an error it is of no use any more.
    fn move_here(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Accepts connections.
pub trait Listener: Send {
    /// The next connection.
    fn accept(&mut self) -> BoxedFuture<'_, io::Result<Box<dyn Connection>>>;
    /// The address that is listened on, with the port that was assigned.
    fn local_address(&self) -> io::Result<Address>;
    /// Has the runtime of the caller watch it from now on. After an error nobody can be accepted any more.
    fn move_here(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where sockets come from.
pub trait Network: Send + Sync {
    /// Listens on `host:port`.
    fn listen(&self, address: &str) -> BoxedFuture<'static, io::Result<Box<dyn Listener>>>;
    /// Listens on a socket in the file system with these permissions. One that is there already, left by a process that was
    /// killed, gives way; the file is removed with the listener.
    fn listen_at_path(&self, path: &Path, permissions: u32) -> BoxedFuture<'static, io::Result<Box<dyn Listener>>>;
    /// Connects to `host:port`, or to the socket at an absolute path.
    fn connect(&self, address: &str) -> BoxedFuture<'static, io::Result<Box<dyn Connection>>>;
    /// Sends a datagram to a socket in the file system, as the system's log takes them.
    fn send_datagram(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
}
