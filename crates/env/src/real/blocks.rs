//! The allocator of the server: blocks that a thread has given back wait for it in lists of its own, before those of the system.
//!
//! A request takes and gives back fifty blocks, most of them small, some as large as a future. The system's allocator has such
//! lists too, but short ones, none for what is larger than a kilobyte, and it has to find out how large a block is that is
//! given back. Here whoever gives a block back says so, as Rust does.
//!
//! Small blocks are rounded up to the sizes that the system's allocator rounds them to, so that nothing is lost by it, and kept by
//! these sizes. Larger ones are kept by their very size: futures and buffers come again with the same. What a thread keeps is
//! bounded, and goes back to the system when the thread ends. A block that one thread takes and another gives back is kept by
//! the latter.
//!
//! The memory of a thread that takes more and more grows in the system's allocator by a page or two at a time, each by a call to the
//! kernel. So a thread that has taken some takes a large piece now and then and gives it back at once: what follows is cut from it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;

/// The alignment that every block of the system has.
const ALIGNMENT_BYTES: usize = 16;
/// What the system keeps of each multiple of the alignment for itself.
const OWN_BYTES: usize = 8;
/// The sizes of small blocks.
const SMALL_COUNT: usize = 65;
const SMALL_BYTES_MAX: usize = capacity_bytes(SMALL_COUNT - 1);
/// No larger block is kept.
const LARGE_BYTES_MAX: usize = 16 << 10;
/// Places for larger blocks; a power of two. Two sizes that share one take turns.
const LARGE_COUNT: usize = 64;
/// How many larger blocks of one size are kept.
const LARGE_KEPT_MAX: u32 = 4;
/// How much of each small size is kept, and how many blocks at least.
const SMALL_KEPT_BYTES: usize = 8 << 10;
const SMALL_KEPT_MIN: u32 = 16;

/// After so much that was not kept, room is made for as much again.
const ROOM_BYTES: usize = 256 << 10;

/// The blocks of this thread, then those of the system.
pub struct ThreadBlocks;

thread_local! {
    static KEPT: Kept = const { Kept::new() };
}

/// What a thread keeps.
struct Kept {
    small: [List; SMALL_COUNT],
    large: [SizeList; LARGE_COUNT],
    /// What the system has given since room was made.
    taken_bytes: Cell<usize>,
}

/// Blocks of the same size; each one holds the address of the next.
struct List {
    first: Cell<*mut u8>,
    count: Cell<u32>,
}

/// A list of blocks of a size that is not given by its place.
struct SizeList {
    size_bytes: Cell<usize>,
    list: List,
}

impl Kept {
    const fn new() -> Kept {
        Kept {
            small: [const { List::new() }; SMALL_COUNT],
            large: [const { SizeList::new() }; LARGE_COUNT],
            taken_bytes: Cell::new(0),
        }
    }
}

impl SizeList {
    const fn new() -> SizeList {
        SizeList { size_bytes: Cell::new(0), list: List::new() }
    }
}

impl List {
    const fn new() -> List {
        List { first: Cell::new(ptr::null_mut()), count: Cell::new(0) }
    }

    #[inline]
    fn take(&self) -> Option<*mut u8> {
        let first = self.first.get();
        if first.is_null() {
            return None;
        }
        // SAFETY: `give` has put the address of the next one there, and nobody else has had the block since.
        self.first.set(unsafe { first.cast::<*mut u8>().read() });
        self.count.set(self.count.get() - 1);
        Some(first)
    }

    /// Keeps a block, if there are not too many.
    ///
    /// # Safety
    /// The block is of the system's allocator, of the list's size, aligned, and nobody's.
    #[inline]
    unsafe fn give(&self, block: *mut u8, count_max: u32) -> bool {
        let count = self.count.get();
        if count >= count_max {
            return false;
        }
        // SAFETY: no block is smaller than an address, and all are aligned for one.
        unsafe { block.cast::<*mut u8>().write(self.first.get()) };
        self.first.set(block);
        self.count.set(count + 1);
        true
    }

    /// Gives everything back to the system.
    fn release(&self, layout: Layout) {
        while let Some(block) = self.take() {
            // SAFETY: every block came from the system's allocator, which asks for the alignment only.
            unsafe { System.dealloc(block, layout) };
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.small.iter().enumerate().for_each(|(place, list)| list.release(system_layout(capacity_bytes(place))));
        self.large.iter().for_each(|sized| sized.list.release(system_layout(sized.size_bytes.get())));
    }
}

/// How much a small block of this size holds.
const fn capacity_bytes(place: usize) -> usize {
    place * ALIGNMENT_BYTES + OWN_BYTES
}

/// The place of a small size. Nothing is smaller than what the system gives at least.
#[inline]
const fn small_place(size_bytes: usize) -> usize {
    let place = (size_bytes + ALIGNMENT_BYTES - 1 - OWN_BYTES) / ALIGNMENT_BYTES;
    if place == 0 { 1 } else { place }
}

#[inline]
const fn large_place(size_bytes: usize) -> usize {
    (size_bytes / OWN_BYTES) % LARGE_COUNT
}

const fn small_kept_max(place: usize) -> u32 {
    let count = (SMALL_KEPT_BYTES / capacity_bytes(place)) as u32;
    if count < SMALL_KEPT_MIN { SMALL_KEPT_MIN } else { count }
}

/// What is asked of the system for a block of this size.
#[inline]
const fn rounded_bytes(size_bytes: usize) -> usize {
    if size_bytes <= SMALL_BYTES_MAX { capacity_bytes(small_place(size_bytes)) } else { size_bytes }
}

#[inline]
const fn system_layout(size_bytes: usize) -> Layout {
    // SAFETY: the alignment is a power of two, and no size that is kept comes near the largest that there may be.
    unsafe { Layout::from_size_align_unchecked(size_bytes, ALIGNMENT_BYTES) }
}

#[inline]
const fn may_be_kept(layout: Layout) -> bool {
    layout.align() <= ALIGNMENT_BYTES && layout.size() <= LARGE_BYTES_MAX
}

/// A block that this thread has kept.
#[inline]
fn kept(size_bytes: usize) -> Option<*mut u8> {
    // A thread that is ending keeps nothing any more.
    let block = KEPT.try_with(|kept| match size_bytes <= SMALL_BYTES_MAX {
        true => kept.small.get(small_place(size_bytes))?.take(),
        false => {
            let sized = kept.large.get(large_place(size_bytes))?;
            if sized.size_bytes.get() == size_bytes { sized.list.take() } else { None }
        }
    });
    block.ok().flatten()
}

/// A block of the system; none was kept.
#[cold]
fn taken(size_bytes: usize, take: unsafe fn(&System, Layout) -> *mut u8) -> *mut u8 {
    let layout = system_layout(rounded_bytes(size_bytes));
    let is_room_due = KEPT.try_with(|kept| {
        let taken_bytes = kept.taken_bytes.get() + layout.size();
        kept.taken_bytes.set(if taken_bytes < ROOM_BYTES { taken_bytes } else { 0 });
        taken_bytes >= ROOM_BYTES
    });
    if is_room_due == Ok(true) {
        let room = system_layout(ROOM_BYTES);
        // SAFETY: the piece is given back as it was taken, if there was one.
        unsafe {
            let piece = System.alloc(room);
            if !piece.is_null() {
                System.dealloc(piece, room);
            }
        }
    }
    // SAFETY: no block that is asked for has no size.
    unsafe { take(&System, layout) }
}

/// Keeps a block; false if it is to go back to the system.
///
/// # Safety
/// The block is of the system's allocator, of this size rounded, and nobody's.
#[inline]
unsafe fn keep(block: *mut u8, size_bytes: usize) -> bool {
    let is_taken = KEPT.try_with(|kept| {
        if size_bytes <= SMALL_BYTES_MAX {
            let place = small_place(size_bytes);
            // SAFETY: all blocks of sizes that have this place are rounded up to the same one.
            return kept.small.get(place).is_some_and(|list| unsafe { list.give(block, small_kept_max(place)) });
        }
        let Some(sized) = kept.large.get(large_place(size_bytes)) else { return false };
        if sized.size_bytes.get() != size_bytes {
            // The size that came last has the place: what comes once makes room again.
            sized.list.release(system_layout(sized.size_bytes.get()));
            sized.size_bytes.set(size_bytes);
        }
        // SAFETY: all blocks of the list have this size.
        unsafe { sized.list.give(block, LARGE_KEPT_MAX) }
    });
    is_taken.unwrap_or(false)
}

// SAFETY: every block is one of the system's allocator, at least as large and as aligned as it was asked for, and in nobody's hands
// while it is kept: whoever takes it out of its list is the only one. Lists are of one thread.
unsafe impl GlobalAlloc for ThreadBlocks {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !may_be_kept(layout) {
            // SAFETY: as asked.
            return unsafe { System.alloc(layout) };
        }
        kept(layout.size()).unwrap_or_else(|| taken(layout.size(), System::alloc))
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: whoever gives it back has it, with the layout that it was asked for.
        if !may_be_kept(layout) || !unsafe { keep(block, layout.size()) } {
            // SAFETY: the system's allocator looks at the alignment of a layout, and that tells the same as when it was asked.
            unsafe { System.dealloc(block, layout) };
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !may_be_kept(layout) {
            // SAFETY: as asked.
            return unsafe { System.alloc_zeroed(layout) };
        }
        match kept(layout.size()) {
            Some(block) => {
                // SAFETY: the block has this size at least.
                unsafe { ptr::write_bytes(block, 0, layout.size()) };
                block
            }
            None => taken(layout.size(), System::alloc_zeroed),
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
        if layout.align() > ALIGNMENT_BYTES {
            // SAFETY: as asked.
            return unsafe { System.realloc(block, layout, size_bytes) };
        }
        if rounded_bytes(size_bytes) == rounded_bytes(layout.size()) {
            return block;
        }
        if layout.size() <= SMALL_BYTES_MAX && size_bytes <= SMALL_BYTES_MAX {
            // Buffers that grow leave blocks that the next ones begin with.
            // SAFETY: the sizes are those of the two blocks, the second of which is another one.
            unsafe {
                let moved = self.alloc(system_layout(size_bytes));
                if !moved.is_null() {
                    ptr::copy_nonoverlapping(block, moved, layout.size().min(size_bytes));
                    self.dealloc(block, layout);
                }
                return moved;
            }
        }
        // SAFETY: the block is the system's, and what is asked for is as large at least as whoever asks wants it.
        unsafe { System.realloc(block, layout, rounded_bytes(size_bytes)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_as_the_system_does() {
        assert_eq!((small_place(1), small_place(24), small_place(25), small_place(40)), (1, 1, 2, 2));
        assert_eq!((rounded_bytes(1), rounded_bytes(24), rounded_bytes(25)), (24, 24, 40));
        assert_eq!((SMALL_BYTES_MAX, rounded_bytes(1032), rounded_bytes(1033)), (1032, 1032, 1033));
        assert!((1..=SMALL_BYTES_MAX).all(|size| small_place(size) < SMALL_COUNT && rounded_bytes(size) >= size));
        // A block is kept in the list of its rounded size, whatever size it was asked for.
        assert!((1..=SMALL_BYTES_MAX).all(|size| small_place(rounded_bytes(size)) == small_place(size)));
    }
}
