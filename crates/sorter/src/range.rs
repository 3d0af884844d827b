//! Ranges: sorted entries on disk, written once and read from front to back.

use crate::block::{self, BLOCK_BYTES, Compressor, put_length, take_bytes};
use crate::collected::Collected;
use crate::file::SpillFile;
use crate::{Result, Spilled};
use std::borrow::Borrow;
use std::ops::Range;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Where a range lies and what it holds: enough to read it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeDescription {
    /// Where its first block begins.
    pub start_offset: u64,
    /// Where its last block ends.
    pub end_offset: u64,
    /// The checksum over the checksums of its blocks.
    pub checksum: u64,
    /// How many entries it has.
    pub entries: u64,
}

/// Where a range is to be written.
pub(crate) struct Place {
    pub(crate) file: Arc<SpillFile>,
    pub(crate) start_offset: u64,
}

/// A range that was written, and how much memory its entries took.
pub(crate) struct Written {
    pub(crate) range: RangeDescription,
    pub(crate) memory_bytes: u64,
}

impl Place {
    /// Writes a range here. The keys must be in order.
    pub(crate) fn write<V: Spilled>(
        &self,
        sorted: impl IntoIterator<Item = (impl AsRef<[u8]>, impl Borrow<V>)>,
    ) -> Result<Written> {
        let mut writer = RangeWriter::new(&self.file, self.start_offset);
        let mut memory_bytes = 0;
        for (key, value) in sorted {
            memory_bytes += Collected::data_bytes(key.as_ref(), value.borrow());
            writer.push(key.as_ref(), value.borrow())?;
        }
        Ok(Written { range: writer.finish()?, memory_bytes })
    }
}

/// Writes a range.
pub(crate) struct RangeWriter<'f> {
    file: &'f SpillFile,
    description: RangeDescription,
    digest: Xxh3,
    raw: Vec<u8>,
    value: Vec<u8>,
    compressor: Compressor,
}

impl<'f> RangeWriter<'f> {
    pub(crate) fn new(file: &'f SpillFile, start_offset: u64) -> RangeWriter<'f> {
        let description = RangeDescription { start_offset, end_offset: start_offset, checksum: 0, entries: 0 };
        let raw = Vec::with_capacity(BLOCK_BYTES * 2);
        RangeWriter { file, description, digest: Xxh3::new(), raw, value: Vec::new(), compressor: Compressor::new() }
    }

    /// Appends an entry, which must not be less than the last one.
    pub(crate) fn push(&mut self, key: &[u8], value: &impl Spilled) -> Result<()> {
        self.value.clear();
        value.write(&mut self.value);
        put_length(&mut self.raw, key.len());
        self.raw.extend_from_slice(key);
        put_length(&mut self.raw, self.value.len());
        self.raw.extend_from_slice(&self.value);
        self.description.entries += 1;
        if self.raw.len() >= BLOCK_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let offset = self.description.end_offset;
        let (end_offset, checksum) = block::write(self.file, offset, &self.raw, &mut self.compressor)?;
        self.description.end_offset = end_offset;
        self.digest.update(&checksum.to_le_bytes());
        self.raw.clear();
        Ok(())
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self) -> Result<RangeDescription> {
        if !self.raw.is_empty() {
            self.flush()?;
        }
        self.description.checksum = self.digest.digest();
        Ok(self.description)
    }
}

/// Reads a range, one entry at a time.
pub(crate) struct RangeReader {
    file: Arc<SpillFile>,
    description: RangeDescription,
    /// Where the present block begins, and the next one.
    block_offset: u64,
    next_offset: u64,
    digest: Xxh3,
    raw: Vec<u8>,
    stored: Vec<u8>,
    /// How much of the block was taken.
    taken: usize,
    /// Where key and value of the present entry lie in the block.
    key: Range<usize>,
    value: Range<usize>,
    entries_read: u64,
}

impl RangeReader {
    pub(crate) fn new(file: &Arc<SpillFile>, description: RangeDescription) -> RangeReader {
        RangeReader {
            file: Arc::clone(file),
            block_offset: description.start_offset,
            next_offset: description.start_offset,
            description,
            digest: Xxh3::new(),
            raw: Vec::new(),
            stored: Vec::new(),
            taken: 0,
            key: 0..0,
            value: 0..0,
            entries_read: 0,
        }
    }

    /// Goes to the next entry; false at the end.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        if self.taken == self.raw.len() {
            if self.next_offset >= self.description.end_offset {
                self.check_end()?;
                return Ok(false);
            }
            self.load()?;
        }
        let Some((key, value)) = self.take().and_then(|key| Some((key, self.take()?))) else {
            return Err(self.file.damaged(self.block_offset));
        };
        (self.key, self.value) = (key, value);
        self.entries_read += 1;
        Ok(true)
    }

    /// Where the next bytes with a length in front lie in the block.
    fn take(&mut self) -> Option<Range<usize>> {
        let mut rest = self.raw.get(self.taken..).unwrap_or_default();
        let length = take_bytes(&mut rest)?.len();
        self.taken = self.raw.len() - rest.len();
        Some(self.taken - length..self.taken)
    }

    fn load(&mut self) -> Result<()> {
        self.block_offset = self.next_offset;
        let (end, checksum) = block::read(&self.file, self.next_offset, &mut self.raw, &mut self.stored)?;
        self.digest.update(&checksum.to_le_bytes());
        (self.next_offset, self.taken) = (end, 0);
        Ok(())
    }

    /// All blocks of the range were read, and no others.
    fn check_end(&self) -> Result<()> {
        let is_whole = self.next_offset == self.description.end_offset
            && self.digest.digest() == self.description.checksum
            && self.entries_read == self.description.entries;
        if is_whole { Ok(()) } else { Err(self.file.damaged(self.description.start_offset)) }
    }

    /// The key of the present entry.
    pub(crate) fn key(&self) -> &[u8] {
        self.raw.get(self.key.clone()).unwrap_or_default()
    }

    /// The value of the present entry.
    pub(crate) fn value<V: Spilled>(&self) -> Result<V> {
        let bytes = self.raw.get(self.value.clone()).unwrap_or_default();
        V::read(bytes).ok_or_else(|| self.file.damaged(self.block_offset))
    }
}
