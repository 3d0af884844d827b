//! Deleting a range: one range tombstone, checked against everyone else's keys in it.

use super::EngineTransaction;
use crate::overlay::{Chain, RangeVersion, Rows, Version, WriteObstacle, for_each_dirty, write_obstacle};
use crate::redo::{self, Redo};
use crate::table::EngineTable;
use bytes::Bytes;
use pando_engine_runs::{StreamOptions, VersionStream};
use pando_storage::{Result, StorageError, Table};

impl EngineTransaction {
    pub(super) fn truncate_range(&mut self, table: &Table, start: &[u8], end: Option<&[u8]>) -> Result<()> {
        self.check_writable()?;
        let body = self.body(table)?;
        if end.is_some_and(|end| end <= start) {
            return Ok(());
        }
        if let Some(obstacle) = body.ranges.obstacle(start, end, &self.view) {
            return Err(self.obstructed(obstacle));
        }
        // Entered before the keys are looked at: a writer that this look misses will see the range.
        let state = self.view.own_state().clone();
        body.ranges.push(RangeVersion {
            start: Bytes::copy_from_slice(start),
            end: end.map(Bytes::copy_from_slice),
            version: Version::pending(state, self.own_timestamp(), None),
        });
        let place = self.enlist(table);
        self.truncated.push(place);
        self.view.count_own_write();
        if let Some(obstacle) = self.obstacle_in(body, start, end)? {
            // The range would hide what another transaction wrote, so it goes again, alone or with the transaction.
            body.ranges.remove_last_of(self.view.own_state());
            return Err(self.obstructed(obstacle));
        }
        self.delete_own_writes(table, body, start, end)?;
        if body.logged {
            self.wrote_logged = true;
            let own = self.own_timestamp();
            redo::put(&mut self.redo, &Redo::Truncate { table: table.id(), own, start, end });
        }
        Ok(())
    }

    fn obstructed(&mut self, obstacle: WriteObstacle) -> StorageError {
        match obstacle {
            WriteObstacle::Conflict => self.conflict(),
            WriteObstacle::Prepared => {
                self.core.counters.prepare_conflicts.increment();
                StorageError::PrepareConflict
            }
        }
    }

    /// What stands against the deletion of the range, among keys.
    fn obstacle_in(&self, body: &EngineTable, start: &[u8], end: Option<&[u8]>) -> Result<Option<WriteObstacle>> {
        let mut obstacle = None;
        for_each_dirty(&body.overlay, start, end, |key, newest| {
            let judged = newest.is_own(&self.view) || self.is_deleted_already(body, key, newest);
            if !judged && obstacle.is_none() {
                obstacle = write_obstacle(&newest.outcome(), &self.view);
            }
        });
        if obstacle.is_some() {
            return Ok(obstacle);
        }
        let base = body.slot.load();
        let point = self.view.point();
        let hidden = body.base_is_hidden(point.sequence);
        if !hidden && base.max_sequence() <= point.sequence && base.max_durable() <= point.timestamp {
            return Ok(None);
        }
        let options = StreamOptions {
            start: Some(Bytes::copy_from_slice(start)),
            end: end.map(Bytes::copy_from_slice),
            ..StreamOptions::default()
        };
        let mut versions = VersionStream::new(base.runs(), options).map_err(|error| self.core.of_base(error))?;
        while versions.next().map_err(|error| self.core.of_base(error))? {
            if versions.is_new_key()
                && (hidden || !point.sees(&versions.stamp()))
                && !self.is_superseded(body, &versions)
            {
                return Ok(Some(WriteObstacle::Conflict));
            }
        }
        Ok(None)
    }

    /// True if an earlier range, which was judged as such, is newer than the version.
    fn is_deleted_already(&self, body: &EngineTable, key: &[u8], version: &Version) -> bool {
        let Some(stamp) = version.stamp() else { return false };
        body.ranges.deleted_after(key, stamp.sequence)
    }

    /// True if the overlay has a version or a range that the base does not: that one was judged.
    fn is_superseded(&self, body: &EngineTable, version: &VersionStream) -> bool {
        let newer = |chain: &Chain| chain.newest().is_some_and(|version| !version.in_base());
        body.overlay.read(version.key(), Rows::All, newer).unwrap_or(false)
            || body.ranges.deleted_after(version.key(), version.stamp().sequence)
    }

    /// Own earlier writes in the range become deletions: an own version always wins over an own range.
    fn delete_own_writes(&mut self, table: &Table, body: &EngineTable, start: &[u8], end: Option<&[u8]>) -> Result<()> {
        let mut own = Vec::new();
        for_each_dirty(&body.overlay, start, end, |key, newest| {
            if newest.is_own(&self.view) && newest.value().is_some() {
                own.push(key.to_vec());
            }
        });
        own.iter().try_for_each(|key| self.write_key(table, key, None, None))
    }
}
