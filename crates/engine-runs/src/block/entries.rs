//! A decoded block: entries in key order, addressed through slots.
//!
//! The payload is the shared key prefix (length, bytes), then the entries, each
//! `flags, suffix length, [value length], [sequence], [commit], [durable], suffix, value`.
//! Loading walks the entries once, checks every length and writes one slot for each in front of the payload: the first four
//! bytes of its suffix as a number, and its offset. A search thus touches one or two cache lines of slots with the prefix
//! behind them, and one entry; stepping either way is a subtraction or addition. Slots are not stored: they would cost a
//! tenth of an index on disk.
//!
//! Counter, slots and payload are one piece of memory: whoever follows a pointer to a block waits for one line of it to find
//! the entry's place and for one more to read it, and can ask for the first lines before anything of it is known.
//!
//! Invariant: after [`Block::decode`] every slot's entry parses, so later parsing cannot fail; should it ever, the
//! entry reads as empty instead of panicking.

use crate::cache::Charge;
use crate::prefetch::{prefetch, prefetch_at};
use crate::wire::Reader;
use crate::{ReadPoint, Stamp};
use bytes::Bytes;
use pando_base::Timestamp;
use std::cmp::Ordering;
use std::ops::Range;
use triomphe::{Arc, ThinArc};

/// The version deletes the key.
pub(crate) const FLAG_DELETED: u8 = 1;
/// Older versions of the key are in the section's history.
pub(crate) const FLAG_HISTORY: u8 = 2;
/// The value is a [`ValueReference`].
pub(crate) const FLAG_OUT_OF_LINE: u8 = 4;
/// The stamp has a sequence.
pub(crate) const FLAG_SEQUENCE: u8 = 8;
/// The stamp has a commit timestamp.
pub(crate) const FLAG_COMMIT: u8 = 16;
/// The durable timestamp is not the commit timestamp.
pub(crate) const FLAG_DURABLE: u8 = 32;

const FLAGS_KNOWN: u8 = 63;
const FLAGS_STAMP: u8 = FLAG_SEQUENCE | FLAG_COMMIT | FLAG_DURABLE;
/// What a slot takes.
pub(crate) const SLOT_BYTES: usize = 8;

/// Where an out-of-line value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValueReference {
    /// Offset of its frame in the file.
    pub(crate) offset: u64,
    /// Length of its frame.
    pub(crate) frame_length: u32,
    /// Length of the value.
    pub(crate) raw_length: u32,
}

impl ValueReference {
    pub(crate) const ENCODED_BYTES: usize = 16;

    pub(crate) fn encode(&self) -> [u8; Self::ENCODED_BYTES] {
        let mut bytes = [0; Self::ENCODED_BYTES];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.frame_length.to_le_bytes());
        bytes[12..].copy_from_slice(&self.raw_length.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<ValueReference> {
        let mut reader = Reader::new(bytes);
        let reference =
            ValueReference { offset: reader.u64()?, frame_length: reader.u32()?, raw_length: reader.u32()? };
        reader.is_empty().then_some(reference)
    }
}

/// One entry's place in its block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    suffix_start: u32,
    suffix_length: u32,
    value_length: u32,
    pub(crate) flags: u8,
    pub(crate) stamp: Stamp,
}

impl Entry {
    /// True if the version deletes the key.
    #[inline]
    pub(crate) fn is_deleted(&self) -> bool {
        self.flags & FLAG_DELETED != 0
    }

    /// True if older versions are in the history.
    #[inline]
    pub(crate) fn has_history(&self) -> bool {
        self.flags & FLAG_HISTORY != 0
    }

    /// True if the value is a reference.
    #[inline]
    pub(crate) fn is_out_of_line(&self) -> bool {
        self.flags & FLAG_OUT_OF_LINE != 0
    }

    /// True if a live version that this reader sees.
    #[inline]
    pub(crate) fn is_visible(&self, point: &ReadPoint, fence: Timestamp) -> bool {
        self.flags & FLAGS_STAMP == 0 || (self.stamp.is_alive(fence) && point.sees(&self.stamp))
    }

    /// Where the suffix of its key lies.
    #[inline]
    pub(crate) fn suffix_range(&self) -> Range<usize> {
        self.suffix_start as usize..self.value_start()
    }

    /// Where the value begins.
    #[inline]
    pub(crate) fn value_start(&self) -> usize {
        self.suffix_start as usize + self.suffix_length as usize
    }

    /// The length of the value or reference in the plain block.
    #[inline]
    pub(crate) fn value_length_in_block(&self) -> usize {
        self.value_length as usize
    }

    #[inline]
    fn end(&self) -> usize {
        self.value_start() + self.value_length as usize
    }
}

/// What a block knows of itself.
pub(crate) struct BlockHeader {
    count: u32,
    prefix_start: u32,
    prefix_length: u32,
    charge: Option<Charge>,
}

/// A block as the cache keeps it: header, slots, payload.
pub(crate) type SharedBlock = ThinArc<BlockHeader, u8>;

/// A block in memory; clones share it.
#[derive(Clone)]
pub(crate) struct Block {
    shared: SharedBlock,
}

/// A value that keeps its block in memory.
struct ValueInBlock {
    block: Block,
    range: Range<usize>,
}

impl AsRef<[u8]> for ValueInBlock {
    fn as_ref(&self) -> &[u8] {
        self.block.bytes().get(self.range.clone()).unwrap_or_default()
    }
}

impl Block {
    /// The room that must be left in front of a payload of so many entries.
    pub(crate) fn slots_length(count: u16) -> usize {
        usize::from(count) * SLOT_BYTES
    }

    /// Checks a plain payload, with room for the slots in front of it, and fills those in. `None` if it is not a block of
    /// `count` entries.
    pub(crate) fn decode(mut buffer: Vec<u8>, count: u16) -> Option<Block> {
        let end = buffer.len();
        u32::try_from(end).ok()?;
        let slots_end = Block::slots_length(count);
        let mut reader = Reader::new(buffer.get(slots_end..)?);
        let prefix_length = reader.bytes()?.len();
        let mut at = end - reader.remaining();
        let prefix_start = at - prefix_length;
        for position in 0..usize::from(count) {
            let entry = parse(&buffer, at)?;
            if entry.flags & !FLAGS_KNOWN != 0 || entry.end() > end {
                return None;
            }
            if entry.is_out_of_line() && entry.value_length as usize != ValueReference::ENCODED_BYTES {
                return None;
            }
            let head = head(buffer.get(entry.suffix_range())?);
            let slot = (u64::from(at as u32) << 32) | u64::from(head);
            buffer.get_mut(position * SLOT_BYTES..(position + 1) * SLOT_BYTES)?.copy_from_slice(&slot.to_le_bytes());
            at = entry.end();
        }
        let header = BlockHeader {
            count: u32::from(count),
            prefix_start: prefix_start as u32,
            prefix_length: prefix_length as u32,
            charge: None,
        };
        (at == end).then(|| Block { shared: ThinArc::from_header_and_slice(header, &buffer) })
    }

    /// The block that the cache keeps.
    #[inline]
    pub(crate) fn of(shared: &SharedBlock) -> Block {
        Block { shared: shared.clone() }
    }

    /// A block that was taken from the cache.
    #[inline]
    pub(crate) fn new(shared: SharedBlock) -> Block {
        Block { shared }
    }

    /// What the cache is to keep.
    pub(crate) fn shared(&self) -> SharedBlock {
        self.shared.clone()
    }

    /// Slots, then the payload.
    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.shared.slice
    }

    /// The bytes that this block keeps in memory.
    pub(crate) fn size_bytes(&self) -> usize {
        self.bytes().len() + size_of::<BlockHeader>() + 32
    }

    /// Counts the block in the cache's budget until it is dropped.
    pub(crate) fn charged(mut self, charge: Charge) -> Block {
        self.shared.with_arc_mut(|shared| {
            let content = Arc::get_mut(shared);
            debug_assert!(content.is_some(), "a block is counted before it is shared");
            if let Some(content) = content {
                content.header_mut().charge = Some(charge);
            }
        });
        self
    }

    /// How many entries there are.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.shared.header.header.count as usize
    }

    /// What all keys begin with.
    #[inline]
    pub(crate) fn prefix(&self) -> &[u8] {
        let header = &self.shared.header.header;
        let start = header.prefix_start as usize;
        self.bytes().get(start..start + header.prefix_length as usize).unwrap_or_default()
    }

    /// The entry at a position below [`Block::count`].
    #[inline]
    pub(crate) fn entry(&self, position: usize) -> Entry {
        debug_assert!(position < self.count());
        let offset = self.slot(position) >> 32;
        let entry = parse(self.bytes(), offset as usize);
        debug_assert!(entry.is_some(), "checked when the block was decoded");
        entry.unwrap_or_default()
    }

    /// Loads the beginning of an entry into the processor's cache, so that a later step need not wait for it. Nothing if
    /// there is no such entry.
    #[inline]
    pub(crate) fn touch(&self, position: usize) {
        prefetch(self.behind_slot(position));
    }

    /// What lies from the beginning of an entry on; empty if there is no such entry. Only slots are looked at.
    #[inline]
    fn behind_slot(&self, position: usize) -> &[u8] {
        let offset = (position < self.count()).then(|| (self.slot(position) >> 32) as usize);
        offset.and_then(|offset| self.bytes().get(offset..)).unwrap_or_default()
    }

    /// Loads header, slots, prefix and the beginning of the first entry into the processor's cache, without a look at any of
    /// it: nothing is waited for.
    #[inline]
    pub(crate) fn touch_front(shared: &SharedBlock) {
        let start = ThinArc::as_ptr(shared).cast::<u8>();
        prefetch_at(start);
        prefetch_at(start.wrapping_add(128));
    }

    /// Loads the beginning of a key's entry, or of the first that may be it, into the processor's cache: its first four lines, since no
    /// neighbour will be read from which the processor could guess them. Only slots are looked at.
    #[inline]
    pub(crate) fn touch_entry(shared: &SharedBlock, key: &[u8]) {
        let block = Block::of(shared);
        if let Some(suffix) = key.strip_prefix(block.prefix()) {
            let entry = block.behind_slot(block.lower_slot(head(suffix)));
            prefetch(entry);
            prefetch(entry.get(128..).unwrap_or_default());
        }
    }

    /// What follows the prefix in the entry's key.
    #[inline]
    pub(crate) fn suffix(&self, entry: &Entry) -> &[u8] {
        let start = entry.suffix_start as usize;
        self.bytes().get(start..start + entry.suffix_length as usize).unwrap_or_default()
    }

    /// The entry's value or reference.
    #[inline]
    pub(crate) fn value(&self, entry: &Entry) -> &[u8] {
        let start = entry.suffix_start as usize + entry.suffix_length as usize;
        self.bytes().get(start..start + entry.value_length as usize).unwrap_or_default()
    }

    /// The entry's value or reference, sharing the block's memory.
    #[inline]
    pub(crate) fn into_value(self, entry: &Entry) -> Bytes {
        Bytes::from_owner(ValueInBlock { range: entry.value_start()..entry.end(), block: self })
    }

    /// The same for whoever takes values of one block after the other: they share one owner, which is kept in `whole`.
    #[inline]
    pub(crate) fn share_value(&self, entry: &Entry, whole: &mut Option<Bytes>) -> Bytes {
        if whole.as_ref().is_none_or(|whole| whole.as_ptr() != self.bytes().as_ptr()) {
            *whole = Some(Bytes::from_owner(ValueInBlock { range: 0..self.bytes().len(), block: self.clone() }));
        }
        whole.as_ref().map_or_else(Bytes::new, |whole| whole.slice(entry.value_start()..entry.end()))
    }

    /// Where an out-of-line value lies.
    pub(crate) fn reference(&self, entry: &Entry) -> Option<ValueReference> {
        ValueReference::decode(self.value(entry))
    }

    /// The length of the entry's value, wherever it lies.
    pub(crate) fn value_length(&self, entry: &Entry) -> u64 {
        if entry.is_out_of_line() {
            return self.reference(entry).map_or(0, |reference| u64::from(reference.raw_length));
        }
        u64::from(entry.value_length)
    }

    /// The position of the first entry with a key that is not below `key`, and whether it is that key.
    #[inline]
    pub(crate) fn search(&self, key: &[u8]) -> (usize, bool) {
        let prefix = self.prefix();
        let Some(suffix) = key.strip_prefix(prefix) else {
            return (if key < prefix { 0 } else { self.count() }, false);
        };
        let wanted = head(suffix);
        let floor = self.lower_slot(wanted);
        let mut low = floor;
        let mut high = low;
        while high < self.count() && self.slot(high) as u32 == wanted {
            high += 1;
            if high - low > 8 {
                high = self.partition(high, self.count(), |slot| slot as u32 == wanted);
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            match self.suffix(&self.entry(middle)).cmp(suffix) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return (self.first_of(middle, floor), true),
                Ordering::Greater => high = middle,
            }
        }
        (low, false)
    }

    /// The first slot whose head is not below this.
    #[inline]
    fn lower_slot(&self, wanted: u32) -> usize {
        self.partition(0, self.count(), |slot| (slot as u32) < wanted)
    }

    /// History blocks repeat a key: goes back to the first entry that has it. Before `floor` none has: a look at an entry there
    /// would be a wait for memory.
    fn first_of(&self, position: usize, floor: usize) -> usize {
        if position == floor {
            return floor;
        }
        let entry = self.entry(position);
        let suffix = self.suffix(&entry);
        let mut first = position;
        while first > floor && self.suffix(&self.entry(first - 1)) == suffix {
            first -= 1;
        }
        first
    }

    /// Head in the low half, offset in the high half.
    #[inline]
    fn slot(&self, position: usize) -> u64 {
        slot(self.bytes(), position)
    }

    #[inline]
    fn partition(&self, mut low: usize, high: usize, below: impl Fn(u64) -> bool) -> usize {
        let mut length = high.saturating_sub(low);
        while length > 0 {
            let half = length / 2;
            if below(self.slot(low + half)) {
                low += half + 1;
                length -= half + 1;
            } else {
                length = half;
            }
        }
        low
    }
}

#[inline]
fn slot(bytes: &[u8], position: usize) -> u64 {
    let start = position.saturating_mul(SLOT_BYTES);
    let slot = bytes.get(start..).and_then(|slots| slots.first_chunk());
    slot.map_or(0, |slot| u64::from_le_bytes(*slot))
}

/// The first four bytes as a number that sorts like them.
#[inline]
fn head(suffix: &[u8]) -> u32 {
    if let Some(first) = suffix.first_chunk::<4>() {
        return u32::from_be_bytes(*first);
    }
    let mut padded = [0; 4];
    padded[..suffix.len()].copy_from_slice(suffix);
    u32::from_be_bytes(padded)
}

/// Reads the header of the entry at `at`. Whether suffix and value lie within the payload is for the caller to check.
#[inline]
pub(crate) fn parse(bytes: &[u8], at: usize) -> Option<Entry> {
    let rest = bytes.get(at..)?;
    if let [flags, suffix_length, first, second, ..] = *rest
        && flags & (FLAG_DELETED | FLAGS_STAMP) == 0
        && suffix_length < 0x80
        && (first < 0x80 || second < 0x80)
    {
        // The settled entry with a value of less than 16 KB: nearly all of them.
        let long = u32::from(first >= 0x80);
        let value_length = u32::from(first & 0x7f) | (long * (u32::from(second) << 7));
        let suffix_start = at as u32 + 3 + long;
        let suffix_length = u32::from(suffix_length);
        return Some(Entry { suffix_start, suffix_length, value_length, flags, stamp: Stamp::SETTLED });
    }
    parse_slowly(bytes, at)
}

fn parse_slowly(bytes: &[u8], at: usize) -> Option<Entry> {
    let mut reader = Reader::new(bytes.get(at..)?);
    let flags = reader.u8()?;
    let suffix_length = u32::try_from(reader.varint()?).ok()?;
    let value_length = if flags & FLAG_DELETED == 0 { u32::try_from(reader.varint()?).ok()? } else { 0 };
    let sequence = if flags & FLAG_SEQUENCE != 0 { reader.u64()? } else { 0 };
    let commit = Timestamp(if flags & FLAG_COMMIT != 0 { reader.u64()? } else { 0 });
    let durable = if flags & FLAG_DURABLE != 0 { Timestamp(reader.u64()?) } else { commit };
    let suffix_start = u32::try_from(bytes.len() - reader.remaining()).ok()?;
    Some(Entry { suffix_start, suffix_length, value_length, flags, stamp: Stamp { sequence, commit, durable } })
}

#[cfg(test)]
mod tests {
    use super::super::builder::StagedBlock;
    use super::*;

    fn build(entries: &[(&[u8], u8, Stamp, &[u8])]) -> (Vec<u8>, u16) {
        let mut staged = StagedBlock::default();
        entries.iter().for_each(|(key, flags, stamp, value)| staged.push(key, *flags, stamp, value));
        let mut payload = Vec::new();
        staged.encode(&mut payload);
        (payload, staged.count() as u16)
    }

    fn decode(payload: &[u8], count: u16) -> Option<Block> {
        Block::decode([&vec![0; Block::slots_length(count)], payload].concat(), count)
    }

    fn full_key(block: &Block, position: usize) -> Vec<u8> {
        [block.prefix(), block.suffix(&block.entry(position))].concat()
    }

    #[test]
    fn entries_round_trip() {
        let late = Stamp { sequence: 9, commit: Timestamp(5), durable: Timestamp(6) };
        let long = vec![7u8; 20_000];
        let entries: Vec<(&[u8], u8, Stamp, &[u8])> = vec![
            (b"key", 0, Stamp::SETTLED, b""),
            (b"key/a", FLAG_HISTORY, late, b"one"),
            (b"key/a\0", FLAG_DELETED, Stamp::new(3, Timestamp(4)), b""),
            (b"key/b", 0, Stamp::new(3, Timestamp::NONE), &long),
        ];
        let (payload, count) = build(&entries);
        let block = decode(&payload, count).unwrap();
        assert_eq!(block.prefix(), b"key");
        for (position, (key, flags, stamp, value)) in entries.iter().enumerate() {
            let entry = block.entry(position);
            assert_eq!((full_key(&block, position).as_slice(), block.value(&entry)), (*key, *value));
            assert_eq!((entry.flags & !FLAGS_STAMP, entry.stamp), (*flags, *stamp));
            assert_eq!(block.search(key), (position, true));
        }
        assert_eq!(block.search(b"ka"), (0, false));
        assert_eq!(block.search(b"key/"), (1, false));
        assert_eq!(block.search(b"key/aa"), (3, false));
        assert_eq!(block.search(b"kez"), (4, false));
    }

    #[test]
    fn many_entries_with_equal_heads_are_found() {
        let keys: Vec<Vec<u8>> = (0..300u32).map(|n| [b"a0000000", n.to_be_bytes().as_slice()].concat()).collect();
        let mut entries: Vec<(&[u8], u8, Stamp, &[u8])> = vec![(b"A", 0, Stamp::SETTLED, b"v")];
        entries.extend(keys.iter().map(|key| (key.as_slice(), 0, Stamp::SETTLED, b"v".as_slice())));
        let (payload, count) = build(&entries);
        let block = decode(&payload, count).unwrap();
        for (position, entry) in entries.iter().enumerate() {
            assert_eq!(block.search(entry.0), (position, true));
        }
    }

    #[test]
    fn a_damaged_payload_is_refused_without_panic() {
        let (payload, count) =
            build(&[(b"ab", 0, Stamp::SETTLED, b"12"), (b"ac", 0, Stamp::new(7, Timestamp(8)), b"")]);
        for position in 0..payload.len() {
            for value in 0..=255 {
                let mut damaged = payload.clone();
                damaged[position] = value;
                if let Some(block) = decode(&damaged, count) {
                    (0..block.count()).for_each(|position| drop(full_key(&block, position)));
                    block.search(b"ac");
                }
            }
            assert!(decode(&payload[..position], count).is_none());
        }
        assert!(decode(&payload, count + 1).is_none());
        assert!(decode(&payload, count - 1).is_none());
    }
}
