//! The record id at the end of a key, in the form of `pando_base::record_id::suffix`: the storage layer keeps index entries
//! under it, so a key with its record id is the table's key.

use crate::{Error, Result};
use pando_base::record_id::suffix;
use pando_base::{RecordId, RecordIdKind};

/// How long the key is without the record id at its end.
pub fn size_without_record_id(key: &[u8], kind: RecordIdKind) -> Result<usize> {
    split_record_id(key, kind).map(|(start, _)| start.len())
}

/// The record id at the end of a key.
pub fn decode_record_id_at_end(key: &[u8], kind: RecordIdKind) -> Result<RecordId> {
    split_record_id(key, kind).map(|(_, id)| id)
}

/// The key proper and the record id behind it.
pub fn split_record_id(key: &[u8], kind: RecordIdKind) -> Result<(&[u8], RecordId)> {
    suffix::split(kind, key).ok_or(Error::BadRecordId)
}
