//! Where to listen, and how many may come.

use crate::tls::TlsOptions;
use pando_wire::Compressors;
use std::path::PathBuf;

/// The permissions of a socket in the file system, unless somebody says otherwise: everything for its owner.
pub const SOCKET_PERMISSIONS_DEFAULT: u32 = 0o700;

/// How the node listens.
#[derive(Clone, Debug)]
pub struct NetOptions {
    /// The addresses, each "host:port". They are bound in order; one that fails makes all fail.
    pub addresses: Vec<String>,
    /// The directory of the socket in the file system, "mongodb-PORT.sock"; none for no such socket.
    pub socket_directory: Option<PathBuf>,
    /// Further sockets in the file system, by their whole names.
    pub socket_paths: Vec<PathBuf>,
    /// The permissions of those sockets.
    pub socket_permissions: u32,
    /// How many connections there may be at once (`maxIncomingConnections`); those beyond are closed at once.
    pub connections_max: u64,
    /// The compressors that peers may use (`net.compression.compressors`).
    pub compressors: Compressors,
    /// How connections are encrypted; none if they never are.
    pub tls: Option<TlsOptions>,
}

impl Default for NetOptions {
    fn default() -> NetOptions {
        NetOptions {
            addresses: vec!["127.0.0.1:27017".to_owned()],
            socket_directory: None,
            socket_paths: Vec::new(),
            socket_permissions: SOCKET_PERMISSIONS_DEFAULT,
            connections_max: 1_000_000,
            compressors: Compressors::default(),
            tls: None,
        }
    }
}
