//! The cluster's time: a hybrid logical clock. It follows the clock on the wall by the second and counts within the second;
//! it never goes back, whatever the wall says, and never falls behind a time that others have told of.
//!
//! A time is a [`Timestamp`]; each is given out once. It lasts through the oplog: after a restart the clock goes on from
//! the newest entry.

use pando_base::{Error, ErrorCode, Parameter, Result, Timestamp};
use pando_env::Env;
use std::sync::atomic::{AtomicU64, Ordering};

/// A time this far ahead of the wall is not believed.
pub static MAX_DRIFT_SECONDS: Parameter<i64> = Parameter::new(
    "maxAcceptableLogicalClockDriftSecs",
    365 * 24 * 60 * 60,
    "How far, in seconds, a cluster time that others tell of may be ahead of this node's clock.",
)
.at_least(1)
.settable(pando_base::Settable::AtStartup);

/// The counter within a second must fit into a signed number, as some clients read it as one.
const INCREMENT_MAX: u32 = i32::MAX as u32;

/// The clock of a node.
pub struct ClusterClock {
    env: Env,
    time: AtomicU64,
}

impl ClusterClock {
    /// A clock that has given out nothing yet.
    pub fn new(env: &Env) -> ClusterClock {
        ClusterClock { env: env.clone(), time: AtomicU64::new(0) }
    }

    /// The newest time that was given out or told of.
    pub fn now(&self) -> Timestamp {
        Timestamp(self.time.load(Ordering::Acquire))
    }

    /// Gives out so many times in a row and returns the first.
    pub fn tick(&self, count: u32) -> Timestamp {
        debug_assert!(count > 0, "a tick gives out something");
        let wall_seconds = self.wall_seconds();
        let first_after = |time: Timestamp| first_after(time, wall_seconds, count);
        let last = |first: Timestamp| Timestamp(first.0.saturating_add(u64::from(count) - 1));
        let step = |time: u64| Some(last(first_after(Timestamp(time))).0);
        match self.time.fetch_update(Ordering::AcqRel, Ordering::Acquire, step) {
            Ok(before) | Err(before) => first_after(Timestamp(before)),
        }
    }

    /// Others have seen this time. Going back is ignored.
    pub fn advance(&self, time: Timestamp) {
        self.time.fetch_max(time.0, Ordering::AcqRel);
    }

    /// Checks a time that a client tells of before it is believed.
    pub fn check(&self, time: Timestamp, drift_seconds_max: i64) -> Result<()> {
        let wall_seconds = self.wall_seconds();
        let limit = u64::from(wall_seconds).saturating_add(u64::try_from(drift_seconds_max).unwrap_or(0));
        if u64::from(time.seconds()) > limit {
            let reason = format!(
                "New cluster time, {}, is too far from this node's wall clock time, {wall_seconds}.",
                time.seconds()
            );
            return Err(Error::new(ErrorCode::ClusterTimeFailsRateLimiter, reason));
        }
        if time.increment() > INCREMENT_MAX {
            let reason = "cluster time cannot be advanced beyond its maximum value";
            return Err(Error::location(40484, reason));
        }
        Ok(())
    }

    fn wall_seconds(&self) -> u32 {
        u32::try_from(self.env.clock().wall_ms() / 1000).unwrap_or(u32::MAX)
    }
}

/// The first of `count` times after this one that fit into one second.
fn first_after(time: Timestamp, wall_seconds: u32, count: u32) -> Timestamp {
    if time.seconds() < wall_seconds {
        return Timestamp::new(wall_seconds, 1);
    }
    match time.increment().checked_add(count).filter(|last| *last <= INCREMENT_MAX) {
        Some(_) => time.next(),
        None => Timestamp::new(time.seconds().saturating_add(1), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_env::simulated::{START_WALL_MS, Simulation};
    use std::time::Duration;

    #[test]
    fn r1_times_rise_whatever_the_wall_says() {
        let simulation = Simulation::new(1);
        let clock = ClusterClock::new(&simulation.env());
        let start = (START_WALL_MS / 1000) as u32;
        assert_eq!(clock.tick(1), Timestamp::new(start, 1));
        assert_eq!(clock.tick(3), Timestamp::new(start, 2));
        assert_eq!(clock.now(), Timestamp::new(start, 4));
        simulation.clock().advance(Duration::from_secs(5));
        assert_eq!(clock.tick(2), Timestamp::new(start + 5, 1));
        // Others are ahead: the clock does not go back to the wall.
        clock.advance(Timestamp::new(start + 60, 7));
        clock.advance(Timestamp::new(start, 1));
        assert_eq!(clock.tick(1), Timestamp::new(start + 60, 8));
    }

    #[test]
    fn r1_a_full_second_goes_on_in_the_next() {
        let cases = [
            ((10, INCREMENT_MAX - 1), 1, (10, INCREMENT_MAX)),
            ((10, INCREMENT_MAX - 1), 2, (11, 1)),
            ((10, INCREMENT_MAX), 1, (11, 1)),
            ((9, 5), 1, (10, 1)),
        ];
        for ((seconds, increment), count, expected) in cases {
            let first = first_after(Timestamp::new(seconds, increment), 10, count);
            assert_eq!((first.seconds(), first.increment()), expected);
        }
    }

    #[test]
    fn r1_a_time_from_the_far_future_is_refused() {
        let simulation = Simulation::new(1);
        let clock = ClusterClock::new(&simulation.env());
        let start = (START_WALL_MS / 1000) as u32;
        assert!(clock.check(Timestamp::new(start + 10, 1), 10).is_ok());
        let error = clock.check(Timestamp::new(start + 11, 1), 10).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ClusterTimeFailsRateLimiter);
        assert!(clock.check(Timestamp::new(start, u32::MAX), 10).is_err());
    }
}
