//! May this node read or write now? Asked at the beginning of commands, and again under locks.

use pando_base::{Error, ErrorCode, Namespace, Result};

/// What a node lets clients do.
pub trait ReplGate: Send + Sync {
    /// Is it a member of a set (or about to be)?
    fn is_replicated(&self) -> bool;
    /// Fails if clients may not write to the collection. What is not replicated may always be written.
    fn check_can_write(&self, namespace: &Namespace) -> Result<()>;
    /// Fails if clients may not read. Secondaries are read by those who say that they may be.
    fn check_can_read(&self, secondary_allowed: bool) -> Result<()>;
}

/// A node without replication: everybody may do everything.
pub struct NoGate;

impl ReplGate for NoGate {
    fn is_replicated(&self) -> bool {
        false
    }

    fn check_can_write(&self, _namespace: &Namespace) -> Result<()> {
        Ok(())
    }

    fn check_can_read(&self, _secondary_allowed: bool) -> Result<()> {
        Ok(())
    }
}

pub(crate) fn not_primary() -> Error {
    Error::new(ErrorCode::NotWritablePrimary, "not primary")
}

pub(crate) fn secondary_not_allowed() -> Error {
    Error::new(ErrorCode::NotPrimaryNoSecondaryOk, "not primary and secondaryOk=false")
}

pub(crate) fn not_readable() -> Error {
    Error::new(ErrorCode::NotPrimaryOrSecondary, "node is not in primary or recovering state")
}
