//! The root of a section: where partitions, dictionary and range tombstones lie.

use crate::file::FrameHandle;
use crate::section::filter::FilterPrefix;
use crate::section::index::{Directory, HistoryMark};
use crate::section::keys::KeyTable;
use crate::wire::{Reader, put_bytes, put_varint};
use bytes::Bytes;
use pando_base::Timestamp;

/// An index partition as the root knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartitionRecord {
    /// At least its last key, and below the next partition's first.
    pub(crate) key: Bytes,
    /// Where its index lies.
    pub(crate) index: FrameHandle,
    /// Where its filter lies, if it has one.
    pub(crate) filter: Option<FrameHandle>,
    /// Entries in its blocks.
    pub(crate) entries: u64,
    /// For a history's partition, the mark of its last block.
    pub(crate) mark: Option<HistoryMark>,
}

/// The root's stored content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RootRecord {
    pub(crate) filter_prefix: FilterPrefix,
    pub(crate) dictionary: Option<FrameHandle>,
    pub(crate) tombstones: Option<FrameHandle>,
    pub(crate) data: Vec<PartitionRecord>,
    pub(crate) history: Vec<PartitionRecord>,
}

fn put_handle(buffer: &mut Vec<u8>, handle: Option<FrameHandle>) {
    let handle = handle.unwrap_or_default();
    put_varint(buffer, u64::from(handle.length));
    if handle.length != 0 {
        put_varint(buffer, handle.offset);
    }
}

fn take_handle(reader: &mut Reader<'_>) -> Option<Option<FrameHandle>> {
    let length = u32::try_from(reader.varint()?).ok()?;
    if length == 0 {
        return Some(None);
    }
    Some(Some(FrameHandle { offset: reader.varint()?, length }))
}

impl RootRecord {
    /// The stored form.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut buffer = Vec::new();
        self.filter_prefix.encode(&mut buffer);
        put_handle(&mut buffer, self.dictionary);
        put_handle(&mut buffer, self.tombstones);
        for list in [&self.data, &self.history] {
            put_varint(&mut buffer, list.len() as u64);
            for partition in list {
                put_bytes(&mut buffer, &partition.key);
                put_handle(&mut buffer, Some(partition.index));
                put_handle(&mut buffer, partition.filter);
                put_varint(&mut buffer, partition.entries);
                if let Some(mark) = partition.mark {
                    put_varint(&mut buffer, mark.sequence);
                    put_varint(&mut buffer, mark.commit.0);
                }
            }
        }
        buffer
    }

    /// From the stored form.
    pub(crate) fn decode(payload: &[u8]) -> Option<RootRecord> {
        let mut reader = Reader::new(payload);
        let filter_prefix = FilterPrefix::decode(&mut reader)?;
        let dictionary = take_handle(&mut reader)?;
        let tombstones = take_handle(&mut reader)?;
        let data = take_partitions(&mut reader, false)?;
        let history = take_partitions(&mut reader, true)?;
        reader.is_empty().then_some(RootRecord { filter_prefix, dictionary, tombstones, data, history })
    }
}

fn take_partitions(reader: &mut Reader<'_>, history: bool) -> Option<Vec<PartitionRecord>> {
    let mut partitions = Vec::new();
    for _ in 0..reader.length()? {
        partitions.push(PartitionRecord {
            key: reader.owned_bytes()?,
            index: take_handle(reader)??,
            filter: take_handle(reader)?,
            entries: reader.varint()?,
            mark: match history {
                true => Some(HistoryMark { sequence: reader.varint()?, commit: Timestamp(reader.varint()?) }),
                false => None,
            },
        });
    }
    Some(partitions)
}

/// A list of partitions, made for searching.
#[derive(Default)]
pub(crate) struct PartitionList {
    pub(crate) directory: Directory,
    pub(crate) handles: Box<[PartitionHandle]>,
}

/// Where a partition's frames lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartitionHandle {
    pub(crate) index: FrameHandle,
    pub(crate) filter: Option<FrameHandle>,
    /// Entries in the partitions up to and including this one.
    pub(crate) entries_through: u64,
}

impl PartitionList {
    /// `None` if the keys are out of order.
    pub(crate) fn new(records: &[PartitionRecord]) -> Option<PartitionList> {
        let keys: Vec<&[u8]> = records.iter().map(|record| record.key.as_ref()).collect();
        let marks = records.iter().filter_map(|record| record.mark).collect();
        let mut entries_through = 0u64;
        let mut handles = Vec::with_capacity(records.len());
        for record in records {
            entries_through = entries_through.checked_add(record.entries)?;
            handles.push(PartitionHandle { index: record.index, filter: record.filter, entries_through });
        }
        Some(PartitionList { directory: Directory { keys: KeyTable::new(&keys)?, marks }, handles: handles.into() })
    }

    pub(crate) fn len(&self) -> usize {
        self.handles.len()
    }

    /// Entries in the partitions before this one.
    pub(crate) fn entries_before(&self, position: usize) -> u64 {
        let previous = position.checked_sub(1).and_then(|previous| self.handles.get(previous));
        previous.map_or(0, |handle| handle.entries_through)
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.directory.keys.size_bytes() + self.directory.marks.len() * 16 + self.len() * size_of::<PartitionHandle>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_round_trip_and_refuse_cuts() {
        let handle = |offset| FrameHandle { offset, length: 77 };
        let record = |mark| PartitionRecord {
            key: Bytes::from_static(b"key"),
            index: handle(5),
            filter: Some(handle(500)),
            entries: 9,
            mark,
        };
        let root = RootRecord {
            filter_prefix: FilterPrefix::AllBut(8),
            dictionary: Some(handle(1)),
            tombstones: None,
            data: vec![record(None)],
            history: vec![record(Some(HistoryMark { sequence: 4, commit: Timestamp(2) }))],
        };
        let encoded = root.encode();
        assert_eq!(RootRecord::decode(&encoded), Some(root));
        (0..encoded.len()).for_each(|cut| assert!(RootRecord::decode(&encoded[..cut]).is_none()));
    }
}
