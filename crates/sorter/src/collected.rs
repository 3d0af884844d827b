//! Entries in memory: the keys lie one behind the other in one buffer; what is compared and moved while sorting is small.
//!
//! The first eight bytes of a key decide nearly always, so they stand beside it. A key that was added later lies further behind: its place
//! is its number.

use crate::Spilled;
use crate::error::{Result, SorterError};
use pando_base::operation::tick;
use std::cmp::Ordering;

/// What an entry takes beside its key and value.
const ENTRY_BYTES: u64 = size_of::<Entry<()>>() as u64;
/// More is never collected, whatever the budget: places of keys are 32 bits, and one more key may follow.
pub(crate) const MEMORY_BYTES_MAX: u64 = 1 << 31;

/// As many are sorted in one go, within some ten milliseconds.
const PIECE_COUNT: usize = 1 << 17;
/// So many steps are counted for each entry of a piece, and each time that it is merged.
const STEPS_PER_ENTRY: u64 = 8;
const STEPS_PER_MERGED: u64 = 1;

struct Entry<V> {
    head: u64,
    start: u32,
    length: u32,
    value: V,
}

/// Entries in the order in which they were added, until they are sorted.
pub(crate) struct Collected<V> {
    keys: Vec<u8>,
    entries: Vec<Entry<V>>,
    memory_bytes: u64,
}

impl<V: Spilled> Collected<V> {
    pub(crate) fn new() -> Collected<V> {
        Collected { keys: Vec::new(), entries: Vec::new(), memory_bytes: 0 }
    }

    /// How much memory key and value take.
    pub(crate) fn data_bytes(key: &[u8], value: &V) -> u64 {
        (key.len() + value.memory_bytes()) as u64
    }

    /// How much memory an entry takes.
    pub(crate) fn entry_bytes(key: &[u8], value: &V) -> u64 {
        Collected::data_bytes(key, value) + ENTRY_BYTES
    }

    pub(crate) fn push(&mut self, key: &[u8], value: V) {
        self.memory_bytes += Collected::entry_bytes(key, &value);
        let (start, length) = (self.keys.len() as u32, key.len() as u32);
        self.keys.extend_from_slice(key);
        if key.is_empty() {
            // The next one lies elsewhere.
            self.keys.push(0);
        }
        self.entries.push(Entry { head: head(key), start, length, value });
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Puts them in order. The operation that waits for it may be told to stop, so many are sorted in pieces, of which two at a
    /// time then become one: the sort that finds two runs merges them.
    pub(crate) fn sort(&mut self) -> Result<()> {
        let Collected { keys, entries, .. } = self;
        let key = |entry: &Entry<V>| bytes(keys, entry);
        let order = |left: &Entry<V>, right: &Entry<V>| match left.head.cmp(&right.head) {
            Ordering::Equal => key(left).cmp(key(right)).then(left.start.cmp(&right.start)),
            decided => decided,
        };
        for piece in entries.chunks_mut(PIECE_COUNT) {
            tick(piece.len() as u64 * STEPS_PER_ENTRY).map_err(SorterError::Stopped)?;
            piece.sort_unstable_by(order);
        }
        let mut length = PIECE_COUNT;
        while length < entries.len() {
            length *= 2;
            for pair in entries.chunks_mut(length) {
                tick(pair.len() as u64 * STEPS_PER_MERGED).map_err(SorterError::Stopped)?;
                pair.sort_by(order);
            }
        }
        Ok(())
    }

    /// The entries as they lie now.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], &V)> {
        self.entries.iter().map(|entry| (bytes(&self.keys, entry), &entry.value))
    }

    /// Gives the entries away one by one, as they lie now.
    pub(crate) fn into_outgoing(self) -> Outgoing<V> {
        Outgoing { keys: self.keys, entries: self.entries.into_iter() }
    }

    /// Forgets the entries and keeps the memory for others.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.entries.clear();
        self.memory_bytes = 0;
    }
}

/// Entries that are given away.
pub(crate) struct Outgoing<V> {
    keys: Vec<u8>,
    entries: std::vec::IntoIter<Entry<V>>,
}

impl<V> Outgoing<V> {
    pub(crate) fn next_entry(&mut self) -> Option<(&[u8], V)> {
        let entry = self.entries.next()?;
        Some((bytes(&self.keys, &entry), entry.value))
    }
}

fn bytes<'k, V>(keys: &'k [u8], entry: &Entry<V>) -> &'k [u8] {
    let start = entry.start as usize;
    keys.get(start..start + entry.length as usize).unwrap_or_default()
}

/// The first eight bytes as a number of the same order; zeros stand for what is missing.
pub(crate) fn head(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => key.iter().zip(1..).fold(0, |head, (byte, place)| head | u64::from(*byte) << (64 - 8 * place)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::operation::during;
    use pando_base::{ErrorCode, OperationContext};

    #[test]
    fn x14_more_than_one_piece_is_in_order_and_can_be_stopped() {
        let mut collected = Collected::new();
        let count = 5 * PIECE_COUNT as u64 / 2;
        // Every key is there twice.
        for number in 0..count {
            collected.push(&(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (count / 2)).to_be_bytes(), ());
        }
        let operation = OperationContext::detached();
        operation.kill(ErrorCode::Interrupted);
        let stopped = during(&operation, || collected.sort());
        assert!(matches!(stopped, Err(SorterError::Stopped(error)) if error.code() == ErrorCode::Interrupted));
        collected.sort().unwrap();
        assert!(collected.iter().is_sorted_by(|left, right| left.0 <= right.0));
        assert_eq!(collected.iter().count() as u64, count);
    }

    #[test]
    fn x14_heads_have_the_order_of_their_keys() {
        let keys: [&[u8]; 8] = [b"", b"\0", b"a", b"a\0", b"ab", b"abcdefgh", b"abcdefghi", b"\xff"];
        for pair in keys.windows(2) {
            assert!(head(pair[0]) <= head(pair[1]), "{pair:?}");
        }
        assert_eq!(head(b"a"), u64::from(b'a') << 56);
        assert_eq!(head(b"abcdefgh"), head(b"abcdefghi"));
    }
}
