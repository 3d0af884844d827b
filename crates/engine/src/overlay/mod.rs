//! The overlay: what the base does not have yet, and rows worth keeping in memory.
//!
//! An ordered map per table from key to a [`Chain`] of versions. The map is a shallow tree: a copy-on-write [`directory`]
//! of leaves, each leaf a sorted array under a lock of its own. Point calls take one leaf's lock; a scan takes one leaf at a
//! time and copies out what it needs.
//!
//! Invariants:
//! * A chain is the newest part of its key's history: what is not in the chain is older and in the base.
//! * A version leaves a chain only from the old end, when it is in the base or nobody can need it.
//! * A chain whose versions are all in the base is *clean*: it is a row cache, scans pass over it and it may go at any time.
//! * A leaf's place in the directory changes only while that leaf's lock is held; so whoever holds the lock and finds the
//!   directory unchanged has the right leaf.
//!
//! Lock order: leaf, then the directory's `grow` lock. No lock is held over file access.

mod chain;
mod directory;
mod heads;
mod key;
mod leaf;
mod map;
mod ranges;
mod version;

pub use chain::{Chain, ChainRead};
pub use leaf::{ENTRY_OVERHEAD_BYTES, Leaf, LeafEntry};
pub use map::{Overlay, Rows, for_each_dirty};
pub use ranges::{RangeRead, RangeVersion, Ranges, WriteObstacle, write_obstacle};
pub use version::{Freed, NewValue, Version};

#[cfg(test)]
mod tests;
