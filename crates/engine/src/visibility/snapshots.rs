//! The open snapshots.
//!
//! A thread registers its snapshot in a place of its own, without a lock; where that is taken (a thread with several
//! snapshots, more threads than places), in a list behind a lock, spread over shards.
//!
//! Registration without a lock: the watermark is read, entered in the place, and read again; if it has moved, the place is
//! brought up to it. So the sequence that is finally used was in the place *before* the watermark was last seen to be it. A
//! collection that missed it there had read the watermark before that, and its horizon is no later than the snapshot. What
//! else it may have met in the place, an earlier watermark, only makes it keep more.
//!
//! A read timestamp is entered before `open` returns, and the caller compares it with oldest only then; who prunes reads
//! oldest before it collects. So one of the two notices the other.

use super::Watermark;
use super::sync::{AtomicU64, Mutex, Ordering, fence};
use crate::spread;
use pando_base::Timestamp;
use std::sync::Arc;

/// Few where schedules are explored: each access is a step.
const SHARDS: usize = if cfg!(feature = "shuttle") { 2 } else { 16 };
const PLACES: usize = if cfg!(feature = "shuttle") { 2 } else { 64 };

/// Nobody is registered in the place.
const FREE: u64 = u64::MAX;
/// Nobody may register in the place: the locks decide.
const BARRED: u64 = u64::MAX - 1;

/// A place for one snapshot; of one cache line, since threads write theirs all the time.
#[repr(align(64))]
struct Place {
    /// `FREE`, `BARRED` or the snapshot's sequence.
    sequence: AtomicU64,
    /// The read timestamp; `MAX` without one, and while the place is free.
    timestamp: AtomicU64,
}

impl Default for Place {
    fn default() -> Self {
        Place { sequence: AtomicU64::new(FREE), timestamp: AtomicU64::new(Timestamp::MAX.0) }
    }
}

#[derive(Clone, Copy)]
struct Open {
    sequence: u64,
    timestamp: Timestamp,
}

#[derive(Default)]
struct Shard {
    list: Vec<Option<Open>>,
    free: Vec<usize>,
}

/// All open snapshots.
pub struct Snapshots {
    places: Box<[Place]>,
    shards: Vec<Mutex<Shard>>,
    watermark: Arc<Watermark>,
}

/// Where a snapshot is registered.
enum Entered {
    Place(usize),
    List { shard: usize, index: usize },
}

/// A registered snapshot; dropping it ends it.
pub struct SnapshotTicket {
    snapshots: Arc<Snapshots>,
    entered: Entered,
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
        Snapshots {
            places: std::iter::repeat_with(Place::default).take(PLACES).collect(),
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::default())).collect(),
            watermark,
        }
    }

    /// Takes a snapshot at the watermark; `timestamp` is `MAX` for reads without one.
    pub fn open(self: &Arc<Self>, timestamp: Timestamp) -> SnapshotTicket {
        let thread = spread::thread_number();
        let (entered, sequence) = match self.enter_place(thread % PLACES, timestamp) {
            Some(sequence) => (Entered::Place(thread % PLACES), sequence),
            None => self.enter_list(thread % SHARDS, timestamp),
        };
        SnapshotTicket { snapshots: self.clone(), entered, sequence }
    }

    /// The sequence of the snapshot; `None` if the place is not free.
    #[inline]
    fn enter_place(&self, index: usize, timestamp: Timestamp) -> Option<u64> {
        let place = self.places.get(index)?;
        let mut sequence = self.watermark.published();
        place.sequence.compare_exchange(FREE, sequence, Ordering::SeqCst, Ordering::Relaxed).ok()?;
        if timestamp != Timestamp::MAX {
            place.timestamp.store(timestamp.0, Ordering::SeqCst);
        }
        loop {
            // Between the entry and the look at the watermark, and between it and the caller's look at oldest.
            fence(Ordering::SeqCst);
            let published = self.watermark.published();
            if published == sequence {
                return Some(sequence);
            }
            sequence = published;
            place.sequence.store(sequence, Ordering::SeqCst);
        }
    }

    #[cold]
    fn enter_list(&self, shard_index: usize, timestamp: Timestamp) -> (Entered, u64) {
        let mut shard = self.shards[shard_index].lock();
        // Read under the lock: a collection that missed this snapshot had a watermark no greater than this one.
        let sequence = self.watermark.published();
        let open = Some(Open { sequence, timestamp });
        let index = match shard.free.pop() {
            Some(index) => {
                shard.list[index] = open;
                index
            }
            None => {
                shard.list.push(open);
                shard.list.len() - 1
            }
        };
        (Entered::List { shard: shard_index, index }, sequence)
    }

    /// What is open now.
    pub fn collect(&self) -> Collected {
        let horizon = self.watermark.published();
        // The watermark, and whatever the caller read before, come before the places.
        fence(Ordering::SeqCst);
        let mut sequences = Vec::new();
        let mut read_timestamp_min = Timestamp::MAX;
        for place in &self.places {
            let sequence = place.sequence.load(Ordering::SeqCst);
            if sequence < BARRED {
                sequences.push(sequence);
                // Of this snapshot or of the next in the same place, which only keeps more.
                read_timestamp_min = read_timestamp_min.min(Timestamp(place.timestamp.load(Ordering::SeqCst)));
            }
        }
        for shard in &self.shards {
            for open in shard.lock().list.iter().flatten() {
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
        // The locks first: who finds its place barred waits for one of them.
        let shards: Vec<_> = self.shards.iter().map(|shard| shard.lock()).collect();
        let bar =
            |place: &&Place| place.sequence.compare_exchange(FREE, BARRED, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        let barred = self.places.iter().take_while(bar).count();
        let none = barred == self.places.len() && shards.iter().all(|shard| shard.list.iter().all(Option::is_none));
        if none {
            quiet();
        }
        self.places.iter().take(barred).for_each(|place| place.sequence.store(FREE, Ordering::SeqCst));
        none
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        let places = self.places.iter().filter(|place| place.sequence.load(Ordering::Relaxed) < BARRED).count();
        places + self.shards.iter().map(|shard| shard.lock().list.iter().flatten().count()).sum::<usize>()
    }
}

impl SnapshotTicket {
    /// What the snapshot sees.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Raises the read timestamp after it was found to be below oldest.
    pub fn set_timestamp(&self, timestamp: Timestamp) {
        match self.entered {
            Entered::Place(index) => self.snapshots.places[index].timestamp.store(timestamp.0, Ordering::SeqCst),
            Entered::List { shard, index } => {
                if let Some(open) = &mut self.snapshots.shards[shard].lock().list[index] {
                    open.timestamp = timestamp;
                }
            }
        }
    }
}

impl Drop for SnapshotTicket {
    fn drop(&mut self) {
        match self.entered {
            Entered::Place(index) => {
                let place = &self.snapshots.places[index];
                if place.timestamp.load(Ordering::Relaxed) != Timestamp::MAX.0 {
                    place.timestamp.store(Timestamp::MAX.0, Ordering::Release);
                }
                place.sequence.store(FREE, Ordering::Release);
            }
            Entered::List { shard, index } => {
                let mut shard = self.snapshots.shards[shard].lock();
                shard.list[index] = None;
                shard.free.push(index);
            }
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn collection_has_what_is_open() {
        let watermark = Arc::new(Watermark::new(4));
        let snapshots = Arc::new(Snapshots::new(watermark.clone()));
        // The first is in this thread's place, the others are in a list.
        let early = snapshots.open(Timestamp(9));
        watermark.publish(6);
        let late = snapshots.open(Timestamp::MAX);
        let last = snapshots.open(Timestamp(8));
        assert_eq!((early.sequence(), late.sequence(), last.sequence()), (4, 6, 6));
        let collected = snapshots.collect();
        assert_eq!(
            (collected.sequences, collected.read_timestamp_min, collected.horizon),
            (vec![4, 6], Timestamp(8), 6)
        );
        assert!(!snapshots.while_none_open(|| unreachable!()));
        drop((late, last));
        early.set_timestamp(Timestamp(10));
        assert_eq!((snapshots.count(), snapshots.collect().read_timestamp_min), (1, Timestamp(10)));
        assert!(!snapshots.while_none_open(|| unreachable!()));
        drop(early);
        assert_eq!(snapshots.count(), 0);
        assert!(snapshots.while_none_open(|| {}));
        let again = snapshots.open(Timestamp::MAX);
        assert_eq!((again.sequence(), snapshots.collect().read_timestamp_min), (6, Timestamp::MAX));
    }
}
