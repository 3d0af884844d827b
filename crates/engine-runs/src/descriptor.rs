//! What the manifest keeps of a run: enough to place it among other runs and to find its sections without opening a file.
//!
//! A *part* is one section of one file and the unit of sharing: a merge that replaces some parts of a run keeps the others.
//! The fence is therefore a matter of the part. Table ids are deliberately absent: the manifest binds them.

use crate::wire::{Reader, put_bytes, put_varint};
use crate::{FileId, Result, RunsError};
use bytes::Bytes;
use pando_base::Timestamp;

/// A file of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDescriptor {
    /// Its number, which also names it on disk and seeds its checksums.
    pub id: FileId,
    /// Its exact length.
    pub length_bytes: u64,
}

/// The end of a range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpperBound {
    /// The last key belongs to the range.
    Included(Bytes),
    /// The key is the first that does not belong.
    Excluded(Bytes),
    /// To the end of the table.
    Unbounded,
}

/// The keys that a part speaks about, its range tombstones included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyBounds {
    /// The first key.
    pub first: Bytes,
    /// The last one.
    pub last: UpperBound,
}

impl KeyBounds {
    /// Bytes of both keys.
    pub(crate) fn size_bytes(&self) -> usize {
        let last = match &self.last {
            UpperBound::Included(key) | UpperBound::Excluded(key) => key.len(),
            UpperBound::Unbounded => 0,
        };
        self.first.len() + last
    }
}

impl UpperBound {
    /// True if the key lies beyond this end.
    pub fn is_before(&self, key: &[u8]) -> bool {
        match self {
            UpperBound::Included(last) => last.as_ref() < key,
            UpperBound::Excluded(end) => end.as_ref() <= key,
            UpperBound::Unbounded => false,
        }
    }

    /// True if this end reaches further than the other.
    pub fn reaches_beyond(&self, other: &UpperBound) -> bool {
        use UpperBound::{Excluded, Included, Unbounded};
        match (self, other) {
            (_, Unbounded) => false,
            (Unbounded, _) => true,
            (Included(mine), Included(theirs)) | (Excluded(mine), Excluded(theirs)) => mine > theirs,
            (Included(mine), Excluded(theirs)) => mine >= theirs,
            (Excluded(mine), Included(theirs)) => mine > theirs,
        }
    }
}

impl KeyBounds {
    /// True if the key lies inside.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.first.as_ref() <= key && !self.last.is_before(key)
    }

    /// True if a key can lie in both.
    pub fn overlaps(&self, other: &KeyBounds) -> bool {
        !self.last.is_before(&other.first) && !other.last.is_before(&self.first)
    }

    /// Grows to cover the other, too.
    pub fn extend(&mut self, other: &KeyBounds) {
        if other.first < self.first {
            self.first = other.first.clone();
        }
        if other.last.reaches_beyond(&self.last) {
            self.last = other.last.clone();
        }
    }
}

/// One section of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartDescriptor {
    /// The file that holds it.
    pub file: FileId,
    /// Where the section begins in the file.
    pub offset: u64,
    /// All its bytes, root included.
    pub length_bytes: u64,
    /// Of these, what only older versions of keys take: history blocks and their index.
    pub history_bytes: u64,
    /// Length of its root frame, which ends the section.
    pub root_length_bytes: u32,
    /// The keys it speaks about.
    pub bounds: KeyBounds,
    /// Distinct keys.
    pub keys: u64,
    /// Keys whose newest version here is a deletion.
    pub deleted_keys: u64,
    /// Versions, the newest of each key included.
    pub versions: u64,
    /// Versions whose stamp is not settled; when zero, readers and merges need no stamps.
    pub unsettled: u64,
    /// Bytes of keys and values before compression.
    pub raw_bytes: u64,
    /// How many range tombstones it holds.
    pub range_tombstones: u64,
    /// The largest sequence of a version or range tombstone.
    pub max_sequence: u64,
    /// The largest durable timestamp of a version or range tombstone.
    pub max_durable: Timestamp,
    /// Timestamped versions that are durable only after this are dead; `MAX` if none are.
    pub fence: Timestamp,
}

impl PartDescriptor {
    /// Appends the stored form.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        for number in [self.file, self.offset, self.length_bytes, u64::from(self.root_length_bytes)] {
            put_varint(buffer, number);
        }
        put_bytes(buffer, &self.bounds.first);
        let with_history = if self.history_bytes > 0 { WITH_HISTORY } else { 0 };
        match &self.bounds.last {
            UpperBound::Included(key) => put_bound(buffer, with_history, key),
            UpperBound::Excluded(key) => put_bound(buffer, with_history | 1, key),
            UpperBound::Unbounded => buffer.push(with_history | 2),
        }
        if self.history_bytes > 0 {
            put_varint(buffer, self.history_bytes);
        }
        let counts = [self.keys, self.deleted_keys, self.versions, self.unsettled, self.raw_bytes];
        counts.into_iter().for_each(|count| put_varint(buffer, count));
        put_varint(buffer, self.range_tombstones);
        for number in [self.max_sequence, self.max_durable.0, self.fence.0] {
            buffer.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Option<PartDescriptor> {
        let (file, offset, length_bytes) = (reader.varint()?, reader.varint()?, reader.varint()?);
        let root_length_bytes = u32::try_from(reader.varint()?).ok()?;
        let first = reader.owned_bytes()?;
        let tag = reader.u8()?;
        let last = match tag & !WITH_HISTORY {
            0 => UpperBound::Included(reader.owned_bytes()?),
            1 => UpperBound::Excluded(reader.owned_bytes()?),
            2 => UpperBound::Unbounded,
            _ => return None,
        };
        let descriptor = PartDescriptor {
            file,
            offset,
            length_bytes,
            history_bytes: if tag & WITH_HISTORY == 0 { 0 } else { reader.varint()? },
            root_length_bytes,
            bounds: KeyBounds { first, last },
            keys: reader.varint()?,
            deleted_keys: reader.varint()?,
            versions: reader.varint()?,
            unsettled: reader.varint()?,
            raw_bytes: reader.varint()?,
            range_tombstones: reader.varint()?,
            max_sequence: reader.u64()?,
            max_durable: Timestamp(reader.u64()?),
            fence: Timestamp(reader.u64()?),
        };
        let end = descriptor.offset.checked_add(descriptor.length_bytes)?;
        let fits = |length_bytes: u64| length_bytes <= descriptor.length_bytes;
        let is_whole = fits(descriptor.root_length_bytes.into()) && fits(descriptor.history_bytes);
        (is_whole && end < u64::MAX / 2).then_some(descriptor)
    }
}

/// In the byte that tells the kind of the upper bound: bytes of history follow. Older stores do not tell them.
const WITH_HISTORY: u8 = 4;

fn put_bound(buffer: &mut Vec<u8>, tag: u8, key: &[u8]) {
    buffer.push(tag);
    put_bytes(buffer, key);
}

/// A run: parts with disjoint key ranges, ascending.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RunDescriptor {
    /// The parts, by key.
    pub parts: Vec<PartDescriptor>,
}

impl RunDescriptor {
    /// Appends the stored form.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        put_varint(buffer, self.parts.len() as u64);
        self.parts.iter().for_each(|part| part.encode(buffer));
    }

    /// Reads the stored form from the front of the slice; returns the rest as well. The caller, who knows file and offset,
    /// turns `None` into a corruption error.
    pub fn decode(bytes: &[u8]) -> Option<(RunDescriptor, &[u8])> {
        let mut reader = Reader::new(bytes);
        let count = reader.length()?;
        let mut parts: Vec<PartDescriptor> = Vec::new();
        for _ in 0..count {
            let part = PartDescriptor::decode(&mut reader)?;
            if parts.last().is_some_and(|previous| !previous.bounds.last.is_before(&part.bounds.first)) {
                return None;
            }
            parts.push(part);
        }
        Some((RunDescriptor { parts }, reader.take(reader.remaining())?))
    }

    /// The keys from the first part's first to the last part's last.
    pub fn bounds(&self) -> Option<KeyBounds> {
        let (first, last) = (self.parts.first()?, self.parts.last()?);
        Some(KeyBounds { first: first.bounds.first.clone(), last: last.bounds.last.clone() })
    }

    /// Bytes on disk of all parts.
    pub fn length_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.length_bytes).sum()
    }

    /// Fails unless the parts are ascending and disjoint.
    pub fn check(&self) -> Result<()> {
        let ordered =
            self.parts.windows(2).all(|pair| matches!(pair, [a, b] if a.bounds.last.is_before(&b.bounds.first)));
        if ordered { Ok(()) } else { Err(RunsError::Invalid("the parts of a run overlap".into())) }
    }
}

#[cfg(test)]
pub(crate) fn example_part(first: &'static str, last: UpperBound) -> PartDescriptor {
    PartDescriptor {
        file: 7,
        offset: 64,
        length_bytes: 9000,
        history_bytes: if first == "d" { 0 } else { 800 },
        root_length_bytes: 300,
        bounds: KeyBounds { first: Bytes::from_static(first.as_bytes()), last },
        keys: 10,
        deleted_keys: 1,
        versions: 12,
        unsettled: 3,
        raw_bytes: 7000,
        range_tombstones: 0,
        max_sequence: 44,
        max_durable: Timestamp(99),
        fence: Timestamp::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> RunDescriptor {
        RunDescriptor {
            parts: vec![
                example_part("a", UpperBound::Included(Bytes::from_static(b"c"))),
                example_part("d", UpperBound::Excluded(Bytes::from_static(b"f"))),
                example_part("f", UpperBound::Unbounded),
            ],
        }
    }

    #[test]
    fn descriptors_round_trip() {
        let mut buffer = Vec::new();
        example().encode(&mut buffer);
        buffer.extend_from_slice(b"tail");
        let (decoded, rest) = RunDescriptor::decode(&buffer).unwrap();
        assert_eq!((decoded, rest), (example(), b"tail".as_slice()));
        for cut in 0..buffer.len() - 4 {
            assert!(RunDescriptor::decode(&buffer[..cut]).is_none(), "cut at {cut}");
        }
    }

    #[test]
    fn bounds_compare() {
        let run = example();
        assert!(run.check().is_ok());
        let [first, second, third] = run.parts.as_slice() else { panic!() };
        assert!(!first.bounds.overlaps(&second.bounds) && !second.bounds.overlaps(&third.bounds));
        assert!(second.bounds.contains(b"e") && !second.bounds.contains(b"f") && third.bounds.contains(b"zz"));
        assert!(run.bounds().unwrap().overlaps(&first.bounds));
        let mut grown = first.bounds.clone();
        grown.extend(&second.bounds);
        assert_eq!(grown.last, UpperBound::Excluded(Bytes::from_static(b"f")));
    }
}
