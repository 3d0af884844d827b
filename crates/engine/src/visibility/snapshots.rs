//! The open snapshots.
//!
//! Registration is spread over shards, each with a lock of its own, so that readers on different threads do not meet.

use super::Watermark;
use super::sync::Mutex;
use pando_base::Timestamp;
use std::sync::Arc;

/// Few where schedules are explored: each lock is a step.
const SHARDS: usize = if cfg!(feature = "shuttle") { 3 } else { 16 };

#[derive(Clone, Copy)]
struct Open {
    sequence: u64,
    timestamp: Timestamp,
}

#[derive(Default)]
struct Shard {
    places: Vec<Option<Open>>,
    free: Vec<usize>,
}

/// All open snapshots.
pub struct Snapshots {
    shards: Vec<Mutex<Shard>>,
    watermark: Arc<Watermark>,
}

/// A registered snapshot; dropping it ends it.
pub struct SnapshotTicket {
    snapshots: Arc<Snapshots>,
    shard: usize,
    place: usize,
    sequence: u64,
}

/// What was open, and the watermark from before the collection.
pub struct Collected {
    /// Sequences of the open snapshots, sorted.
    pub sequences: Vec<u64>,
    /// The smallest read timestamp in use, `MAX` if none.
    pub read_timestamp_min: Timestamp,
    /// Every snapshot not listed is at or after this.
    pub horizon: u64,
}

impl Snapshots {
    /// No snapshots yet.
    pub fn new(watermark: Arc<Watermark>) -> Snapshots {
        Snapshots { shards: (0..SHARDS).map(|_| Mutex::new(Shard::default())).collect(), watermark }
    }

    /// Takes a snapshot at the watermark; `timestamp` is `MAX` for reads without one.
    pub fn open(self: &Arc<Self>, timestamp: Timestamp) -> SnapshotTicket {
        let shard_index = shard_of_this_thread();
        let mut shard = self.shards[shard_index].lock();
        // Read under the lock: a collection that missed this snapshot had a watermark no greater than this one.
        let sequence = self.watermark.published();
        let open = Some(Open { sequence, timestamp });
        let place = match shard.free.pop() {
            Some(place) => {
                shard.places[place] = open;
                place
            }
            None => {
                shard.places.push(open);
                shard.places.len() - 1
            }
        };
        drop(shard);
        SnapshotTicket { snapshots: self.clone(), shard: shard_index, place, sequence }
    }

    /// What is open now.
    pub fn collect(&self) -> Collected {
        let horizon = self.watermark.published();
        let mut sequences = Vec::new();
        let mut read_timestamp_min = Timestamp::MAX;
        for shard in &self.shards {
            for open in shard.lock().places.iter().flatten() {
                sequences.push(open.sequence);
                read_timestamp_min = read_timestamp_min.min(open.timestamp);
            }
        }
        sequences.sort_unstable();
        sequences.dedup();
        Collected { sequences, read_timestamp_min, horizon }
    }

    /// Runs `quiet` while nothing is open and nothing can be opened; false, without running it, if something is open.
    pub fn while_none_open(&self, quiet: impl FnOnce()) -> bool {
        let shards: Vec<_> = self.shards.iter().map(|shard| shard.lock()).collect();
        let none = shards.iter().all(|shard| shard.places.iter().all(Option::is_none));
        if none {
            quiet();
        }
        none
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().places.iter().flatten().count()).sum()
    }
}

impl SnapshotTicket {
    /// What the snapshot sees.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Raises the read timestamp after it was found to be below oldest.
    pub fn set_timestamp(&self, timestamp: Timestamp) {
        if let Some(open) = &mut self.snapshots.shards[self.shard].lock().places[self.place] {
            open.timestamp = timestamp;
        }
    }
}

impl Drop for SnapshotTicket {
    fn drop(&mut self) {
        let mut shard = self.snapshots.shards[self.shard].lock();
        shard.places[self.place] = None;
        shard.free.push(self.place);
    }
}

/// Threads get shards in turn; the number only spreads them, so a relaxed counter will do.
#[cfg(not(feature = "shuttle"))]
fn shard_of_this_thread() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
    MINE.with(|shard| *shard)
}

/// The same in every run of a schedule.
#[cfg(feature = "shuttle")]
fn shard_of_this_thread() -> usize {
    usize::from(shuttle::current::me()) % SHARDS
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn collection_has_what_is_open() {
        let watermark = Arc::new(Watermark::new(4));
        let snapshots = Arc::new(Snapshots::new(watermark.clone()));
        let early = snapshots.open(Timestamp(9));
        watermark.publish(6);
        let late = snapshots.open(Timestamp::MAX);
        assert_eq!((early.sequence(), late.sequence()), (4, 6));
        let collected = snapshots.collect();
        assert_eq!(
            (collected.sequences, collected.read_timestamp_min, collected.horizon),
            (vec![4, 6], Timestamp(9), 6)
        );
        assert!(!snapshots.while_none_open(|| unreachable!()));
        drop((early, late));
        assert_eq!(snapshots.count(), 0);
        assert!(snapshots.while_none_open(|| {}));
    }
}
