//! The oplog: a map from timestamps to entries.
//!
//! Markers are made on the fly: the entries in order, cut wherever a tenth of the size limit is reached; the rest is no
//! marker yet. An engine's own markers will be others; only what they are for can be compared.

use crate::engine::{Mode, ModelEngine};
use crate::record::Record;
use crate::state::{Shared, State};
use crate::waiting::wait_until;
use pando_base::Timestamp;
use pando_storage::{
    Oplog, OplogCursor, OplogEntry, OplogPin, OplogSource, Result, StorageError, TableSize, TruncateMarker, Wait,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How the oplog is kept.
pub struct Settings {
    size_max: u64,
    retention_min_ms: u64,
    /// By number.
    pins: BTreeMap<u64, Timestamp>,
    last_pin: u64,
    /// Counts cuts of the new end, which end waits.
    truncations: u64,
    /// Entries up to here were dropped from the old end.
    dropped_through: Timestamp,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            size_max: 1 << 30,
            retention_min_ms: 0,
            pins: BTreeMap::new(),
            last_pin: 0,
            truncations: 0,
            dropped_through: Timestamp::NONE,
        }
    }
}

impl State {
    fn oplog_size(&self) -> TableSize {
        let bytes: usize = self.entries.values().map(bytes::Bytes::len).sum();
        TableSize::new(self.entries.len() as i64, bytes as i64)
    }

    fn markers(&self) -> Vec<TruncateMarker> {
        let marker_bytes = (self.oplog_settings.size_max / 10).max(1);
        let mut markers = Vec::new();
        let (mut bytes, mut records) = (0, 0);
        for (timestamp, entry) in &self.entries {
            bytes += entry.len() as u64;
            records += 1;
            if bytes >= marker_bytes {
                let wall_ms = u64::from(timestamp.seconds()) * 1000;
                markers.push(TruncateMarker { last: *timestamp, wall_ms, bytes, records });
                (bytes, records) = (0, 0);
            }
        }
        markers
    }

    /// Whether everything up to a marker's end may go.
    fn may_drop(&self, marker: &TruncateMarker) -> bool {
        let pinned = self.oplog_settings.pins.values().any(|pin| marker.last >= *pin);
        let needed_for_recovery = self.checkpoint.is_some() && marker.last > self.checkpoint;
        // The model has no clock: everything is younger than any retention.
        !pinned && !needed_for_recovery && self.oplog_settings.retention_min_ms == 0
    }

    fn truncate_old(&mut self) -> Result<usize> {
        self.check_writable()?;
        let mut dropped = 0;
        while self.oplog_size().bytes as u64 > self.oplog_settings.size_max {
            let Some(marker) = self.markers().first().copied() else { break };
            if !self.may_drop(&marker) {
                break;
            }
            let record = Record::DropOldOplog { through: marker.last };
            record.replay_oplog(&mut self.entries);
            self.log(record);
            self.oplog_settings.dropped_through = marker.last;
            self.touched = true;
            dropped += 1;
        }
        Ok(dropped)
    }

    fn cut_oplog(&mut self, after: Timestamp) -> Result<()> {
        self.check_writable()?;
        let record = Record::TruncateOplog { after };
        record.replay_oplog(&mut self.entries);
        self.oplog_settings.truncations += 1;
        self.touched = true;
        self.restart_latest();
        self.log(record);
        Ok(())
    }
}

struct ModelOplogCursor {
    shared: Arc<Shared>,
    backward: bool,
    /// The entry stood on.
    place: Option<Timestamp>,
}

impl ModelOplogCursor {
    /// The first entry in this cursor's direction that fits.
    fn find(&mut self, fits: impl Fn(Timestamp) -> bool) -> Option<OplogEntry> {
        let state = self.shared.state.lock();
        let mut candidates = state.entries.iter().filter(|(timestamp, _)| fits(**timestamp));
        let found = match self.backward {
            true => candidates.next_back(),
            false => candidates.next().filter(|(timestamp, _)| **timestamp <= state.all_durable),
        };
        let entry = found.map(|(timestamp, entry)| OplogEntry { timestamp: *timestamp, entry: entry.clone() })?;
        drop(state);
        self.place = Some(entry.timestamp);
        Some(entry)
    }
}

impl OplogCursor for ModelOplogCursor {
    fn seek(&mut self, timestamp: Timestamp) -> Result<Option<OplogEntry>> {
        match self.backward {
            true => Ok(self.find(|candidate| candidate <= timestamp)),
            false => Ok(self.find(|candidate| candidate >= timestamp)),
        }
    }

    fn next(&mut self) -> Result<Option<OplogEntry>> {
        let Some(place) = self.place else { return Ok(self.find(|_| true)) };
        if place <= self.shared.state.lock().oplog_settings.dropped_through {
            return Err(StorageError::PositionLost);
        }
        match self.backward {
            true => Ok(self.find(|candidate| candidate < place)),
            false => Ok(self.find(|candidate| candidate > place)),
        }
    }
}

struct ModelPin {
    shared: Arc<Shared>,
    number: u64,
}

impl OplogPin for ModelPin {
    fn advance(&self, timestamp: Timestamp) {
        self.shared.state.lock().oplog_settings.pins.insert(self.number, timestamp);
    }
}

impl Drop for ModelPin {
    fn drop(&mut self) {
        self.shared.state.lock().oplog_settings.pins.remove(&self.number);
    }
}

impl ModelEngine {
    fn oplog_cursor(&self, backward: bool) -> Box<dyn OplogCursor> {
        Box::new(ModelOplogCursor { shared: self.shared.clone(), backward, place: None })
    }
}

impl Oplog for ModelEngine {
    fn forward(&self) -> Result<Box<dyn OplogCursor>> {
        Ok(self.oplog_cursor(false))
    }

    fn backward(&self) -> Result<Box<dyn OplogCursor>> {
        Ok(self.oplog_cursor(true))
    }

    fn first(&self) -> Option<Timestamp> {
        self.shared.state.lock().entries.first_key_value().map(|(timestamp, _)| *timestamp)
    }

    fn last(&self) -> Option<Timestamp> {
        self.shared.state.lock().entries.last_key_value().map(|(timestamp, _)| *timestamp)
    }

    fn visible(&self) -> Timestamp {
        self.shared.state.lock().all_durable
    }

    fn wait_visible(&self, timestamp: Timestamp) -> Wait {
        let truncations = self.shared.state.lock().oplog_settings.truncations;
        wait_until(&self.shared, move |state| {
            let mut later = state.entries.range(timestamp.next()..);
            let visible = later.next().is_some_and(|(entry, _)| *entry > timestamp && *entry <= state.all_durable);
            visible || state.oplog_settings.truncations != truncations
        })
    }

    fn size(&self) -> TableSize {
        self.shared.state.lock().oplog_size()
    }

    fn truncate_after(&self, timestamp: Timestamp, inclusive: bool) -> Result<()> {
        let after = if inclusive { timestamp.previous() } else { timestamp };
        self.shared.change(|state| state.cut_oplog(after))
    }

    fn reset(&self) -> Result<()> {
        self.shared.change(|state| state.cut_oplog(Timestamp::NONE))
    }

    fn truncate_old(&self) -> Result<usize> {
        self.shared.change(State::truncate_old)
    }

    fn set_size_max(&self, bytes: u64) -> Result<()> {
        self.shared.state.lock().oplog_settings.size_max = bytes;
        Ok(())
    }

    fn size_max(&self) -> u64 {
        self.shared.state.lock().oplog_settings.size_max
    }

    fn set_retention_min(&self, milliseconds: u64) -> Result<()> {
        self.shared.state.lock().oplog_settings.retention_min_ms = milliseconds;
        Ok(())
    }

    fn markers(&self) -> Vec<TruncateMarker> {
        self.shared.state.lock().markers()
    }

    fn pin(&self, _name: &str, timestamp: Timestamp) -> Result<Arc<dyn OplogPin>> {
        let mut state = self.shared.state.lock();
        state.oplog_settings.last_pin += 1;
        let number = state.oplog_settings.last_pin;
        state.oplog_settings.pins.insert(number, timestamp);
        Ok(Arc::new(ModelPin { shared: self.shared.clone(), number }))
    }
}

impl OplogSource for ModelEngine {
    fn oplog(&self) -> Option<&dyn Oplog> {
        match self.shared.state.lock().mode {
            Mode::StandAlone => None,
            Mode::ReplicaSet => Some(self),
        }
    }
}
