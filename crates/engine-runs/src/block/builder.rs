//! Collects the entries of one block and encodes them.
//!
//! Encoding waits until the block is complete, because only then is the prefix known that all its keys share; that also
//! lets another thread do it.

use super::entries::{FLAG_COMMIT, FLAG_DELETED, FLAG_DURABLE, FLAG_SEQUENCE};
use crate::Stamp;
use crate::wire::{put_bytes, put_varint};

/// No block has more entries: the frame counts them in 16 bits.
const ENTRIES_MAX: usize = u16::MAX as usize;

#[derive(Clone, Copy)]
struct StagedEntry {
    start: usize,
    key_length: usize,
    value_length: usize,
    flags: u8,
    stamp: Stamp,
}

/// The entries of a block under construction, in ascending order.
#[derive(Default)]
pub(crate) struct StagedBlock {
    arena: Vec<u8>,
    entries: Vec<StagedEntry>,
}

impl StagedBlock {
    /// Adds an entry. `flags` says what the value is; the flags for the stamp are set here.
    pub(crate) fn push(&mut self, key: &[u8], flags: u8, stamp: &Stamp, value: &[u8]) {
        debug_assert!(!self.is_full());
        let start = self.arena.len();
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(value);
        let flags = flags | stamp_flags(stamp);
        self.entries.push(StagedEntry {
            start,
            key_length: key.len(),
            value_length: value.len(),
            flags,
            stamp: *stamp,
        });
    }

    /// Sets flags of the last entry after the fact.
    pub(crate) fn flag_last(&mut self, flags: u8) {
        if let Some(last) = self.entries.last_mut() {
            last.flags |= flags;
        }
    }

    /// The key of the last entry.
    pub(crate) fn last_key(&self) -> Option<&[u8]> {
        self.entries.last().map(|entry| self.key(entry))
    }

    /// How many entries there are.
    pub(crate) fn count(&self) -> usize {
        self.entries.len()
    }

    /// True if no further entry can be counted.
    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= ENTRIES_MAX
    }

    /// Bytes of keys and values so far.
    pub(crate) fn size_bytes(&self) -> usize {
        self.arena.len()
    }

    /// Forgets all entries, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.arena.clear();
        self.entries.clear();
    }

    /// Writes the block's payload into `output`, replacing its content.
    pub(crate) fn encode(&self, output: &mut Vec<u8>) {
        output.clear();
        output.reserve(self.arena.len() + 8 * self.entries.len() + 16);
        self.encode_with(output, |value, output| output.extend_from_slice(value));
    }

    /// Appends the payload, with `put_value` for the values.
    pub(crate) fn encode_with(&self, output: &mut Vec<u8>, mut put_value: impl FnMut(&[u8], &mut Vec<u8>)) {
        let prefix = self.common_prefix();
        put_bytes(output, prefix);
        for entry in &self.entries {
            encode_header(output, entry, &self.key(entry)[prefix.len()..]);
            if entry.flags & FLAG_DELETED == 0 {
                put_value(self.value(entry), output);
            }
        }
    }

    /// Shows the values that lie in the block.
    pub(crate) fn values(&self) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().map(|entry| self.value(entry))
    }

    fn key(&self, entry: &StagedEntry) -> &[u8] {
        &self.arena[entry.start..entry.start + entry.key_length]
    }

    fn value(&self, entry: &StagedEntry) -> &[u8] {
        let start = entry.start + entry.key_length;
        &self.arena[start..start + entry.value_length]
    }

    /// Keys ascend, so what the first and the last share, all share.
    fn common_prefix(&self) -> &[u8] {
        let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) else { return &[] };
        let (first, last) = (self.key(first), self.key(last));
        &first[..shared_length(first, last)]
    }
}

/// How many leading bytes are equal.
pub(crate) fn shared_length(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn stamp_flags(stamp: &Stamp) -> u8 {
    let mut flags = 0;
    if stamp.sequence != 0 {
        flags |= FLAG_SEQUENCE;
    }
    if stamp.commit.is_some() {
        flags |= FLAG_COMMIT;
    }
    if stamp.durable != stamp.commit {
        flags |= FLAG_DURABLE;
    }
    flags
}

fn encode_header(output: &mut Vec<u8>, entry: &StagedEntry, suffix: &[u8]) {
    output.push(entry.flags);
    put_varint(output, suffix.len() as u64);
    if entry.flags & FLAG_DELETED == 0 {
        put_varint(output, entry.value_length as u64);
    }
    if entry.flags & FLAG_SEQUENCE != 0 {
        output.extend_from_slice(&entry.stamp.sequence.to_le_bytes());
    }
    if entry.flags & FLAG_COMMIT != 0 {
        output.extend_from_slice(&entry.stamp.commit.0.to_le_bytes());
    }
    if entry.flags & FLAG_DURABLE != 0 {
        output.extend_from_slice(&entry.stamp.durable.0.to_le_bytes());
    }
    output.extend_from_slice(suffix);
}
