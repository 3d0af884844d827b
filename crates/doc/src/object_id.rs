//! Object ids: twelve bytes that order roughly by time.
//!
//! Layout: seconds since 1970 (4 bytes), a number drawn once per process (5 bytes), a counter (3 bytes), all
//! big-endian. Time and randomness are handed in; this module has neither.

use std::fmt;
use std::str::FromStr;

/// A BSON object id; ordered by its bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ObjectId([u8; 12]);

impl ObjectId {
    /// How many bytes an id has.
    pub const LENGTH_BYTES: usize = 12;

    /// The id with these bytes.
    #[inline]
    pub const fn from_bytes(bytes: [u8; 12]) -> ObjectId {
        ObjectId(bytes)
    }

    /// An id from its parts; the upper byte of the counter is dropped.
    pub const fn from_parts(seconds: u32, process: [u8; 5], counter: u32) -> ObjectId {
        let [s0, s1, s2, s3] = seconds.to_be_bytes();
        let [p0, p1, p2, p3, p4] = process;
        let [_, c0, c1, c2] = counter.to_be_bytes();
        ObjectId([s0, s1, s2, s3, p0, p1, p2, p3, p4, c0, c1, c2])
    }

    /// The id's bytes.
    #[inline]
    pub const fn bytes(&self) -> &[u8; 12] {
        &self.0
    }

    /// When the id was made, in seconds since 1970.
    pub const fn seconds(&self) -> u32 {
        let [s0, s1, s2, s3, ..] = self.0;
        u32::from_be_bytes([s0, s1, s2, s3])
    }

    /// When the id was made, as the date that MongoDB makes of it: its seconds have a sign there, so that times after
    /// January 2038 lie before 1970.
    pub const fn milliseconds(&self) -> i64 {
        self.seconds() as i32 as i64 * 1000
    }
}

/// The text was not 24 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnObjectId;

impl fmt::Display for NotAnObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an ObjectId has 24 hexadecimal digits")
    }
}

impl std::error::Error for NotAnObjectId {}

impl FromStr for ObjectId {
    type Err = NotAnObjectId;

    fn from_str(text: &str) -> Result<ObjectId, NotAnObjectId> {
        if text.len() != 24 {
            return Err(NotAnObjectId);
        }
        let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8).ok_or(NotAnObjectId);
        let mut bytes = [0; 12];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().as_chunks::<2>().0) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(ObjectId(bytes))
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId('{self}')")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_text_and_order() {
        let id = ObjectId::from_parts(0x0102_0304, [5, 6, 7, 8, 9], 0xFF0A_0B0C);
        assert_eq!(id.to_string(), "0102030405060708090a0b0c");
        assert_eq!((id.seconds(), "0102030405060708090A0B0C".parse()), (0x0102_0304, Ok(id)));
        assert!(id < ObjectId::from_parts(0x0102_0305, [0; 5], 0));
        for wrong in ["", "0102030405060708090a0b0", "0102030405060708090a0b0g", "0102030405060708090a0b0c0d"] {
            assert_eq!(wrong.parse::<ObjectId>(), Err(NotAnObjectId));
        }
    }
}
