//! Oldest, stable, all_durable and the holds on it.

use crate::engine::ModelEngine;
use crate::state::{Shared, State, rule};
use pando_base::Timestamp;
use pando_storage::{Result, Slot, SlotKeeper, TimestampControl, Timestamps};

impl State {
    /// The lowest timestamp that something open still needs.
    pub fn lowest_hold(&self) -> Option<Timestamp> {
        let running = self.open.values().filter(|open| open.prepared.is_none() && open.first_commit.is_some());
        let entries = self.open.values().flat_map(|open| open.oplog.iter().map(|entry| entry.timestamp));
        self.slots.keys().copied().chain(running.map(|open| open.first_commit)).chain(entries).min()
    }

    /// Moves all_durable as far as holds allow; never back.
    pub fn settle_all_durable(&mut self) {
        let open = self.lowest_hold().map_or(self.latest, Timestamp::previous);
        self.all_durable = self.all_durable.max(open).max(self.stable);
        self.disk.saw_no_holes(self.generation, self.all_durable);
    }

    /// After a rollback or a cut of the oplog: the newest timestamp is that of the oplog's end.
    pub fn restart_latest(&mut self) {
        let last = self.entries.last_key_value().map_or(Timestamp::NONE, |(timestamp, _)| *timestamp);
        self.latest = self.stable.max(last);
        self.all_durable = Timestamp::NONE;
        self.settle_all_durable();
    }

    fn set_oldest(&mut self, timestamp: Timestamp, force: bool) -> Result<()> {
        if timestamp.is_none() {
            return rule("oldest must be a timestamp");
        }
        if self.stable.is_some() && timestamp > self.stable {
            return rule("oldest must not be after stable");
        }
        if timestamp > self.oldest || force {
            self.oldest = timestamp;
            self.touched = true;
        }
        Ok(())
    }

    fn set_stable(&mut self, timestamp: Timestamp) -> Result<()> {
        if timestamp.is_none() {
            return rule("stable must be a timestamp");
        }
        if timestamp < self.stable {
            return Ok(());
        }
        if timestamp < self.oldest {
            return rule("stable must not be before oldest");
        }
        if self.lowest_hold().is_some_and(|hold| timestamp >= hold) {
            return rule("stable must be before everything open");
        }
        self.stable_moved |= timestamp > self.stable;
        self.stable = timestamp;
        self.latest = self.latest.max(timestamp);
        self.settle_all_durable();
        Ok(())
    }

    fn reserve_slot(&mut self, timestamp: Timestamp) -> Result<()> {
        if timestamp <= self.stable || timestamp <= self.all_durable {
            return rule("a slot must be after stable and all_durable");
        }
        *self.slots.entry(timestamp).or_default() += 1;
        self.settle_all_durable();
        Ok(())
    }
}

impl TimestampControl for ModelEngine {
    fn timestamps(&self) -> Timestamps {
        let state = self.shared.state.lock();
        Timestamps {
            oldest: state.oldest,
            stable: state.stable,
            all_durable: state.all_durable,
            initial_data: state.initial_data,
            recovery: state.recovery,
            checkpoint: state.checkpoint,
        }
    }

    fn set_oldest(&self, timestamp: Timestamp, force: bool) -> Result<()> {
        self.shared.change(|state| state.set_oldest(timestamp, force))
    }

    fn set_stable(&self, timestamp: Timestamp) -> Result<()> {
        self.shared.change(|state| state.set_stable(timestamp))
    }

    fn set_initial_data(&self, timestamp: Timestamp) {
        self.shared.change(|state| {
            state.initial_data = timestamp;
            state.touched = true;
        });
    }

    fn reserve_slot(&self, timestamp: Timestamp) -> Result<Slot> {
        self.shared.change(|state| state.reserve_slot(timestamp))?;
        Ok(Slot::new(timestamp, self.shared.clone()))
    }
}

impl SlotKeeper for Shared {
    fn release(&self, timestamp: Timestamp) {
        self.change(|state| {
            if let Some(count) = state.slots.get_mut(&timestamp) {
                *count -= 1;
                if *count == 0 {
                    state.slots.remove(&timestamp);
                }
            }
            state.settle_all_durable();
        });
    }
}
