//! The flusher: a thread that makes commits durable for the tasks that wait for them.
//!
//! A task that led a flush itself would block its worker: the runtime then hands the worker's queue to another thread and
//! wakes it, for each group of commits. So tasks only ask, and the thread that the core lends for it writes and syncs for
//! all of them; who asks meanwhile is served by the next flush. A lone committer, one commit in each of the last flushes, still
//! leads itself: passing the work to another thread and back would only delay it.
//!
//! Invariants: a request that is made after its commit was appended is withdrawn ([`Flusher::withdraw`]) only by a leader
//! that captures afterwards, so the commit is in that flush. Where there is no flusher (simulations, tests, after the end)
//! [`Flusher::ask`] says so and the waiter leads. When the flusher leaves, it rings for everybody who asked.

use crate::log::Inner;
use crate::{Log, Result};
use pando_env::Alarm;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// After so many flushes with one commit at most, a committer is taken to be alone.
const LONE_FLUSHES_MIN: u64 = 16;
/// A large group is hoped for again through about so many smaller ones.
const GROUP_FADING: u64 = 8;

/// The requests to the flusher.
#[derive(Default)]
pub(crate) struct Flusher {
    is_present: AtomicBool,
    is_asked: AtomicBool,
    alarm: Alarm,
}

impl Flusher {
    /// Asks for a flush of everything that was appended before; false if there is nobody to do it.
    pub(crate) fn ask(&self) -> bool {
        if !self.is_present.load(Ordering::SeqCst) {
            return false;
        }
        if !self.is_asked.swap(true, Ordering::SeqCst) {
            self.alarm.ring();
        }
        true
    }

    /// Has the thread look whether it goes on.
    pub(crate) fn wake(&self) {
        self.alarm.ring();
    }

    /// Whoever leads takes the requests so far upon itself.
    pub(crate) fn withdraw(&self) {
        self.is_asked.store(false, Ordering::SeqCst);
    }
}

impl Inner {
    /// True if a committer is probably alone. One flush with one commit does not say so: among readers writers are often alone for
    /// a moment, and a blocked worker costs the readers more than the flusher costs the writer.
    pub(crate) fn is_quiet(&self) -> bool {
        self.lone_flushes.load(Ordering::Relaxed) >= LONE_FLUSHES_MIN
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
        let mut outcome = Ok(());
        while outcome.is_ok() && goes_on() {
            let is_wanted =
                inner.flusher.is_asked.load(Ordering::SeqCst) || (!inner.flusher.alarm.wait(interval) && is_due());
            if is_wanted {
                outcome = inner.lead_for_others();
            }
        }
        inner.flusher.is_present.store(false, Ordering::SeqCst);
        inner.flushed.ring();
        outcome
    }
}
