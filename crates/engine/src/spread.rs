//! Numbers for threads, by which they are spread over places so that they do not meet.

/// The number of this thread: small, and different from that of most others.
#[cfg(not(feature = "shuttle"))]
#[inline]
pub fn thread_number() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    MINE.with(|number| *number)
}

/// The same in every run of a schedule.
#[cfg(feature = "shuttle")]
pub fn thread_number() -> usize {
    usize::from(shuttle::current::me())
}
