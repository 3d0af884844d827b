//! Many point reads that share their waits.
//!
//! A point read of cached data waits for memory five times, each time for what the last told it: the partition of the index, its keys,
//! the place of the block, the front of the block, the entry. For one key nothing can be done about that. Whoever knows many keys
//! that it will read can announce them: then each of these is asked for on behalf of all keys before the next is looked at, and the
//! reads that follow find everything near.

use crate::block::entries::Block;
use crate::prefetch::prefetch_at;
use crate::section::core::Root;
use crate::section::part::KeyHash;
use crate::{FilterPrefix, TableRuns};
use std::sync::Arc;

/// Where a key is probably found.
struct Seat<'a> {
    key: &'a [u8],
    root: &'a Root,
    partition: usize,
    block: usize,
}

impl TableRuns {
    /// Begins to load what a `get` of each of these keys will look at into the processor's cache, as far as it is in memory.
    /// A hint: nothing is read from disk, and nothing counts as used.
    pub fn announce(&self, keys: &[&[u8]]) {
        let mut seats: Vec<Seat<'_>> = keys.iter().filter_map(|key| self.seat(key)).collect();
        for seat in &seats {
            seat.root.glance(seat.partition, |partition| prefetch_at(Arc::as_ptr(partition)));
        }
        for seat in &seats {
            seat.root.glance(seat.partition, |partition| partition.touch_near(seat.key));
        }
        for seat in &mut seats {
            seat.root.glance(seat.partition, |partition| {
                seat.block = partition.lower_bound(seat.key);
                // Where it was guessed wrongly, the place is still far.
                if let Some(place) = partition.place(seat.block) {
                    prefetch_at(place);
                }
            });
        }
        for seat in &seats {
            seat.root.glance(seat.partition, |partition| {
                if let Some(place) = partition.place(seat.block) {
                    place.glance(Block::touch_front);
                }
            });
        }
        for seat in &seats {
            seat.root.glance(seat.partition, |partition| {
                if let Some(place) = partition.place(seat.block) {
                    place.glance(|block| Block::touch_entry(block, seat.key));
                }
            });
        }
    }

    /// The newest run that may have the key decides, as in a read.
    fn seat<'a>(&'a self, key: &'a [u8]) -> Option<Seat<'a>> {
        let mut hash = KeyHash::default();
        let oldest = self.runs().len().saturating_sub(1);
        self.runs().iter().enumerate().find_map(|(age, run)| {
            let root = run.part_for(key)?.core.loaded_root()?;
            let partition = root.data.directory.keys.lower_bound(key);
            let may_be_here = age == oldest
                || root.filter_prefix == FilterPrefix::None
                || root.may_contain(partition, hash.get(root.filter_prefix, key));
            may_be_here.then_some(Seat { key, root, partition, block: 0 })
        })
    }
}
