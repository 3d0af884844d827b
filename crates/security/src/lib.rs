//! Who may do what, without I/O: how a client proves who it is, what users and roles are, and what they allow.
//!
//! - [`scram`]: SCRAM-SHA-1 and SCRAM-SHA-256 as state machines; [`KeyFile`]: the key that members share.
//! - [`UserDocument`], [`User`]: a user as stored, and with everything that their roles come to. [`UserCache`] keeps them.
//! - [`roles`]: the built-in roles, those that people define, and adding them up.
//! - [`Action`], [`Resource`], [`Privileges`]: what is allowed. [`Target`]: what a command wants to touch.
//! - [`Restrictions`]: from where a user may come.
//!
//! It must not know sockets, storage, commands or the clock. Randomness is passed in. Nothing secret is shown by `Debug`.

mod action;
mod cache;
mod cluster_time;
mod key_file;
mod members;
mod names;
mod privilege;
mod resource;
mod restrictions;
pub mod roles;
pub mod scram;
mod user;

pub use action::{ANY_ACTION, Action, ActionSet};
pub use cache::UserCache;
pub use cluster_time::{TIME_KEY_BYTES, TimeKey, TimeProof, TimeSigner};
pub use key_file::{KeyFile, password_of_key};
pub use members::{ClusterAuthMode, MemberNames};
pub use names::{EXTERNAL_DATABASE, RoleName, UserName};
pub use privilege::{Privilege, Privileges};
pub use resource::{Resource, Target};
pub use restrictions::Networks;
pub use restrictions::Restrictions;
pub use user::{User, UserDocument};

/// The digest of data by a key: HMAC with SHA-256.
pub fn keyed_digest(key: &[u8], data: &[u8]) -> Vec<u8> {
    scram::Mechanism::ScramSha256.keyed(key, data)
}
