//! How a transaction ends: its timestamps, prepare, commit and rollback.

use crate::data::{Link, Prepared, Stamp, Writer};
use crate::engine::Mode;
use crate::record::{Change, Record, Redo};
use crate::state::{State, illegal, rule};
use pando_base::Timestamp;
use pando_storage::{LogPosition, Result, StorageError};

impl State {
    /// Sets the commit timestamp of what has none yet and of what follows.
    pub fn set_commit_timestamp(&mut self, number: u64, timestamp: Timestamp) -> Result<()> {
        let open = self.open(number)?;
        let (first, prepared) = (open.first_commit, open.prepared);
        if timestamp.is_none() || timestamp < first {
            return rule(format!("commit timestamp {timestamp} is before the first one {first}"));
        }
        match prepared {
            Some(prepared) if timestamp < prepared.timestamp => return rule("commit before prepare"),
            None if timestamp <= self.stable || timestamp < self.oldest => {
                return rule(format!("commit timestamp {timestamp} must be after stable and not before oldest"));
            }
            _ => {}
        }
        for (id, key) in self.open(number)?.keys.clone() {
            let Some(table) = self.data.tables.get(&id) else { continue };
            let is_own_without = |link: &Link| {
                link.stamp.writer == Writer::Open(number) && !link.is_truncation && link.stamp.commit.is_none()
            };
            let chain = table.chain(&key);
            if let Some(place) = chain.iter().position(is_own_without) {
                self.check_predecessor(number, timestamp, &chain[place..])?;
            }
        }
        self.stamp_writes(number, |stamp| {
            if stamp.commit.is_none() {
                (stamp.commit, stamp.durable) = (timestamp, timestamp);
            }
        });
        let open = self.open_mut(number)?;
        open.commit = timestamp;
        if first.is_none() {
            open.first_commit = timestamp;
        }
        self.settle_all_durable();
        Ok(())
    }

    /// Sets when a prepared transaction's commit becomes stable.
    pub fn set_durable_timestamp(&mut self, number: u64, timestamp: Timestamp) -> Result<()> {
        let stable = self.stable;
        let open = self.open_mut(number)?;
        if open.prepared.is_none() {
            return illegal("only prepared transactions have a durable timestamp");
        }
        if open.first_commit.is_none() || timestamp < open.first_commit || timestamp <= stable {
            return rule(format!("durable timestamp {timestamp} must be after stable and not before commit"));
        }
        open.durable = timestamp;
        Ok(())
    }

    /// Makes the transaction prepared.
    pub fn prepare(&mut self, number: u64, timestamp: Timestamp) -> Result<()> {
        self.check_writable()?;
        self.view_of(number)?;
        let open = self.open(number)?;
        if open.doomed {
            return Err(StorageError::WriteConflict);
        }
        let writes_log = open.tables.iter().any(|id| self.is_logged(*id));
        if self.mode == Mode::StandAlone || open.first_commit.is_some() || writes_log || !open.oplog.is_empty() {
            return illegal("this transaction cannot be prepared");
        }
        if timestamp.is_none() || (timestamp <= self.stable && !open.recovering) {
            return rule(format!("prepare timestamp {timestamp} must be after stable {}", self.stable));
        }
        let sequence = self.data.next_sequence();
        self.open_mut(number)?.prepared = Some(Prepared { sequence, timestamp });
        Ok(())
    }

    /// Whether the transaction may commit now.
    pub fn check_commit(&self, number: u64) -> Result<()> {
        let open = self.open(number)?;
        if open.doomed {
            return Err(StorageError::WriteConflict);
        }
        if open.prepared.is_some() {
            if open.first_commit.is_none() {
                return rule("a prepared transaction needs a commit timestamp");
            }
            if open.durable.max(open.first_commit) <= self.stable {
                return rule("the durable timestamp must be after stable");
            }
        } else if open.first_commit.is_some() && open.first_commit <= self.stable {
            return rule("stable has passed the commit timestamp");
        }
        if !open.tables.is_empty() || !open.oplog.is_empty() {
            self.check_writable()?;
        }
        Ok(())
    }

    /// Commits. [`check_commit`](Self::check_commit) has said that it may.
    pub fn commit(&mut self, number: u64) -> Result<LogPosition> {
        let open = self.open(number)?;
        let sequence = match open.prepared {
            Some(prepared) => prepared.sequence,
            None => self.data.sequence + 1,
        };
        let durable = open.durable;
        let redo = self.redo_of(number);
        let mut newest = Timestamp::NONE;
        self.stamp_writes(number, |stamp| {
            stamp.writer = Writer::Committed(sequence);
            stamp.durable = stamp.durable.max(durable);
            newest = newest.max(stamp.durable);
        });
        self.data.sequence = self.data.sequence.max(sequence);
        let Some(open) = self.open.remove(&number) else { return illegal("the transaction has ended") };
        self.changed |= !open.tables.is_empty() || !open.oplog.is_empty();
        self.latest = self.latest.max(newest);
        for entry in &open.oplog {
            self.entries.insert(entry.timestamp, entry.entry.clone());
            self.latest = self.latest.max(entry.timestamp);
        }
        self.prepare_epoch += u64::from(open.prepared.is_some());
        self.settle_all_durable();
        if redo.is_empty() && open.oplog.is_empty() {
            return Ok(self.log_end());
        }
        let newest = open.oplog.iter().map(|entry| entry.timestamp).max().unwrap_or_default();
        self.log(Record::Commit { redo, oplog: open.oplog });
        Ok(self.position(newest))
    }

    /// Rolls back.
    pub fn roll_back(&mut self, number: u64) {
        let Some(open) = self.open.remove(&number) else { return };
        for id in &open.tables {
            if let Some(table) = self.data.tables.get_mut(id) {
                table.retain(|stamp| stamp.writer != Writer::Open(number));
            }
        }
        self.prepare_epoch += u64::from(open.prepared.is_some());
        self.settle_all_durable();
    }

    /// Changes the stamp of everything that an open transaction wrote.
    fn stamp_writes(&mut self, number: u64, mut change: impl FnMut(&mut Stamp)) {
        let Some(open) = self.open.get(&number) else { return };
        for id in &open.tables {
            let Some(table) = self.data.tables.get_mut(id) else { continue };
            let keys = open.keys.iter().filter(|(of, _)| of == id);
            let mut stamps: Vec<&mut Stamp> = Vec::new();
            for (_, key) in keys {
                if let Some(versions) = table.points.get_mut(key) {
                    versions.iter_mut().for_each(|version| {
                        if version.stamp.writer == Writer::Open(number) {
                            change(&mut version.stamp);
                        }
                    });
                }
            }
            stamps.extend(table.truncations.iter_mut().map(|truncation| &mut truncation.stamp));
            stamps.extend(table.sizes.iter_mut().map(|size| &mut size.stamp));
            stamps.into_iter().filter(|stamp| stamp.writer == Writer::Open(number)).for_each(&mut change);
        }
    }

    /// The redo of an open transaction, in write order.
    fn redo_of(&self, number: u64) -> Vec<Redo> {
        let Some(open) = self.open.get(&number) else { return Vec::new() };
        let mut found = Vec::new();
        for id in open.tables.iter().filter(|id| self.is_logged(**id)) {
            let Some(table) = self.data.tables.get(id) else { continue };
            let redo =
                |stamp: &Stamp, change| Redo { table: *id, commit: stamp.commit, durable: stamp.durable, change };
            let own = |stamp: &Stamp| stamp.writer == Writer::Open(number);
            for (_, key) in open.keys.iter().filter(|(of, _)| of == id) {
                for version in table.points.get(key).into_iter().flatten().filter(|version| own(&version.stamp)) {
                    let change = Change::Point(key.clone(), version.value.clone());
                    found.push((version.order, redo(&version.stamp, change)));
                }
            }
            for truncation in table.truncations.iter().filter(|truncation| own(&truncation.stamp)) {
                let change = Change::Truncate(truncation.start.clone(), truncation.end.clone());
                found.push((truncation.order, redo(&truncation.stamp, change)));
            }
            for size in table.sizes.iter().filter(|size| own(&size.stamp)) {
                found.push((0, redo(&size.stamp, Change::Size(size.change))));
            }
        }
        found.sort_by_key(|(order, _)| *order);
        found.into_iter().map(|(_, redo)| redo).collect()
    }
}
