//! The redo of one commit, as the log carries it.
//!
//! A payload begins with the commit and durable timestamps of the writes that have none of their own; then the operations
//! follow, in the order they were made. Numbers are LEB128. The log has checked the bytes before they come back here; what
//! does not decode all the same is reported as corruption, never trusted.

use pando_base::Timestamp;
use pando_storage::{StorageError, TableOptions, TableSize};
use std::collections::BTreeMap;

/// Kinds of log records that the engine writes.
pub mod kind {
    /// Redo operations, oplog entries or both.
    pub const COMMIT: u8 = 1;
    /// A table was created.
    pub const CREATE_TABLE: u8 = 2;
    /// A table was dropped.
    pub const DROP_TABLE: u8 = 3;
}

const PUT: u8 = 1;
const DELETE: u8 = 2;
const TRUNCATE: u8 = 3;
const SIZE: u8 = 4;

/// One operation; `own` is the commit timestamp of its own, if it has one.
#[derive(Debug, PartialEq, Eq)]
pub enum Redo<'a> {
    /// A write of a key.
    Write { table: u64, own: Timestamp, key: &'a [u8], value: Option<&'a [u8]> },
    /// The deletion of a range.
    Truncate { table: u64, own: Timestamp, start: &'a [u8], end: Option<&'a [u8]> },
    /// A change of a table's size.
    Size { table: u64, own: Timestamp, change: TableSize },
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Starts a payload.
pub fn put_header(out: &mut Vec<u8>, commit: Timestamp, durable: Timestamp) {
    put_number(out, commit.0);
    put_number(out, durable.0);
}

/// Adds an operation.
pub fn put(out: &mut Vec<u8>, redo: &Redo<'_>) {
    match redo {
        Redo::Write { table, own, key, value } => {
            out.push(if value.is_some() { PUT } else { DELETE });
            put_number(out, *table);
            put_number(out, own.0);
            put_bytes(out, key);
            if let Some(value) = value {
                put_bytes(out, value);
            }
        }
        Redo::Truncate { table, own, start, end } => {
            out.push(TRUNCATE);
            put_number(out, *table);
            put_number(out, own.0);
            put_bytes(out, start);
            out.push(u8::from(end.is_some()));
            put_bytes(out, end.unwrap_or_default());
        }
        Redo::Size { table, own, change } => {
            out.push(SIZE);
            put_number(out, *table);
            put_number(out, own.0);
            put_signed(out, change.records);
            put_signed(out, change.bytes);
        }
    }
}

/// Reads a payload.
pub struct RedoReader<'a> {
    rest: &'a [u8],
}

/// Bytes that are not redo.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed;

impl From<Malformed> for StorageError {
    fn from(_: Malformed) -> StorageError {
        StorageError::Corruption { file: "log".into(), offset: 0, detail: "a record's redo cannot be decoded".into() }
    }
}

type Decoded<T> = Result<T, Malformed>;

impl<'a> RedoReader<'a> {
    /// Reads the header; then iterate with `next`.
    pub fn new(payload: &'a [u8]) -> Decoded<(Timestamp, Timestamp, RedoReader<'a>)> {
        let mut reader = RedoReader { rest: payload };
        let commit = Timestamp(reader.number()?);
        let durable = Timestamp(reader.number()?);
        Ok((commit, durable, reader))
    }

    fn byte(&mut self) -> Decoded<u8> {
        let (first, rest) = self.rest.split_first().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*first)
    }

    fn number(&mut self) -> Decoded<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Malformed)
    }

    fn signed(&mut self) -> Decoded<i64> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn bytes(&mut self) -> Decoded<&'a [u8]> {
        let length = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Malformed)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// The next operation.
    pub fn next(&mut self) -> Decoded<Option<Redo<'a>>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.byte()?;
        let table = self.number()?;
        let own = Timestamp(self.number()?);
        Ok(Some(match tag {
            PUT => Redo::Write { table, own, key: self.bytes()?, value: Some(self.bytes()?) },
            DELETE => Redo::Write { table, own, key: self.bytes()?, value: None },
            TRUNCATE => {
                let start = self.bytes()?;
                let bounded = self.byte()? != 0;
                let end = self.bytes()?;
                Redo::Truncate { table, own, start, end: bounded.then_some(end) }
            }
            SIZE => Redo::Size { table, own, change: TableSize::new(self.signed()?, self.signed()?) },
            _ => return Err(Malformed),
        }))
    }
}

/// A table as logs and manifests describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDescription {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub ident: String,
    /// How it was made.
    pub options: TableOptions,
}

impl TableDescription {
    /// For the log.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, self.id);
        put_bytes(&mut out, self.ident.as_bytes());
        put_bytes(&mut out, &encode_options(&self.options));
        out
    }

    /// From the log.
    pub fn decode(bytes: &[u8]) -> Decoded<TableDescription> {
        let mut reader = RedoReader { rest: bytes };
        let id = reader.number()?;
        let ident = String::from_utf8(reader.bytes()?.to_vec()).map_err(|_| Malformed)?;
        let options = decode_options(reader.bytes()?)?;
        Ok(TableDescription { id, ident, options })
    }
}

/// A table's options and the size changes that a rollback may take back, for the manifest.
pub fn encode_configuration(options: &TableOptions, pending: &BTreeMap<Timestamp, TableSize>) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, &encode_options(options));
    put_number(&mut out, pending.len() as u64);
    for (timestamp, change) in pending {
        put_number(&mut out, timestamp.0);
        put_signed(&mut out, change.records);
        put_signed(&mut out, change.bytes);
    }
    out
}

/// The other way around.
pub fn decode_configuration(bytes: &[u8]) -> Decoded<(TableOptions, BTreeMap<Timestamp, TableSize>)> {
    let mut reader = RedoReader { rest: bytes };
    let options = decode_options(reader.bytes()?)?;
    let mut pending = BTreeMap::new();
    for _ in 0..reader.number()? {
        let timestamp = Timestamp(reader.number()?);
        pending.insert(timestamp, TableSize::new(reader.signed()?, reader.signed()?));
    }
    Ok((options, pending))
}

fn encode_options(options: &TableOptions) -> Vec<u8> {
    use pando_storage::KeyFilter;
    let (filter, except) = match options.filter {
        KeyFilter::Whole => (0, 0),
        KeyFilter::ExceptLast(bytes) => (1, bytes),
        KeyFilter::Nothing => (2, 0),
    };
    let mut out = vec![u8::from(options.replicated), filter];
    put_number(&mut out, u64::from(except));
    put_bytes(&mut out, options.note.as_bytes());
    out
}

fn decode_options(bytes: &[u8]) -> Decoded<TableOptions> {
    use pando_storage::KeyFilter;
    let mut reader = RedoReader { rest: bytes };
    let replicated = reader.byte()? != 0;
    let filter = reader.byte()?;
    let except = u16::try_from(reader.number()?).map_err(|_| Malformed)?;
    let note = String::from_utf8(reader.bytes()?.to_vec()).map_err(|_| Malformed)?;
    let filter = match filter {
        0 => KeyFilter::Whole,
        1 => KeyFilter::ExceptLast(except),
        2 => KeyFilter::Nothing,
        _ => return Err(Malformed),
    };
    Ok(TableOptions { replicated, filter, note })
}

/// The number of a dropped table.
pub fn encode_table_id(id: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, id);
    out
}

/// The number of a dropped table.
pub fn decode_table_id(bytes: &[u8]) -> Decoded<u64> {
    RedoReader { rest: bytes }.number()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_round_trip() {
        let operations = [
            Redo::Write { table: 1, own: Timestamp(9), key: b"k", value: Some(b"") },
            Redo::Write { table: 300, own: Timestamp::NONE, key: b"", value: None },
            Redo::Truncate { table: 2, own: Timestamp::MAX, start: b"a", end: Some(b"b") },
            Redo::Truncate { table: 2, own: Timestamp::NONE, start: b"", end: None },
            Redo::Size { table: 7, own: Timestamp(1), change: TableSize::new(-1, i64::MIN) },
        ];
        let mut payload = Vec::new();
        put_header(&mut payload, Timestamp(5), Timestamp(6));
        operations.iter().for_each(|operation| put(&mut payload, operation));
        let (commit, durable, mut reader) = RedoReader::new(&payload).unwrap();
        assert_eq!((commit, durable), (Timestamp(5), Timestamp(6)));
        for operation in &operations {
            assert_eq!(reader.next().unwrap().as_ref(), Some(operation));
        }
        assert_eq!(reader.next(), Ok(None));
    }

    #[test]
    fn cut_payloads_are_malformed_not_trusted() {
        let mut payload = Vec::new();
        put_header(&mut payload, Timestamp(5), Timestamp(6));
        put(&mut payload, &Redo::Write { table: 1, own: Timestamp(9), key: b"key", value: Some(b"value") });
        for length in 3..payload.len() {
            let (_, _, mut reader) = RedoReader::new(&payload[..length]).unwrap();
            assert_eq!(reader.next(), Err(Malformed), "cut at {length}");
        }
    }

    #[test]
    fn descriptions_round_trip() {
        let options =
            TableOptions { replicated: true, filter: pando_storage::KeyFilter::ExceptLast(9), note: "format=6".into() };
        let description = TableDescription { id: 77, ident: "index-1-2".into(), options };
        assert_eq!(TableDescription::decode(&description.encode()), Ok(description));
        assert!(TableDescription::decode(b"").is_err());
    }
}
