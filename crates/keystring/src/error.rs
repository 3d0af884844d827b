//! What can be wrong with a value that is to become a key, or with bytes that claim to be one.

use pando_base::ErrorCode;

/// Why a key could not be written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Version 0 has no decimals.
    #[error("Index version does not support NumberDecimal")]
    DecimalInVersion0,
    /// Collations know no symbols.
    #[error("Cannot index type Symbol with a collation.")]
    SymbolWithCollation,
    /// An index key has at most 32 fields.
    #[error("too many compound keys")]
    TooManyFields,
    /// The bytes end within a component.
    #[error("KeyString format error: the bytes end within a value")]
    TooShort,
    /// A string or name does not end.
    #[error("KeyString format error: Failed to find null terminator in string.")]
    Unterminated,
    /// No component starts with this byte.
    #[error("KeyString format error: Unknown type: {0}")]
    UnknownType(u8),
    /// A number's bytes say nothing.
    #[error("KeyString format error: Invalid number")]
    BadNumber,
    /// The type bits do not go with the number.
    #[error("KeyString format error: Invalid type bits for numeric value")]
    BadTypeBits,
    /// The type bits are those of an integer and the number is none. MongoDB has a code for each form of a number.
    #[error("KeyString format error: Invalid type bits for a number that is no integer")]
    NotAnInteger(u16),
    /// The type bits end too early or have a wrong length.
    #[error("KeyString format error: Invalid size byte(s).")]
    BadTypeBitsSize,
    /// Documents in documents in documents.
    #[error("KeyString encoding exceeded maximum allowable BSON nesting depth")]
    TooDeep,
    /// No record id at the end.
    #[error("KeyString format error: no valid RecordId at the end")]
    BadRecordId,
}

/// The result of writing or reading a key.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// MongoDB's code for it.
    pub fn code(self) -> ErrorCode {
        match self {
            Error::DecimalInVersion0 => ErrorCode::UnsupportedFormat,
            Error::SymbolWithCollation => ErrorCode::CannotBuildIndexKeys,
            Error::TooManyFields => ErrorCode::location(13103),
            Error::TooShort => ErrorCode::Overflow,
            Error::Unterminated => ErrorCode::location(50816),
            Error::UnknownType(_) => ErrorCode::location(50811),
            Error::BadNumber => ErrorCode::location(50810),
            Error::BadTypeBits => ErrorCode::location(50819),
            Error::NotAnInteger(code) => ErrorCode::location(i32::from(code)),
            Error::BadTypeBitsSize => ErrorCode::location(50615),
            Error::TooDeep => ErrorCode::Overflow,
            Error::BadRecordId => ErrorCode::location(8273000),
        }
    }
}

impl From<Error> for pando_base::Error {
    fn from(error: Error) -> pando_base::Error {
        pando_base::Error::new(error.code(), error.to_string())
    }
}
