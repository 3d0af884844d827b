//! What is shared by all who read one section: its root once loaded, and the places of its partitions.

use crate::block::compression::{ReadDictionary, decompress};
use crate::block::entries::{Block, Entry, SLOT_BYTES, ValueReference};
use crate::block::frame::{Compression, FrameKind};
use crate::block::packed::PackedBlock;
use crate::cache::{self, BlockCache, Charge, Landlord, Place, Resident};
use crate::file::{FrameHandle, RunFile};
use crate::section::filter::{Filter, FilterPrefix};
use crate::section::index::{IndexPartition, LIST_OPEN, LIST_PACKED};
use crate::section::root::{PartitionList, RootRecord};
use crate::section::tombstones::Tombstones;
use crate::{Lookup, PartDescriptor, Result, RunsError};
use bytes::Bytes;
use std::sync::{Arc, OnceLock, Weak};

/// A block that is read so often while it is packed is worth opening.
const READS_BEFORE_OPEN: u8 = 4;

const LIST_DATA: u8 = 0;
const LIST_HISTORY: u8 = 1;
const LIST_FILTER: u8 = 2;

/// The root, decoded, and everything that hangs on it.
pub(crate) struct Root {
    pub(crate) filter_prefix: FilterPrefix,
    pub(crate) tombstones: Tombstones,
    pub(crate) data: PartitionList,
    pub(crate) history: PartitionList,
    dictionary: Option<Arc<ReadDictionary>>,
    data_places: Box<[Resident<Arc<IndexPartition>>]>,
    history_places: Box<[Resident<Arc<IndexPartition>>]>,
    filter_places: Box<[Resident<Arc<Filter>>]>,
    _charge: Charge,
}

impl Root {
    /// True unless a cached filter says that no key with this hash is in a partition.
    pub(crate) fn may_contain(&self, position: usize, hash: u64) -> bool {
        let mut may = true;
        if let Some(place) = self.filter_places.get(position) {
            place.glance(|filter| may = filter.may_contain(hash));
        }
        may
    }

    /// Shows a partition of the data, if it is cached.
    #[inline]
    pub(crate) fn glance(&self, position: usize, look: impl FnOnce(&Arc<IndexPartition>)) {
        if let Some(place) = self.data_places.get(position) {
            place.glance(look);
        }
    }
}

/// Where a key was found in a block that was not open.
enum Found {
    Missing,
    /// Perhaps: the block must be searched.
    In(Block),
}

/// A block as it was read.
enum Stored {
    Open(Block),
    Packed(PackedBlock),
}

/// Which of a section's two indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The newest version of each key.
    Data,
    /// Older versions.
    History,
}

/// A section of a file, loaded as far as it was used.
pub(crate) struct SectionCore {
    pub(crate) file: Arc<RunFile>,
    pub(crate) cache: Arc<BlockCache>,
    root_handle: FrameHandle,
    root: OnceLock<Root>,
}

impl SectionCore {
    pub(crate) fn new(file: Arc<RunFile>, descriptor: &PartDescriptor, cache: Arc<BlockCache>) -> Arc<SectionCore> {
        let length = descriptor.root_length_bytes;
        let end = descriptor.offset.saturating_add(descriptor.length_bytes);
        let root_handle = FrameHandle { offset: end.saturating_sub(u64::from(length)), length };
        Arc::new(SectionCore { file, cache, root_handle, root: OnceLock::new() })
    }

    /// The root, loaded now if need be.
    #[inline]
    pub(crate) fn root(&self) -> Result<&Root> {
        match self.root.get() {
            Some(root) => Ok(root),
            None => self.load_root(),
        }
    }

    /// The root, if it was loaded before.
    #[inline]
    pub(crate) fn loaded_root(&self) -> Option<&Root> {
        self.root.get()
    }

    #[cold]
    fn load_root(&self) -> Result<&Root> {
        let (_, payload) = self.file.read_payload(self.root_handle, FrameKind::Root, None, 0)?;
        let undecodable = || self.file.corruption(self.root_handle.offset, "the section's root cannot be decoded");
        let record = RootRecord::decode(&payload).ok_or_else(undecodable)?;
        let data = PartitionList::new(&record.data).ok_or_else(undecodable)?;
        let history = PartitionList::new(&record.history).ok_or_else(undecodable)?;
        let dictionary = record.dictionary.map(|handle| self.load_dictionary(handle)).transpose()?;
        let tombstones = record.tombstones.map(|handle| self.load_tombstones(handle)).transpose()?.unwrap_or_default();
        let size = data.size_bytes() + history.size_bytes() + (data.len() * 2 + history.len()) * 16;
        let size = size + dictionary.as_ref().map_or(0, |dictionary| dictionary.size_bytes()) + size_of::<Root>();
        let places = |count| std::iter::repeat_with(Resident::default).take(count).collect();
        let root = Root {
            filter_prefix: record.filter_prefix,
            tombstones,
            dictionary,
            data_places: places(data.len()),
            history_places: places(history.len()),
            filter_places: std::iter::repeat_with(Resident::default).take(data.len()).collect(),
            data,
            history,
            _charge: self.cache.charge(size),
        };
        Ok(self.root.get_or_init(|| root))
    }

    fn load_dictionary(&self, handle: FrameHandle) -> Result<Arc<ReadDictionary>> {
        let (_, content) = self.file.read_payload(handle, FrameKind::Dictionary, None, 0)?;
        let dictionary = self.cache.dictionaries().get(&content);
        dictionary.ok_or_else(|| self.file.corruption(handle.offset, "unusable dictionary"))
    }

    fn load_tombstones(&self, handle: FrameHandle) -> Result<Tombstones> {
        let (_, payload) = self.file.read_payload(handle, FrameKind::RangeTombstones, None, 0)?;
        let undecodable = || self.file.corruption(handle.offset, "the range tombstones cannot be decoded");
        Tombstones::decode(&payload).ok_or_else(undecodable)
    }

    /// Calls with an index partition, loading it if need be.
    #[inline]
    pub(crate) fn with_partition<T>(
        self: &Arc<Self>,
        root: &Root,
        position: usize,
        call: impl FnOnce(&Arc<IndexPartition>) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(place) = root.data_places.get(position) else { return Ok(None) };
        match &*place.get() {
            Some(partition) => call(partition).map(Some),
            None => match self.load_partition(root, Side::Data, position)? {
                Some(partition) => call(&partition).map(Some),
                None => Ok(None),
            },
        }
    }

    /// An index partition, or `None` beyond the last.
    pub(crate) fn partition(
        self: &Arc<Self>,
        root: &Root,
        side: Side,
        position: usize,
    ) -> Result<Option<Arc<IndexPartition>>> {
        let places = match side {
            Side::Data => &root.data_places,
            Side::History => &root.history_places,
        };
        let Some(place) = places.get(position) else { return Ok(None) };
        match &*place.get() {
            Some(partition) => Ok(Some(partition.clone())),
            None => self.load_partition(root, side, position),
        }
    }

    #[cold]
    fn load_partition(
        self: &Arc<Self>,
        root: &Root,
        side: Side,
        position: usize,
    ) -> Result<Option<Arc<IndexPartition>>> {
        let (list, places, number, kind) = match side {
            Side::Data => (&root.data, &root.data_places, LIST_DATA, FrameKind::Index),
            Side::History => (&root.history, &root.history_places, LIST_HISTORY, FrameKind::HistoryIndex),
        };
        let (Some(handle), Some(place)) = (list.handles.get(position), places.get(position)) else { return Ok(None) };
        let partition = self.read_partition(handle.index, kind)?;
        let partition = Arc::new(partition);
        let place_number = Place { list: number, index: position as u32 };
        self.cache.admit_partition(place, partition.clone(), self.landlord(), place_number);
        Ok(Some(partition))
    }

    fn read_partition(&self, handle: FrameHandle, kind: FrameKind) -> Result<IndexPartition> {
        let (_, payload) = self.file.read_payload(handle, kind, None, 0)?;
        let partition = IndexPartition::decode(&payload, kind == FrameKind::HistoryIndex)
            .ok_or_else(|| self.file.corruption(handle.offset, "the index partition cannot be decoded"))?;
        self.cache.count_read(u64::from(handle.length));
        let charge = self.cache.charge(partition.size_bytes());
        Ok(partition.charged(charge))
    }

    /// False if the filter of a partition says that no key with this hash is there.
    #[inline]
    pub(crate) fn filter_allows(self: &Arc<Self>, root: &Root, position: usize, hash: u64) -> Result<bool> {
        let Some(place) = root.filter_places.get(position) else { return Ok(false) };
        match &*place.get() {
            Some(filter) => Ok(filter.may_contain(hash)),
            None => self.load_filter(root, position, hash),
        }
    }

    #[cold]
    fn load_filter(self: &Arc<Self>, root: &Root, position: usize, hash: u64) -> Result<bool> {
        let handle = root.data.handles.get(position).and_then(|handle| handle.filter);
        let (Some(handle), Some(place)) = (handle, root.filter_places.get(position)) else { return Ok(true) };
        let filter = self.file.with_frame(handle, FrameKind::Filter, |_, payload| Filter::decode(payload))?;
        self.cache.count_read(u64::from(handle.length));
        let charge = self.cache.charge(filter.size_bytes());
        let filter = Arc::new(filter.charged(charge));
        let place_number = Place { list: LIST_FILTER, index: position as u32 };
        self.cache.admit_partition(place, filter.clone(), self.landlord(), place_number);
        Ok(filter.may_contain(hash))
    }

    /// A block of a partition for a point read; `None` beyond the last.
    #[inline]
    pub(crate) fn block(
        self: &Arc<Self>,
        side: Side,
        partition: &Arc<IndexPartition>,
        position: usize,
    ) -> Result<Option<Block>> {
        let Some(place) = partition.place(position) else { return Ok(None) };
        match &*place.get() {
            Some(block) => Ok(Some(Block::of(block))),
            None => self.load_block(side, partition, position),
        }
    }

    /// The newest entry of a key in a data block, in a block that may have no other entry. Before a block is read,
    /// `is_worth_reading` is asked.
    #[inline]
    pub(crate) fn find(
        self: &Arc<Self>,
        partition: &Arc<IndexPartition>,
        position: usize,
        key: &[u8],
        is_worth_reading: impl FnOnce() -> Result<bool>,
    ) -> Result<Option<(Block, Entry)>> {
        let Some(place) = partition.place(position) else { return Ok(None) };
        let block = match &*place.get() {
            Some(block) => {
                Block::touch_front(block);
                Block::of(block)
            }
            None if !is_worth_reading()? => return Ok(None),
            None => match self.find_packed(partition, position, key)? {
                Found::Missing => return Ok(None),
                Found::In(block) => block,
            },
        };
        let (entry_position, exact) = block.search(key);
        if !exact {
            return Ok(None);
        }
        let entry = block.entry(entry_position);
        Ok(Some((block, entry)))
    }

    /// What a reader is told of an entry that it sees.
    #[inline]
    pub(crate) fn shown(&self, block: Block, entry: &Entry) -> Result<Lookup> {
        let stamp = entry.stamp;
        Ok(match entry.is_deleted() {
            true => Lookup::Deleted { stamp },
            false => Lookup::Found { value: self.value(block, entry)?, stamp },
        })
    }

    /// A block of a partition for a scan, which does not count as use. Without `admit`, what has to be read does not stay.
    #[inline]
    pub(crate) fn block_in_passing(
        self: &Arc<Self>,
        side: Side,
        partition: &Arc<IndexPartition>,
        position: usize,
        admit: bool,
    ) -> Result<Option<Block>> {
        let Some(place) = partition.place(position) else { return Ok(None) };
        match place.peek() {
            Some(block) => Ok(Some(Block::new(block))),
            None if admit => self.load_block(side, partition, position),
            None => self.read_in_passing(side, partition, position),
        }
    }

    /// Finds a key in a block that is not open. While there is room it is opened; then only the entry is decoded, unless the
    /// block is read again and again.
    #[cold]
    fn find_packed(self: &Arc<Self>, partition: &Arc<IndexPartition>, position: usize, key: &[u8]) -> Result<Found> {
        if self.cache.is_roomy() {
            return Ok(self.load_block(Side::Data, partition, position)?.map_or(Found::Missing, Found::In));
        }
        let Some(handle) = partition.frame(position) else { return Ok(Found::Missing) };
        let kept = partition.packed(position).and_then(|place| place.get().clone());
        let packed = match kept {
            Some(packed) if packed.count_read() >= READS_BEFORE_OPEN => {
                return self.open_block(partition, position, handle, &packed).map(Found::In);
            }
            Some(packed) => packed,
            None => match self.read_stored(handle)? {
                Stored::Open(block) => return Ok(Found::In(self.admit_block(partition, position, block))),
                Stored::Packed(packed) => self.admit_packed(partition, position, packed),
            },
        };
        let found = packed.find(key).ok_or_else(|| self.undecodable(handle))?;
        Ok(found.map_or(Found::Missing, Found::In))
    }

    fn admit_packed(
        self: &Arc<Self>,
        partition: &Arc<IndexPartition>,
        position: usize,
        packed: PackedBlock,
    ) -> Arc<PackedBlock> {
        let packed = Arc::new(packed);
        if let Some(place) = partition.packed(position) {
            let place_number = Place { list: LIST_PACKED, index: position as u32 };
            let landlord: Weak<IndexPartition> = Arc::downgrade(partition);
            self.cache.admit_block(place, packed.clone(), landlord, place_number);
        }
        packed
    }

    fn open_block(
        self: &Arc<Self>,
        partition: &Arc<IndexPartition>,
        position: usize,
        handle: FrameHandle,
        packed: &PackedBlock,
    ) -> Result<Block> {
        let block = packed.open().ok_or_else(|| self.undecodable(handle))?;
        let block = self.charged(block);
        if let Some(place) = partition.packed(position) {
            place.clear();
        }
        Ok(self.admit_block(partition, position, block))
    }

    fn admit_block(self: &Arc<Self>, partition: &Arc<IndexPartition>, position: usize, block: Block) -> Block {
        if let Some(place) = partition.place(position) {
            let landlord: Weak<IndexPartition> = Arc::downgrade(partition);
            let place_number = Place { list: LIST_OPEN, index: position as u32 };
            self.cache.admit_block(place, block.shared(), landlord, place_number);
        }
        block
    }

    #[cold]
    fn load_block(
        self: &Arc<Self>,
        side: Side,
        partition: &Arc<IndexPartition>,
        position: usize,
    ) -> Result<Option<Block>> {
        let Some(handle) = partition.frame(position) else { return Ok(None) };
        Ok(Some(match partition.packed(position).and_then(Resident::peek) {
            Some(packed) => self.open_block(partition, position, handle, &packed)?,
            None => self.admit_block(partition, position, self.read_block(side, handle)?),
        }))
    }

    fn read_in_passing(&self, side: Side, partition: &IndexPartition, position: usize) -> Result<Option<Block>> {
        let Some(handle) = partition.frame(position) else { return Ok(None) };
        Ok(Some(match partition.packed(position).and_then(Resident::peek) {
            Some(packed) => self.charged(packed.open().ok_or_else(|| self.undecodable(handle))?),
            None => self.read_block(side, handle)?,
        }))
    }

    fn read_block(&self, side: Side, handle: FrameHandle) -> Result<Block> {
        let kind = match side {
            Side::Data => FrameKind::Data,
            Side::History => FrameKind::History,
        };
        let dictionary = self.root()?.dictionary.as_deref();
        let (header, payload) = self.file.read_payload(handle, kind, dictionary, SLOT_BYTES)?;
        let block = Block::decode(payload, header.entries).ok_or_else(|| self.undecodable(handle))?;
        self.cache.count_read(u64::from(handle.length));
        Ok(self.charged(block))
    }

    /// Reads a data block and leaves it as it is stored, if something can be found in it so.
    fn read_stored(&self, handle: FrameHandle) -> Result<Stored> {
        let dictionary = self.root()?.dictionary.as_ref();
        let stored = self.file.with_frame(handle, FrameKind::Data, |header, stored| {
            if header.compression == Compression::Phrases {
                return PackedBlock::new(header, stored, dictionary?).map(Stored::Packed);
            }
            let zeros = Block::slots_length(header.entries);
            let buffer = decompress(header, dictionary.map(|dictionary| &**dictionary), stored, zeros)?;
            Block::decode(buffer, header.entries).map(Stored::Open)
        })?;
        self.cache.count_read(u64::from(handle.length));
        Ok(match stored {
            Stored::Open(block) => Stored::Open(self.charged(block)),
            Stored::Packed(packed) => {
                let charge = self.cache.charge(packed.size_bytes());
                Stored::Packed(packed.charged(charge))
            }
        })
    }

    fn charged(&self, block: Block) -> Block {
        let charge = self.cache.charge(block.size_bytes());
        block.charged(charge)
    }

    fn undecodable(&self, handle: FrameHandle) -> RunsError {
        self.file.corruption(handle.offset, "the block cannot be decoded")
    }

    /// The value of an entry, wherever it lies.
    #[inline]
    pub(crate) fn value(&self, block: Block, entry: &Entry) -> Result<Bytes> {
        if entry.is_out_of_line() { self.outside_value(&block, entry) } else { Ok(block.into_value(entry)) }
    }

    #[cold]
    fn outside_value(&self, block: &Block, entry: &Entry) -> Result<Bytes> {
        match block.reference(entry) {
            Some(reference) => self.read_value(reference),
            None => Err(self.file.corruption(self.root_handle.offset, "a value reference cannot be decoded")),
        }
    }

    /// An out-of-line value.
    pub(crate) fn read_value(&self, reference: ValueReference) -> Result<Bytes> {
        let handle = FrameHandle { offset: reference.offset, length: reference.frame_length };
        let dictionary = self.root()?.dictionary.as_deref();
        let (_, value) = self.file.read_payload(handle, FrameKind::Value, dictionary, 0)?;
        if value.len() != reference.raw_length as usize {
            return Err(self.file.corruption(handle.offset, "the value is not as long as its reference says"));
        }
        self.cache.count_read(u64::from(handle.length));
        Ok(Bytes::from(value))
    }

    fn landlord(self: &Arc<Self>) -> Weak<dyn Landlord> {
        let weak: Weak<SectionCore> = Arc::downgrade(self);
        weak
    }
}

impl Landlord for SectionCore {
    fn take_used(&self, place: Place) -> bool {
        let Some(root) = self.root.get() else { return false };
        match place.list {
            LIST_DATA => cache::take_used(&root.data_places, place.index),
            LIST_HISTORY => cache::take_used(&root.history_places, place.index),
            _ => cache::take_used(&root.filter_places, place.index),
        }
    }

    fn evict(&self, place: Place) {
        let Some(root) = self.root.get() else { return };
        match place.list {
            LIST_DATA => cache::evict(&root.data_places, place.index),
            LIST_HISTORY => cache::evict(&root.history_places, place.index),
            _ => cache::evict(&root.filter_places, place.index),
        }
    }
}
