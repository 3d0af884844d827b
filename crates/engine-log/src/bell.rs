//! A bell: threads and tasks wait for something to change, whoever changes it rings.
//!
//! Ringing costs one atomic addition while nobody waits, so it may stand in the path of every commit. The rule that makes
//! no ring lost: a waiter first registers ([`Bell::listen`]), then looks at what it waits for, then waits; a ringer first
//! changes it, then rings. Either the ringer sees the waiter or the waiter sees the change. Checked under `shuttle`. A task that
//! gives up waiting after it was chosen to wake the others leaves that to the next (`Notify` passes a notification on).

use crate::flushes::Side;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// Defines the blocking half on the primitives of a module that looks like `std::sync`, so that the same text runs for
/// real and under the model checker.
macro_rules! define_blocking_bell {
    ($name:ident, $($sync:tt)*) => {
        /// The half of a bell that blocks threads.
        #[derive(Default)]
        pub(crate) struct $name {
            rings: $($sync)*::atomic::AtomicU64,
            waiting: $($sync)*::atomic::AtomicUsize,
            /// How many threads sleep.
            sleeping: $($sync)*::Mutex<usize>,
            changed: $($sync)*::Condvar,
        }

        impl $name {
            /// Registers a waiter and tells how often the bell has rung.
            pub(crate) fn enter(&self) -> u64 {
                self.waiting.fetch_add(1, $($sync)*::atomic::Ordering::SeqCst);
                self.rings.load($($sync)*::atomic::Ordering::SeqCst)
            }

            /// Takes a waiter off the list.
            pub(crate) fn leave(&self) {
                self.waiting.fetch_sub(1, $($sync)*::atomic::Ordering::SeqCst);
            }

            /// Counts a ring; true if somebody waits and must be told.
            pub(crate) fn count(&self) -> bool {
                self.rings.fetch_add(1, $($sync)*::atomic::Ordering::SeqCst);
                self.waiting.load($($sync)*::atomic::Ordering::SeqCst) > 0
            }

            /// Wakes the threads that wait.
            pub(crate) fn wake(&self) {
                // Taking the lock waits for a thread that is between its look at the count and its sleep. Telling costs a call to the
                // system even if nobody sleeps, as when only tasks wait.
                let sleeping = *self.sleeping.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if sleeping > 0 {
                    self.changed.notify_all();
                }
            }

            /// Blocks until the bell has rung more often than `seen`.
            pub(crate) fn wait(&self, seen: u64) {
                let mut sleeping = self.sleeping.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                *sleeping += 1;
                while self.rings.load($($sync)*::atomic::Ordering::SeqCst) == seen {
                    sleeping = self.changed.wait(sleeping).unwrap_or_else(std::sync::PoisonError::into_inner);
                }
                *sleeping -= 1;
            }
        }
    };
}

define_blocking_bell!(BlockingBell, std::sync);

/// See the module.
#[derive(Default)]
pub(crate) struct Bell {
    blocking: BlockingBell,
    notify: Notify,
    /// The task that is woken next wakes the others.
    is_passed_on: AtomicBool,
}

/// A registered waiter.
pub(crate) struct Listener<'a> {
    bell: &'a Bell,
    seen: u64,
}

impl Bell {
    /// Tells everybody who listens that something changed.
    #[inline]
    pub(crate) fn ring(&self) {
        if self.blocking.count() {
            self.blocking.wake();
            self.notify.notify_waiters();
        }
    }

    /// The same for a thread that is no worker of the runtime: wakes the threads and one task, which wakes the others. Woken
    /// one by one from outside, each task would wake a worker of its own, which had nothing else to do then.
    pub(crate) fn ring_from_outside(&self) {
        if self.blocking.count() {
            self.blocking.wake();
            self.is_passed_on.store(true, Ordering::SeqCst);
            self.notify.notify_one();
        }
    }

    /// Tells everybody who listens, as suits whoever rings.
    pub(crate) fn ring_from(&self, side: Side) {
        match side {
            Side::Task => self.ring(),
            Side::Thread => self.ring_from_outside(),
        }
    }

    /// Registers a waiter. Look at what is waited for after this and before waiting.
    pub(crate) fn listen(&self) -> Listener<'_> {
        Listener { bell: self, seen: self.blocking.enter() }
    }
}

impl Listener<'_> {
    /// Blocks until the bell rings after `listen`.
    pub(crate) fn wait(self) {
        self.bell.blocking.wait(self.seen);
    }

    /// Completes when the bell rings after `listen`.
    pub(crate) async fn wait_async(self) {
        let mut notified = std::pin::pin!(self.bell.notify.notified());
        notified.as_mut().enable();
        if self.bell.blocking.rings.load(Ordering::SeqCst) == self.seen {
            notified.await;
        }
        if self.bell.is_passed_on.load(Ordering::SeqCst) && self.bell.is_passed_on.swap(false, Ordering::SeqCst) {
            self.bell.notify.notify_waiters();
        }
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        self.bell.blocking.leave();
    }
}

#[cfg(test)]
mod tests {
    use shuttle::sync::Arc;
    use shuttle::sync::atomic::{AtomicUsize, Ordering};

    define_blocking_bell!(ModelBell, shuttle::sync);

    /// A lost ring would leave the waiter asleep for ever, which shuttle reports as a deadlock.
    #[test]
    fn no_ring_is_lost() {
        let body = || {
            let bell = Arc::new(ModelBell::default());
            let value = Arc::new(AtomicUsize::new(0));
            let ringers: Vec<_> = (0..2)
                .map(|_| {
                    let (bell, value) = (bell.clone(), value.clone());
                    shuttle::thread::spawn(move || {
                        value.fetch_add(1, Ordering::SeqCst);
                        if bell.count() {
                            bell.wake();
                        }
                    })
                })
                .collect();
            let waiters: Vec<_> = (0..2)
                .map(|_| {
                    let (bell, value) = (bell.clone(), value.clone());
                    shuttle::thread::spawn(move || {
                        loop {
                            let seen = bell.enter();
                            let done = value.load(Ordering::SeqCst) == 2;
                            if !done {
                                bell.wait(seen);
                            }
                            bell.leave();
                            if done {
                                break;
                            }
                        }
                    })
                })
                .collect();
            ringers.into_iter().chain(waiters).for_each(|thread| thread.join().unwrap());
        };
        shuttle::check_pct(body, 2_000, 3);
        shuttle::check_random(body, 2_000);
    }
}
