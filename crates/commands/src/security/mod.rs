//! Who may do what on this node: proving who one is, users and roles, and whether a request may run.
//!
//! - [`Security`]: what the node knows; [`Identity`]: whom a connection has proved to be. [`authorize`] is asked by dispatch
//!   before each command, if the node has authentication; what each command needs is in its row (`access`).
//! - `attempt`: what the log tells of an attempt to log in, also of one that is given up.
//! - `conversation`: proofs by password, step by step; `authenticate`: by certificate.
//! - `users`, `roles`: the commands that change and show them. They are documents of `admin.system.users` and
//!   `admin.system.roles`. One such command runs at a time; whoever writes there, the cache of users hears of it.

mod attempt;
mod authenticate;
mod conversation;
mod get_user_cache_generation;
mod identity;
mod invalidate_user_cache;
mod logout;
mod merge_authz_collections;
mod parameters;
mod roles;
mod sasl;
mod state;
mod storage;
mod time_keys;
mod users;
mod writing;

pub use attempt::{Attempt, give_up_attempt};
pub use conversation::Conversation;
pub use identity::{Identity, authorize, is_outdated, refresh};
pub use parameters::{
    AUTHENTICATION_MECHANISMS, CLUSTER_SOURCES, ENABLE_LOCALHOST_AUTH_BYPASS, PARAMETERS, SCRAM_ITERATION_COUNT,
    SCRAM_SHA_256_ITERATION_COUNT,
};
pub use state::{MechanismCounters, Security, X509};
pub use time_keys::{KEYS_ROTATION_INTERVAL_SECONDS, keep_time_keys, refresh_time_keys};

pub(crate) use attempt::tell_of_no_attempt;
pub(crate) use conversation::append_mechanisms_of;
pub(crate) use sasl::speculate;
pub(crate) use state::check_cluster_auth_mode;

use crate::CommandRow;

/// The commands of this area.
pub static ROWS: &[CommandRow] = &[
    sasl::START,
    sasl::CONTINUE,
    authenticate::ROW,
    logout::ROW,
    invalidate_user_cache::ROW,
    get_user_cache_generation::ROW,
    merge_authz_collections::ROW,
    users::CREATE_USER,
    users::UPDATE_USER,
    users::DROP_USER,
    users::DROP_ALL_USERS_FROM_DATABASE,
    users::GRANT_ROLES_TO_USER,
    users::REVOKE_ROLES_FROM_USER,
    users::USERS_INFO,
    roles::CREATE_ROLE,
    roles::UPDATE_ROLE,
    roles::DROP_ROLE,
    roles::DROP_ALL_ROLES_FROM_DATABASE,
    roles::GRANT_PRIVILEGES_TO_ROLE,
    roles::REVOKE_PRIVILEGES_FROM_ROLE,
    roles::GRANT_ROLES_TO_ROLE,
    roles::REVOKE_ROLES_FROM_ROLE,
    roles::ROLES_INFO,
];
