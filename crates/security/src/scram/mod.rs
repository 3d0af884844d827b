//! SCRAM (RFC 5802, RFC 7677) as MongoDB uses it, without I/O: what is stored of a password, the server's side of the
//! exchange, and the client's side.
//!
//! The exchange is three messages of the client's: the first names the user and brings a nonce; the last proves that the
//! client knows the password, and the server's answer proves that the server does; an empty one may close it. Nothing of a
//! password can be learned from what is stored or sent, and a proof holds for one exchange only, since both nonces are in
//! it. Channel binding is not offered: a client that insists on it is refused, and one that says that the server did not
//! offer it while it did cannot be, since it never does.
//!
//! Differences between the two hashes: under SHA-1 the password is first digested as old MongoDB did, with MD5; under
//! SHA-256 it is brought into its normal form with SASLprep.

mod client;
mod credentials;
mod hash;
mod server;

pub use client::ScramClient;
pub use credentials::{ITERATIONS_MIN, ScramCredentials, digested_password, prepared_password};
pub use hash::Mechanism;
pub use server::{ClientFirst, ScramServer};

#[cfg(test)]
mod tests;
