//! The keeper of the timestamps and of the holds on them.
//!
//! Invariants, kept here and nowhere else: `oldest <= stable < every hold`; stable and all_durable never go back, except
//! all_durable through a rollback or a truncation of the oplog's new end; `all_durable >= stable`.
//!
//! A *hold* is a reserved slot or the first commit timestamp of a running transaction. All of it is under one lock, which is
//! taken after no other and held for a few instructions.

use pando_base::Timestamp;
use pando_storage::{Result, SlotKeeper, StorageError, Timestamps};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Called, without the lock, whenever the point without holes may have moved.
pub type Moved = Box<dyn Fn() + Send + Sync>;

/// All timestamps of an engine.
pub struct TimestampKeeper {
    inner: Mutex<Inner>,
    // Copies for readers without the lock; stored under it.
    oldest: AtomicU64,
    stable: AtomicU64,
    all_durable: AtomicU64,
}

#[derive(Default)]
struct Inner {
    oldest: Timestamp,
    stable: Timestamp,
    /// The newest timestamp that anything committed with.
    latest: Timestamp,
    /// all_durable never goes below this.
    floor: Timestamp,
    initial_data: Timestamp,
    recovery: Timestamp,
    checkpoint: Timestamp,
    holds: BTreeMap<Timestamp, usize>,
    /// Oldest as of the last checkpoint: a crash brings it back.
    checkpoint_oldest: Timestamp,
    /// Stable and oldest of the checkpoint under way: what it needs must be kept.
    checkpointing: Option<Retained>,
}

/// Stable and oldest as somebody who may still need history sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retained {
    /// A rollback may go back to here.
    pub stable: Timestamp,
    /// A reader may stand here.
    pub oldest: Timestamp,
}

impl Retained {
    fn min(self, other: Retained) -> Retained {
        Retained { stable: self.stable.min(other.stable), oldest: self.oldest.min(other.oldest) }
    }
}

fn rule(text: String) -> StorageError {
    StorageError::TimestampRule(text)
}

impl TimestampKeeper {
    /// As the last checkpoint left them.
    pub fn new(stable: Timestamp, oldest: Timestamp, latest: Timestamp) -> TimestampKeeper {
        let latest = latest.max(stable);
        let inner = Inner {
            oldest,
            stable,
            latest,
            floor: latest,
            initial_data: stable,
            recovery: stable,
            checkpoint: stable,
            checkpoint_oldest: oldest,
            ..Inner::default()
        };
        TimestampKeeper {
            inner: Mutex::new(inner),
            oldest: AtomicU64::new(oldest.0),
            stable: AtomicU64::new(stable.0),
            all_durable: AtomicU64::new(latest.0),
        }
    }

    /// All of them.
    pub fn all(&self) -> Timestamps {
        let inner = self.inner.lock();
        Timestamps {
            oldest: inner.oldest,
            stable: inner.stable,
            all_durable: inner.all_durable(),
            initial_data: inner.initial_data,
            recovery: inner.recovery,
            checkpoint: inner.checkpoint,
        }
    }

    /// Oldest.
    pub fn oldest(&self) -> Timestamp {
        Timestamp(self.oldest.load(Ordering::Acquire))
    }

    /// Stable.
    pub fn stable(&self) -> Timestamp {
        Timestamp(self.stable.load(Ordering::Acquire))
    }

    /// The point below which there are no holes.
    pub fn all_durable(&self) -> Timestamp {
        Timestamp(self.all_durable.load(Ordering::Acquire))
    }

    fn change<R>(&self, change: impl FnOnce(&mut Inner) -> R) -> R {
        let mut inner = self.inner.lock();
        let result = change(&mut inner);
        let all_durable = inner.all_durable();
        inner.floor = all_durable;
        debug_assert!(inner.oldest <= inner.stable || inner.stable.is_none());
        debug_assert!(inner.stable <= all_durable);
        self.oldest.store(inner.oldest.0, Ordering::Release);
        self.stable.store(inner.stable.0, Ordering::Release);
        self.all_durable.store(all_durable.0, Ordering::Release);
        result
    }

    /// Moves oldest.
    pub fn set_oldest(&self, timestamp: Timestamp, force: bool) -> Result<()> {
        self.change(|inner| {
            if timestamp.is_none() {
                return Err(rule("oldest must be a timestamp".into()));
            }
            if inner.stable.is_some() && timestamp > inner.stable {
                return Err(rule(format!("oldest {timestamp} must not be after stable {}", inner.stable)));
            }
            if timestamp > inner.oldest || force {
                inner.oldest = timestamp;
            }
            Ok(())
        })
    }

    /// Moves stable.
    pub fn set_stable(&self, timestamp: Timestamp) -> Result<()> {
        self.change(|inner| {
            if timestamp.is_none() {
                return Err(rule("stable must be a timestamp".into()));
            }
            if timestamp < inner.stable {
                return Ok(());
            }
            if timestamp < inner.oldest {
                return Err(rule(format!("stable {timestamp} must not be before oldest {}", inner.oldest)));
            }
            if let Some((hold, _)) = inner.holds.first_key_value()
                && *hold <= timestamp
            {
                return Err(rule(format!("stable {timestamp} must be before the open transaction at {hold}")));
            }
            inner.stable = timestamp;
            inner.latest = inner.latest.max(timestamp);
            Ok(())
        })
    }

    /// Where history begins.
    pub fn set_initial_data(&self, timestamp: Timestamp) {
        self.change(|inner| inner.initial_data = timestamp);
    }

    /// Reserves a slot.
    pub fn reserve(&self, timestamp: Timestamp) -> Result<()> {
        self.change(|inner| {
            if timestamp.is_none() || timestamp <= inner.all_durable() {
                let all_durable = inner.all_durable();
                return Err(rule(format!("oplog place {timestamp} must be after all_durable {all_durable}")));
            }
            inner.hold(timestamp);
            Ok(())
        })
    }

    /// Checks the first commit timestamp of a running transaction and holds it.
    pub fn set_commit(&self, timestamp: Timestamp) -> Result<()> {
        self.change(|inner| {
            if timestamp.is_none() {
                return Err(rule("the commit timestamp must be a timestamp".into()));
            }
            if timestamp <= inner.stable || timestamp < inner.oldest {
                return Err(rule(format!(
                    "commit timestamp {timestamp} must be after stable {} and not before oldest {}",
                    inner.stable, inner.oldest
                )));
            }
            inner.hold(timestamp);
            Ok(())
        })
    }

    /// Ends a transaction: its holds go, and if it committed, its newest timestamp counts.
    pub fn end(&self, holds: &[Timestamp], committed: Timestamp) {
        if holds.is_empty() && committed.is_none() {
            return;
        }
        self.change(|inner| {
            inner.latest = inner.latest.max(committed);
            holds.iter().for_each(|hold| inner.release(*hold));
        });
    }

    /// After a rollback or a cut of the oplog: all_durable may go back to the end of what is left.
    pub fn restart_from(&self, latest: Timestamp) {
        self.change(|inner| {
            inner.latest = latest.max(inner.stable);
            inner.floor = Timestamp::NONE;
        });
    }

    /// A checkpoint at this stable timestamp, or of everything, begins; which oldest it records.
    pub fn begin_checkpoint(&self, stable: Option<Timestamp>) -> Timestamp {
        self.change(|inner| {
            let oldest = inner.oldest;
            inner.checkpointing = Some(Retained { stable: stable.unwrap_or(Timestamp::MAX), oldest });
            oldest
        })
    }

    /// It has ended, one way or the other.
    pub fn end_checkpoint(&self) {
        self.change(|inner| inner.checkpointing = None);
    }

    /// A checkpoint with these timestamps was taken.
    pub fn set_checkpoint(&self, timestamp: Timestamp, oldest: Timestamp) {
        self.change(|inner| (inner.checkpoint, inner.checkpoint_oldest) = (timestamp, oldest));
    }

    /// What readers, rollback and the checkpoint under way may still need.
    pub fn retained(&self) -> Retained {
        self.inner.lock().retained()
    }

    /// What must stay in the base: a crash also brings back the stable and oldest timestamps of the last checkpoint. After
    /// one of everything there is no stable timestamp, but the next one cannot be before oldest.
    pub fn retained_in_base(&self) -> Retained {
        let inner = self.inner.lock();
        let oldest = inner.checkpoint_oldest;
        let stable = if inner.checkpoint.is_some() { inner.checkpoint } else { oldest };
        inner.retained().min(Retained { stable, oldest })
    }
}

impl Inner {
    fn all_durable(&self) -> Timestamp {
        let open = self.holds.first_key_value().map_or(self.latest, |(hold, _)| hold.previous());
        open.max(self.floor).max(self.stable)
    }

    fn retained(&self) -> Retained {
        let now = Retained { stable: self.stable, oldest: self.oldest };
        self.checkpointing.map_or(now, |checkpoint| checkpoint.min(now))
    }

    fn hold(&mut self, timestamp: Timestamp) {
        *self.holds.entry(timestamp).or_default() += 1;
    }

    fn release(&mut self, timestamp: Timestamp) {
        if let Some(count) = self.holds.get_mut(&timestamp) {
            *count -= 1;
            if *count == 0 {
                self.holds.remove(&timestamp);
            }
        }
    }
}

/// Gives slots back to the keeper and tells who waits for the point without holes.
pub struct Slots {
    /// Whose slots.
    pub keeper: Arc<TimestampKeeper>,
    /// Told after each release.
    pub moved: Moved,
}

impl SlotKeeper for Slots {
    fn release(&self, timestamp: Timestamp) {
        self.keeper.end(&[timestamp], Timestamp::NONE);
        (self.moved)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeper() -> TimestampKeeper {
        TimestampKeeper::new(Timestamp::NONE, Timestamp::NONE, Timestamp::NONE)
    }

    #[test]
    fn r20_holds_keep_all_durable_and_stable_below() {
        let keeper = keeper();
        keeper.reserve(Timestamp(10)).unwrap();
        keeper.set_commit(Timestamp(12)).unwrap();
        keeper.end(&[Timestamp(12)], Timestamp(12));
        assert_eq!(keeper.all_durable(), Timestamp(9));
        assert!(keeper.set_stable(Timestamp(10)).is_err());
        keeper.set_stable(Timestamp(9)).unwrap();
        keeper.end(&[Timestamp(10)], Timestamp::NONE);
        assert_eq!(keeper.all_durable(), Timestamp(12));
    }

    #[test]
    fn x18_the_base_keeps_what_the_last_checkpoint_promised() {
        let keeper = keeper();
        keeper.set_stable(Timestamp(5)).unwrap();
        keeper.set_oldest(Timestamp(3), false).unwrap();
        assert_eq!(keeper.begin_checkpoint(Some(Timestamp(5))), Timestamp(3));
        keeper.set_stable(Timestamp(9)).unwrap();
        keeper.set_oldest(Timestamp(8), false).unwrap();
        let at = |stable, oldest| Retained { stable: Timestamp(stable), oldest: Timestamp(oldest) };
        assert_eq!(keeper.retained(), at(5, 3));
        keeper.set_checkpoint(Timestamp(5), Timestamp(3));
        keeper.end_checkpoint();
        assert_eq!((keeper.retained(), keeper.retained_in_base()), (at(9, 8), at(5, 3)));
        keeper.set_checkpoint(Timestamp::NONE, Timestamp(8));
        assert_eq!(keeper.retained_in_base(), at(8, 8));
    }

    #[test]
    fn r20_oldest_stays_at_or_before_stable() {
        let keeper = keeper();
        keeper.set_stable(Timestamp(5)).unwrap();
        assert!(keeper.set_oldest(Timestamp(6), false).is_err());
        keeper.set_oldest(Timestamp(5), false).unwrap();
        keeper.set_oldest(Timestamp(3), false).unwrap();
        assert_eq!(keeper.oldest(), Timestamp(5));
        keeper.set_stable(Timestamp(4)).unwrap();
        assert_eq!(keeper.stable(), Timestamp(5));
        assert!(keeper.set_commit(Timestamp(5)).is_err());
    }
}
