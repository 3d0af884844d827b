//! The cache: what is read stays where it is used, and an accountant decides what must go.
//!
//! There is no map from block number to block. Every index partition has a [`Resident`] place for each block it points at,
//! every section one for each index and filter partition; a hit is one atomic load. This module counts the bytes and
//! keeps the queues: newcomers are on probation and leave first unless they are used again; the rest is a clock.
//!
//! Invariants: `used_bytes` counts every block that is alive, also those evicted but still held by a reader. A place is
//! emptied only by the accountant or by the end of its owner. Lock order: the queues' lock is innermost; nothing is loaded,
//! and nothing large is freed, while it is held.

use crate::block::compression::DictionaryShelf;
use arc_swap::{ArcSwapAny, Guard, RefCnt};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// A place for something that can be loaded again; `P` is the counted pointer to it.
pub(crate) struct Resident<P: RefCnt> {
    value: ArcSwapAny<Option<P>>,
    used: AtomicBool,
}

impl<P: RefCnt> Default for Resident<P> {
    fn default() -> Self {
        Resident { value: ArcSwapAny::new(None), used: AtomicBool::new(false) }
    }
}

impl<P: RefCnt> Resident<P> {
    /// What is there. Marks it as used.
    #[inline]
    pub(crate) fn get(&self) -> Guard<Option<P>> {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        self.value.load()
    }

    /// What is there, for a scan: passing by once does not count as use.
    #[inline]
    pub(crate) fn peek(&self) -> Option<P> {
        self.value.load_full()
    }

    /// Shows what is there, if anything, without taking hold of it.
    #[inline]
    pub(crate) fn glance(&self, look: impl FnOnce(&P)) {
        if let Some(value) = &*self.value.load() {
            look(value);
        }
    }

    /// Empties the place: what was there has moved.
    pub(crate) fn clear(&self) {
        self.value.store(None);
    }

    fn fill(&self, value: P, used: bool) {
        self.used.store(used, Ordering::Relaxed);
        self.value.store(Some(value));
    }
}

/// Who has places. The accountant speaks to owners only through this.
pub(crate) trait Landlord: Send + Sync {
    /// Clears the place's mark of use; true if it was used since the last call.
    fn take_used(&self, place: Place) -> bool;
    /// Empties the place.
    fn evict(&self, place: Place);
}

/// Which place of a landlord.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Which of its lists.
    pub(crate) list: u8,
    /// Which place in the list.
    pub(crate) index: u32,
}

/// Clears the mark of use of one place of a list.
pub(crate) fn take_used<P: RefCnt>(places: &[Resident<P>], index: u32) -> bool {
    places.get(index as usize).is_some_and(|place| place.used.swap(false, Ordering::Relaxed))
}

/// Empties one place of a list.
pub(crate) fn evict<P: RefCnt>(places: &[Resident<P>], index: u32) {
    if let Some(place) = places.get(index as usize) {
        place.value.store(None);
    }
}

struct Tenant {
    landlord: Weak<dyn Landlord>,
    place: Place,
}

#[derive(Default)]
struct Queues {
    probation: VecDeque<Tenant>,
    main: VecDeque<Tenant>,
}

/// The byte budget of everything that was read from runs. One for each store.
pub struct BlockCache {
    capacity_bytes: AtomicUsize,
    used_bytes: AtomicUsize,
    alive: AtomicUsize,
    misses: AtomicU64,
    evictions: AtomicU64,
    read_bytes: AtomicU64,
    queues: Mutex<Queues>,
    dictionaries: DictionaryShelf,
}

/// Counters of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// The budget.
    pub capacity_bytes: u64,
    /// What is in use, including what readers hold after its eviction.
    pub used_bytes: u64,
    /// Units in use.
    pub units: u64,
    /// Units that had to be read from disk.
    pub misses: u64,
    /// Bytes read from disk for them.
    pub read_bytes: u64,
    /// Units that had to go.
    pub evictions: u64,
}

/// Bytes that count in the budget until dropped.
pub(crate) struct Charge {
    cache: Arc<BlockCache>,
    bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.cache.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.cache.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

impl BlockCache {
    /// An empty cache.
    pub fn new(capacity_bytes: usize) -> Arc<BlockCache> {
        Arc::new(BlockCache {
            capacity_bytes: AtomicUsize::new(capacity_bytes),
            used_bytes: AtomicUsize::new(0),
            alive: AtomicUsize::new(0),
            misses: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            queues: Mutex::new(Queues::default()),
            dictionaries: DictionaryShelf::default(),
        })
    }

    /// Changes the budget; what no longer fits goes at once.
    pub fn set_capacity_bytes(&self, capacity_bytes: usize) {
        self.capacity_bytes.store(capacity_bytes, Ordering::Relaxed);
        self.shrink();
    }

    /// The budget.
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes.load(Ordering::Relaxed)
    }

    /// What is in use.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// True while room is left that nobody has to make.
    pub(crate) fn is_roomy(&self) -> bool {
        self.used_bytes() < self.capacity_bytes() / 8 * 7
    }

    /// The counters.
    pub fn statistics(&self) -> CacheStatistics {
        CacheStatistics {
            capacity_bytes: self.capacity_bytes() as u64,
            used_bytes: self.used_bytes() as u64,
            units: self.alive.load(Ordering::Relaxed) as u64,
            misses: self.misses.load(Ordering::Relaxed),
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
        }
    }

    /// The prepared dictionaries in use.
    pub(crate) fn dictionaries(&self) -> &DictionaryShelf {
        &self.dictionaries
    }

    /// Counts bytes that are now in memory.
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize) -> Charge {
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.alive.fetch_add(1, Ordering::Relaxed);
        Charge { cache: self.clone(), bytes }
    }

    /// Counts a unit read from disk.
    pub(crate) fn count_read(&self, bytes: u64) {
        self.misses.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Puts a loaded block into its place, on probation.
    pub(crate) fn admit_block<P: RefCnt>(
        &self,
        slot: &Resident<P>,
        value: P,
        landlord: Weak<dyn Landlord>,
        place: Place,
    ) {
        slot.fill(value, false);
        self.queues.lock().probation.push_back(Tenant { landlord, place });
        self.shrink();
    }

    /// Puts a loaded index or filter partition into its place; they stay longer, since many blocks hang on them.
    pub(crate) fn admit_partition<P: RefCnt>(
        &self,
        slot: &Resident<P>,
        value: P,
        landlord: Weak<dyn Landlord>,
        place: Place,
    ) {
        slot.fill(value, true);
        self.queues.lock().main.push_back(Tenant { landlord, place });
        self.shrink();
    }

    /// Evicts until the budget holds or nothing is left to evict.
    fn shrink(&self) {
        if self.used_bytes() <= self.capacity_bytes() {
            self.forget_the_dead();
            return;
        }
        let mut attempts = { 2 * self.queues.lock().len() + 2 };
        while self.used_bytes() > self.capacity_bytes() && attempts > 0 {
            attempts -= 1;
            let Some((landlord, place)) = self.queues.lock().choose_victim() else { return };
            landlord.evict(place);
            self.evictions.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Tenants of dropped tables leave the queues when they would otherwise outnumber the living.
    fn forget_the_dead(&self) {
        let alive = self.alive.load(Ordering::Relaxed);
        let mut queues = self.queues.lock();
        if queues.len() > 2 * alive + 1024 {
            queues.probation.retain(|tenant| tenant.landlord.strong_count() > 0);
            queues.main.retain(|tenant| tenant.landlord.strong_count() > 0);
        }
    }
}

impl Queues {
    fn len(&self) -> usize {
        self.probation.len() + self.main.len()
    }

    /// The next tenant to go: from probation while that holds more than a tenth, else from the clock.
    fn choose_victim(&mut self) -> Option<(Arc<dyn Landlord>, Place)> {
        let mut rounds = 2 * self.len();
        while rounds > 0 {
            rounds -= 1;
            let from_probation = self.probation.len() * 10 > self.len() || self.main.is_empty();
            let queue = if from_probation { &mut self.probation } else { &mut self.main };
            let tenant = queue.pop_front()?;
            let Some(landlord) = tenant.landlord.upgrade() else { continue };
            if landlord.take_used(tenant.place) {
                self.main.push_back(tenant);
                continue;
            }
            return Some((landlord, tenant.place));
        }
        None
    }
}
