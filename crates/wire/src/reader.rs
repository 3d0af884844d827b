//! A place in a slice from which little-endian fields are taken; it never leaves the slice.

use bstr::{BStr, ByteSlice};

/// What is left of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub(crate) fn int32(&mut self) -> Option<i32> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(i32::from_le_bytes(*bytes))
    }

    pub(crate) fn int64(&mut self) -> Option<i64> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(i64::from_le_bytes(*bytes))
    }

    /// The text up to the next zero byte, which is skipped.
    pub(crate) fn text(&mut self) -> Option<&'a BStr> {
        let end = self.rest.find_byte(0)?;
        let text = self.take(end)?;
        self.byte()?;
        Some(text.as_bstr())
    }

    /// The bytes of the next document, by the length it announces; its inside is not looked at.
    pub(crate) fn document_bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.clone().int32()?).ok()?;
        self.take(length)
    }
}
