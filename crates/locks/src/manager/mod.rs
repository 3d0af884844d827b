//! The lock manager: which resource is locked by how many in which modes, and who waits.
//!
//! A resource has a [`Head`](head::Head) in one of the buckets, made when it is first locked and dropped by
//! [`LockManager::clean_unused`]. Intents mostly never get that far: they are counted in partitions, see [`partition`].
//!
//! Invariants: while a resource is open in any partition, nothing is granted in S or X and nobody waits; so whoever adds
//! to an open tally is right to do so without looking further. The manager knows nothing of the order in which locks
//! should be taken: lockers do.
//!
//! Lock order: a locker's state, a bucket or a ticket queue, a partition's map, a grant. Wakers are woken with none of them held.

mod head;
mod info;
mod partition;
mod seats;
#[cfg(test)]
mod tests;

use crate::locker::Locker;
use crate::mode::Mode;
use crate::resource::{IdHash, ResourceId};
use crate::stats::LockStats;
use crate::sync::{Mutex, Padded};
use crate::tickets::Tickets;
use crate::wait::{Grant, Wakers};
use head::Head;
use pando_env::Env;
use partition::Tally;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use head::{Claim, Conversion, Deadlock};
pub use info::{LockInfo, RequestInfo};
pub(crate) use partition::Partition;
pub use seats::LockerReport;

/// Names a locker in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockerId(pub(crate) u64);

impl LockerId {
    /// The number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// More buckets than processors, so that those who must look at heads seldom meet.
const BUCKET_COUNT: usize = 64;

/// One bit each in a head.
const PARTITION_COUNT_MAX: usize = 64;

type Bucket = HashMap<ResourceId, Head, IdHash>;

/// What all lockers of a server share.
pub struct LockManager {
    env: Env,
    tickets: Option<Arc<Tickets>>,
    buckets: Box<[Padded<Mutex<Bucket>>]>,
    partitions: Box<[Padded<Partition>]>,
}

impl LockManager {
    /// A manager without tickets: nothing is admitted or refused.
    pub fn new(env: &Env) -> Arc<LockManager> {
        LockManager::with(env, None)
    }

    /// A manager whose lockers need a ticket for the global lock.
    pub fn with_tickets(env: &Env, tickets: Arc<Tickets>) -> Arc<LockManager> {
        LockManager::with(env, Some(tickets))
    }

    fn with(env: &Env, tickets: Option<Arc<Tickets>>) -> Arc<LockManager> {
        let partition_count = (env.tasks().parallelism() * 2).next_power_of_two().min(PARTITION_COUNT_MAX);
        let buckets = (0..BUCKET_COUNT).map(|_| Padded(Mutex::new(Bucket::default()))).collect();
        let partitions = (0..partition_count).map(|_| Padded(Partition::new())).collect();
        Arc::new(LockManager { env: env.clone(), tickets, buckets, partitions })
    }

    /// A locker for no operation in particular, in the partition of this thread.
    pub fn locker(self: &Arc<Self>) -> Locker {
        self.locker_of(0)
    }

    /// A locker for the operation of this number, in the partition of this thread.
    pub fn locker_of(self: &Arc<Self>, operation: u32) -> Locker {
        self.locker_at(index_of_thread(), operation)
    }

    /// A locker in the given partition (modulo their number).
    pub fn locker_in(self: &Arc<Self>, partition: usize) -> Locker {
        self.locker_at(partition, 0)
    }

    fn locker_at(self: &Arc<Self>, partition: usize, operation: u32) -> Locker {
        let partition = partition % self.partitions.len();
        let number = self.partitions[partition].next_number();
        let id = LockerId(number * self.partitions.len() as u64 + partition as u64 + 1);
        let seat = self.partitions[partition].seats.take();
        Locker::new(self.clone(), id, partition, seat, operation)
    }

    /// The counters of all operations since the start.
    pub fn stats(&self) -> LockStats {
        let mut sum = LockStats::default();
        self.partitions.iter().for_each(|partition| partition.stats.add_to(&mut sum));
        sum
    }

    /// The tickets, if there are any.
    pub fn tickets(&self) -> Option<&Arc<Tickets>> {
        self.tickets.as_ref()
    }

    /// Forgets resources that nobody uses. To be called about once a minute.
    pub fn clean_unused(&self) {
        for bucket in &self.buckets {
            let mut bucket = bucket.lock();
            for (resource, head) in bucket.iter_mut() {
                self.close(*resource, head);
            }
            bucket.retain(|_, head| !head.is_unused());
        }
    }

    /// How many resources have a head, used or not.
    pub fn resource_count(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.lock().len()).sum()
    }

    /// Whether anybody waits for the resource.
    pub fn has_waiting(&self, resource: ResourceId) -> bool {
        self.bucket(resource).lock().get(&resource).is_some_and(Head::has_waiting)
    }

    pub(crate) fn env(&self) -> &Env {
        &self.env
    }

    pub(crate) fn partition(&self, partition: usize) -> &Partition {
        &self.partitions[partition]
    }

    /// Grants an intent if it can be counted in the partition, otherwise does nothing.
    pub(crate) fn acquire_uncontended(&self, partition: usize, resource: ResourceId, mode: Mode) -> bool {
        mode.is_intent() && self.partitions[partition].add(resource, Tally::one(mode))
    }

    /// Grants the claim, or queues it and returns the cell to wait on.
    pub(crate) fn acquire(&self, partition: usize, resource: ResourceId, claim: Claim) -> Option<Arc<Grant>> {
        let is_countable = claim.mode.is_intent() && !claim.compatible_first;
        if is_countable && self.partitions[partition].add(resource, Tally::one(claim.mode)) {
            return None;
        }
        let mut bucket = self.bucket(resource).lock();
        let head = bucket.entry(resource).or_default();
        if is_countable && head.is_openable() {
            self.count(partition, resource, head, Tally::one(claim.mode));
            return None;
        }
        if !claim.mode.is_intent() {
            self.close(resource, head);
        }
        head.request(claim)
    }

    /// Changes what is granted, or returns the cell to wait on.
    pub(crate) fn convert(
        &self,
        partition: usize,
        resource: ResourceId,
        conversion: Conversion,
    ) -> Result<Option<Arc<Grant>>, Deadlock> {
        let Conversion { from, to, .. } = conversion;
        if to.is_intent() {
            let difference = Tally::one(to).plus(Tally::one(from).negated());
            if self.partitions[partition].add(resource, difference) {
                return Ok(None);
            }
        }
        let mut bucket = self.bucket(resource).lock();
        let head = bucket.entry(resource).or_default();
        if !to.is_intent() {
            self.close(resource, head);
        }
        head.convert(conversion)
    }

    /// Takes back what was granted.
    pub(crate) fn release(
        &self,
        partition: usize,
        resource: ResourceId,
        mode: Mode,
        compatible_first: bool,
        wakers: &mut Wakers,
    ) {
        let is_countable = mode.is_intent() && !compatible_first;
        if is_countable && self.partitions[partition].add(resource, Tally::one(mode).negated()) {
            return;
        }
        self.with_head(resource, |head| head.release(mode, compatible_first, wakers));
    }

    /// Changes a granted mode to a weaker one.
    pub(crate) fn downgrade(&self, resource: ResourceId, from: Mode, to: Mode, wakers: &mut Wakers) {
        self.with_head(resource, |head| head.downgrade(from, to, wakers));
    }

    /// Forgets a claim that was queued.
    pub(crate) fn cancel(&self, resource: ResourceId, claim: Claim, grant: &Arc<Grant>, wakers: &mut Wakers) {
        self.with_head(resource, |head| head.cancel(claim, grant, wakers));
    }

    /// Forgets a conversion that had to wait.
    pub(crate) fn cancel_conversion(
        &self,
        resource: ResourceId,
        conversion: Conversion,
        grant: &Arc<Grant>,
        wakers: &mut Wakers,
    ) {
        self.with_head(resource, |head| head.cancel_conversion(conversion, grant, wakers));
    }

    /// Works on a head that is there because something is granted or queued.
    fn with_head(&self, resource: ResourceId, work: impl FnOnce(&mut Head)) {
        match self.bucket(resource).lock().get_mut(&resource) {
            Some(head) => work(head),
            None => debug_assert!(false, "{resource} is granted or queued but has no head"),
        }
    }

    fn count(&self, partition: usize, resource: ResourceId, head: &mut Head, tally: Tally) {
        let bit = 1 << partition;
        if head.open & bit == 0 {
            head.open |= bit;
            self.partitions[partition].open(resource, tally);
        } else {
            let is_open = self.partitions[partition].add(resource, tally);
            debug_assert!(is_open, "only who has the bucket's lock closes {resource}");
        }
    }

    /// Moves the counts of all partitions to the head.
    fn close(&self, resource: ResourceId, head: &mut Head) {
        let mut sum = (0, 0);
        while head.open != 0 {
            let partition = head.open.trailing_zeros() as usize;
            let counts = self.partitions[partition].close(resource).counts();
            sum = (sum.0 + counts.0, sum.1 + counts.1);
            head.open &= head.open - 1;
        }
        head.absorb(sum.0, sum.1);
    }

    fn bucket(&self, resource: ResourceId) -> &Mutex<Bucket> {
        &self.buckets[resource.number() as usize % BUCKET_COUNT]
    }
}

/// A small number for each thread, so that threads spread over the partitions.
fn index_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static INDEX: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    INDEX.with(|index| *index)
}
