//! Tells the processor what will be read next. The one piece of unsafe code of this crate; the
//! overlay uses it too.
//!
//! Scans of cached blocks wait for memory, not for instructions: fetching the next entry while the current one is used makes
//! a scan of one run 1.5 times and a merged scan of five runs 1.7 times as fast. An ordinary early load gains nothing,
//! since the processor cannot retire it before the data is there.

/// Begins to load the first two cache lines of a slice. Never faults, never waits.
#[inline]
pub(crate) fn prefetch<T>(things: &[T]) {
    prefetch_at(things.as_ptr());
}

/// Begins to load the first two cache lines of what lies there, whatever it is.
#[inline]
pub fn prefetch_at<T>(start: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = start.cast::<i8>();
        // SAFETY: a prefetch is a hint that touches no memory as far as the language is concerned; any address is allowed.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(start);
            _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(64));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = start;
}
