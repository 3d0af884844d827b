//! A block whose values are coded one by one with the table's phrases.
//!
//! The payload is that of a [plain block](super::entries), but each value that is shorter so is replaced by its code, behind a
//! number that says how long the code is (times two, plus one if it is a code at all). A point read thus
//! decodes the one value it wants, and a cache that is short of room can keep blocks as they are stored.

use super::builder::StagedBlock;
use super::compression::ReadDictionary;
use super::entries::{Block, Entry, parse};
use super::frame::FrameHeader;
use super::phrases::{Decoder, Encoder, PHRASE_BYTES_MAX, Task};
use crate::cache::Charge;
use crate::wire::{Reader, put_varint};
use std::cell::RefCell;
use std::cmp::Ordering as CompareOrdering;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// A value this short is not worth a code.
const CODED_VALUE_BYTES_MIN: usize = 12;

/// Writes the payload of a block, replacing the content of `output`; `code` is scratch. Returns the length of the plain payload.
pub(crate) fn pack(staged: &StagedBlock, encoder: &Encoder, code: &mut Vec<u8>, output: &mut Vec<u8>) -> usize {
    output.clear();
    let (mut values, mut stored_values) = (0, 0);
    staged.encode_with(output, |value, output| {
        let code = if value.len() >= CODED_VALUE_BYTES_MIN { encoder.encode(value, code) } else { &[] };
        let coded = !code.is_empty() && code.len() < value.len();
        let stored = if coded { code } else { value };
        let start = output.len();
        put_varint(output, ((stored.len() as u64) << 1) | u64::from(coded));
        output.extend_from_slice(stored);
        values += value.len();
        stored_values += output.len() - start;
    });
    output.len() - stored_values + values
}

/// An entry as it is stored.
struct PackedEntry {
    entry: Entry,
    /// The plain entry up to its value.
    header: Range<usize>,
    /// The value as stored.
    stored: Range<usize>,
    coded: bool,
}

/// Walks the entries of a payload. Ends early, without a last `Ok`, where something does not fit.
struct Walk<'a> {
    payload: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    /// The walk and the prefix of all keys.
    fn new(payload: &'a [u8]) -> Option<(Walk<'a>, &'a [u8])> {
        let mut reader = Reader::new(payload);
        let prefix = reader.bytes()?;
        Some((Walk { payload, at: payload.len() - reader.remaining() }, prefix))
    }

    #[inline]
    fn next(&mut self) -> Option<PackedEntry> {
        let entry = parse(self.payload, self.at)?;
        let header = self.at..entry.value_start();
        let mut reader = Reader::new(self.payload.get(header.end..)?);
        let (mut coded, mut length) = (false, 0);
        if !entry.is_deleted() {
            let number = reader.varint()?;
            (coded, length) = (number & 1 == 1, usize::try_from(number >> 1).ok()?);
        }
        let start = self.payload.len() - reader.remaining();
        let stored = start..start.checked_add(length).filter(|end| *end <= self.payload.len())?;
        if !coded && length != entry.value_length_in_block() {
            return None;
        }
        self.at = stored.end;
        Some(PackedEntry { entry, header, stored, coded })
    }
}

thread_local! {
    /// Where the second half of a block is decoded.
    static SECOND_HALF: RefCell<Vec<u8>> = RefCell::default();
}

/// The entries of a payload, and where each goes in the plain one.
struct Plan {
    prefix_end: usize,
    entries: Vec<(PackedEntry, usize)>,
    /// The first entry of the second half, and where it begins.
    middle: (usize, usize),
}

impl Plan {
    fn new(payload: &[u8], count: u16, raw_length: usize) -> Option<Plan> {
        let (mut walk, _) = Walk::new(payload)?;
        let prefix_end = walk.at;
        let mut entries = Vec::with_capacity(usize::from(count));
        let (mut end, mut middle) = (prefix_end, None);
        for position in 0..usize::from(count) {
            let packed = walk.next()?;
            if end >= raw_length / 2 && middle.is_none() {
                middle = Some((position, end));
            }
            let start = end;
            end = start.checked_add(packed.header.len())?.checked_add(packed.entry.value_length_in_block())?;
            entries.push((packed, start));
        }
        let fits = end == raw_length && walk.at == payload.len();
        fits.then(|| Plan { prefix_end, middle: middle.unwrap_or((entries.len(), end)), entries })
    }
}

/// The plain payload of a packed one, behind so many zeros; `None` if it is not a block of `count` entries.
pub(crate) fn unpack(
    payload: &[u8],
    decoder: &Decoder,
    count: u16,
    raw_length: usize,
    zeros: usize,
) -> Option<Vec<u8>> {
    let plan = Plan::new(payload, count, raw_length)?;
    let (middle, middle_at) = plan.middle;
    let (first, second) = plan.entries.split_at(middle);
    let mut output = vec![0; zeros + raw_length + PHRASE_BYTES_MAX];
    output.get_mut(zeros..zeros + plan.prefix_end)?.copy_from_slice(payload.get(..plan.prefix_end)?);
    SECOND_HALF.with_borrow_mut(|half| {
        let half_length = raw_length - middle_at;
        if half.len() < half_length + PHRASE_BYTES_MAX {
            half.resize(half_length + PHRASE_BYTES_MAX, 0);
        }
        let starts = [0, middle_at];
        decoder.decode_lists(payload, [first, second], [&mut output[zeros..], half], |(packed, start), output| {
            let start = start - starts[usize::from(*start >= middle_at)];
            put_down(payload, packed, start, output)
        });
        output.truncate(zeros + middle_at);
        output.extend_from_slice(&half[..half_length]);
    });
    Some(output)
}

/// Puts down all of an entry but its code, and says where that goes.
fn put_down(payload: &[u8], packed: &PackedEntry, start: usize, output: &mut [u8]) -> Task {
    let mut put = |start: usize, source: &Range<usize>| {
        let source = payload.get(source.clone()).unwrap_or_default();
        if let Some(place) = output.get_mut(start..start + source.len()) {
            place.copy_from_slice(source);
        }
    };
    put(start, &packed.header);
    let value = start + packed.header.len();
    if packed.coded {
        return Task { input: packed.stored.start, output: value, length: packed.entry.value_length_in_block() };
    }
    put(value, &packed.stored);
    Task::default()
}

/// A block kept as it is stored.
pub(crate) struct PackedBlock {
    payload: Box<[u8]>,
    dictionary: Arc<ReadDictionary>,
    count: u16,
    raw_length: u32,
    reads: AtomicU8,
    _charge: Option<Charge>,
}

impl PackedBlock {
    /// A block from its payload; `None` if the dictionary is of another kind. The payload is checked as it is used.
    pub(crate) fn new(header: &FrameHeader, payload: &[u8], dictionary: &Arc<ReadDictionary>) -> Option<PackedBlock> {
        dictionary.phrases()?;
        Some(PackedBlock {
            payload: payload.into(),
            dictionary: dictionary.clone(),
            count: header.entries,
            raw_length: header.raw_length,
            reads: AtomicU8::new(0),
            _charge: None,
        })
    }

    /// The bytes that this block keeps in memory.
    pub(crate) fn size_bytes(&self) -> usize {
        self.payload.len() + size_of::<PackedBlock>() + 64
    }

    /// Counts the block in the cache's budget until it is dropped.
    pub(crate) fn charged(mut self, charge: Charge) -> PackedBlock {
        self._charge = Some(charge);
        self
    }

    /// Counts a point read; the reads so far.
    pub(crate) fn count_read(&self) -> u8 {
        let reads = self.reads.load(Ordering::Relaxed).saturating_add(1);
        self.reads.store(reads, Ordering::Relaxed);
        reads
    }

    /// The whole block.
    pub(crate) fn open(&self) -> Option<Block> {
        let decoder = self.dictionary.phrases()?;
        let zeros = Block::slots_length(self.count);
        let buffer = unpack(&self.payload, decoder, self.count, self.raw_length as usize, zeros)?;
        Block::decode(buffer, self.count)
    }

    /// A block of the first entry with this key alone. The outer `None` is damage.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Option<Block>> {
        let (mut walk, prefix) = Walk::new(&self.payload)?;
        let Some(suffix) = key.strip_prefix(prefix) else { return Some(None) };
        let prefix_end = walk.at;
        for _ in 0..self.count {
            let packed = walk.next()?;
            match self.payload.get(packed.entry.suffix_range())?.cmp(suffix) {
                CompareOrdering::Less => {}
                CompareOrdering::Equal => return self.extract(prefix_end, &packed).map(Some),
                CompareOrdering::Greater => return Some(None),
            }
        }
        Some(None)
    }

    fn extract(&self, prefix_end: usize, packed: &PackedEntry) -> Option<Block> {
        let decoder = self.dictionary.phrases()?;
        let length = prefix_end + packed.header.len() + packed.entry.value_length_in_block();
        if length > self.raw_length as usize {
            return None;
        }
        let zeros = Block::slots_length(1);
        let mut output = vec![0; zeros + length + PHRASE_BYTES_MAX];
        let (_, plain) = output.split_at_mut(zeros);
        plain.get_mut(..prefix_end)?.copy_from_slice(self.payload.get(..prefix_end)?);
        let task = put_down(&self.payload, packed, prefix_end, plain);
        decoder.decode(&self.payload, &task, plain);
        output.truncate(zeros + length);
        Block::decode(output, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stamp;
    use crate::block::entries::{FLAG_DELETED, FLAG_HISTORY};
    use crate::block::frame::{Compression, FrameKind};
    use crate::block::phrases::train;
    use pando_base::Timestamp;

    fn value(number: usize) -> Vec<u8> {
        format!("{{customerName: 'n{}', customerCity: 'c{}', balance: {}}}", number * 7919, number % 7, number * 31)
            .into_bytes()
    }

    fn staged(from: usize) -> StagedBlock {
        let mut staged = StagedBlock::default();
        for number in from..from + 20 {
            let key = format!("key/{number:06}");
            match number % 5 {
                0 => staged.push(key.as_bytes(), FLAG_DELETED, &Stamp::new(9, Timestamp(4)), b""),
                1 => staged.push(key.as_bytes(), FLAG_HISTORY, &Stamp::new(7, Timestamp(3)), &value(number)),
                2 => staged.push(key.as_bytes(), 0, &Stamp::SETTLED, b"short"),
                _ => staged.push(key.as_bytes(), 0, &Stamp::SETTLED, &value(number)),
            }
        }
        staged
    }

    fn packed(staged: &StagedBlock) -> (Vec<u8>, Vec<u8>, Arc<ReadDictionary>) {
        let values: Vec<Vec<u8>> = (0..500).map(value).collect();
        let model = train(&values.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let (mut payload, mut plain) = (Vec::new(), Vec::new());
        pack(staged, &Encoder::new(&model), &mut Vec::new(), &mut payload);
        staged.encode(&mut plain);
        (payload, plain, Arc::new(ReadDictionary::new(&model.encode()).unwrap()))
    }

    fn block(payload: &[u8], plain: &[u8], count: usize, dictionary: &Arc<ReadDictionary>) -> PackedBlock {
        let header = FrameHeader {
            stored_length: payload.len() as u32,
            raw_length: plain.len() as u32,
            kind: FrameKind::Data,
            compression: Compression::Phrases,
            entries: count as u16,
        };
        PackedBlock::new(&header, payload, dictionary).unwrap()
    }

    #[test]
    fn packed_blocks_give_back_the_plain_one() {
        for from in [0, 3, 1000] {
            let staged = staged(from);
            let (payload, plain, dictionary) = packed(&staged);
            assert!(payload.len() < plain.len());
            let decoder = dictionary.phrases().unwrap();
            assert_eq!(unpack(&payload, decoder, 20, plain.len(), 0).as_ref(), Some(&plain));
            let block = block(&payload, &plain, 20, &dictionary);
            let open = block.open().unwrap();
            for number in from - 1.min(from)..from + 22 {
                let key = format!("key/{number:06}");
                let (position, exact) = open.search(key.as_bytes());
                let found = block.find(key.as_bytes()).unwrap();
                assert_eq!(found.is_some(), exact, "{key}");
                if let Some(found) = found {
                    let (entry, whole) = (found.entry(0), open.entry(position));
                    assert_eq!((entry.flags, entry.stamp), (whole.flags, whole.stamp));
                    assert_eq!((found.value(&entry), found.search(key.as_bytes())), (open.value(&whole), (0, true)));
                }
            }
            assert!(block.find(b"other").unwrap().is_none() && block.find(b"").unwrap().is_none());
        }
    }

    #[test]
    fn a_damaged_payload_is_refused_or_read_without_panic() {
        let staged = staged(0);
        let (payload, plain, dictionary) = packed(&staged);
        let decoder = dictionary.phrases().unwrap();
        for position in 0..payload.len() {
            assert_eq!(unpack(&payload[..position], decoder, 20, plain.len(), 0), None);
            for flip in [1, 0x10, 0x80, 0xff] {
                let mut damaged = payload.clone();
                damaged[position] ^= flip;
                let block = block(&damaged, &plain, 20, &dictionary);
                let _ = block.open();
                let _ = block.find(b"key/000013");
            }
        }
        assert_eq!(unpack(&payload, decoder, 19, plain.len(), 0), None);
        assert_eq!(unpack(&payload, decoder, 21, plain.len(), 0), None);
        assert_eq!(unpack(&payload, decoder, 20, plain.len() + 1, 0), None);
    }
}
