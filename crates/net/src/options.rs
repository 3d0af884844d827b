//! Where to listen, and how many may come.

use pando_wire::Compressors;

/// How the node listens.
#[derive(Clone, Debug)]
pub struct NetOptions {
    /// The addresses, each "host:port". They are bound in order; one that fails makes all fail.
    pub addresses: Vec<String>,
    /// How many connections there may be at once (`maxIncomingConnections`); those beyond are closed at once.
    pub connections_max: u64,
    /// The compressors that peers may use (`net.compression.compressors`).
    pub compressors: Compressors,
}

impl Default for NetOptions {
    fn default() -> NetOptions {
        NetOptions {
            addresses: vec!["127.0.0.1:27017".to_owned()],
            connections_max: 1_000_000,
            compressors: Compressors::default(),
        }
    }
}
