//! The bytes of one file at one moment, in pages that images share until one of them writes.
//!
//! A file has several images (what readers see, what would survive), and tests copy whole disks; sharing makes all of that
//! cost a few pointers. A page is also the unit in which the file system hands out space: a slot that holds a page occupies
//! [`PAGE_BYTES`] of the disk, a hole occupies nothing.
//!
//! Invariants: bytes at and past `length` are zero; `allocated_pages` counts the slots that are not holes.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

/// The unit of space, and of what the page cache writes back.
pub(super) const PAGE_BYTES: usize = 4096;

/// Files end here, so that a wild offset is refused rather than answered with an endless table of holes.
pub(super) const LENGTH_MAX: u64 = 1 << 36;

type Page = [u8; PAGE_BYTES];

static ZERO_PAGE: LazyLock<Arc<Page>> = LazyLock::new(|| Arc::new([0; PAGE_BYTES]));

#[derive(Clone, Default)]
pub(super) struct Image {
    slots: Vec<Option<Arc<Page>>>,
    length: u64,
    allocated_pages: u64,
}

impl Image {
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn allocated_pages(&self) -> u64 {
        self.allocated_pages
    }

    /// Reads up to the end of the file; how much was read.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> usize {
        let available = self.length.saturating_sub(offset).min(buffer.len() as u64) as usize;
        self.copy_out(&mut buffer[..available], offset);
        available
    }

    /// The bytes of a range, zeros where there is nothing.
    pub(super) fn bytes(&self, range: Range<u64>) -> Vec<u8> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        self.copy_out(&mut bytes, range.start);
        bytes
    }

    fn copy_out(&self, buffer: &mut [u8], offset: u64) {
        let mut done = 0;
        for (page, within) in page_pieces(offset, buffer.len()) {
            let piece = &mut buffer[done..done + within.len()];
            done += within.len();
            match self.slots.get(page) {
                Some(Some(bytes)) => piece.copy_from_slice(&bytes[within]),
                _ => piece.fill(0),
            }
        }
    }

    /// Writes, extending the file if needed.
    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        debug_assert!(offset + bytes.len() as u64 <= LENGTH_MAX);
        let mut done = 0;
        for (page, within) in page_pieces(offset, bytes.len()) {
            let piece = &bytes[done..done + within.len()];
            done += within.len();
            Arc::make_mut(self.occupy(page))[within].copy_from_slice(piece);
        }
        self.length = self.length.max(offset + bytes.len() as u64);
    }

    /// Changes one byte by the mask, wherever it is.
    pub(super) fn flip(&mut self, offset: u64, mask: u8) {
        debug_assert!(offset < self.length);
        let page = self.occupy((offset / PAGE_BYTES as u64) as usize);
        Arc::make_mut(page)[(offset % PAGE_BYTES as u64) as usize] ^= mask;
    }

    /// Gives every page of the range its space; extends the file.
    pub(super) fn reserve(&mut self, range: Range<u64>) {
        for page in pages_of(&range) {
            self.occupy(page);
        }
        self.length = self.length.max(range.end);
    }

    /// Cuts the file, or extends it with a hole.
    pub(super) fn set_length(&mut self, length: u64) {
        if length < self.length {
            let kept_slots = length.div_ceil(PAGE_BYTES as u64) as usize;
            if kept_slots < self.slots.len() {
                let freed = self.slots.drain(kept_slots..).flatten().count();
                self.allocated_pages -= freed as u64;
            }
            let tail = (length % PAGE_BYTES as u64) as usize;
            if tail != 0
                && let Some(Some(page)) = self.slots.get_mut(kept_slots - 1)
            {
                Arc::make_mut(page)[tail..].fill(0);
            }
        }
        self.length = length;
    }

    /// Takes over the pages of a range (not the length) from another image of the same file.
    pub(super) fn take_pages(&mut self, other: &Image, range: &Range<u64>) {
        for page in pages_of(range) {
            let theirs = other.slots.get(page).cloned().flatten();
            if page >= self.slots.len() {
                if theirs.is_none() {
                    continue;
                }
                self.slots.resize(page + 1, None);
            }
            self.allocated_pages += u64::from(theirs.is_some());
            self.allocated_pages -= u64::from(self.slots[page].is_some());
            self.slots[page] = theirs;
        }
    }

    /// How many bytes of a write at `offset` have room when `free_pages` pages may be added.
    pub(super) fn fitting_bytes(&self, offset: u64, length: usize, mut free_pages: u64) -> usize {
        let mut fitting = 0;
        for (page, within) in page_pieces(offset, length) {
            if self.is_hole(page) {
                if free_pages == 0 {
                    break;
                }
                free_pages -= 1;
            }
            fitting += within.len();
        }
        fitting
    }

    /// How many pages of the range have no space yet.
    pub(super) fn missing_pages(&self, range: &Range<u64>) -> u64 {
        pages_of(range).filter(|page| self.is_hole(*page)).count() as u64
    }

    fn is_hole(&self, page: usize) -> bool {
        !matches!(self.slots.get(page), Some(Some(_)))
    }

    fn occupy(&mut self, page: usize) -> &mut Arc<Page> {
        if page >= self.slots.len() {
            self.slots.resize(page + 1, None);
        }
        let slot = &mut self.slots[page];
        self.allocated_pages += u64::from(slot.is_none());
        slot.get_or_insert_with(|| ZERO_PAGE.clone())
    }
}

/// The pages that a byte range touches.
fn pages_of(range: &Range<u64>) -> Range<usize> {
    if range.is_empty() {
        return 0..0;
    }
    (range.start / PAGE_BYTES as u64) as usize..range.end.div_ceil(PAGE_BYTES as u64) as usize
}

/// Splits a byte range into its pages: the page's number and the range within it.
fn page_pieces(offset: u64, length: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    let end = offset + length as u64;
    pages_of(&(offset..end)).map(move |page| {
        let page_start = page as u64 * PAGE_BYTES as u64;
        let from = offset.saturating_sub(page_start) as usize;
        let to = (end - page_start).min(PAGE_BYTES as u64) as usize;
        (page, from..to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_like_a_vector_of_bytes() {
        let mut sequence = crate::simulated::random::Sequence::new(11);
        let (mut image, mut model) = (Image::default(), Vec::<u8>::new());
        for step in 0..2000_u32 {
            let offset = sequence.below(40_000);
            match sequence.below(4) {
                0 | 1 => {
                    let bytes = vec![step as u8 | 1; sequence.below(9000) as usize];
                    image.write(&bytes, offset);
                    let end = offset as usize + bytes.len();
                    model.resize(model.len().max(end), 0);
                    model[offset as usize..end].copy_from_slice(&bytes);
                }
                2 => {
                    image.set_length(offset);
                    model.resize(offset as usize, 0);
                }
                _ => {
                    let range = offset..offset + sequence.below(9000);
                    model.resize(model.len().max(range.end as usize), 0);
                    image.reserve(range);
                }
            }
            assert_eq!(image.length(), model.len() as u64);
            assert!(image.bytes(0..image.length()) == model);
            assert!(image.bytes(image.length()..60_000).iter().all(|byte| *byte == 0));
            assert_eq!(image.allocated_pages, image.slots.iter().flatten().count() as u64);
        }
    }
}
