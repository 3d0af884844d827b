//! A key in a leaf's entry.
//!
//! Most keys are short: record ids, object ids, numbers. They lie in the entry itself, so that comparing one does not wait for
//! memory once more, and writing one takes no allocation of its own.

use std::ops::Deref;

/// Keys up to this length lie in the entry.
const INLINE_BYTES_MAX: usize = 22;

/// The bytes of a key.
pub enum Key {
    /// Short.
    Inline {
        /// How many bytes count.
        length: u8,
        /// The key, then zeros.
        bytes: [u8; INLINE_BYTES_MAX],
    },
    /// Long.
    Boxed(Box<[u8]>),
}

impl From<&[u8]> for Key {
    fn from(key: &[u8]) -> Key {
        let mut bytes = [0; INLINE_BYTES_MAX];
        match bytes.get_mut(..key.len()) {
            Some(place) => {
                place.copy_from_slice(key);
                Key::Inline { length: key.len() as u8, bytes }
            }
            None => Key::Boxed(key.into()),
        }
    }
}

impl Deref for Key {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Key::Inline { length, bytes } => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Key::Boxed(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_every_length_are_kept() {
        for length in 0..64 {
            let key: Vec<u8> = (0..length).collect();
            assert_eq!(*Key::from(key.as_slice()), *key);
        }
        assert_eq!(size_of::<Key>(), 24);
    }
}
