//! Where a builder writes: inline, on the heap, or into a block that many keys share.

use bytes::BytesMut;
use smallvec::SmallVec;

/// Keys up to this length are built without an allocation.
const INLINE_LENGTH: usize = 128;

/// Inline while the key is short; for keys that do not outlive their scope.
pub type StackBuffer = SmallVec<[u8; INLINE_LENGTH]>;

/// A growing buffer of bytes.
pub trait KeyBuffer {
    /// What was written.
    fn bytes(&self) -> &[u8];
    /// What was written, to be changed in place.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// Appends one byte.
    fn push(&mut self, byte: u8);
    /// Appends bytes.
    fn extend(&mut self, bytes: &[u8]);
    /// Forgets all but the first `length` bytes.
    fn truncate(&mut self, length: usize);
}

macro_rules! implement_key_buffer {
    ($buffer:ty, $push:ident) => {
        impl KeyBuffer for $buffer {
            #[inline]
            fn bytes(&self) -> &[u8] {
                self
            }
            #[inline]
            fn bytes_mut(&mut self) -> &mut [u8] {
                self
            }
            #[inline]
            fn push(&mut self, byte: u8) {
                self.$push(byte);
            }
            #[inline]
            fn extend(&mut self, bytes: &[u8]) {
                self.extend_from_slice(bytes);
            }
            #[inline]
            fn truncate(&mut self, length: usize) {
                self.truncate(length);
            }
        }
    };
}

implement_key_buffer!(StackBuffer, push);
implement_key_buffer!(Vec<u8>, push);

impl KeyBuffer for BytesMut {
    fn bytes(&self) -> &[u8] {
        self
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
    fn push(&mut self, byte: u8) {
        self.extend_from_slice(&[byte]);
    }
    fn extend(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
    fn truncate(&mut self, length: usize) {
        self.truncate(length);
    }
}
