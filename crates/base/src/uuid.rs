//! A universally unique id: what names a collection through renames, an index build, a session.
//!
//! Randomness is passed in, so that a simulation with the same seed makes the same ids.

use crate::{Error, ErrorCode, Result};
use std::fmt;
use std::str::FromStr;

/// Sixteen bytes, ordered and written big end first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid([u8; 16]);

/// Where the dashes stand in the text.
const DASHES: [usize; 4] = [8, 13, 18, 23];
const TEXT_LENGTH: usize = 36;

impl Uuid {
    /// An id from its bytes, of any version.
    pub const fn from_bytes(bytes: [u8; 16]) -> Uuid {
        Uuid(bytes)
    }

    /// An id from bytes of unknown length; there must be sixteen.
    pub fn from_slice(bytes: &[u8]) -> Result<Uuid> {
        let bytes = <[u8; 16]>::try_from(bytes);
        bytes.map(Uuid).map_err(|_| {
            Error::new(ErrorCode::InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype")
        })
    }

    /// A version 4 id from random bytes: six bits of them give way to version and variant.
    pub const fn from_random(mut random: [u8; 16]) -> Uuid {
        random[6] = (random[6] & 0x0f) | 0x40;
        random[8] = (random[8] & 0x3f) | 0x80;
        Uuid(random)
    }

    /// The sixteen bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// True if it is a version 4 id.
    pub const fn is_random(&self) -> bool {
        self.0[6] & 0xf0 == 0x40 && self.0[8] & 0xc0 == 0x80
    }

    /// Reads the 36 characters with dashes, in either case.
    pub fn parse(text: &str) -> Result<Uuid> {
        digits(text)
            .map(|digits| Uuid(digits.to_be_bytes()))
            .ok_or_else(|| Error::new(ErrorCode::InvalidUUID, format!("Invalid UUID string: {text}")))
    }
}

/// The hex digits as one number, if there are 32 of them with the dashes where they belong.
fn digits(text: &str) -> Option<u128> {
    if text.len() != TEXT_LENGTH {
        return None;
    }
    text.bytes().enumerate().try_fold(0_u128, |number, (position, byte)| {
        if DASHES.contains(&position) {
            return (byte == b'-').then_some(number);
        }
        let digit = char::from(byte).to_digit(16)?;
        Some(number << 4 | u128::from(digit))
    })
}

impl FromStr for Uuid {
    type Err = Error;

    fn from_str(text: &str) -> Result<Uuid> {
        Uuid::parse(text)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g, h, i, j, k, tail @ ..] = self.0;
        write!(f, "{a:02x}{b:02x}{c:02x}{d:02x}-{e:02x}{g:02x}-{h:02x}{i:02x}-{j:02x}{k:02x}-")?;
        tail.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uuid({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        let text = "01234567-89ab-4cde-8f01-23456789abcd";
        let uuid = Uuid::parse(text).unwrap();
        assert_eq!(uuid.to_string(), text);
        assert_eq!(uuid.as_bytes()[..3], [0x01, 0x23, 0x45]);
        assert_eq!(Uuid::parse(&text.to_uppercase()), Ok(uuid));
        assert!(uuid.is_random());
    }

    #[test]
    fn bad_text_is_refused() {
        let long = "01234567-89ab-4cde-8f01-23456789abcd0";
        let moved = "0123456-789ab-4cde-8f01-23456789abcd";
        let letter = "g1234567-89ab-4cde-8f01-23456789abcd";
        let sign = "+1234567-89ab-4cde-8f01-23456789abcd";
        let wide = "é234567-89ab-4cde-8f01-23456789abcd";
        for text in ["", "-", long, moved, letter, sign, wide, "0123456789ab4cde8f0123456789abcd"] {
            assert_eq!(Uuid::parse(text).unwrap_err().code(), ErrorCode::InvalidUUID, "{text}");
        }
        assert!(Uuid::from_slice(&[0; 15]).is_err());
        assert!(Uuid::from_slice(&[0; 16]).is_ok());
    }

    #[test]
    fn random_bytes_become_version_4() {
        assert_eq!(Uuid::from_random([0xff; 16]).to_string(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(Uuid::from_random([0; 16]).to_string(), "00000000-0000-4000-8000-000000000000");
        assert!(!Uuid::from_bytes([0xff; 16]).is_random());
    }
}
