//! What the manifest keeps for the layers above: tables and the checkpoint's mark. Both are opaque here.

use crate::TableId;
use crate::wire::{Reader, put_bytes, put_varint};
use bytes::Bytes;
use pando_base::Timestamp;

/// A table of the store.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TableRecord {
    /// Its number.
    pub id: TableId,
    /// Its name in the engine; also written into run files as a hint for salvage.
    pub ident: String,
    /// Whatever the engine wants to know again at open.
    pub configuration: Bytes,
    /// How many records it has, as of the last checkpoint.
    pub records: i64,
    /// Their size in bytes, as of the last checkpoint.
    pub bytes: i64,
    /// Fences do not cut it: its writes are in a log and never rolled back.
    pub unfenced: bool,
}

/// Where the log goes on from what the runs hold.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CheckpointMark {
    /// Commits up to this sequence are in the runs.
    pub sequence_cut: u64,
    /// The log segment from which redo is applied.
    pub log_segment: u64,
    /// The position in that segment.
    pub log_offset: u64,
    /// The stable timestamp of the checkpoint.
    pub stable: Timestamp,
    /// The oldest timestamp of the checkpoint.
    pub oldest: Timestamp,
    /// Whatever else the engine wants to know again.
    pub extra: Bytes,
}

impl TableRecord {
    pub(crate) fn encode(&self, buffer: &mut Vec<u8>) {
        put_varint(buffer, self.id);
        put_bytes(buffer, self.ident.as_bytes());
        put_bytes(buffer, &self.configuration);
        put_varint(buffer, zigzag(self.records));
        put_varint(buffer, zigzag(self.bytes));
        put_varint(buffer, u64::from(self.unfenced));
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<TableRecord> {
        Some(TableRecord {
            id: reader.varint()?,
            ident: std::str::from_utf8(reader.bytes()?).ok()?.to_owned(),
            configuration: reader.owned_bytes()?,
            records: unzigzag(reader.varint()?),
            bytes: unzigzag(reader.varint()?),
            unfenced: reader.varint()? != 0,
        })
    }
}

impl CheckpointMark {
    pub(crate) fn encode(&self, buffer: &mut Vec<u8>) {
        for number in [self.sequence_cut, self.log_segment, self.log_offset, self.stable.0, self.oldest.0] {
            put_varint(buffer, number);
        }
        put_bytes(buffer, &self.extra);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<CheckpointMark> {
        Some(CheckpointMark {
            sequence_cut: reader.varint()?,
            log_segment: reader.varint()?,
            log_offset: reader.varint()?,
            stable: Timestamp(reader.varint()?),
            oldest: Timestamp(reader.varint()?),
            extra: reader.owned_bytes()?,
        })
    }
}

/// Small absolute values become small numbers.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip_and_cuts_are_refused() {
        for (records, bytes) in [(0, 0), (-1, 1), (i64::MIN, i64::MAX)] {
            let table = TableRecord {
                id: 9,
                ident: "index-7".into(),
                configuration: Bytes::from_static(b"{}"),
                records,
                bytes,
                unfenced: bytes > 0,
            };
            let mut buffer = Vec::new();
            table.encode(&mut buffer);
            assert_eq!(TableRecord::decode(&mut Reader::new(&buffer)), Some(table));
            for cut in 0..buffer.len() {
                assert_eq!(TableRecord::decode(&mut Reader::new(&buffer[..cut])), None);
            }
        }
        let mark = CheckpointMark {
            sequence_cut: 1,
            log_segment: u64::MAX,
            extra: Bytes::from_static(b"x"),
            ..Default::default()
        };
        let mut buffer = Vec::new();
        mark.encode(&mut buffer);
        assert_eq!(CheckpointMark::decode(&mut Reader::new(&buffer)), Some(mark));
    }
}
