//! A finished key: its bytes, the record id behind them if any, and the type bits, in one shared buffer.

use crate::decode::to_doc;
use crate::{KeyOrdering, RecordIdKind, Result, Version, decode_record_id_at_end};
use bytes::Bytes;
use pando_base::RecordId;
use pando_doc::Doc;
use std::cmp::Ordering;
use std::fmt;

/// A key that does not change any more. Cheap to clone. Equality and order are those of the bytes with the record id; the
/// type bits do not matter.
#[derive(Clone)]
pub struct KeyString {
    /// Key, record id, type bits.
    buffer: Bytes,
    key_length: usize,
    record_id_length: usize,
    version: Version,
}

impl KeyString {
    pub(crate) fn from_parts(buffer: Bytes, key_length: usize, record_id_length: usize, version: Version) -> KeyString {
        debug_assert!(record_id_length <= key_length && key_length <= buffer.len());
        KeyString { buffer, key_length, record_id_length, version }
    }

    /// A key from what an index holds: the bytes without a record id, and the type bits as they are stored.
    pub fn from_stored(key: &[u8], type_bits: &[u8], version: Version) -> KeyString {
        let buffer = Bytes::from([key, type_bits].concat());
        KeyString { buffer, key_length: key.len(), record_id_length: 0, version }
    }

    /// The bytes, with the record id if there is one.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.key_length]
    }

    /// The bytes without the record id.
    pub fn bytes_without_record_id(&self) -> &[u8] {
        &self.buffer[..self.size_without_record_id()]
    }

    /// How many bytes there are without the record id.
    pub fn size_without_record_id(&self) -> usize {
        self.key_length - self.record_id_length
    }

    /// The type bits as they are stored; empty in most cases.
    pub fn type_bits(&self) -> &[u8] {
        &self.buffer[self.key_length..]
    }

    /// The number format.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The record id at the end, if there is one.
    pub fn record_id(&self, kind: RecordIdKind) -> Result<Option<RecordId>> {
        match self.record_id_length {
            0 => Ok(None),
            _ => decode_record_id_at_end(self.bytes(), kind).map(Some),
        }
    }

    /// The values, each under the empty name.
    pub fn to_doc(&self, ordering: KeyOrdering) -> Result<Doc> {
        to_doc(self.bytes_without_record_id(), ordering, self.type_bits(), self.version)
    }

    /// Compares without the record ids.
    pub fn compare_without_record_id(&self, other: &KeyString) -> Ordering {
        self.bytes_without_record_id().cmp(other.bytes_without_record_id())
    }
}

impl PartialEq for KeyString {
    fn eq(&self, other: &KeyString) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for KeyString {}

impl PartialOrd for KeyString {
    fn partial_cmp(&self, other: &KeyString) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeyString {
    fn cmp(&self, other: &KeyString) -> Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl std::hash::Hash for KeyString {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}

/// Hexadecimal, as MongoDB shows keys.
impl fmt::Display for KeyString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl fmt::Debug for KeyString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyString({self})")
    }
}
