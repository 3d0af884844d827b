//! Endless code of a client is stopped with the operation that the thread works for.
//!
//! A scope lives as long as a cursor, and so through many operations; which of them runs now is known to whoever drives the cursor. It
//! says so around each batch. Before there is a cursor, while the request is read and its functions are compiled, the operation is the
//! one that made the scope.

use pando_base::operation::current;
use pando_base::{Error, ErrorCode, OperationContext, Result};

/// A watch over one call.
pub(crate) struct Watch {
    deadline_ns: Option<u64>,
}

impl Watch {
    /// Begins now; the call may take so long.
    pub(crate) fn start(call_ms_max: u64) -> Watch {
        let now_ns = current().as_ref().map(OperationContext::now_ns);
        Watch { deadline_ns: now_ns.map(|now_ns| now_ns.saturating_add(call_ms_max.saturating_mul(1_000_000))) }
    }

    /// Fails if the call has to stop.
    pub(crate) fn check(&self) -> Result<()> {
        let Some(operation) = current() else { return Ok(()) };
        operation.check()?;
        if self.deadline_ns.is_some_and(|deadline_ns| operation.now_ns() > deadline_ns) {
            return Err(Error::new(ErrorCode::Interrupted, "JavaScript execution terminated"));
        }
        Ok(())
    }
}
