//! Buffers for replies, used again and again.
//!
//! A reply grows to its size once; keeping the buffer saves the growing. Large ones are not kept, so that one big answer
//! does not hold memory for ever.

use parking_lot::Mutex;

/// The largest buffer that is kept.
const KEPT_BYTES_MAX: usize = 64 * 1024;
/// How many are kept at most.
const KEPT_MAX: usize = 64;
/// The room in a new one: a small reply fits.
const NEW_BYTES: usize = 1024;

/// Buffers that nobody uses now.
#[derive(Default)]
pub(crate) struct BufferPool(Mutex<Vec<Vec<u8>>>);

impl BufferPool {
    /// A buffer, perhaps with old bytes in it.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.0.lock().pop().unwrap_or_else(|| Vec::with_capacity(NEW_BYTES))
    }

    /// Gives a buffer back.
    pub(crate) fn give(&self, buffer: Vec<u8>) {
        if buffer.capacity() == 0 || buffer.capacity() > KEPT_BYTES_MAX {
            return;
        }
        let mut kept = self.0.lock();
        if kept.len() < KEPT_MAX {
            kept.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_buffers_come_back_and_large_ones_do_not() {
        let pool = BufferPool::default();
        pool.give(Vec::with_capacity(5000));
        assert_eq!(pool.take().capacity(), 5000);
        pool.give(Vec::with_capacity(KEPT_BYTES_MAX + 1));
        assert_eq!(pool.take().capacity(), NEW_BYTES);
        (0..2 * KEPT_MAX).for_each(|_| pool.give(Vec::with_capacity(10)));
        assert_eq!(pool.0.lock().len(), KEPT_MAX);
    }
}
