//! The queue of one resource: what is granted, who waits, who waits to get more. Plain data; the manager's bucket lock
//! guards it.
//!
//! **New requests** wait if they conflict with what is granted or with what waits already, so nobody overtakes. Two
//! behaviours break that: a request may ask to be *enqueued at the front*, where nobody waits before it; and while a *compatible-first* request is
//! granted, a newcomer that goes together with what is granted does not look at the queue.
//!
//! **Grants from the queue** go from the front until the first that does not fit. If a compatible-first request was just
//! granted, the rest of the queue is searched too.
//!
//! **Conversions** (to a mode that covers the one held) look only at what others hold, not at the queue: waiting behind
//! a queue that waits for oneself would last for ever. Of two conversions that wait for each other the later is refused.
//! What a conversion waits for counts against newcomers.
//!
//! **Intents may be counted elsewhere**, in the partitions named by `open`. While any is open, the counts of IS and IX here
//! are parts of a sum and may be negative; there is then nobody waiting and nothing granted in S or X, so nobody needs
//! them. Before that changes, the manager closes the partitions and adds their counts here.

use super::LockerId;
use crate::mode::{MODE_COUNT, Mode, ModeSet};
use crate::wait::{Grant, Wakers};
use std::collections::VecDeque;
use std::sync::Arc;

/// What somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub locker: LockerId,
    pub mode: Mode,
    pub enqueue_at_front: bool,
    pub compatible_first: bool,
}

/// A change from one mode to another that covers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conversion {
    pub locker: LockerId,
    pub from: Mode,
    pub to: Mode,
}

/// Two conversions wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadlock;

struct Waiting {
    claim: Claim,
    grant: Arc<Grant>,
}

struct Converting {
    conversion: Conversion,
    grant: Arc<Grant>,
}

/// The state of one resource.
#[derive(Default)]
pub(crate) struct Head {
    /// How often each mode is granted.
    granted: [i64; MODE_COUNT],
    waiting: VecDeque<Waiting>,
    /// How often each mode waits.
    waiting_counts: [u32; MODE_COUNT],
    converting: Vec<Converting>,
    /// How many of those granted switch the queue to compatible-first.
    compatible_first_count: u32,
    /// The partitions, one a bit, that count intents of this resource.
    pub open: u64,
}

impl Head {
    /// Grants it, or queues it and returns the cell to wait on.
    pub(crate) fn request(&mut self, claim: Claim) -> Option<Arc<Grant>> {
        let conflicts = claim.mode.conflicts();
        let may_overtake = claim.enqueue_at_front || self.compatible_first_count > 0;
        let must_queue = !may_overtake && conflicts.meets(self.waiting_modes());
        if !must_queue && !conflicts.meets(self.blocking_modes()) {
            self.grant(claim);
            return None;
        }
        debug_assert!(self.open == 0, "somebody waits although partitions are open");
        let grant = Grant::new();
        let waiting = Waiting { claim, grant: grant.clone() };
        self.waiting_counts[claim.mode.index()] += 1;
        if claim.enqueue_at_front {
            self.waiting.push_front(waiting);
        } else {
            self.waiting.push_back(waiting);
        }
        Some(grant)
    }

    /// Changes a granted mode, or returns the cell to wait on; the old mode stays granted meanwhile.
    pub(crate) fn convert(&mut self, conversion: Conversion) -> Result<Option<Arc<Grant>>, Deadlock> {
        debug_assert!(conversion.from.is_covered_by(conversion.to));
        if self.is_convertible(conversion) {
            self.exchange(conversion.from, conversion.to);
            return Ok(None);
        }
        if self.converting.iter().any(|other| is_mutual(other.conversion, conversion)) {
            return Err(Deadlock);
        }
        debug_assert!(self.open == 0, "somebody waits although partitions are open");
        let grant = Grant::new();
        self.converting.push(Converting { conversion, grant: grant.clone() });
        Ok(Some(grant))
    }

    /// Takes back a granted claim.
    pub(crate) fn release(&mut self, mode: Mode, compatible_first: bool, wakers: &mut Wakers) {
        self.count(mode, -1);
        if compatible_first {
            debug_assert!(self.compatible_first_count > 0);
            self.compatible_first_count -= 1;
        }
        self.settle(wakers);
    }

    /// Changes a granted mode to one that it covers.
    pub(crate) fn downgrade(&mut self, from: Mode, to: Mode, wakers: &mut Wakers) {
        debug_assert!(to.is_covered_by(from));
        self.exchange(from, to);
        self.settle(wakers);
    }

    /// Forgets a request, whether it waits still or was granted in the meantime.
    pub(crate) fn cancel(&mut self, claim: Claim, grant: &Arc<Grant>, wakers: &mut Wakers) {
        match self.waiting.iter().position(|waiting| Arc::ptr_eq(&waiting.grant, grant)) {
            None => self.release(claim.mode, claim.compatible_first, wakers),
            Some(place) => {
                self.dequeue(place);
                self.settle(wakers);
            }
        }
    }

    /// Forgets a conversion, whether it waits still or was granted in the meantime. The old mode stays granted.
    pub(crate) fn cancel_conversion(&mut self, conversion: Conversion, grant: &Arc<Grant>, wakers: &mut Wakers) {
        match self.converting.iter().position(|converting| Arc::ptr_eq(&converting.grant, grant)) {
            None => self.downgrade(conversion.to, conversion.from, wakers),
            Some(place) => {
                self.converting.remove(place);
                self.settle(wakers);
            }
        }
    }

    /// Whether intents may be counted in partitions: nobody who could mind is here.
    pub(crate) fn is_openable(&self) -> bool {
        self.granted[Mode::S.index()] == 0
            && self.granted[Mode::X.index()] == 0
            && self.waiting.is_empty()
            && self.converting.is_empty()
    }

    /// Adds what a partition had counted.
    pub(crate) fn absorb(&mut self, intent_shared: i64, intent_exclusive: i64) {
        self.count(Mode::IS, intent_shared);
        self.count(Mode::IX, intent_exclusive);
    }

    /// Whether nobody holds or wants the resource.
    pub(crate) fn is_unused(&self) -> bool {
        self.open == 0 && self.granted == [0; MODE_COUNT] && self.waiting.is_empty() && self.converting.is_empty()
    }

    /// Whether anybody waits for it.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Those who wait, front first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Claim> {
        self.waiting.iter().map(|waiting| waiting.claim)
    }

    /// Those who hold it and wait for more.
    pub(crate) fn converting(&self) -> impl Iterator<Item = Conversion> {
        self.converting.iter().map(|converting| converting.conversion)
    }

    fn settle(&mut self, wakers: &mut Wakers) {
        self.settle_conversions(wakers);
        self.settle_queue(wakers);
    }

    fn settle_conversions(&mut self, wakers: &mut Wakers) {
        let mut place = 0;
        while let Some(converting) = self.converting.get(place) {
            if !self.is_convertible(converting.conversion) {
                place += 1;
                continue;
            }
            let Converting { conversion, grant } = self.converting.remove(place);
            self.exchange(conversion.from, conversion.to);
            wakers.add(grant.give());
        }
    }

    fn settle_queue(&mut self, wakers: &mut Wakers) {
        let mut is_newly_compatible_first = false;
        let mut place = 0;
        while let Some(waiting) = self.waiting.get(place) {
            let claim = waiting.claim;
            if claim.mode.conflicts().meets(self.blocking_modes()) {
                // Who looks beyond the first in line takes its turn away.
                if place == 0 && !is_newly_compatible_first {
                    break;
                }
                place += 1;
                continue;
            }
            let Some(grant) = self.dequeue(place) else { break };
            is_newly_compatible_first |= claim.compatible_first && self.compatible_first_count == 0;
            self.grant(claim);
            wakers.add(grant.give());
            if claim.mode == Mode::X {
                break;
            }
        }
    }

    fn dequeue(&mut self, place: usize) -> Option<Arc<Grant>> {
        let waiting = self.waiting.remove(place)?;
        self.waiting_counts[waiting.claim.mode.index()] -= 1;
        Some(waiting.grant)
    }

    fn grant(&mut self, claim: Claim) {
        self.count(claim.mode, 1);
        self.compatible_first_count += u32::from(claim.compatible_first);
    }

    fn exchange(&mut self, from: Mode, to: Mode) {
        self.count(from, -1);
        self.count(to, 1);
    }

    fn count(&mut self, mode: Mode, difference: i64) {
        self.granted[mode.index()] += difference;
        debug_assert!(self.open != 0 || self.granted[mode.index()] >= 0, "{mode} was released more often than granted");
    }

    fn granted_modes(&self) -> ModeSet {
        Mode::ALL.into_iter().filter(|mode| self.granted[mode.index()] > 0).collect()
    }

    /// What is granted, and what is promised to conversions.
    fn blocking_modes(&self) -> ModeSet {
        self.converting.iter().fold(self.granted_modes(), |modes, converting| modes.with(converting.conversion.to))
    }

    fn waiting_modes(&self) -> ModeSet {
        Mode::ALL.into_iter().filter(|mode| self.waiting_counts[mode.index()] > 0).collect()
    }

    /// Whether what others hold allows it.
    fn is_convertible(&self, conversion: Conversion) -> bool {
        let held_by_others = |mode: &Mode| self.granted[mode.index()] > i64::from(*mode == conversion.from);
        let others: ModeSet = Mode::ALL.into_iter().filter(held_by_others).collect();
        !conversion.to.conflicts().meets(others)
    }
}

/// Whether each waits for what the other holds.
fn is_mutual(one: Conversion, other: Conversion) -> bool {
    !one.to.is_compatible_with(other.from) && !other.to.is_compatible_with(one.from)
}
