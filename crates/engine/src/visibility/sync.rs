//! The primitives under `visibility`: the real ones, or shuttle's when schedules are explored.

#[cfg(feature = "shuttle")]
pub use shuttle::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(feature = "shuttle"))]
pub use std::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(not(feature = "shuttle"))]
pub use parking_lot::Mutex;

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
pub use explored::Mutex;
