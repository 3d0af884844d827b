//! A part: a section as a member of a run, with the fence that applies to it.

use crate::block::entries::{Block, Entry};
use crate::cache::BlockCache;
use crate::file::RunFile;
use crate::section::core::{SectionCore, Side};
use crate::section::filter::filter_hash;
use crate::section::history::HistoryWalk;
use crate::{FilterPrefix, PartDescriptor, RangeTombstone, ReadPoint, Result, Stamp};
use bytes::Bytes;
use pando_base::Timestamp;
use std::cell::Cell;
use std::sync::Arc;

/// One section of one file, opened when first used.
pub struct Part {
    pub(crate) core: Arc<SectionCore>,
    descriptor: PartDescriptor,
}

impl Part {
    /// What it takes in memory beside its keys and what counts in the cache.
    pub(crate) const OWN_BYTES: usize = size_of::<Part>() + size_of::<SectionCore>() + 2 * POINTERS_BYTES;
}

/// What stands in front of what is shared, and the pointer to it.
const POINTERS_BYTES: usize = 3 * size_of::<usize>();

/// The hash of a key for filters, computed at most once however many runs are asked.
#[derive(Default)]
pub(crate) struct KeyHash {
    known: Option<(FilterPrefix, u64)>,
}

impl KeyHash {
    #[inline]
    pub(crate) fn get(&mut self, prefix: FilterPrefix, key: &[u8]) -> u64 {
        match self.known {
            Some((known, hash)) if known == prefix => hash,
            _ => {
                let hash = filter_hash(prefix.of(key));
                self.known = Some((prefix, hash));
                hash
            }
        }
    }
}

/// How far a point read goes for a data block.
#[derive(Clone, Copy)]
pub(crate) enum Reach<'a> {
    /// To the file.
    File,
    /// Not beyond memory. Notes if it would have had to: what is found without that block says nothing.
    Memory(&'a Cell<bool>),
}

impl Reach<'_> {
    fn may_read(self) -> bool {
        match self {
            Reach::File => true,
            Reach::Memory(has_missed) => {
                has_missed.set(true);
                false
            }
        }
    }
}

/// A version that was found.
pub(crate) enum Located {
    /// In a block.
    Entry(Block, Entry),
    /// A range tombstone.
    Erased(Stamp),
}

impl Part {
    /// A part of a file; nothing is read yet.
    pub fn new(file: Arc<RunFile>, descriptor: PartDescriptor, cache: Arc<BlockCache>) -> Arc<Part> {
        debug_assert_eq!(file.id(), descriptor.file);
        Arc::new(Part { core: SectionCore::new(file, &descriptor, cache), descriptor })
    }

    /// The same section under another fence; shares all that is loaded.
    pub fn with_fence(&self, fence: Timestamp) -> Arc<Part> {
        Arc::new(Part { core: self.core.clone(), descriptor: PartDescriptor { fence, ..self.descriptor.clone() } })
    }

    /// What the manifest knows of it.
    pub fn descriptor(&self) -> &PartDescriptor {
        &self.descriptor
    }

    /// The file it lies in.
    pub fn file(&self) -> &Arc<RunFile> {
        &self.core.file
    }

    /// Versions that are durable only after this are dead.
    #[inline]
    pub fn fence(&self) -> Timestamp {
        self.descriptor.fence
    }

    /// True if it has range tombstones.
    #[inline]
    pub(crate) fn has_tombstones(&self) -> bool {
        self.descriptor.range_tombstones > 0
    }

    /// Its range tombstones, dead ones included.
    pub fn range_tombstones(&self) -> Result<Vec<RangeTombstone>> {
        if !self.has_tombstones() {
            return Ok(Vec::new());
        }
        Ok(self.core.root()?.tombstones.iter().collect())
    }

    /// The newest live version of a key that the reader sees, range tombstones included. With `likely`, the key is probably
    /// here and the filter is asked only if that can save a read.
    #[inline]
    pub(crate) fn locate(
        &self,
        key: &[u8],
        hash: &mut KeyHash,
        point: &ReadPoint,
        likely: bool,
        reach: Reach<'_>,
    ) -> Result<Option<Located>> {
        if let Some((block, entry)) = self.find(key, hash, likely, reach)? {
            if entry.is_visible(point, self.fence()) {
                return Ok(Some(Located::Entry(block, entry)));
            }
            if entry.has_history()
                && let Some((block, entry)) = self.find_in_history(key, point)?
            {
                return Ok(Some(Located::Entry(block, entry)));
            }
        }
        Ok(self.erased(key, point)?.map(Located::Erased))
    }

    /// The newest live range tombstone over the key that the reader sees.
    #[inline]
    pub(crate) fn erased(&self, key: &[u8], point: &ReadPoint) -> Result<Option<Stamp>> {
        if !self.has_tombstones() {
            return Ok(None);
        }
        Ok(self.core.root()?.tombstones.visible(key, point, self.fence()))
    }

    /// The range around a key over which the same range tombstones lie.
    pub(crate) fn fragment(&self, key: &[u8]) -> Result<Option<(Bytes, Option<Bytes>)>> {
        let fragment = self.core.root()?.tombstones.fragment(key);
        Ok(fragment.map(|fragment| (fragment.start.clone(), fragment.end.clone())))
    }

    /// The key's newest entry, dead or alive.
    #[inline]
    fn find(&self, key: &[u8], hash: &mut KeyHash, likely: bool, reach: Reach<'_>) -> Result<Option<(Block, Entry)>> {
        let root = self.core.root()?;
        let position = root.data.directory.keys.lower_bound(key);
        if !likely && self.is_filtered_out(key, hash, position)? {
            return Ok(None);
        }
        let found = self.core.with_partition(root, position, |partition| {
            let block_position = partition.lower_bound(key);
            let is_worth_reading = || Ok((!likely || !self.is_filtered_out(key, hash, position)?) && reach.may_read());
            self.core.find(partition, block_position, key, is_worth_reading)
        })?;
        Ok(found.flatten())
    }

    #[inline]
    fn is_filtered_out(&self, key: &[u8], hash: &mut KeyHash, position: usize) -> Result<bool> {
        let root = self.core.root()?;
        if root.filter_prefix == FilterPrefix::None || position >= root.data.len() {
            return Ok(false);
        }
        Ok(!self.core.filter_allows(root, position, hash.get(root.filter_prefix, key))?)
    }

    /// False if certainly no key here begins with `prefix`, which must be what the table's filters know of a key.
    pub(crate) fn may_contain_prefix(&self, prefix: &[u8]) -> Result<bool> {
        let root = self.core.root()?;
        let first = root.data.directory.keys.lower_bound(prefix);
        if first >= root.data.len() {
            return Ok(false);
        }
        if root.filter_prefix == FilterPrefix::None {
            return Ok(true);
        }
        let hash = filter_hash(prefix);
        for position in first..root.data.len() {
            if self.core.filter_allows(root, position, hash)? {
                return Ok(true);
            }
            let (head, tail) = root.data.directory.keys.key(position);
            let goes_on = match prefix.strip_prefix(head) {
                Some(rest) => tail.starts_with(rest),
                None => head.starts_with(prefix),
            };
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// The newest live visible version in the history.
    #[cold]
    pub(crate) fn find_in_history(&self, key: &[u8], point: &ReadPoint) -> Result<Option<(Block, Entry)>> {
        let fence = self.fence();
        // What is alive has commit <= durable <= fence.
        let start = ReadPoint { sequence: point.sequence, timestamp: point.timestamp.min(fence) };
        let mut walk = HistoryWalk::start(&self.core, key, &start, true)?;
        while let Some((block, entry)) = walk.next(key)? {
            if entry.is_visible(point, fence) {
                return Ok(Some((block, entry)));
            }
        }
        Ok(None)
    }

    /// How many of this part's keys lie below `key`; exact, at the price of up to one block read.
    pub(crate) fn rank(&self, key: &[u8]) -> Result<u64> {
        if key <= self.descriptor.bounds.first.as_ref() {
            return Ok(0);
        }
        if self.descriptor.bounds.last.is_before(key) {
            return Ok(self.descriptor.keys);
        }
        let root = self.core.root()?;
        let position = root.data.directory.keys.lower_bound(key);
        let before = root.data.entries_before(position);
        let within = self.core.with_partition(root, position, |partition| {
            let block_position = partition.lower_bound(key);
            let block = self.core.block(Side::Data, partition, block_position)?;
            Ok(partition.entries_before(block_position) + block.map_or(0, |block| block.search(key).0 as u64))
        })?;
        Ok(before + within.unwrap_or(0))
    }

    /// The key with this ordinal; `None` beyond the last.
    pub(crate) fn key_at(&self, ordinal: u64) -> Result<Option<Vec<u8>>> {
        let root = self.core.root()?;
        let position = root.data.handles.partition_point(|handle| handle.entries_through <= ordinal);
        let within = ordinal - root.data.entries_before(position).min(ordinal);
        let key = self.core.with_partition(root, position, |partition| {
            let (block_position, entry_position) = partition.locate_ordinal(within);
            let Some(block) = self.core.block(Side::Data, partition, block_position)? else { return Ok(None) };
            let entry_position = usize::try_from(entry_position).unwrap_or(usize::MAX);
            if entry_position >= block.count() {
                return Ok(None);
            }
            Ok(Some([block.prefix(), block.suffix(&block.entry(entry_position))].concat()))
        })?;
        Ok(key.flatten())
    }
}
