//! What a key's bytes do not tell: which of several equal values was written.
//!
//! `1`, `NumberLong(1)`, `1.0` and `NumberDecimal("1.00")` have the same bytes, as they must, and so have a string and the
//! equal symbol. Each such value appends some bits when it is written, which are consumed in the same order when it is read:
//!
//! | value | bits |
//! | --- | --- |
//! | string, symbol | `0`, `1` |
//! | int32, int64, double | `00`, `01`, `10` |
//! | decimal | `11`, then the six low bits of its stored exponent; none for NaN and the infinities |
//! | zeros of the first three types | as above |
//! | double -0 | `11000`; in version 0 `11` |
//! | decimal zero | `11`, then 3 + 12 bits: `010000…` plus its stored exponent, plus 12288 if negative |
//!
//! Bits fill bytes from the lowest bit on. The payload of a NaN and non-canonical decimals are not kept.
//!
//! **Encoded**, as it stands behind an index entry: nothing at all if all bits are zero, however many they are, because that
//! is the common case; one byte if it is the only one and below `80`; else `80 + count` and up to 127 bytes; else `80`, a
//! little-endian count of four bytes, and the bytes.

use crate::{Error, Result, Version};
use smallvec::SmallVec;

/// The longest sequence of bytes with a short count.
const SHORT_LENGTH_MAX: usize = 127;
/// Starts a long count; added to a short one.
const COUNT_FLAG: u8 = 0x80;

/// Encoded type bits, of which there are hardly ever many.
pub type EncodedTypeBits = SmallVec<[u8; 16]>;

/// The type bits of one key, while it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeBits {
    /// The bytes that are complete and did not fit into `tail`.
    head: Vec<u8>,
    tail: u64,
    tail_bit_count: u32,
    has_ones: bool,
}

impl TypeBits {
    /// No bits.
    pub fn new() -> TypeBits {
        TypeBits::default()
    }

    /// True if there is nothing to store.
    pub fn is_all_zeros(&self) -> bool {
        !self.has_ones
    }

    /// Forgets the bits, keeps the memory.
    pub fn clear(&mut self) {
        self.head.clear();
        self.tail = 0;
        self.tail_bit_count = 0;
        self.has_ones = false;
    }

    /// The bits as they are stored.
    pub fn encode(&self) -> EncodedTypeBits {
        let mut out = EncodedTypeBits::new();
        self.encode_with(|bytes| out.extend_from_slice(bytes));
        out
    }

    /// Hands the encoded bits out piece by piece.
    pub(crate) fn encode_with(&self, mut append: impl FnMut(&[u8])) {
        if self.is_all_zeros() {
            return;
        }
        let tail = self.tail.to_le_bytes();
        let tail = &tail[..self.tail_bit_count.div_ceil(8) as usize];
        let length = self.head.len() + tail.len();
        match (length, tail) {
            (1, [byte]) if *byte < COUNT_FLAG => {}
            (..=SHORT_LENGTH_MAX, _) => append(&[COUNT_FLAG | length as u8]),
            _ => {
                append(&[COUNT_FLAG]);
                append(&(length as u32).to_le_bytes());
            }
        }
        append(&self.head);
        append(tail);
    }

    /// Appends the lowest `count` bits of `bits`, the highest of them first.
    #[inline]
    fn append(&mut self, bits: u32, count: u32) {
        debug_assert!(count <= 17 && bits >> count == 0);
        if self.tail_bit_count + count > u64::BITS {
            self.move_tail();
        }
        if bits != 0 {
            self.has_ones = true;
            self.tail |= u64::from(bits.reverse_bits() >> (u32::BITS - count)) << self.tail_bit_count;
        }
        self.tail_bit_count += count;
    }

    /// Moves whole bytes to the head.
    fn move_tail(&mut self) {
        let byte_count = self.tail_bit_count / 8;
        self.head.extend_from_slice(&self.tail.to_le_bytes()[..byte_count as usize]);
        self.tail = self.tail.checked_shr(8 * byte_count).unwrap_or(0);
        self.tail_bit_count -= 8 * byte_count;
    }

    #[inline]
    pub(crate) fn append_string(&mut self) {
        self.append(0, 1);
    }

    pub(crate) fn append_symbol(&mut self) {
        self.append(1, 1);
    }

    /// Also for zeros, except those of decimals and the negative one.
    #[inline]
    pub(crate) fn append_number(&mut self, number_type: NumberType) {
        self.append(number_type as u32, 2);
    }

    pub(crate) fn append_negative_zero(&mut self, version: Version) {
        match version {
            Version::V0 => self.append(0b11, 2),
            Version::V1 => self.append(NEGATIVE_ZERO, 5),
        }
    }

    /// The stored exponent, plus the number of stored exponents if negative.
    pub(crate) fn append_decimal_zero(&mut self, which: u32) {
        self.append((DECIMAL_ZERO << 12) + which, 17);
    }

    pub(crate) fn append_decimal_exponent(&mut self, biased_exponent: u32) {
        self.append(biased_exponent & 63, 6);
    }
}

/// Which number type a value had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberType {
    Int32 = 0,
    Int64 = 1,
    Double = 2,
    Decimal = 3,
}

/// Which zero a zero was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZeroType {
    Int32,
    Int64,
    Double,
    NegativeDouble,
    Decimal(u32),
}

const NEGATIVE_ZERO: u32 = 0b11000;
/// The first of six prefixes; `11001` is not used.
const DECIMAL_ZERO: u32 = 0b11010;

/// Consumes type bits while a key is read.
#[derive(Clone, Debug)]
pub struct TypeBitsReader<'a> {
    /// Empty if all bits are zero.
    bytes: &'a [u8],
    position_bits: usize,
}

impl<'a> TypeBitsReader<'a> {
    /// Reads encoded bits, which must be all of the bytes.
    pub fn new(encoded: &'a [u8]) -> Result<TypeBitsReader<'a>> {
        match TypeBitsReader::split(encoded)? {
            (reader, []) => Ok(reader),
            _ => Err(Error::BadTypeBitsSize),
        }
    }

    /// Reads encoded bits and gives the bytes behind them.
    pub fn split(encoded: &'a [u8]) -> Result<(TypeBitsReader<'a>, &'a [u8])> {
        let (length, rest) = split_length(encoded)?;
        let (bytes, rest) = rest.split_at_checked(length).ok_or(Error::BadTypeBitsSize)?;
        Ok((TypeBitsReader { bytes, position_bits: 0 }, rest))
    }

    fn bit(&mut self) -> Result<u32> {
        if self.bytes.is_empty() {
            return Ok(0);
        }
        let byte = self.bytes.get(self.position_bits / 8).ok_or(Error::BadTypeBitsSize)?;
        let bit = byte >> (self.position_bits % 8) & 1;
        self.position_bits += 1;
        Ok(bit.into())
    }

    fn bits(&mut self, count: u32) -> Result<u32> {
        (0..count).try_fold(0, |bits, _| Ok(bits << 1 | self.bit()?))
    }

    pub(crate) fn is_symbol(&mut self) -> Result<bool> {
        Ok(self.bit()? == 1)
    }

    pub(crate) fn number(&mut self) -> Result<NumberType> {
        Ok(match self.bits(2)? {
            0 => NumberType::Int32,
            1 => NumberType::Int64,
            2 => NumberType::Double,
            _ => NumberType::Decimal,
        })
    }

    pub(crate) fn zero(&mut self, version: Version) -> Result<ZeroType> {
        match (self.number()?, version) {
            (NumberType::Int32, _) => return Ok(ZeroType::Int32),
            (NumberType::Int64, _) => return Ok(ZeroType::Int64),
            (NumberType::Double, _) => return Ok(ZeroType::Double),
            (NumberType::Decimal, Version::V0) => return Ok(ZeroType::NegativeDouble),
            (NumberType::Decimal, Version::V1) => {}
        }
        match 0b11000 | self.bits(3)? {
            NEGATIVE_ZERO => Ok(ZeroType::NegativeDouble),
            prefix @ DECIMAL_ZERO.. => Ok(ZeroType::Decimal((prefix - DECIMAL_ZERO) << 12 | self.bits(12)?)),
            _ => Err(Error::BadTypeBits),
        }
    }

    pub(crate) fn decimal_exponent(&mut self) -> Result<u32> {
        self.bits(6)
    }
}

/// How many bytes of bits follow, and the bytes from there on.
fn split_length(encoded: &[u8]) -> Result<(usize, &[u8])> {
    match encoded {
        [] => Ok((0, encoded)),
        [0, rest @ ..] => Ok((0, rest)),
        [..COUNT_FLAG, ..] => Ok((1, encoded)),
        [COUNT_FLAG, rest @ ..] => {
            let (length, rest) = rest.split_first_chunk().ok_or(Error::BadTypeBitsSize)?;
            match u32::from_le_bytes(*length) as usize {
                ..=SHORT_LENGTH_MAX => Err(Error::BadTypeBitsSize),
                length => Ok((length, rest)),
            }
        }
        [count, rest @ ..] => Ok((usize::from(count - COUNT_FLAG), rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x12_zeros_cost_nothing() {
        let mut bits = TypeBits::new();
        assert_eq!(bits.encode().as_slice(), &[] as &[u8]);
        for _ in 0..5000 {
            bits.append_string();
            bits.append_number(NumberType::Int32);
        }
        assert!(bits.is_all_zeros() && bits.encode().is_empty());
        let mut reader = TypeBitsReader::new(&[]).unwrap();
        assert_eq!(reader.zero(Version::V1), Ok(ZeroType::Int32));
    }

    #[test]
    fn x12_bits_lie_as_in_mongodb() {
        let mut bits = TypeBits::new();
        bits.append_number(NumberType::Double);
        assert_eq!(bits.encode().as_slice(), [0b01]);
        bits.append_number(NumberType::Int64);
        assert_eq!(bits.encode().as_slice(), [0b1001]);
        bits.append_negative_zero(Version::V1);
        // Nine bits: a count is needed. The five bits 11000 come highest first, from bit 4 on.
        assert_eq!(bits.encode().as_slice(), [0x82, 0b0011_1001, 0]);
        bits.clear();
        (0..4).for_each(|_| bits.append_number(NumberType::Int64));
        assert_eq!(bits.encode().as_slice(), [0x81, 0b1010_1010]);
        bits.clear();
        bits.append_number(NumberType::Decimal);
        bits.append_decimal_exponent(6176 - 2);
        // 6174 ends with 011110.
        assert_eq!(bits.encode().as_slice(), [0b0111_1011]);
    }

    #[test]
    fn x12_many_bits_round_trip() {
        for count in [1_usize, 3, 4, 5, 31, 32, 33, 63, 64, 65, 507, 508, 509, 520, 5000] {
            let mut bits = TypeBits::new();
            for number in 0..count {
                bits.append_number(if number % 3 == 0 { NumberType::Double } else { NumberType::Decimal });
            }
            let encoded = bits.encode();
            let data_length = (2 * count).div_ceil(8);
            if data_length > SHORT_LENGTH_MAX {
                assert_eq!((encoded[0], encoded.len()), (COUNT_FLAG, data_length + 5));
            }
            let mut reader = TypeBitsReader::new(&encoded).unwrap();
            for number in 0..count {
                let expected = if number % 3 == 0 { NumberType::Double } else { NumberType::Decimal };
                assert_eq!(reader.number(), Ok(expected), "{number} of {count}");
            }
            assert!(TypeBitsReader::new(&encoded[..encoded.len() - 1]).is_err() || encoded.len() == 1);
        }
    }

    #[test]
    fn x12_every_zero_round_trips() {
        let mut bits = TypeBits::new();
        let zeros = [0, 1, 4095, 4096, 12_287, 12_288, 24_575];
        for which in zeros {
            bits.append_string();
            bits.append_decimal_zero(which);
            bits.append_negative_zero(Version::V1);
        }
        let encoded = bits.encode();
        let mut reader = TypeBitsReader::new(&encoded).unwrap();
        for which in zeros {
            assert_eq!(reader.is_symbol(), Ok(false));
            assert_eq!(reader.zero(Version::V1), Ok(ZeroType::Decimal(which)));
            assert_eq!(reader.zero(Version::V1), Ok(ZeroType::NegativeDouble));
        }
    }

    #[test]
    fn bad_counts_are_refused() {
        assert!(TypeBitsReader::split(&[0x82, 1]).is_err());
        assert!(TypeBitsReader::split(&[0x80, 5, 0, 0, 0, 1, 2, 3, 4, 5]).is_err());
        assert!(TypeBitsReader::split(&[0x80, 255, 255, 255, 255]).is_err());
        assert!(TypeBitsReader::split(&[0x80, 255]).is_err());
        assert!(TypeBitsReader::new(&[1, 0]).is_err());
        assert_eq!(TypeBitsReader::split(&[1, 7]).unwrap().1, [7]);
        let mut short = TypeBitsReader::new(&[1]).unwrap();
        assert_eq!(short.bits(8), Ok(0b1000_0000));
        assert_eq!(short.bit(), Err(Error::BadTypeBitsSize));
    }
}
