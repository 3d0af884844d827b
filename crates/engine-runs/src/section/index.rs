//! Index partitions: the last key (or something between it and the next block's first) of each block, and where it lies.
//!
//! A partition is also where its blocks stay while they are in memory. A history index orders by key and then by age, and
//! carries for each block what its last version tells a reader, see [`HistoryMark`].

use crate::block::entries::SharedBlock;
use crate::block::packed::PackedBlock;
use crate::cache::{self, Charge, Landlord, Place, Resident};
use crate::file::FrameHandle;
use crate::prefetch::prefetch_at;
use crate::section::keys::KeyTable;
use crate::wire::{Reader, put_bytes, put_varint};
use crate::{ReadPoint, Stamp};
use pando_base::Timestamp;
use std::sync::Arc;

/// The number of the list of open blocks, for the cache.
pub(crate) const LIST_OPEN: u8 = 0;
/// And of those as they are stored.
pub(crate) const LIST_PACKED: u8 = 1;

/// Blocks in a full partition.
pub(crate) const PARTITION_BLOCKS: usize = 256;

/// What the versions of a history block's last key, from the newest in the section's history to the last in that block, have
/// at least: the smallest sequence and the smallest commit timestamp (`NONE` being the smallest).
///
/// Along the blocks of one key both only fall, so the first block that can hold what a reader sees is found by bisection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct HistoryMark {
    pub(crate) sequence: u64,
    pub(crate) commit: Timestamp,
}

impl HistoryMark {
    /// The mark of a key whose newest historical version has this stamp.
    pub(crate) fn of(stamp: &Stamp) -> HistoryMark {
        HistoryMark { sequence: stamp.sequence, commit: stamp.commit }
    }

    /// The mark after one more, older version.
    pub(crate) fn and(&self, stamp: &Stamp) -> HistoryMark {
        HistoryMark { sequence: self.sequence.min(stamp.sequence), commit: self.commit.min(stamp.commit) }
    }

    /// True if some version up to here may be visible.
    fn may_show(&self, point: &ReadPoint) -> bool {
        self.sequence <= point.sequence && self.commit <= point.timestamp
    }
}

/// One block, as an index knows it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlockHandle {
    pub(crate) frame: FrameHandle,
    /// Entries in this partition's blocks up to and including this one.
    pub(crate) entries_through: u32,
}

/// The keys of a list of blocks or partitions, with marks if it is a history's.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Directory {
    pub(crate) keys: KeyTable,
    pub(crate) marks: Box<[HistoryMark]>,
}

impl Directory {
    /// The first that can hold what the reader sees of `key`, or a later key.
    pub(crate) fn first_for(&self, key: &[u8], point: &ReadPoint) -> usize {
        let (low, high) = (self.keys.lower_bound(key), self.keys.upper_bound(key));
        let same_key = self.marks.get(low..high).unwrap_or_default();
        low + same_key.partition_point(|mark| !mark.may_show(point))
    }
}

/// An index partition in memory. What a point read looks at comes first: whoever asks for the beginning of it has all of that.
#[repr(C)]
pub(crate) struct IndexPartition {
    blocks: Box<[Resident<SharedBlock>]>,
    pub(crate) directory: Directory,
    handles: Box<[BlockHandle]>,
    /// Blocks as they are stored; empty where `blocks` has it.
    packed: Box<[Resident<Arc<PackedBlock>>]>,
    _charge: Option<Charge>,
}

impl IndexPartition {
    /// A partition from its stored form.
    pub(crate) fn decode(payload: &[u8], history: bool) -> Option<IndexPartition> {
        let mut reader = Reader::new(payload);
        let count = reader.length()?;
        if count > reader.remaining() {
            return None;
        }
        let (mut keys, mut handles, mut marks) = (Vec::with_capacity(count), Vec::with_capacity(count), Vec::new());
        let (mut end, mut entries_through) = (0u64, 0u32);
        for _ in 0..count {
            keys.push(reader.bytes()?);
            let offset = end.checked_add(reader.varint()?)?;
            let length = u32::try_from(reader.varint()?).ok()?;
            end = offset.checked_add(u64::from(length))?;
            entries_through = entries_through.checked_add(u32::try_from(reader.varint()?).ok()?)?;
            handles.push(BlockHandle { frame: FrameHandle { offset, length }, entries_through });
            if history {
                marks.push(HistoryMark { sequence: reader.varint()?, commit: Timestamp(reader.varint()?) });
            }
        }
        let directory = Directory { keys: KeyTable::new(&keys)?, marks: marks.into() };
        let blocks = std::iter::repeat_with(Resident::default).take(count).collect();
        let packed = std::iter::repeat_with(Resident::default).take(count).collect();
        reader.is_empty().then(|| IndexPartition { directory, handles: handles.into(), blocks, packed, _charge: None })
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let each = size_of::<BlockHandle>() + 2 * size_of::<Resident<SharedBlock>>();
        self.directory.keys.size_bytes() + self.directory.marks.len() * 16 + self.handles.len() * each + 128
    }

    pub(crate) fn charged(mut self, charge: Charge) -> IndexPartition {
        self._charge = Some(charge);
        self
    }

    /// How many blocks it points at.
    pub(crate) fn len(&self) -> usize {
        self.handles.len()
    }

    /// The block's frame. Only whoever reads the block needs it: a look at the handle is a wait for memory.
    #[inline]
    pub(crate) fn frame(&self, position: usize) -> Option<FrameHandle> {
        self.handles.get(position).map(|handle| handle.frame)
    }

    /// The block's place in memory.
    #[inline]
    pub(crate) fn place(&self, position: usize) -> Option<&Resident<SharedBlock>> {
        self.blocks.get(position)
    }

    /// The position of the first block whose last key is not below `key`. While the keys are looked at, the place of the block
    /// that is probably the one is on its way.
    #[inline]
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        self.directory.keys.lower_bound_near(key, |guess| {
            if let Some(place) = self.blocks.get(guess) {
                prefetch_at(place);
            }
        })
    }

    /// Loads what `lower_bound` will look at into the processor's cache, and the place of the block that is probably the one.
    #[inline]
    pub(crate) fn touch_near(&self, key: &[u8]) {
        let guess = self.directory.keys.touch_near(key);
        if let Some(place) = self.blocks.get(guess) {
            prefetch_at(place);
        }
    }

    /// The place of the block as it is stored.
    #[inline]
    pub(crate) fn packed(&self, position: usize) -> Option<&Resident<Arc<PackedBlock>>> {
        self.packed.get(position)
    }

    /// Entries in the blocks before this one.
    pub(crate) fn entries_before(&self, position: usize) -> u64 {
        let previous = position.checked_sub(1).and_then(|previous| self.handles.get(previous));
        previous.map_or(0, |handle| u64::from(handle.entries_through))
    }

    /// The block that holds the entry with this ordinal within the partition, and the entry's position there.
    pub(crate) fn locate_ordinal(&self, ordinal: u64) -> (usize, u64) {
        let block = self.handles.partition_point(|handle| u64::from(handle.entries_through) <= ordinal);
        (block, ordinal - self.entries_before(block).min(ordinal))
    }
}

impl Landlord for IndexPartition {
    fn take_used(&self, place: Place) -> bool {
        match place.list {
            LIST_OPEN => cache::take_used(&self.blocks, place.index),
            _ => cache::take_used(&self.packed, place.index),
        }
    }

    fn evict(&self, place: Place) {
        match place.list {
            LIST_OPEN => cache::evict(&self.blocks, place.index),
            _ => cache::evict(&self.packed, place.index),
        }
    }
}

/// Collects the entries of a partition to be written.
#[derive(Default)]
pub(crate) struct IndexBuilder {
    body: Vec<u8>,
    count: usize,
    entries: u64,
    end: u64,
    last_key: Vec<u8>,
    last_mark: Option<HistoryMark>,
}

impl IndexBuilder {
    /// Adds a block that lies behind all earlier ones.
    pub(crate) fn push(&mut self, key: &[u8], frame: FrameHandle, entries: u16, mark: Option<HistoryMark>) {
        debug_assert!(frame.offset >= self.end && (self.count == 0 || *self.last_key <= *key));
        put_bytes(&mut self.body, key);
        put_varint(&mut self.body, frame.offset - self.end);
        put_varint(&mut self.body, u64::from(frame.length));
        put_varint(&mut self.body, u64::from(entries));
        if let Some(mark) = mark {
            put_varint(&mut self.body, mark.sequence);
            put_varint(&mut self.body, mark.commit.0);
        }
        self.end = frame.offset + u64::from(frame.length);
        self.count += 1;
        self.entries += u64::from(entries);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.last_mark = mark;
    }

    /// Blocks so far.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Entries in them.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// The key of the last block.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// The mark of the last block.
    pub(crate) fn last_mark(&self) -> Option<HistoryMark> {
        self.last_mark
    }

    /// The stored form; starts the next partition.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(self.body.len() + 4);
        put_varint(&mut payload, self.count as u64);
        payload.append(&mut self.body);
        *self = IndexBuilder::default();
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_round_trip_and_refuse_damage() {
        let mut builder = IndexBuilder::default();
        builder.push(b"b", FrameHandle { offset: 100, length: 50 }, 4, None);
        builder.push(b"d", FrameHandle { offset: 200, length: 60 }, 6, None);
        let payload = builder.finish();
        let partition = IndexPartition::decode(&payload, false).unwrap();
        assert_eq!(partition.frame(1).unwrap(), FrameHandle { offset: 200, length: 60 });
        assert_eq!((partition.entries_before(1), partition.locate_ordinal(5)), (4, (1, 1)));
        assert_eq!(partition.directory.first_for(b"c", &ReadPoint::LATEST), 1);
        for cut in 0..payload.len() {
            assert!(IndexPartition::decode(&payload[..cut], false).is_none());
        }
    }

    #[test]
    fn history_is_bisected_by_what_the_reader_sees() {
        let mut builder = IndexBuilder::default();
        for (block, (key, sequence, commit)) in
            [(b"a", 5, 50), (b"k", 90, 900), (b"k", 50, 500), (b"k", 20, 0), (b"k", 10, 0), (b"z", 7, 70)]
                .into_iter()
                .enumerate()
        {
            let mark = HistoryMark { sequence, commit: Timestamp(commit) };
            builder.push(key, FrameHandle { offset: block as u64 * 100, length: 100 }, 1, Some(mark));
        }
        let partition = IndexPartition::decode(&builder.finish(), true).unwrap();
        let first = |sequence, timestamp| {
            partition.directory.first_for(b"k", &ReadPoint { sequence, timestamp: Timestamp(timestamp) })
        };
        assert_eq!(first(u64::MAX, u64::MAX), 1);
        assert_eq!(first(89, u64::MAX), 2);
        assert_eq!(first(u64::MAX, 899), 2);
        assert_eq!(first(u64::MAX, 499), 3, "an untimestamped version is visible at every timestamp");
        assert_eq!((first(15, 1), first(9, 1)), (4, 5));
    }
}
