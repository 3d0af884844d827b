//! The collections that a pipeline named when somebody was asked whether the client may run it.

use pando_base::{Error, ErrorCode, Namespace, Result};
use std::sync::Arc;

/// Collections that a pipeline may name. What runs is held to it, so that nothing is run that was
/// not looked at.
#[derive(Clone, Debug)]
pub struct Seen(Arc<[Namespace]>);

impl Seen {
    /// These.
    pub fn new(named: Vec<Namespace>) -> Seen {
        Seen(named.into())
    }

    /// These, and others.
    #[must_use]
    pub fn with(&self, others: Vec<Namespace>) -> Seen {
        Seen(self.0.iter().cloned().chain(others).collect())
    }

    /// Refuses a collection that nobody has seen.
    pub fn check(&self, namespace: &Namespace) -> Result<()> {
        match self.0.contains(namespace) {
            true => Ok(()),
            false => {
                let reason = format!("not authorized to use {namespace} in a pipeline");
                Err(Error::new(ErrorCode::Unauthorized, reason))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u10_only_what_was_seen_can_be_named() {
        let namespace = |name: &str| Namespace::parse(name).unwrap();
        let seen = Seen::new(vec![namespace("d.c")]);
        assert!(seen.check(&namespace("d.c")).is_ok());
        assert_eq!(seen.check(&namespace("d.x")).unwrap_err().code(), ErrorCode::Unauthorized);
        let more = seen.with(vec![namespace("d.x")]);
        assert!(["d.c", "d.x"].iter().all(|name| more.check(&namespace(name)).is_ok()));
        assert!(more.check(&namespace("e.c")).is_err());
    }
}
