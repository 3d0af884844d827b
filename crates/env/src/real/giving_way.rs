//! Giving way: whoever has run out of work lets other threads have its processor for a moment before it sleeps.
//!
//! Where clients share the machine they then send what they are about to send, and a worker finds several requests at once: it
//! sleeps and is woken less often, which costs as much as a small request each time.
//!
//! What keeps a processor busy for its own sake, a merge or another program, would take a whole slice of time if it were let, milliseconds, where
//! the next request would have interrupted it. So turns are timed: after a long one nobody gives way for a hundred times as long, and
//! little more than a hundredth can be lost. Not for longer than a quarter of a second: a machine whose host takes its processors away for a while says
//! nothing about who else is there.

use crate::Clock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Those who take longer do not work for us.
const BRIEF_NS: u64 = 500_000;
/// For so many times as long as it took nobody gives way.
const PAUSE_FACTOR: u64 = 100;
/// At most.
const PAUSE_NS_MAX: u64 = 250_000_000;

/// Whether it has been worth it of late.
pub(super) struct GivingWay {
    /// Not before this.
    resumes_ns: AtomicU64,
}

impl GivingWay {
    pub(super) const fn new() -> GivingWay {
        GivingWay { resumes_ns: AtomicU64::new(0) }
    }

    /// Lets other threads run; false if that took too long lately, and was not done.
    pub(super) fn give_way(&self, clock: &impl Clock, run_others: impl FnOnce()) -> bool {
        let began_ns = clock.monotonic_ns();
        if began_ns < self.resumes_ns.load(Ordering::Relaxed) {
            return false;
        }
        run_others();
        let ended_ns = clock.monotonic_ns();
        let took_ns = ended_ns.saturating_sub(began_ns);
        if took_ns > BRIEF_NS {
            let pause_ns = took_ns.saturating_mul(PAUSE_FACTOR).min(PAUSE_NS_MAX);
            self.resumes_ns.store(ended_ns.saturating_add(pause_ns), Ordering::Relaxed);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BoxedFuture;
    use std::time::Duration;

    /// A clock that is set by hand.
    #[derive(Default)]
    struct Hand(AtomicU64);

    impl Hand {
        fn pass(&self, ns: u64) {
            self.0.fetch_add(ns, Ordering::Relaxed);
        }
    }

    impl Clock for Hand {
        fn wall_ms(&self) -> u64 {
            0
        }
        fn monotonic_ns(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
        fn thread_processor_ns(&self) -> u64 {
            0
        }
        fn sleep(&self, _duration: Duration) -> BoxedFuture<'static, ()> {
            Box::pin(async {})
        }
        fn pause(&self, _duration: Duration) {}
    }

    #[test]
    fn after_a_long_turn_nobody_gives_way_for_a_while() {
        let (giving_way, clock) = (GivingWay::new(), Hand::default());
        for _ in 0..3 {
            assert!(giving_way.give_way(&clock, || clock.pass(BRIEF_NS)), "short turns go on");
        }
        assert!(giving_way.give_way(&clock, || clock.pass(4 * BRIEF_NS)));
        let refuse = || unreachable!("it would take long again");
        assert!(!giving_way.give_way(&clock, refuse));
        clock.pass(4 * BRIEF_NS * PAUSE_FACTOR - 1);
        assert!(!giving_way.give_way(&clock, refuse));
        clock.pass(1);
        assert!(giving_way.give_way(&clock, || clock.pass(1)), "tried again");
        assert!(giving_way.give_way(&clock, || ()));
    }

    #[test]
    fn a_machine_that_stood_still_is_soon_forgotten() {
        let (giving_way, clock) = (GivingWay::new(), Hand::default());
        assert!(giving_way.give_way(&clock, || clock.pass(PAUSE_NS_MAX)));
        clock.pass(PAUSE_NS_MAX - 1);
        assert!(!giving_way.give_way(&clock, || ()));
        clock.pass(1);
        assert!(giving_way.give_way(&clock, || ()));
    }
}
