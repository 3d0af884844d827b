//! Listeners and connections: messages in, messages out, one task for each connection.
//!
//! [`Net::listen`] binds the addresses and accepts. A connection reads exactly one message, hands it to the
//! [`RequestHandler`], writes what it gives back and reads the next: a client that sends faster than it is served waits in
//! its own socket. What a message means is the handler's affair; this crate knows frames, replies that announce another
//! reply (exhaust), requests without reply, and what to do with bytes that make no sense.
//!
//! Invariants:
//! - An idle connection owns no buffer. Bytes are read into the stack and copied into a block of the message's size;
//!   replies are built in buffers from a pool.
//! - No length that a peer announces reserves memory before its bytes are there.
//! - Nothing a peer sends ends more than its own connection.
//! - After [`Net::shut_down`] there is no connection: idle ones close at once, busy ones after their reply, and those that
//!   take longer than the patience given are dropped.
//!
//! - A connection that only asks what has to be answered whatever else goes on shares its thread with nothing else. An answer that
//!   takes long leaves the workers of the others.
//!
//! Locks: the pool's, held for a push or a pop.
//!
//! It must not know commands, and reaches sockets through `env` alone.

mod answer;
mod books;
mod buffers;
mod connection;
mod counters;
mod handler;
mod listener;
mod options;
mod reader;
mod stop;
mod tls;

pub use counters::{CompressionCounters, ConnectionCounters, NetworkCounters};
pub use handler::{Next, Peer, Request, RequestHandler, RequestKind, Response};
pub use listener::Net;
pub use options::NetOptions;
pub use tls::{HANDSHAKE_TIMEOUT_DEFAULT, Password, Tls, TlsMode, TlsOptions};

#[cfg(test)]
mod tests;
