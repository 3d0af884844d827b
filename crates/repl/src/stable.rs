//! Moving the engine's timestamps: stable follows what a majority has and what has no holes; oldest follows stable at a
//! distance, so that reads in the past have their history.

use crate::prepared_entries::PreparedEntries;
use pando_base::{Parameter, Result, Timestamp};
use pando_storage::Engine;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far back reads at a time of their own may go.
pub static HISTORY_WINDOW_SECONDS: Parameter<i64> = Parameter::new(
    "minSnapshotHistoryWindowInSeconds",
    300,
    "How many seconds of history are kept for reads in the past.",
)
.at_least(0);

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
        let stable = committed.min(self.engine.timestamps().all_durable);
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
}
