//! From pieces of memory to whole blocks of a segment.
//!
//! The log is written past the system's cache (`pando_env::File::write_blocks`): nearly nobody reads it there, since who follows the oplog
//! finds its end in the tail's own memory and recovery begins after a restart. The cache would cost a page for every page of the log, and a
//! small sync would take half as long again. The disk then takes whole blocks from memory that is aligned as they are, so
//! what is to be written is gathered here. The block in which the log ends is kept and written again, longer, with what comes next.
//!
//! Invariants: one segment at a time, in ascending order without gaps; a block that is written again begins with the bytes that it had, so
//! a write that power loss cuts short cannot harm what was durable; behind the log's end a block has zeros, as if it had
//! never been written.

use crate::segment::Segment;
use pando_env::{BLOCK_BYTES, Block};
use std::io;

/// So much is written at once at most.
const STAGED_BLOCKS_MAX: usize = 512;

/// What is to be written to a segment.
#[derive(Default)]
pub(crate) struct Staging {
    blocks: Vec<Block>,
    /// The number of the segment; none has zero.
    segment: u32,
    /// Where the first block lies in it, a multiple of a block.
    start: u64,
    /// So many bytes from there on are the log's.
    filled: usize,
    /// So many of these have been written.
    written: usize,
}

impl Staging {
    /// Takes bytes that lie behind those taken before, or at the beginning of another segment. Writes when there is much; how much that was.
    pub(crate) fn take(&mut self, segment: &Segment, offset: u64, mut bytes: &[u8]) -> io::Result<u64> {
        if self.segment != segment.id {
            self.enter(segment, offset)?;
        }
        debug_assert_eq!(self.start + self.filled as u64, offset, "the log has no gaps");
        let mut written = 0;
        while !bytes.is_empty() {
            if self.filled == STAGED_BLOCKS_MAX * BLOCK_BYTES {
                written += self.write(segment, false)?;
            }
            let (place, within) = (self.filled / BLOCK_BYTES, self.filled % BLOCK_BYTES);
            if place == self.blocks.len() {
                self.blocks.push(Block::ZEROS);
            }
            let Some(room) = self.blocks.get_mut(place).and_then(|block| block.0.get_mut(within..)) else { break };
            let (now, later) = bytes.split_at(bytes.len().min(room.len()));
            let (taken, behind) = room.split_at_mut(now.len());
            taken.copy_from_slice(now);
            behind.fill(0);
            self.filled += now.len();
            bytes = later;
        }
        Ok(written)
    }

    /// Goes on in a segment. What it has in the block where the log goes on, its header, stays.
    fn enter(&mut self, segment: &Segment, offset: u64) -> io::Result<()> {
        let before = (offset % BLOCK_BYTES as u64) as usize;
        let start = offset - before as u64;
        let mut first = Block::ZEROS;
        if let Some(bytes) = first.0.get_mut(..before) {
            segment.file()?.read_exact_at(bytes, start)?;
        }
        self.blocks.clear();
        self.blocks.push(first);
        (self.segment, self.start, self.filled, self.written) = (segment.id, start, before, before);
        Ok(())
    }

    /// Writes what was taken, and makes it durable with everything before it if asked to; how many bytes of the log were written. (A
    /// disk is given whole blocks one way or the other.)
    pub(crate) fn write(&mut self, segment: &Segment, durably: bool) -> io::Result<u64> {
        let is_new = self.segment == segment.id && self.filled > self.written;
        if !is_new {
            if durably {
                segment.file()?.sync()?;
            }
            return Ok(0);
        }
        let (count, new) = (self.filled.div_ceil(BLOCK_BYTES), self.filled - self.written);
        if self.start + (count * BLOCK_BYTES) as u64 <= segment.allocated_bytes {
            segment.file()?.write_blocks(self.blocks.get(..count).unwrap_or_default(), self.start, durably)?;
        } else {
            self.write_to_the_end(segment, durably)?;
        }
        // The last block is kept if more can go into it.
        let whole = self.filled / BLOCK_BYTES;
        if whole < count {
            self.blocks.swap(0, whole);
        }
        self.start += (whole * BLOCK_BYTES) as u64;
        self.filled -= whole * BLOCK_BYTES;
        self.written = self.filled;
        Ok(new as u64)
    }

    /// A segment need not end with a block, and nothing is written behind its end.
    fn write_to_the_end(&self, segment: &Segment, durably: bool) -> io::Result<()> {
        let bytes: Vec<u8> = self.blocks.iter().flat_map(|block| block.0).take(self.filled).collect();
        let new = bytes.get(self.written..).unwrap_or_default();
        let file = segment.file()?;
        file.write_at(new, self.start + self.written as u64)?;
        if durably { file.sync() } else { Ok(()) }
    }
}
