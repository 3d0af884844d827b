//! A cursor over the bytes of a key that may be inverted.
//!
//! Descending components have all their bytes inverted, and negative numbers have theirs inverted once more, so every read
//! goes through a mask. Reading past the end is an error, never a panic.

use crate::canonical::{ESCAPE, TERMINATOR};
use crate::{Error, Result};

#[derive(Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    /// Zero, or all ones where the bytes are inverted.
    mask: u8,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, mask: 0 }
    }

    /// Says whether what follows is inverted.
    pub(crate) fn set_inverted(&mut self, is_inverted: bool) {
        self.mask = if is_inverted { u8::MAX } else { 0 };
    }

    /// Reads with the other mask.
    pub(crate) fn inverted<T>(&mut self, read: impl FnOnce(&mut Reader<'a>) -> Result<T>) -> Result<T> {
        self.mask = !self.mask;
        let result = read(self);
        self.mask = !self.mask;
        result
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// The next byte as it lies there, without the mask.
    pub(crate) fn peek_raw(&self) -> Option<u8> {
        self.bytes.first().copied()
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        let (first, rest) = self.bytes.split_first().ok_or(Error::TooShort)?;
        self.bytes = rest;
        Ok(first ^ self.mask)
    }

    /// Passes over bytes.
    pub(crate) fn skip(&mut self, length: usize) -> Result<()> {
        self.take_raw(length).map(|_| ())
    }

    fn take_raw(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(Error::TooShort)?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(crate) fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH]> {
        let (taken, rest) = self.bytes.split_first_chunk::<LENGTH>().ok_or(Error::TooShort)?;
        self.bytes = rest;
        Ok(taken.map(|byte| byte ^ self.mask))
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A number of up to eight bytes.
    pub(crate) fn big_endian(&mut self, length: usize) -> Result<u64> {
        debug_assert!(length <= 8);
        let mask = self.mask;
        Ok(self.take_raw(length)?.iter().fold(0, |number, byte| number << 8 | u64::from(byte ^ mask)))
    }

    /// Appends so many bytes to `out`.
    pub(crate) fn take(&mut self, length: usize, out: &mut Vec<u8>) -> Result<()> {
        let mask = self.mask;
        out.extend(self.take_raw(length)?.iter().map(|byte| byte ^ mask));
        Ok(())
    }

    /// Appends the bytes up to the terminator to `out` and passes over the terminator.
    pub(crate) fn take_name(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let length = self.find_terminator()?;
        self.take(length, out)?;
        self.skip(1)
    }

    pub(crate) fn skip_name(&mut self) -> Result<()> {
        let length = self.find_terminator()?;
        self.skip(length + 1)
    }

    /// Like a name, but zeros may be part of it; each is followed by the escape byte.
    pub(crate) fn take_text(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.take_name(out)?;
        while self.skip_escape() {
            out.push(0);
            self.take_name(out)?;
        }
        Ok(())
    }

    pub(crate) fn skip_text(&mut self) -> Result<()> {
        self.skip_name()?;
        while self.skip_escape() {
            self.skip_name()?;
        }
        Ok(())
    }

    fn find_terminator(&self) -> Result<usize> {
        memchr::memchr(TERMINATOR ^ self.mask, self.bytes).ok_or(Error::Unterminated)
    }

    fn skip_escape(&mut self) -> bool {
        let is_escape = self.peek_raw() == Some(ESCAPE ^ self.mask);
        if is_escape {
            self.bytes = self.bytes.get(1..).unwrap_or_default();
        }
        is_escape
    }
}
