//! Names of databases and collections: how they are written, which of them are allowed, and what their spelling says.
//!
//! A [`Namespace`] is "database.collection" in one shared string, split at the first dot; a clone is a count. Building one
//! checks only what would make it ambiguous or unprintable; whether a client may create or write it is asked apart
//! ([`Namespace::validate_for_create`], [`Namespace::validate_for_write`]), because internal namespaces ("$cmd.aggregate",
//! "system.buckets.x") are built all the time.
//!
//! Invariants: a database name has no dot and no NUL and at most [`DATABASE_LENGTH_MAX`] bytes; a collection name does not
//! begin with a dot and has no NUL. Names say nothing of what exists: that is the catalog's.

mod allowed;
mod classify;
mod database;
mod known;
mod name;
mod tenant;

#[cfg(test)]
mod tests;

pub use database::DatabaseName;
pub use name::{Namespace, NamespaceOrUuid};
pub use tenant::TenantId;

/// The longest database name, in bytes.
pub const DATABASE_LENGTH_MAX: usize = 63;
/// The longest full name of a collection of users, in bytes.
pub const NAMESPACE_LENGTH_MAX: usize = 255;
/// The longest full name of a sharded collection, in bytes.
pub const SHARDED_NAMESPACE_LENGTH_MAX: usize = 235;
