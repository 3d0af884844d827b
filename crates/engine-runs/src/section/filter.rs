//! Filters: which keys an index partition certainly does not have.
//!
//! A Bloom filter in lines of 64 bytes: a question touches one cache line. Ten bits a key give about one false
//! answer in a hundred. What is filtered may be less than the key: then all keys with that prefix answer alike.

use crate::cache::Charge;
use crate::wire::{Reader, put_varint};
use xxhash_rust::xxh3::xxh3_64;

const BITS_PER_KEY: usize = 10;
const LINE_WORDS: usize = 8;
const PROBES: u32 = 6;

/// How much of each key a table's filters know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FilterPrefix {
    /// All of it.
    #[default]
    Whole,
    /// At most this many bytes from its start.
    First(u32),
    /// All but this many bytes at its end (a record id of fixed length, say).
    AllBut(u32),
    /// Nothing: no filters are written.
    None,
}

impl FilterPrefix {
    /// The filtered piece of a key.
    #[inline]
    pub fn of<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        match *self {
            FilterPrefix::Whole => key,
            FilterPrefix::First(length) => &key[..key.len().min(length as usize)],
            FilterPrefix::AllBut(length) => &key[..key.len().saturating_sub(length as usize)],
            FilterPrefix::None => &[],
        }
    }

    pub(crate) fn encode(&self, buffer: &mut Vec<u8>) {
        let (tag, number) = match *self {
            FilterPrefix::Whole => (0, 0),
            FilterPrefix::First(length) => (1, length),
            FilterPrefix::AllBut(length) => (2, length),
            FilterPrefix::None => (3, 0),
        };
        buffer.push(tag);
        put_varint(buffer, u64::from(number));
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<FilterPrefix> {
        let tag = reader.u8()?;
        let number = u32::try_from(reader.varint()?).ok()?;
        match tag {
            0 => Some(FilterPrefix::Whole),
            1 => Some(FilterPrefix::First(number)),
            2 => Some(FilterPrefix::AllBut(number)),
            3 => Some(FilterPrefix::None),
            _ => None,
        }
    }
}

/// The hash that filters are asked with.
#[inline]
pub(crate) fn filter_hash(filtered: &[u8]) -> u64 {
    xxh3_64(filtered)
}

/// What one question touches; where it lies in memory it is one line of the processor's cache, not parts of two.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u64; LINE_WORDS]);

/// One filter in memory.
pub(crate) struct Filter {
    lines: Box<[Line]>,
    _charge: Option<Charge>,
}

impl Filter {
    /// The stored form of a filter over these hashes.
    pub(crate) fn build(hashes: &[u64]) -> Vec<u8> {
        let lines_count = (hashes.len() * BITS_PER_KEY).div_ceil(LINE_WORDS * 64).max(1);
        let mut lines = vec![[0u64; LINE_WORDS]; lines_count];
        for hash in hashes {
            let line = &mut lines[line_index(*hash, lines_count)];
            probes(*hash).for_each(|(word, mask)| line[word] |= mask);
        }
        lines.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// A filter from its stored form.
    pub(crate) fn decode(payload: &[u8]) -> Option<Filter> {
        let (lines, rest) = payload.as_chunks::<{ LINE_WORDS * 8 }>();
        if lines.is_empty() || !rest.is_empty() {
            return None;
        }
        let word = |line: &[u8; LINE_WORDS * 8], at: usize| {
            line[at * 8..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let lines = lines.iter().map(|line| Line(std::array::from_fn(|at| word(line, at)))).collect();
        Some(Filter { lines, _charge: None })
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.lines.len() * LINE_WORDS * 8 + 64
    }

    pub(crate) fn charged(mut self, charge: Charge) -> Filter {
        self._charge = Some(charge);
        self
    }

    /// False if no key with this hash was added.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let Some(Line(line)) = self.lines.get(line_index(hash, self.lines.len())) else { return true };
        // All are looked at before one branch: it is foretold well, and what follows it does not wait for the line.
        probes(hash).fold(true, |may, (word, mask)| may & (line[word] & mask != 0))
    }
}

#[inline]
fn line_index(hash: u64, lines: usize) -> usize {
    (((hash >> 32) * lines as u64) >> 32) as usize
}

/// Six bits of the line: word and mask.
#[inline]
fn probes(hash: u64) -> impl Iterator<Item = (usize, u64)> {
    let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..PROBES).map(move |probe| {
        let bits = (mixed >> (probe * 9)) as usize;
        ((bits >> 6) & (LINE_WORDS - 1), 1 << (bits & 63))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_false_negatives_and_few_false_positives() {
        for count in [1u64, 10, 5_000] {
            let hashes: Vec<u64> = (0..count).map(|n| filter_hash(&n.to_be_bytes())).collect();
            let filter = Filter::decode(&Filter::build(&hashes)).unwrap();
            assert!(hashes.iter().all(|hash| filter.may_contain(*hash)));
            let wrong = (1_000_000..1_010_000u64).filter(|n| filter.may_contain(filter_hash(&n.to_be_bytes()))).count();
            assert!(wrong < 250, "{wrong} of 10000 with {count} keys");
        }
    }

    #[test]
    fn prefixes() {
        let key = b"abcdef";
        assert_eq!(FilterPrefix::Whole.of(key), key);
        assert_eq!(FilterPrefix::First(2).of(key), b"ab");
        assert_eq!(FilterPrefix::AllBut(2).of(key), b"abcd");
        assert_eq!((FilterPrefix::First(9).of(key), FilterPrefix::AllBut(9).of(key)), (key.as_slice(), b"".as_slice()));
    }
}
