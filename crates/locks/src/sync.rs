//! The primitives under the parts that threads share: the real ones, or shuttle's when schedules are explored.

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(not(feature = "shuttle"))]
pub(crate) use parking_lot::Mutex;

#[cfg(feature = "shuttle")]
mod explored {
    /// Shuttle's mutex with the calls of the real one.
    #[derive(Default)]
    pub struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// A mutex.
        pub const fn new(value: T) -> Mutex<T> {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        /// Takes the lock; a poisoned one is taken all the same, as the real one is never poisoned.
        pub fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
        }
    }
}
#[cfg(feature = "shuttle")]
pub(crate) use explored::Mutex;

/// A value with cache lines of its own, so that writing it disturbs no neighbour. Two lines, as processors fetch pairs.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Padded<T>(pub T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
