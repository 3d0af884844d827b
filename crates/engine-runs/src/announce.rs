//! Many point reads that share their waits.
//!
//! A point read of cached data waits for memory five times, each time for what the last told it: the partition of the index, its keys,
//! the place of the block, the front of the block, the entry. For one key nothing can be done about that. Whoever knows many keys
//! that it will read can announce them: then each of these is asked for on behalf of all keys before the next is looked at, and the
//! reads that follow find everything near, and know which block to look into.

use crate::block::entries::Block;
use crate::prefetch::prefetch_at;
use crate::section::Part;
use crate::section::core::Root;
use crate::section::part::KeyHash;
use crate::{FilterPrefix, Lookup, ReadPoint, Result, TableRuns};
use std::sync::Arc;

/// Where a key is probably found: no newer run has it.
struct Seat<'a> {
    key: &'a [u8],
    part: &'a Arc<Part>,
    root: &'a Root,
    partition: usize,
    block: usize,
}

/// Keys that were announced, in their order.
pub struct Announced<'a> {
    runs: &'a TableRuns,
    keys: &'a [&'a [u8]],
    /// None for keys that have to be looked for in another way.
    seats: Vec<Option<Seat<'a>>>,
}

impl TableRuns {
    /// Begins to load what a read of each of these keys will look at into the processor's cache, as far as it is in memory. Nothing
    /// is read from disk for it, and nothing counts as used.
    pub fn announce<'a>(&'a self, keys: &'a [&'a [u8]]) -> Announced<'a> {
        let mut seats: Vec<Option<Seat<'a>>> = keys.iter().map(|key| self.seat(key)).collect();
        for seat in seats.iter().flatten() {
            seat.root.glance(seat.partition, |partition| prefetch_at(Arc::as_ptr(partition)));
        }
        for seat in seats.iter().flatten() {
            seat.root.glance(seat.partition, |partition| partition.touch_near(seat.key));
        }
        for seat in seats.iter_mut().flatten() {
            seat.root.glance(seat.partition, |partition| {
                seat.block = partition.lower_bound(seat.key);
                // Where it was guessed wrongly, the place is still far.
                if let Some(place) = partition.place(seat.block) {
                    prefetch_at(place);
                }
            });
        }
        for seat in seats.iter().flatten() {
            seat.root.glance(seat.partition, |partition| {
                if let Some(place) = partition.place(seat.block) {
                    place.glance(Block::touch_front);
                }
            });
        }
        for seat in seats.iter().flatten() {
            seat.root.glance(seat.partition, |partition| {
                if let Some(place) = partition.place(seat.block) {
                    place.glance(|block| Block::touch_entry(block, seat.key));
                }
            });
        }
        Announced { runs: self, keys, seats }
    }

    /// The newest run that may have the key decides, as in a read. None if not everything that is needed to know that is in
    /// memory, and where ranges were deleted.
    fn seat<'a>(&'a self, key: &'a [u8]) -> Option<Seat<'a>> {
        let mut hash = KeyHash::default();
        let oldest = self.runs().len().saturating_sub(1);
        for (age, run) in self.runs().iter().enumerate() {
            let Some(part) = run.part_for(key) else { continue };
            let root = part.core.loaded_root().filter(|_| !part.has_tombstones())?;
            let partition = root.data.directory.keys.lower_bound(key);
            let may_be_here = age == oldest
                || root.filter_prefix == FilterPrefix::None
                || root.may_contain(partition, hash.get(root.filter_prefix, key));
            if may_be_here {
                return Some(Seat { key, part, root, partition, block: usize::MAX });
            }
        }
        None
    }
}

impl Announced<'_> {
    /// The version of a key, by its number, that a reader sees.
    pub fn get(&self, number: usize, point: &ReadPoint) -> Result<Lookup> {
        if let Some(seat) = self.seats.get(number).and_then(Option::as_ref)
            && let Some(found) = seat.get(point)?
        {
            return Ok(found);
        }
        self.keys.get(number).map_or(Ok(Lookup::Absent), |key| self.runs.get(key, point))
    }
}

impl Seat<'_> {
    /// What is in the block; none if that does not settle it.
    fn get(&self, point: &ReadPoint) -> Result<Option<Lookup>> {
        let core = &self.part.core;
        let found = core.with_partition(self.root, self.partition, |partition| {
            core.find(partition, self.block, self.key, || Ok(true))
        })?;
        match found.flatten() {
            Some((block, entry)) if entry.is_visible(point, self.part.fence()) => core.shown(block, &entry).map(Some),
            _ => Ok(None),
        }
    }
}
