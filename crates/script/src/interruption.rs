//! Which operation a thread is working for, so that endless code of a client can be stopped.
//!
//! A scope lives as long as a cursor, and so through many operations; which of them runs now is known to whoever drives the cursor. It
//! says so around each batch. Before there is a cursor, while the request is read and its functions are compiled, the operation is the
//! one that made the scope.

use pando_base::{Error, ErrorCode, OperationContext, Result};
use std::cell::RefCell;

thread_local! {
    static CURRENT: RefCell<Option<OperationContext>> = const { RefCell::new(None) };
}

/// Does something for an operation: JavaScript that runs meanwhile on this thread ends when the operation has to.
pub fn during<R>(operation: &OperationContext, work: impl FnOnce() -> R) -> R {
    struct Restore(Option<OperationContext>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let before = self.0.take();
            CURRENT.with(|current| *current.borrow_mut() = before);
        }
    }
    let before = CURRENT.with(|current| current.borrow_mut().replace(operation.clone()));
    let _restore = Restore(before);
    work()
}

/// True if somebody has said which operation this thread works for.
pub(crate) fn is_known() -> bool {
    CURRENT.with(|current| current.borrow().is_some())
}

/// A watch over one call.
pub(crate) struct Watch {
    deadline_ns: Option<u64>,
}

impl Watch {
    /// Begins now; the call may take so long.
    pub(crate) fn start(call_ms_max: u64) -> Watch {
        let now_ns = CURRENT.with(|current| current.borrow().as_ref().map(OperationContext::now_ns));
        Watch { deadline_ns: now_ns.map(|now_ns| now_ns.saturating_add(call_ms_max.saturating_mul(1_000_000))) }
    }

    /// Fails if the call has to stop.
    pub(crate) fn check(&self) -> Result<()> {
        CURRENT.with(|current| {
            let current = current.borrow();
            let Some(operation) = current.as_ref() else { return Ok(()) };
            operation.check()?;
            if self.deadline_ns.is_some_and(|deadline_ns| operation.now_ns() > deadline_ns) {
                return Err(Error::new(ErrorCode::Interrupted, "JavaScript execution terminated"));
            }
            Ok(())
        })
    }
}
