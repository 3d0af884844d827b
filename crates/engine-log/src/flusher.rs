//! The flusher: a thread that makes commits durable for the tasks that wait for them.
//!
//! A task that led a flush itself would block its worker: the runtime then hands the worker's queue to another thread and
//! wakes it, for each group of commits. So tasks only ask, and the thread that the core lends for it writes and syncs for
//! all of them; who asks meanwhile is served by the next flush. A lone committer, one commit in each of the last flushes, still
//! leads itself: passing the work to another thread and back would only delay it.
//!
//! A sync costs the processor about as much as a small commit. While several commit, the flusher therefore rests between two
//! flushes until [`REST`] has passed since the last one began, unless everybody who is likely to come has come (as many as
//! in the largest group of late), or nobody can: no worker of the runtime has anything to do ([`Flusher::hurry`]). On a slow disk syncs are further apart by themselves, and it never rests.
//!
//! Invariants: a request that is made after its commit was appended is withdrawn ([`Flusher::withdraw`]) only by a leader
//! that captures afterwards, so the commit is in that flush. A request that does not ring because the flusher is awake is seen
//! before it sleeps: it first says that it will, then looks; who asks does it the other way round. Where there is no flusher
//! (simulations, tests, after the end) [`Flusher::ask`] says so and the waiter leads. When the flusher leaves, it rings for everybody who asked.

use crate::log::Inner;
use crate::{Log, Result};
use pando_env::Alarm;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// After so many flushes with one commit at most, a committer is taken to be alone.
const LONE_FLUSHES_MIN: u64 = 16;
/// A large group is hoped for again through about so many smaller ones.
const GROUP_FADING: u64 = 8;
/// From the beginning of a flush to that of the next, while several commit.
const REST: Duration = Duration::from_millis(1);

/// The requests to the flusher.
#[derive(Default)]
pub(crate) struct Flusher {
    is_present: AtomicBool,
    /// How often it was asked since the last flush began.
    asked: AtomicU64,
    /// The flusher is at work or rests, and looks for requests by itself.
    is_awake: AtomicBool,
    /// It waits for company.
    is_resting: AtomicBool,
    /// So many requests end its rest.
    company: AtomicU64,
    /// When the last flush for others began.
    began_ns: AtomicU64,
    alarm: Alarm,
}

impl Flusher {
    /// Asks for a flush of everything that was appended before; false if there is nobody to do it.
    pub(crate) fn ask(&self) -> bool {
        if !self.is_present.load(Ordering::SeqCst) {
            return false;
        }
        let asked = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let enough = if self.is_awake.load(Ordering::SeqCst) { self.company.load(Ordering::Relaxed) } else { 1 };
        if asked == enough {
            self.alarm.ring();
        }
        true
    }

    /// Ends its rest if somebody has asked: nobody else is about to.
    fn hurry(&self) {
        if self.is_asked() && self.is_resting.swap(false, Ordering::SeqCst) {
            self.alarm.ring();
        }
    }

    fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst) > 0
    }

    /// Waits this long, or until as many have asked as company was hoped for. Some may have before.
    fn rest(&self, at_most: Duration) {
        if self.has_company() {
            return;
        }
        // Who came while it worked has rung, and was taken along since: that must not end this rest. Who comes from here on is seen or rings.
        self.alarm.silence();
        if !self.has_company() {
            self.is_resting.store(true, Ordering::SeqCst);
            self.alarm.wait(at_most);
            self.is_resting.store(false, Ordering::SeqCst);
        }
    }

    fn has_company(&self) -> bool {
        self.asked.load(Ordering::SeqCst) >= self.company.load(Ordering::Relaxed)
    }

    /// Waits until somebody asks; false if nobody has for so long.
    fn sleep(&self, at_most: Duration) -> bool {
        self.is_awake.store(false, Ordering::SeqCst);
        let is_asked = self.is_asked() || self.alarm.wait(at_most);
        self.is_awake.store(true, Ordering::SeqCst);
        is_asked
    }

    /// Has the thread look whether it goes on.
    pub(crate) fn wake(&self) {
        self.alarm.ring();
    }

    /// Whoever leads takes the requests so far upon itself.
    pub(crate) fn withdraw(&self) {
        self.asked.store(0, Ordering::SeqCst);
    }
}

impl Inner {
    /// True if a committer is probably alone. One flush with one commit does not say so: among readers writers are often alone for
    /// a moment, and a blocked worker costs the readers more than the flusher costs the writer.
    pub(crate) fn is_quiet(&self) -> bool {
        self.lone_flushes.load(Ordering::Relaxed) >= LONE_FLUSHES_MIN
    }

    /// Waits for others to commit, if some are likely to and the last flush is not long ago.
    fn rest_for_company(&self) {
        let company = self.group.load(Ordering::Relaxed);
        self.flusher.company.store(company, Ordering::Relaxed);
        let now_ns = self.env.clock().monotonic_ns();
        let passed = Duration::from_nanos(now_ns.saturating_sub(self.flusher.began_ns.load(Ordering::Relaxed)));
        if let Some(rest) = REST.checked_sub(passed).filter(|_| company > 1) {
            self.flusher.rest(rest);
        }
        self.flusher.began_ns.store(self.env.clock().monotonic_ns(), Ordering::Relaxed);
    }

    /// Keeps how many commits a flush can hope to take along: as many as the largest of late, which fades. The last one alone would not do: a
    /// group that left too early would make the next ones leave early, too. Counts the flushes in a row with one commit at most.
    pub(crate) fn note_group(&self, commits: u64) {
        let hoped = self.group.load(Ordering::Relaxed);
        self.group.store(commits.max(hoped - hoped.div_ceil(GROUP_FADING)), Ordering::Relaxed);
        match commits {
            0 | 1 => self.lone_flushes.fetch_add(1, Ordering::Relaxed),
            _ => self.lone_flushes.swap(0, Ordering::Relaxed),
        };
    }
}

impl Log {
    /// Lends this thread to the log while `goes_on`: it flushes for those who ask, and if nobody has for `interval` and
    /// something `is_due`. After it has returned, those who wait lead their flushes themselves. Fails when the log stopped.
    pub fn serve_flushes(
        &self,
        interval: Duration,
        goes_on: &dyn Fn() -> bool,
        is_due: &dyn Fn() -> bool,
    ) -> Result<()> {
        let inner = &self.inner;
        inner.flusher.is_present.store(true, Ordering::SeqCst);
        let rested = Arc::clone(inner);
        let at_rest: Arc<dyn Fn() + Send + Sync> = Arc::new(move || rested.flusher.hurry());
        inner.env.tasks().at_rest(Arc::downgrade(&at_rest));
        let mut outcome = Ok(());
        while outcome.is_ok() && goes_on() {
            let is_wanted = inner.flusher.is_asked() || (!inner.flusher.sleep(interval) && is_due());
            if is_wanted {
                inner.rest_for_company();
                outcome = inner.lead_for_others();
            }
        }
        inner.flusher.is_present.store(false, Ordering::SeqCst);
        inner.flushed.ring();
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn is_rung(flusher: &Flusher) -> bool {
        flusher.alarm.wait(Duration::ZERO)
    }

    #[test]
    fn whoever_asks_first_wakes_it_and_company_ends_its_rest() {
        let flusher = Flusher::default();
        assert!(!flusher.ask(), "there is nobody to do it");
        flusher.is_present.store(true, Ordering::SeqCst);
        assert!(flusher.ask() && is_rung(&flusher), "it slept");
        assert!(flusher.ask() && !is_rung(&flusher), "it was told already");
        flusher.withdraw();
        flusher.is_awake.store(true, Ordering::SeqCst);
        flusher.company.store(2, Ordering::Relaxed);
        assert!(flusher.ask() && !is_rung(&flusher), "it looks by itself");
        assert!(flusher.ask());
        flusher.rest(LONG);
        assert!(is_rung(&flusher), "everybody who was hoped for has come");
    }

    #[test]
    fn a_ring_from_before_does_not_end_its_rest() {
        let flusher = Flusher::default();
        flusher.is_present.store(true, Ordering::SeqCst);
        flusher.is_awake.store(true, Ordering::SeqCst);
        flusher.company.store(1, Ordering::Relaxed);
        assert!(flusher.ask());
        flusher.withdraw();
        flusher.rest(Duration::from_nanos(1));
        assert!(!is_rung(&flusher), "it was taken along by the flush before");
    }

    #[test]
    fn its_rest_ends_when_nobody_else_can_come() {
        let flusher = Flusher::default();
        flusher.is_present.store(true, Ordering::SeqCst);
        flusher.is_awake.store(true, Ordering::SeqCst);
        flusher.company.store(8, Ordering::Relaxed);
        flusher.is_resting.store(true, Ordering::SeqCst);
        flusher.hurry();
        assert!(!is_rung(&flusher), "nobody has asked");
        assert!(flusher.ask() && !is_rung(&flusher), "others are hoped for");
        flusher.hurry();
        assert!(is_rung(&flusher));
        flusher.hurry();
        assert!(!is_rung(&flusher), "it was told already");
    }

    #[test]
    fn it_does_not_fall_asleep_over_a_request() {
        let flusher = Flusher::default();
        flusher.is_present.store(true, Ordering::SeqCst);
        flusher.is_awake.store(true, Ordering::SeqCst);
        flusher.company.store(8, Ordering::Relaxed);
        assert!(flusher.ask());
        assert!(flusher.sleep(LONG));
        flusher.withdraw();
        assert!(!flusher.sleep(Duration::ZERO));
    }
}
