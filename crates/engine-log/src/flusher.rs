//! Who flushes for the tasks that wait for their commits.
//!
//! Tasks ask; whoever asks first since the last flush began has the *duty* to see that there is a next one. It lets everything run that can
//! ([`Inner::gather_company`]), so that whoever is about to commit comes along, and then:
//! - it leads the flush itself, waiting for the disk on its worker, if several come while a flush lasts ([`Pace`](crate::pace::Pace)), that is small and quick, and another worker watches the sockets or is at
//!   work ([`Tasks::can_wait_here`](pando_env::Tasks::can_wait_here)) or everybody has come: no thread has to be woken for it, and those who waited go on
//!   on the same worker;
//! - otherwise it calls the flusher, a thread that the core lends.
//!
//! A lone committer, one commit in each of the last flushes, leads at once. It waits for the disk on its worker if that is small and quick and another watches the sockets or nothing else is likely to
//! happen ([`Solitude`](crate::solitude::Solitude)); otherwise it hands its worker over to another thread meanwhile.
//!
//! A sync costs the processor about as much as a small commit. While others are likely to come, the thread therefore rests between two
//! flushes until [`REST`] has passed since the last one began, unless everybody who is likely to come has come (as many as
//! in the largest group of late), or nobody can: no worker of the runtime has anything to do ([`Flusher::hurry`]). On a slow disk syncs are further apart by themselves, and it never rests.
//!
//! What a batch of documents commits piece by piece is waited for once, at its end. So that it does not wait for all of its bytes then, the thread writes
//! what has gathered meanwhile, without a sync, if neither it nor some worker has anything to do ([`Flusher::call_to_write`]).
//!
//! Invariants: a request that is made after its commit was appended is withdrawn ([`Flusher::withdraw`]) only by a leader
//! that captures afterwards, so the commit is in that flush. While there are requests, somebody has the duty or the flusher is called: a task that ends or
//! gives up with its duty open calls it. A call that does not ring because the flusher is awake is seen
//! before it sleeps: it first says that it will, then looks; who calls does it the other way round. Where there is no flusher
//! (simulations, tests, after the end) [`Flusher::ask`] says so and the waiter leads. When the flusher leaves, it rings for everybody who asked.

use crate::flushes::Side;
use crate::log::Inner;
use crate::{Log, LogPosition, Result};
use pando_env::Alarm;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// After so many flushes with one commit at most, a committer is taken to be alone.
const LONE_FLUSHES_MIN: u64 = 64;
/// A large group is hoped for again through about so many smaller ones.
const GROUP_FADING: u64 = 8;
/// From the beginning of a flush of the thread's to that of the next, if others are likely to come until then. Longer rests spare little where few commit among many
/// who read, and the few wait for them.
const REST: Duration = Duration::from_micros(300);
/// No task waits longer for company.
const PATIENCE_NS: u64 = 1_000_000;
/// Where fewer come while a flush lasts it is the thread's at once: all that a task lets run first would delay those few, and its wait for the disk those who only read.
const COMPANY_MIN: u64 = 2;
/// More need not be waited for: shared by so many, a sync costs each of them little, and meanwhile the disk would rest.
const GROUP_ENOUGH: u64 = 16;
/// So often a leader lets other threads run before it leaves without those who have not come.
const GIVES_WAY: u32 = 4;
/// Where flushes take longer they are not waited for on a worker,
const QUICK_FLUSH_NS: u64 = 500_000;
/// and never one of more than this, whose commits keep the workers busy meanwhile.
const SMALL_FLUSH_BYTES: u64 = 128 << 10;
/// The requests of a round are the lower bits of its count.
const ROUND: u64 = 1 << 32;

/// What follows from a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// There is nobody to do it.
    Nobody,
    /// Whoever asked has the duty in this round.
    First(u64),
    /// Somebody else has.
    Along,
}

/// The requests for a flush.
#[derive(Default)]
pub(crate) struct Flusher {
    is_present: AtomicBool,
    /// How many flushes have begun, and how often one was asked for since.
    requests: AtomicU64,
    /// The thread is to flush.
    is_called: AtomicBool,
    /// The thread is to write, as there is much.
    is_called_to_write: AtomicBool,
    /// The thread is at work or rests, and looks for calls by itself.
    is_awake: AtomicBool,
    /// It waits for company.
    is_resting: AtomicBool,
    /// So many requests end its rest.
    company: AtomicU64,
    /// When the last flush began.
    began_ns: AtomicU64,
    /// How long flushes take, about.
    took_ns: AtomicU64,
    alarm: Alarm,
}

impl Flusher {
    /// Asks for a flush of everything that was appended before.
    fn ask(&self) -> Asked {
        if !self.is_present.load(Ordering::SeqCst) {
            return Asked::Nobody;
        }
        let before = self.requests.fetch_add(1, Ordering::SeqCst);
        if before.is_multiple_of(ROUND) {
            return Asked::First(before / ROUND);
        }
        if before % ROUND + 1 == self.company.load(Ordering::Relaxed) && self.is_resting.load(Ordering::SeqCst) {
            self.alarm.ring();
        }
        Asked::Along
    }

    /// Has the thread flush.
    fn call(&self) {
        self.is_called.store(true, Ordering::SeqCst);
        if !self.is_awake.load(Ordering::SeqCst) {
            self.alarm.ring();
        }
    }

    /// Has the thread write what there is, if it would only sleep otherwise.
    pub(crate) fn call_to_write(&self) {
        let is_news = self.is_present.load(Ordering::SeqCst) && !self.is_called_to_write.swap(true, Ordering::SeqCst);
        if is_news && !self.is_awake.load(Ordering::SeqCst) {
            self.alarm.ring();
        }
    }

    /// Ends its rest if somebody has asked: nobody else is about to.
    fn hurry(&self) {
        if self.asked() > 0 && self.is_resting.swap(false, Ordering::SeqCst) {
            self.alarm.ring();
        }
    }

    fn asked(&self) -> u64 {
        self.requests.load(Ordering::SeqCst) % ROUND
    }

    /// How many have asked in this round; none if a flush has begun since.
    fn asked_in(&self, round: u64) -> Option<u64> {
        let requests = self.requests.load(Ordering::SeqCst);
        (requests / ROUND == round).then_some(requests % ROUND)
    }

    /// Waits this long, or until as many have asked as company was hoped for. Some may have before.
    fn rest(&self, at_most: Duration) {
        if self.has_company() {
            return;
        }
        // Who came while it worked may have rung, and was taken along since: that must not end this rest. Who comes from here on is seen or rings.
        self.alarm.silence();
        self.is_resting.store(true, Ordering::SeqCst);
        if !self.has_company() {
            self.alarm.wait(at_most);
        }
        self.is_resting.store(false, Ordering::SeqCst);
    }

    fn has_company(&self) -> bool {
        self.asked() >= self.company.load(Ordering::Relaxed)
    }

    /// Waits until somebody calls; false if nobody has for so long.
    fn sleep(&self, at_most: Duration) -> bool {
        self.is_awake.store(false, Ordering::SeqCst);
        let is_called = self.is_called() || self.is_called_to_write.load(Ordering::SeqCst) || self.alarm.wait(at_most);
        self.is_awake.store(true, Ordering::SeqCst);
        is_called
    }

    fn is_called(&self) -> bool {
        self.is_called.load(Ordering::SeqCst)
    }

    /// Has the thread look whether it goes on.
    pub(crate) fn wake(&self) {
        self.alarm.ring();
    }

    /// Whoever leads takes the requests so far upon itself.
    pub(crate) fn withdraw(&self) {
        self.is_called.store(false, Ordering::SeqCst);
        self.is_called_to_write.store(false, Ordering::SeqCst);
        let next = |requests: u64| Some((requests / ROUND).wrapping_add(1).wrapping_mul(ROUND));
        let _ = self.requests.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
    }

    /// Notes when a flush began and ended.
    pub(crate) fn note_time(&self, began_ns: u64, ended_ns: u64) {
        self.began_ns.store(began_ns, Ordering::Relaxed);
        let took_ns = ended_ns.saturating_sub(began_ns);
        let before_ns = self.took_ns.load(Ordering::Relaxed);
        self.took_ns.store(before_ns - before_ns / 8 + took_ns / 8, Ordering::Relaxed);
    }
}

/// Somebody has to see that there is a flush. Dropped before there was one, it calls the thread.
struct Duty<'a> {
    flusher: &'a Flusher,
    round: u64,
}

impl Duty<'_> {
    /// How many have asked; none if somebody else has seen to it.
    fn asked(&self) -> Option<u64> {
        self.flusher.asked_in(self.round)
    }
}

impl Drop for Duty<'_> {
    fn drop(&mut self) {
        if self.asked().is_some() {
            self.flusher.call();
        }
    }
}

impl Inner {
    /// True if a committer is probably alone. A few flushes with one commit do not say so: among readers writers are often alone for
    /// a while, and a blocked worker costs the readers more than the flusher costs the writer.
    fn is_quiet(&self) -> bool {
        self.lone_flushes.load(Ordering::Relaxed) >= LONE_FLUSHES_MIN
    }

    /// Waits for a flush that has everything up to here. Not for ever: whoever waits looks again.
    pub(crate) async fn flush_for_task(&self, position: LogPosition) -> Result<()> {
        let number = {
            let tail = self.tail.lock();
            // What is on disk already is waited for because of a hole that was closed below it: the next flush will tell.
            let is_under_way = position <= tail.captured && position > self.durable.load();
            if is_under_way { tail.flushes } else { tail.flushes + 1 }
        };
        let Some(flushed) = self.flushes.listen(number) else { return Ok(()) };
        let asked = if self.is_quiet() { Asked::Nobody } else { self.flusher.ask() };
        match asked {
            Asked::Along => flushed.wait_async().await,
            Asked::First(round) => {
                let duty = Duty { flusher: &self.flusher, round };
                if self.is_worth_it()
                    && self.gather_company(&duty).await
                    && self.leads_here(&duty)
                    && self.try_lead()?
                {
                    return self.lead(Side::Task);
                }
                drop(duty);
                flushed.wait_async().await;
            }
            Asked::Nobody => {
                drop(flushed);
                let ended = self.flushed.listen();
                match self.try_lead()? {
                    true => {
                        drop(ended);
                        self.lead_alone()?;
                    }
                    false => ended.wait_async().await,
                }
            }
        }
        Ok(())
    }

    /// Leads for a committer that is alone, on its worker or in place of it.
    fn lead_alone(&self) -> Result<()> {
        let tasks = self.env.tasks();
        if self.is_brief() && (tasks.can_wait_here() || self.solitude.is_likely()) {
            return self.lead(Side::Task);
        }
        let (mut result, mut is_disturbed) = (Ok(()), true);
        tasks.blocking(&mut || {
            let wakes = tasks.wakes();
            result = self.lead(Side::Thread);
            is_disturbed = tasks.wakes() != wakes;
        });
        self.solitude.note(is_disturbed);
        result
    }

    /// Whether a task should try to lead.
    fn is_worth_it(&self) -> bool {
        self.is_brief() && self.pace.brings(COMPANY_MIN, self.flusher.took_ns.load(Ordering::Relaxed))
    }

    /// Whether this worker may wait for the disk: another one sees to what comes meanwhile, or everybody who is likely to come has come.
    fn leads_here(&self, duty: &Duty<'_>) -> bool {
        self.is_brief() && (self.has_all(duty.asked().unwrap_or_default()) || self.env.tasks().can_wait_here())
    }

    /// True if so many are as many as in the largest group of late.
    fn has_all(&self, asked: u64) -> bool {
        asked >= self.group.load(Ordering::Relaxed)
    }

    /// Whether a flush would be over soon.
    fn is_brief(&self) -> bool {
        self.buffered_bytes.load(Ordering::Relaxed) <= SMALL_FLUSH_BYTES
            && self.flusher.took_ns.load(Ordering::Relaxed) <= QUICK_FLUSH_NS
    }

    /// Waits until no flush is under way, then lets others run, other tasks and at last other threads, until nobody new asks or everybody has who is likely to. False if somebody else
    /// has seen to the flush meanwhile.
    async fn gather_company(&self, duty: &Duty<'_>) -> bool {
        loop {
            let ended = self.flushed.listen();
            if !self.is_led() {
                break;
            }
            ended.wait_async().await;
        }
        let began_ns = self.env.clock().monotonic_ns();
        let mut seen = 0;
        let mut given_way = 0;
        loop {
            // Whoever yields goes on before those for whom the sockets had something to read at that moment; after the second
            // time they have run.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            match duty.asked() {
                None => return false,
                Some(asked) if asked >= GROUP_ENOUGH || self.has_all(asked) => return true,
                // Clients on this machine may be about to send.
                Some(asked) if asked == seen && (given_way >= GIVES_WAY || !self.env.tasks().give_way()) => {
                    return true;
                }
                // On a busy node every turn takes its time.
                Some(_) if self.env.clock().monotonic_ns().saturating_sub(began_ns) >= PATIENCE_NS => return true,
                Some(asked) => {
                    given_way += u32::from(asked == seen);
                    seen = asked;
                }
            }
        }
    }

    /// Waits for others to commit, if some are likely to and the last flush is not long ago.
    fn rest_for_company(&self) {
        let company = self.group.load(Ordering::Relaxed);
        self.flusher.company.store(company, Ordering::Relaxed);
        let now_ns = self.env.clock().monotonic_ns();
        let passed = Duration::from_nanos(now_ns.saturating_sub(self.flusher.began_ns.load(Ordering::Relaxed)));
        let is_worth_it = |rest: &Duration| company > 1 && self.pace.brings(1, rest.as_nanos() as u64);
        if let Some(rest) = REST.checked_sub(passed).filter(is_worth_it) {
            self.flusher.rest(rest);
        }
    }

    /// Keeps how many commits a flush can hope to take along: as many as the largest of late, which fades. The last one alone would not do: a
    /// group that left too early would make the next ones leave early, too. Counts the flushes in a row with one commit at most.
    pub(crate) fn note_group(&self, commits: u64) {
        self.pace.note(commits, self.env.clock().monotonic_ns());
        let hoped = self.group.load(Ordering::Relaxed);
        self.group.store(commits.max(hoped - hoped.div_ceil(GROUP_FADING)), Ordering::Relaxed);
        match commits {
            0 | 1 => self.lone_flushes.fetch_add(1, Ordering::Relaxed),
            _ => self.lone_flushes.swap(0, Ordering::Relaxed),
        };
    }
}

impl Log {
    /// Lends this thread to the log while `goes_on`: it flushes when it is called, and if nobody has for `interval` and
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
            let is_called = inner.flusher.is_called();
            if !is_called && inner.flusher.is_called_to_write.swap(false, Ordering::SeqCst) {
                outcome = inner.write_out(false).map(drop);
            } else if is_called || (!inner.flusher.sleep(interval) && is_due()) {
                inner.rest_for_company();
                outcome = inner.lead_for_others();
            }
        }
        inner.flusher.is_present.store(false, Ordering::SeqCst);
        inner.flushed.ring();
        inner.flushes.ring();
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn present() -> Flusher {
        let flusher = Flusher::default();
        assert_eq!(flusher.ask(), Asked::Nobody);
        flusher.is_present.store(true, Ordering::SeqCst);
        flusher
    }

    fn is_rung(flusher: &Flusher) -> bool {
        flusher.alarm.wait(Duration::ZERO)
    }

    #[test]
    fn whoever_asks_first_since_a_flush_began_has_the_duty() {
        let flusher = present();
        assert_eq!([flusher.ask(), flusher.ask()], [Asked::First(0), Asked::Along]);
        assert_eq!((flusher.asked_in(0), flusher.asked_in(1)), (Some(2), None));
        flusher.withdraw();
        assert_eq!((flusher.asked_in(0), flusher.asked_in(1)), (None, Some(0)));
        assert_eq!([flusher.ask(), flusher.ask()], [Asked::First(1), Asked::Along]);
        assert!(!is_rung(&flusher) && !flusher.is_called(), "tasks see to it");
    }

    #[test]
    fn a_duty_that_is_given_up_calls_the_thread() {
        let flusher = present();
        assert_eq!(flusher.ask(), Asked::First(0));
        drop(Duty { flusher: &flusher, round: 0 });
        assert!(flusher.is_called() && is_rung(&flusher));
        flusher.withdraw();
        assert!(!flusher.is_called());
        drop(Duty { flusher: &flusher, round: 0 });
        assert!(!flusher.is_called() && !is_rung(&flusher), "somebody has seen to it");
    }

    #[test]
    fn company_ends_its_rest() {
        let flusher = present();
        flusher.company.store(2, Ordering::Relaxed);
        flusher.is_resting.store(true, Ordering::SeqCst);
        assert_eq!(flusher.ask(), Asked::First(0));
        assert!(!is_rung(&flusher), "another one is hoped for");
        assert_eq!(flusher.ask(), Asked::Along);
        assert!(is_rung(&flusher));
        flusher.rest(LONG);
    }

    #[test]
    fn a_ring_from_before_does_not_end_its_rest() {
        let flusher = present();
        flusher.company.store(1, Ordering::Relaxed);
        flusher.call();
        flusher.withdraw();
        flusher.rest(Duration::from_nanos(1));
        assert!(!is_rung(&flusher), "it was taken along by the flush before");
    }

    #[test]
    fn its_rest_ends_when_nobody_else_can_come() {
        let flusher = present();
        flusher.company.store(8, Ordering::Relaxed);
        flusher.is_resting.store(true, Ordering::SeqCst);
        flusher.hurry();
        assert!(!is_rung(&flusher), "nobody has asked");
        assert_eq!(flusher.ask(), Asked::First(0));
        assert!(!is_rung(&flusher), "others are hoped for");
        flusher.hurry();
        assert!(is_rung(&flusher));
        flusher.hurry();
        assert!(!is_rung(&flusher), "it was told already");
    }

    #[test]
    fn it_does_not_fall_asleep_over_a_call() {
        let flusher = present();
        flusher.is_awake.store(true, Ordering::SeqCst);
        flusher.call();
        assert!(!is_rung(&flusher), "it looks by itself");
        assert!(flusher.sleep(LONG));
        flusher.withdraw();
        assert!(!flusher.sleep(Duration::ZERO));
    }

    #[test]
    fn a_call_to_write_wakes_it_once_and_a_flush_answers_it() {
        let flusher = Flusher::default();
        flusher.call_to_write();
        assert!(!is_rung(&flusher), "nobody is there");
        flusher.is_present.store(true, Ordering::SeqCst);
        flusher.call_to_write();
        assert!(is_rung(&flusher) && !flusher.is_called());
        flusher.call_to_write();
        assert!(!is_rung(&flusher), "it was told already");
        assert!(flusher.sleep(LONG), "it does not fall asleep over it");
        flusher.withdraw();
        assert!(!flusher.sleep(Duration::ZERO));
    }

    #[test]
    fn a_slow_disk_is_not_waited_for_on_a_worker() {
        let flusher = Flusher::default();
        (0..100).for_each(|_| flusher.note_time(0, 2 * QUICK_FLUSH_NS));
        assert!(flusher.took_ns.load(Ordering::Relaxed) > QUICK_FLUSH_NS);
        (0..100).for_each(|_| flusher.note_time(0, QUICK_FLUSH_NS / 2));
        assert!(flusher.took_ns.load(Ordering::Relaxed) <= QUICK_FLUSH_NS);
    }
}
