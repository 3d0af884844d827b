//! Moving the engine's timestamps: stable follows what a majority has and what has no holes; oldest follows stable at a
//! distance, so that reads in the past have their history.

use crate::prepared_entries::PreparedEntries;
use pando_base::{FailPoint, Parameter, Result, Timestamp};
use pando_doc::DocRef;
use pando_session::fields::{Fields, timestamp};
use pando_storage::Engine;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far back reads at a time of their own may go.
pub static HISTORY_WINDOW_SECONDS: Parameter<i32> = Parameter::new(
    "minSnapshotHistoryWindowInSeconds",
    300,
    "How many seconds of history are kept for reads in the past.",
)
.at_least(0);

/// Keeps stable from going past the time that its data tells: what is written later can be taken back.
pub(crate) static HOLD_STABLE: FailPoint<Timestamp> =
    FailPoint::with_data("holdStableTimestampAtSpecificTimestamp", |bytes| {
        // Without data, as when it is turned off, it holds nothing.
        match bytes.is_empty() {
            true => Ok(Timestamp::MAX),
            false => Fields::of("data", DocRef::parse(bytes)?).required("timestamp", timestamp),
        }
    });

/// Keeps the engine's timestamps.
pub struct StableKeeper {
    engine: Arc<dyn Engine>,
    prepared_entries: Arc<PreparedEntries>,
    /// What majority reads see; nothing before the first.
    majority_snapshot: AtomicU64,
}

impl StableKeeper {
    /// For this engine.
    pub fn new(engine: Arc<dyn Engine>) -> StableKeeper {
        let prepared_entries = Arc::new(PreparedEntries::new(Arc::clone(&engine)));
        StableKeeper { engine, prepared_entries, majority_snapshot: AtomicU64::new(0) }
    }

    /// The entries that the old end of the oplog has to keep.
    pub(crate) fn prepared_entries(&self) -> &Arc<PreparedEntries> {
        &self.prepared_entries
    }

    /// The newest time that majority reads see.
    pub fn majority_snapshot(&self) -> Timestamp {
        Timestamp(self.majority_snapshot.load(Ordering::Acquire))
    }

    /// A majority has everything up to here: moves stable as far as there are no holes, and oldest after it.
    pub fn advance(&self, committed: Timestamp, window_seconds: i64) -> Result<()> {
        let held = HOLD_STABLE.hit().map_or(Timestamp::MAX, |held| *held);
        let stable = committed.min(self.engine.timestamps().all_durable).min(held);
        if stable.is_none() || stable <= self.majority_snapshot() {
            return Ok(());
        }
        self.engine.set_stable(stable)?;
        self.majority_snapshot.fetch_max(stable.0, Ordering::AcqRel);
        let oldest = oldest_for(stable, window_seconds);
        // By the second is often enough: each call takes the engine's lock.
        if oldest.seconds() > self.engine.timestamps().oldest.seconds() {
            self.engine.set_oldest(oldest, false)?;
        }
        self.prepared_entries.let_go();
        Ok(())
    }

    /// History begins here: from now on checkpoints stand at stable.
    pub fn begin_history(&self, timestamp: Timestamp) -> Result<()> {
        debug_assert!(timestamp.is_some());
        self.engine.set_initial_data(timestamp);
        self.engine.set_stable(timestamp)?;
        self.engine.set_oldest(timestamp, false)?;
        self.majority_snapshot.fetch_max(timestamp.0, Ordering::AcqRel);
        Ok(())
    }
}

fn oldest_for(stable: Timestamp, window_seconds: i64) -> Timestamp {
    let window = u32::try_from(window_seconds).unwrap_or(u32::MAX);
    match stable.seconds().checked_sub(window) {
        Some(seconds) => Timestamp::new(seconds, stable.increment()),
        None => Timestamp::NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r8_oldest_stays_behind_stable() {
        let cases = [((500, 7), 300, (200, 7)), ((500, 7), 0, (500, 7)), ((100, 7), 300, (0, 0))];
        for ((seconds, increment), window, expected) in cases {
            let oldest = oldest_for(Timestamp::new(seconds, increment), window);
            assert_eq!((oldest.seconds(), oldest.increment()), expected);
        }
    }

    #[test]
    fn x18_stable_can_be_held_at_a_time() {
        let disk = pando_engine_model::ModelDisk::new();
        let mode = pando_engine_model::Mode::ReplicaSet;
        let engine: Arc<dyn Engine> = pando_engine_model::ModelEngine::open(&disk, mode).unwrap();
        // Later than the times of other tests: the point holds them too.
        let at = |increment| Timestamp::new(4_000_000_000, increment);
        let keeper = StableKeeper::new(Arc::clone(&engine));
        keeper.begin_history(at(1)).unwrap();
        drop(engine.reserve_slot(at(9)).unwrap());
        let data = pando_doc::doc! { "timestamp": (at(3)) }.into_bytes();
        HOLD_STABLE.set(pando_base::FailPointMode::AlwaysOn, data, 0).unwrap();
        keeper.advance(at(2), 300).unwrap();
        assert_eq!(engine.timestamps().stable, at(2));
        keeper.advance(at(5), 300).unwrap();
        assert_eq!((engine.timestamps().stable, keeper.majority_snapshot()), (at(3), at(3)));
        HOLD_STABLE.turn_off();
        keeper.advance(at(5), 300).unwrap();
        assert_eq!(engine.timestamps().stable, at(5));
        let wrong = pando_doc::doc! { "timestamp": 7 }.into_bytes();
        assert!(HOLD_STABLE.set(pando_base::FailPointMode::AlwaysOn, wrong, 0).is_err() && !HOLD_STABLE.is_on());
        HOLD_STABLE.set(pando_base::FailPointMode::Off, bytes::Bytes::new(), 0).unwrap();
    }
}
