//! Steps through the newest entries of one run, in both directions, dead and deleted ones included.
//!
//! Invariant: when positioned, `block` holds the entry at `position` and `key` is its full key. Moving within a block costs
//! no allocation and no search.

use crate::block::entries::{Block, Entry};
use crate::run::Run;
use crate::section::Part;
use crate::section::core::Side;
use crate::section::index::IndexPartition;
use crate::{ReadPoint, Result};
use pando_base::Timestamp;
use std::sync::Arc;

/// Blocks passed in a row before the rest is read ahead.
const SEQUENTIAL_BLOCKS: u32 = 4;
/// How many entries ahead the processor is told what will be read: memory takes several steps to answer,
/// more where they go back, since the processor itself expects them to go forward.
const ENTRIES_AHEAD: usize = 5;
/// How far is read ahead.
const PREFETCH_BYTES: u64 = 512 << 10;

/// A position in one run.
pub(crate) struct RunIterator {
    run: Arc<Run>,
    part_position: usize,
    partition_position: usize,
    partition: Option<Arc<IndexPartition>>,
    block_position: usize,
    block: Option<Block>,
    /// The block that a scan enters next, if it is cached, and its place in the partition.
    following: Option<(usize, Block)>,
    position: usize,
    entry: Entry,
    key: Vec<u8>,
    head: u64,
    sequential: u32,
    prefetched_to: u64,
    admit: bool,
    fence: Timestamp,
}

/// A block of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockPlace {
    part: usize,
    partition: usize,
    block: usize,
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

impl RunIterator {
    /// An iterator that stands nowhere.
    pub(crate) fn new(run: Arc<Run>) -> RunIterator {
        RunIterator::with_admission(run, true)
    }

    /// An iterator that leaves nothing behind in the cache: for merges and for scans that nobody waits for.
    pub(crate) fn passing(run: Arc<Run>) -> RunIterator {
        RunIterator::with_admission(run, false)
    }

    fn with_admission(run: Arc<Run>, admit: bool) -> RunIterator {
        RunIterator {
            run,
            admit,
            part_position: 0,
            partition_position: 0,
            partition: None,
            block_position: 0,
            block: None,
            following: None,
            position: 0,
            entry: Entry::default(),
            key: Vec::new(),
            head: 0,
            sequential: 0,
            prefetched_to: 0,
            fence: Timestamp::MAX,
        }
    }

    /// True if it stands on an entry.
    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.block.is_some()
    }

    /// The key it stands on.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// The first eight bytes of the key as a number that sorts like them.
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// The entry it stands on.
    #[inline]
    pub(crate) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The block that holds the entry.
    #[inline]
    pub(crate) fn block(&self) -> Option<&Block> {
        self.block.as_ref()
    }

    /// The part it stands in.
    #[inline]
    pub(crate) fn part(&self) -> Option<&Arc<Part>> {
        self.run.parts().get(self.part_position)
    }

    /// True if the entry it stands on is a live version that this reader sees.
    #[inline]
    pub(crate) fn is_visible(&self, point: &ReadPoint) -> bool {
        self.entry.is_visible(point, self.fence)
    }

    /// The run it steps through.
    pub(crate) fn run(&self) -> &Arc<Run> {
        &self.run
    }

    /// Leaves the run.
    pub(crate) fn unset(&mut self) {
        self.block = None;
        self.following = None;
        self.partition = None;
    }

    /// To the first entry that is not below `key` (or, `after`, above it).
    pub(crate) fn seek(&mut self, key: &[u8], after: bool) -> Result<()> {
        self.sequential = 0;
        self.part_position = self.run.position(key);
        self.unset();
        let Some(part) = self.part().cloned() else { return Ok(()) };
        self.fence = part.fence();
        let root = part.core.root()?;
        self.partition_position = root.data.directory.keys.lower_bound(key);
        self.partition = part.core.partition(root, Side::Data, self.partition_position)?;
        let Some(partition) = &self.partition else { return self.step_part(Direction::Forward) };
        self.block_position = partition.lower_bound(key);
        self.block = match self.admit {
            true => part.core.block(Side::Data, partition, self.block_position)?,
            false => part.core.block_in_passing(Side::Data, partition, self.block_position, false)?,
        };
        let Some(block) = &self.block else { return self.step_partition(Direction::Forward) };
        let (position, exact) = block.search(key);
        self.position = position + usize::from(exact && after);
        if self.position < block.count() {
            self.show(true);
            return Ok(());
        }
        self.step_block(Direction::Forward)
    }

    /// To the last entry that is not above `key` (or, `before`, below it).
    pub(crate) fn seek_back(&mut self, key: &[u8], before: bool) -> Result<()> {
        self.seek(key, false)?;
        if self.is_valid() {
            if before || self.key != key {
                self.prev()?;
            }
            return Ok(());
        }
        self.last()
    }

    /// To the first entry.
    pub(crate) fn first(&mut self) -> Result<()> {
        self.sequential = 0;
        self.part_position = 0;
        self.enter_part(Direction::Forward)
    }

    /// To the last entry.
    pub(crate) fn last(&mut self) -> Result<()> {
        self.sequential = 0;
        self.part_position = self.run.parts().len().wrapping_sub(1);
        self.enter_part(Direction::Backward)
    }

    /// To the next entry; invalid after the last.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        let Some(block) = &self.block else { return Ok(()) };
        if self.position + 1 < block.count() {
            self.touch_ahead(block, Direction::Forward);
            self.position += 1;
            self.show(false);
            return Ok(());
        }
        self.step_block(Direction::Forward)
    }

    /// To the previous entry; invalid before the first.
    #[inline]
    pub(crate) fn prev(&mut self) -> Result<()> {
        let Some(block) = &self.block else { return Ok(()) };
        if self.position > 0 {
            self.touch_ahead(block, Direction::Backward);
            self.position -= 1;
            self.show(false);
            return Ok(());
        }
        self.step_block(Direction::Backward)
    }

    /// To the neighbouring entry if it is in the same block and the reader sees a value there; else it stays where it is.
    #[inline]
    pub(crate) fn step_in_block(&mut self, direction: Direction, point: &ReadPoint) -> bool {
        let Some(block) = &self.block else { return false };
        let next = match direction {
            Direction::Forward => self.position.wrapping_add(1),
            Direction::Backward => self.position.wrapping_sub(1),
        };
        if next >= block.count() {
            return false;
        }
        self.touch_ahead(block, direction);
        let entry = block.entry(next);
        if entry.is_deleted() || !entry.is_visible(point, self.fence) {
            return false;
        }
        self.position = next;
        self.show_entry(entry, false);
        true
    }

    /// The same as long as the neighbour's rank is below `limit`: returns its rank.
    #[inline]
    pub(crate) fn step_in_block_before(&mut self, direction: Direction, point: &ReadPoint, limit: u64) -> Option<u64> {
        let block = self.block.as_ref()?;
        let next = match direction {
            Direction::Forward => self.position.wrapping_add(1),
            Direction::Backward => self.position.wrapping_sub(1),
        };
        if next >= block.count() {
            return None;
        }
        let entry = block.entry(next);
        let head = joined_head(block.prefix(), block.suffix(&entry));
        let rank = rank_of(head, direction);
        if rank >= limit || entry.is_deleted() || !entry.is_visible(point, self.fence) {
            return None;
        }
        self.touch_ahead(block, direction);
        self.position = next;
        self.show_entry(entry, false);
        Some(rank)
    }

    /// Which block it stands in, among all of its run.
    #[inline]
    pub(crate) fn block_place(&self) -> BlockPlace {
        BlockPlace { part: self.part_position, partition: self.partition_position, block: self.block_position }
    }

    /// True if everything that follows in its block is known to come before a key.
    pub(crate) fn block_ends_before(&self, key: &[u8], direction: Direction) -> bool {
        let Some(partition) = &self.partition else { return false };
        let separators = &partition.directory.keys;
        match direction {
            Direction::Forward => self.block_position < separators.lower_bound(key),
            // What separates it from the block before is below all of its keys.
            Direction::Backward => self.block_position > separators.lower_bound(key),
        }
    }

    /// Reads the entry at the position. The prefix is copied only on entering a block.
    #[inline]
    fn show(&mut self, is_new_block: bool) {
        let Some(block) = &self.block else { return };
        self.show_entry(block.entry(self.position), is_new_block);
    }

    #[inline]
    fn show_entry(&mut self, entry: Entry, is_new_block: bool) {
        let Some(block) = &self.block else { return };
        self.entry = entry;
        let prefix = block.prefix();
        if is_new_block {
            self.key.clear();
            self.key.extend_from_slice(prefix);
        } else {
            self.key.truncate(prefix.len());
        }
        self.key.extend_from_slice(block.suffix(&self.entry));
        self.head = key_head(&self.key);
    }

    /// To the neighbouring block.
    #[cold]
    #[inline(never)]
    fn step_block(&mut self, direction: Direction) -> Result<()> {
        let blocks = self.partition.as_ref().map_or(0, |partition| partition.len());
        let next = match direction {
            Direction::Forward => Some(self.block_position + 1).filter(|next| *next < blocks),
            Direction::Backward => self.block_position.checked_sub(1),
        };
        self.block = None;
        match next {
            Some(next) => {
                self.block_position = next;
                self.enter_block(direction)
            }
            None => self.step_partition(direction),
        }
    }

    fn step_partition(&mut self, direction: Direction) -> Result<()> {
        let Some(part) = self.part() else { return Ok(()) };
        let partitions = part.core.root()?.data.len();
        let next = match direction {
            Direction::Forward => Some(self.partition_position + 1).filter(|next| *next < partitions),
            Direction::Backward => self.partition_position.checked_sub(1),
        };
        match next {
            Some(next) => {
                self.partition_position = next;
                self.enter_partition(direction)
            }
            None => self.step_part(direction),
        }
    }

    fn step_part(&mut self, direction: Direction) -> Result<()> {
        self.part_position = match direction {
            Direction::Forward => self.part_position.wrapping_add(1),
            Direction::Backward => self.part_position.wrapping_sub(1),
        };
        self.prefetched_to = 0;
        self.enter_part(direction)
    }

    /// Enters the part at the position, or the next that has blocks.
    fn enter_part(&mut self, direction: Direction) -> Result<()> {
        self.unset();
        loop {
            let Some(part) = self.part() else { return Ok(()) };
            let partitions = part.core.root()?.data.len();
            if partitions > 0 {
                self.partition_position = if direction == Direction::Forward { 0 } else { partitions - 1 };
                return self.enter_partition(direction);
            }
            self.part_position = match direction {
                Direction::Forward => self.part_position.wrapping_add(1),
                Direction::Backward => self.part_position.wrapping_sub(1),
            };
        }
    }

    fn enter_partition(&mut self, direction: Direction) -> Result<()> {
        self.unset();
        let Some(part) = self.part().cloned() else { return Ok(()) };
        self.fence = part.fence();
        self.partition = part.core.partition(part.core.root()?, Side::Data, self.partition_position)?;
        let blocks = self.partition.as_ref().map_or(0, |partition| partition.len());
        if blocks == 0 {
            return Err(part.file().corruption(part.descriptor().offset, "an index partition has no blocks"));
        }
        self.block_position = if direction == Direction::Forward { 0 } else { blocks - 1 };
        self.enter_block(direction)
    }

    fn enter_block(&mut self, direction: Direction) -> Result<()> {
        self.block = None;
        let (Some(part), Some(partition)) = (self.run.parts().get(self.part_position), &self.partition) else {
            return Ok(());
        };
        self.sequential = self.sequential.saturating_add(1);
        let following = self.following.take().filter(|(position, _)| *position == self.block_position);
        self.block = match partition.place(self.block_position) {
            Some(place) => match following.map(|(_, block)| block).or_else(|| place.peek().map(Block::new)) {
                Some(block) => Some(block),
                None => {
                    if self.sequential >= SEQUENTIAL_BLOCKS
                        && direction == Direction::Forward
                        && let Some(frame) = partition.frame(self.block_position)
                    {
                        read_ahead(part, frame.offset, &mut self.prefetched_to);
                    }
                    part.core.block_in_passing(Side::Data, partition, self.block_position, self.admit)?
                }
            },
            None => None,
        };
        let count = self.block.as_ref().map_or(0, |block| block.count());
        if count == 0 {
            self.block = None;
            return Err(part.file().corruption(part.descriptor().offset, "a block has no entries"));
        }
        self.position = if direction == Direction::Forward { 0 } else { count - 1 };
        self.show(true);
        self.look_ahead(direction);
        Ok(())
    }

    /// Lets the processor fetch an entry that will be read some steps later: a scan of cached blocks is bound by the
    /// memory's latency. Near the end of a block that entry is in the following one.
    #[inline]
    fn touch_ahead(&self, block: &Block, direction: Direction) {
        let beyond = match direction {
            Direction::Forward => {
                let ahead = self.position + 1 + ENTRIES_AHEAD;
                block.touch(ahead);
                ahead.checked_sub(block.count())
            }
            Direction::Backward => {
                let ahead = self.position.checked_sub(1 + ENTRIES_AHEAD);
                ahead.inspect(|ahead| block.touch(*ahead));
                ENTRIES_AHEAD.checked_sub(self.position)
            }
        };
        if let (Some(beyond), Some((_, following))) = (beyond, &self.following) {
            following.touch(match direction {
                Direction::Forward => beyond,
                Direction::Backward => following.count().wrapping_sub(1 + beyond),
            });
        }
    }

    /// Takes hold of the block after this one and lets the processor fetch the front of the one after that.
    fn look_ahead(&mut self, direction: Direction) {
        let Some(partition) = &self.partition else { return };
        let (next, after_next) = match direction {
            Direction::Forward => (self.block_position.wrapping_add(1), self.block_position.wrapping_add(2)),
            Direction::Backward => (self.block_position.wrapping_sub(1), self.block_position.wrapping_sub(2)),
        };
        self.following = partition.place(next).and_then(|place| Some((next, Block::new(place.peek()?))));
        if let Some(place) = partition.place(after_next) {
            place.glance(Block::touch_front);
        }
    }
}

/// Keeps the read-ahead at least half a window in front of the scan.
fn read_ahead(part: &Part, offset: u64, prefetched_to: &mut u64) {
    if offset + PREFETCH_BYTES / 2 > *prefetched_to {
        let from = offset.max(*prefetched_to);
        part.file().prefetch(from, PREFETCH_BYTES);
        *prefetched_to = from + PREFETCH_BYTES;
    }
}

#[inline]
pub(crate) fn key_head(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0; 8];
    padded[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(padded)
}

/// A head as a number that grows in the direction of travel.
#[inline]
pub(crate) fn rank_of(head: u64, direction: Direction) -> u64 {
    match direction {
        Direction::Forward => head,
        Direction::Backward => !head,
    }
}

/// The head of a key that is in two pieces.
#[inline]
fn joined_head(prefix: &[u8], suffix: &[u8]) -> u64 {
    if let Some(first) = prefix.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let before = prefix.iter().fold(0, |head, byte| head << 8 | u64::from(*byte));
    let room_bits = 64 - 8 * prefix.len() as u32;
    // Without a prefix all bits are the suffix's.
    before.checked_shl(room_bits).unwrap_or(0) | key_head(suffix) >> (64 - room_bits)
}
