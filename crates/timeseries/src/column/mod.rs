//! Columns: the values of one field of a bucket, compressed, as MongoDB stores them in binary values of subtype 7.
//!
//! A column is a row of blocks, ended by a zero. The first byte of a block tells what it is:
//! - `0x01`-`0x1F`, `0x7F`, `0xFF`: a *literal*, a BSON element with an empty name;
//! - `0x80`-`0xDF`: up to sixteen words of Simple-8b with differences to the value before; the upper half of the byte is the scale
//!   of doubles, the lower half the number of words less one;
//! - `0xF1`, `0xF2` (and `0xF0` of old): documents or arrays from here on. A reference document follows; each scalar in it is a
//!   stream of its own, whose blocks come in the order in which a reader needs them. A zero ends it.
//!
//! Dates, timestamps and object ids keep the difference of differences. A missing value takes a slot of ones.
//!
//! Invariants: what `encode` makes, `ColumnReader` gives back byte by byte; whatever bytes a reader gets, it ends, with an error or not.

mod append;
mod blocks;
mod encode;
mod interleave;
mod numbers;
mod read;
mod simple8b;

#[cfg(test)]
mod tests;

pub use append::ColumnBuilder;
pub use encode::encode;
pub(crate) use encode::is_storable;
pub use read::{ColumnReader, OwnedEncoded, Step};

use pando_base::Error;
use pando_doc::ValueType;

/// The subtype of binary values that are columns.
pub const COLUMN_SUBTYPE: u8 = 7;

/// An encoded value and its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded<'a> {
    /// Its type.
    pub value_type: ValueType,
    /// Its bytes, as they stand behind the name in an element.
    pub bytes: &'a [u8],
}

/// Objects, arrays of documents: interleaved.
const INTERLEAVED_WITHOUT_ARRAYS: u8 = 0xF0;
const INTERLEAVED_OBJECTS: u8 = 0xF1;
const INTERLEAVED_ARRAYS: u8 = 0xF2;

/// True for types whose difference of differences is kept.
fn uses_delta_of_delta(value_type: ValueType) -> bool {
    matches!(value_type, ValueType::ObjectId | ValueType::DateTime | ValueType::Timestamp)
}

/// True for types whose differences have up to 128 bits.
fn is_wide(value_type: ValueType) -> bool {
    matches!(value_type, ValueType::Decimal | ValueType::Binary | ValueType::String | ValueType::Code)
}

/// The bytes are no column.
fn damaged(code: i32) -> Error {
    Error::location(code, "Invalid BSON Column encoding")
}
