//! Which operation a thread works for, so that loops deep below a command can be stopped.
//!
//! An expression, a regular expression or a sort of an array has no [`OperationContext`] at hand, and looking at the clock
//! for each element would cost more than the element. So whoever drives the work says for whom it is ([`during`]), and every
//! loop over input counts its steps with [`tick`]: a subtraction in a thread's own memory. Once in [`STEPS_PER_LOOK`] steps
//! the operation is asked whether it has to stop (killed, past its deadline, or the server ends), and whether it has kept its
//! thread for long enough ([`slice`]): then this is where it lets others run. So whoever counts steps holds no lock that others
//! wait for.
//!
//! Some loops cannot tell an error: a comparison has to give an order, a filter says yes or no. They ask [`goes_on`] and end early,
//! or only [`count`]; whoever has called them asks [`ended`] before what they gave is used for anything.
//!
//! A step is what takes some ten nanoseconds: an element of an array, a row of a list, sixty-four bytes of a string. What
//! takes more counts more.

use super::{OperationContext, slice};
use crate::Result;
use std::cell::{Cell, RefCell};

/// So many steps are counted between two looks at the operation: well below a millisecond.
pub const STEPS_PER_LOOK: u64 = 4096;

/// So many bytes of a string are one step.
const BYTES_PER_STEP: usize = 64;

thread_local! {
    static CURRENT: RefCell<Option<OperationContext>> = const { RefCell::new(None) };
    static STEPS_LEFT: Cell<u64> = const { Cell::new(STEPS_PER_LOOK) };
    /// True once a look has said that the operation has to stop.
    static HAS_TO_STOP: Cell<bool> = const { Cell::new(false) };
}

/// Does something for an operation: [`tick`] on this thread fails meanwhile when the operation has to stop.
pub fn during<R>(operation: &OperationContext, work: impl FnOnce() -> R) -> R {
    work_for(Some(operation.clone()), work)
}

/// Does something that must neither be stopped nor paused in the middle: [`tick`] does not look meanwhile.
pub fn unstopped<R>(work: impl FnOnce() -> R) -> R {
    work_for(None, work)
}

fn work_for<R>(operation: Option<OperationContext>, work: impl FnOnce() -> R) -> R {
    struct Restore(Option<OperationContext>, bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            let before = self.0.take();
            CURRENT.with(|current| *current.borrow_mut() = before);
            HAS_TO_STOP.set(self.1);
        }
    }
    let before = CURRENT.with(|current| std::mem::replace(&mut *current.borrow_mut(), operation));
    let _restore = Restore(before, HAS_TO_STOP.replace(false));
    work()
}

/// The operation that this thread works for, if somebody has said so.
pub fn current() -> Option<OperationContext> {
    CURRENT.with(|current| current.borrow().clone())
}

/// Counts so many steps of a loop, and fails if the operation that this thread works for has to stop.
#[inline]
pub fn tick(steps: u64) -> Result<()> {
    STEPS_LEFT.with(|left| match left.get().checked_sub(steps) {
        Some(rest) => {
            left.set(rest);
            Ok(())
        }
        None => look(),
    })
}

/// Counts work on so many bytes, as [`tick`] does.
#[inline]
pub fn tick_bytes(bytes: usize) -> Result<()> {
    tick((bytes / BYTES_PER_STEP) as u64 + 1)
}

/// Counts steps where nobody can be asked, because whoever called may hold a lock: the next [`tick`] or [`ended`] looks.
#[inline]
pub fn count(steps: u64) {
    STEPS_LEFT.set(STEPS_LEFT.get().saturating_sub(steps));
}

/// Counts steps of a loop that cannot say why it is left: false if the operation has to stop.
#[inline]
pub fn goes_on(steps: u64) -> bool {
    !HAS_TO_STOP.get() && tick(steps).is_ok()
}

/// Fails if a loop that could not say so was left early, or should have been.
#[inline]
pub fn ended() -> Result<()> {
    if HAS_TO_STOP.get() || STEPS_LEFT.get() == 0 { look() } else { Ok(()) }
}

#[cold]
fn look() -> Result<()> {
    STEPS_LEFT.with(|left| left.set(STEPS_PER_LOOK));
    let found = current().map_or(Ok(()), |operation| look_for(&operation));
    HAS_TO_STOP.set(found.is_err());
    found
}

fn look_for(operation: &OperationContext) -> Result<()> {
    operation.check()?;
    if !slice::is_over(operation) {
        return Ok(());
    }
    slice::pause(operation);
    operation.check()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    #[test]
    fn a_loop_ends_soon_after_its_operation_was_killed_and_not_for_others() {
        let (ours, outer) = (OperationContext::detached(), OperationContext::detached());
        let steps = |most: u64| (0..most).take_while(|_| tick(1).is_ok()).count() as u64;
        during(&outer, || {
            during(&ours, || {
                assert_eq!(steps(3 * STEPS_PER_LOOK), 3 * STEPS_PER_LOOK);
                ours.kill(ErrorCode::Interrupted);
                assert!(steps(3 * STEPS_PER_LOOK) <= STEPS_PER_LOOK);
                assert!(tick(STEPS_PER_LOOK + 1).is_err(), "many steps at once are not put off");
            });
            assert_eq!(steps(3 * STEPS_PER_LOOK), 3 * STEPS_PER_LOOK, "the outer operation goes on");
        });
        assert!(current().is_none());
        assert!(tick(u64::MAX).is_ok(), "nobody to ask");
    }

    #[test]
    fn what_cannot_tell_an_error_is_asked_about_it() {
        let operation = OperationContext::detached();
        during(&operation, || {
            assert!(goes_on(2 * STEPS_PER_LOOK) && ended().is_ok());
            operation.kill(ErrorCode::Interrupted);
            count(2 * STEPS_PER_LOOK);
            assert!(!goes_on(1), "it is known at once");
            unstopped(|| assert!(goes_on(2 * STEPS_PER_LOOK) && ended().is_ok()));
            assert_eq!(ended().unwrap_err().code(), ErrorCode::Interrupted);
        });
        assert!(ended().is_ok(), "it was about the operation");
    }

    #[test]
    fn long_strings_are_many_steps() {
        let operation = OperationContext::detached();
        operation.kill(ErrorCode::Interrupted);
        during(&operation, || assert!(tick_bytes(64 * STEPS_PER_LOOK as usize + 64).is_err()));
    }
}
