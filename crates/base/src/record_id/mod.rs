//! The name of a record in its record store: a number, or a byte string in clustered collections.

pub mod suffix;

use std::fmt;

/// What kind of record ids a table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RecordIdKind {
    /// Numbers.
    #[default]
    Long,
    /// Byte strings: clustered collections.
    Bytes,
}

impl RecordIdKind {
    /// True if the id is of this kind.
    pub fn fits(self, id: &RecordId) -> bool {
        matches!((self, id), (RecordIdKind::Long, RecordId::Long(_)) | (RecordIdKind::Bytes, RecordId::Bytes(_)))
    }
}

/// A record's key. Numbers sort before strings; within each kind the order is the natural one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordId {
    /// Assigned by the server, ascending.
    Long(i64),
    /// The memcmp-ordered encoding of a cluster key.
    Bytes(Box<[u8]>),
}

impl RecordId {
    /// The largest byte-string id, as MongoDB limits it.
    pub const BYTES_LENGTH_MAX: usize = 8 * 1024 * 1024;

    /// The number, if this is one.
    pub fn as_long(&self) -> Option<i64> {
        match self {
            RecordId::Long(number) => Some(*number),
            RecordId::Bytes(_) => None,
        }
    }
}

impl fmt::Debug for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordId::Long(number) => write!(f, "RecordId({number})"),
            RecordId::Bytes(bytes) => {
                f.write_str("RecordId(")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str(")")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sort_before_strings() {
        assert!(RecordId::Long(i64::MAX) < RecordId::Bytes(Box::from(*b"")));
        assert!(RecordId::Long(-1) < RecordId::Long(0));
        assert_eq!(format!("{:?}", RecordId::Bytes(Box::from([0xab, 1]))), "RecordId(ab01)");
    }
}
