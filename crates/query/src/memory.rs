//! The memory that one request holds: what its stages keep between two documents, counted together.
//!
//! Each stage has a limit of its own, as MongoDB's have. But a pipeline may have a thousand stages,
//! and a `$facet` or a `$lookup` more in each of them. So all stages of a request share an
//! [`Account`], whose limit is one parameter, and what exceeds it is refused by one error. A stage
//! says how much it holds now with its [`Held`], which gives it back when the stage goes.

use pando_base::{Counter, Error, ErrorCode, MetricTree, MetricValue, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the stages of all requests of a node hold.
#[derive(Default)]
pub struct HeldByNode {
    held_bytes: AtomicU64,
    /// Requests that were refused.
    pub(crate) refused: Counter,
}

impl HeldByNode {
    /// Adds what serverStatus shows.
    pub fn add_metrics(self: &Arc<Self>, tree: &mut MetricTree) -> Result<()> {
        let (held, refused) = (Arc::clone(self), Arc::clone(self));
        let held = move || MetricValue::Long(held.bytes() as i64);
        let refused = move || MetricValue::Long(refused.refused.get() as i64);
        tree.add("metrics.query.memory.heldBytes", Arc::new(held))?;
        tree.add("metrics.query.memory.refused", Arc::new(refused))
    }

    /// How much is held now.
    pub fn bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }
}

/// What the stages of one request hold.
pub struct Account {
    limit_bytes: u64,
    held_bytes: AtomicU64,
    peak_bytes: AtomicU64,
    node: Arc<HeldByNode>,
}

impl Account {
    /// An account of a request that may hold so much.
    pub(crate) fn new(limit_bytes: u64, node: &Arc<HeldByNode>) -> Arc<Account> {
        let (held_bytes, peak_bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Account { limit_bytes, held_bytes, peak_bytes, node: Arc::clone(node) })
    }

    /// The most that was held at once.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes.load(Ordering::Relaxed)
    }

    /// What one stage holds: nothing yet.
    pub(crate) fn held(self: &Arc<Account>) -> Held {
        Held { account: Arc::clone(self), bytes: 0 }
    }
}

/// What one stage holds of a request's account.
pub(crate) struct Held {
    account: Arc<Account>,
    bytes: u64,
}

impl Held {
    /// How much that is.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// From now on the stage holds so much; an error if that is too much for the request.
    pub(crate) fn set(&mut self, bytes: u64) -> Result<()> {
        let Account { limit_bytes, held_bytes, peak_bytes, node } = &*self.account;
        if bytes <= self.bytes {
            let given_back = self.bytes - bytes;
            held_bytes.fetch_sub(given_back, Ordering::Relaxed);
            node.held_bytes.fetch_sub(given_back, Ordering::Relaxed);
            self.bytes = bytes;
            return Ok(());
        }
        let taken = bytes - self.bytes;
        let held = held_bytes.fetch_add(taken, Ordering::Relaxed) + taken;
        node.held_bytes.fetch_add(taken, Ordering::Relaxed);
        self.bytes = bytes;
        peak_bytes.fetch_max(held, Ordering::Relaxed);
        if held <= *limit_bytes {
            return Ok(());
        }
        node.refused.increment();
        let reason = format!(
            "the operation holds {held} bytes of memory, more than the limit of {limit_bytes} bytes (operationMemoryLimitBytes)"
        );
        Err(Error::new(ErrorCode::ExceededMemoryLimit, reason))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.held_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.account.node.held_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_share_what_their_request_may_hold() {
        let node = Arc::default();
        let account = Account::new(100, &node);
        let (mut one, mut other) = (account.held(), account.held());
        one.set(60).unwrap();
        other.set(40).unwrap();
        assert_eq!((node.bytes(), account.peak_bytes()), (100, 100));
        one.set(10).unwrap();
        other.set(90).unwrap();
        assert_eq!(one.set(11).unwrap_err().code(), ErrorCode::ExceededMemoryLimit);
        assert_eq!(node.refused.get(), 1);
        drop((one, other));
        assert_eq!((node.bytes(), account.peak_bytes()), (0, 101));
        let mut later = account.held();
        later.set(100).unwrap();
    }
}
