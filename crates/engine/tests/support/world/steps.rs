//! The steps of a random life.

use super::life::{Done, Life, Open, PowerIsGone, Step};
use super::model::{Event, Write};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_engine::Mode;
use pando_storage::{
    BeginOptions, CheckpointKind, Durability, OplogSource, StorageError, TimestampControl, TransactionSource, Urgency,
};

const OPEN_MAX: usize = 4;
const KEYS: u64 = 40;

impl Life<'_> {
    /// Plays until the power goes or the steps are done.
    pub fn play(&mut self, steps: u64) -> Step {
        self.create_first_tables()?;
        for _ in 0..steps {
            self.step()?;
        }
        Ok(())
    }

    pub fn create_first_tables(&mut self) -> Step {
        for (ident, replicated) in
            [("logged-a", false), ("logged-b", false), ("replicated-a", true), ("replicated-b", true)]
        {
            if !self.tables.contains_key(ident) {
                self.create(ident, replicated)?;
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Step {
        let choice = self.chance.below(100);
        if std::env::var("PANDO_TRACE").is_ok() {
            eprintln!("  step {choice}: {} events, {:?}", self.model.events.len(), self.engine.timestamps());
        }
        match choice {
            0..25 => self.begin(),
            25..55 => self.commit_one(),
            55..58 => self.roll_back_one(),
            58..66 => self.flush(),
            66..74 => self.wait_durable(),
            74..80 => self.move_timestamps(),
            80..84 => self.checkpoint(CheckpointKind::Automatic),
            84..85 => self.checkpoint(CheckpointKind::Full),
            85..92 => self.maintain(),
            92..94 => self.create_or_drop(),
            94..96 => self.truncate_old(),
            96..97 => self.set_initial_data(),
            97..99 => self.rewind(),
            _ => self.truncate_range(),
        }
    }

    /// Begins a transaction and makes its writes: the same marker in several tables.
    pub fn begin(&mut self) -> Step {
        if self.open.len() >= OPEN_MAX {
            return self.commit_one();
        }
        let urgency = if self.chance.one_in(4) { Urgency::Exempt } else { Urgency::Normal };
        let Some(mut open) = self.begin_with(BeginOptions { urgency, ..BeginOptions::default() })? else {
            return Ok(());
        };
        if self.fill(&mut open)? {
            self.open.push(open);
        }
        Ok(())
    }

    pub fn begin_with(&mut self, options: BeginOptions) -> std::result::Result<Option<Open>, PowerIsGone> {
        let begun = self.engine.begin(options);
        let transaction = self.must(begun, "begin")?;
        self.markers += 1;
        Ok(Some(Open {
            transaction,
            marker: self.markers,
            writes: Vec::new(),
            oplog: Vec::new(),
            reserved: Vec::new(),
            commit: Timestamp::NONE,
            to_prepare: false,
            prepared: Timestamp::NONE,
        }))
    }

    /// The writes of a transaction; false if it was rolled back.
    fn fill(&mut self, open: &mut Open) -> std::result::Result<bool, PowerIsGone> {
        let replica_set = self.mode == Mode::ReplicaSet;
        let timestamped = replica_set && !self.chance.one_in(4);
        open.to_prepare = timestamped && self.chance.one_in(6);
        let parts = if timestamped && !open.to_prepare { 1 + self.chance.below(3) } else { 1 };
        let late = self.chance.one_in(3);
        for part in 0..parts {
            if timestamped && !open.to_prepare {
                self.reserve(open)?;
                if part > 0 || !late {
                    self.stamp(open)?;
                }
            }
            for _ in 0..1 + self.chance.below(4) {
                if !self.write_marker(open, timestamped)? {
                    return Ok(false);
                }
            }
        }
        if replica_set && !timestamped && self.chance.one_in(3) {
            self.reserve(open)?;
        }
        if self.chance.one_in(2) {
            self.stamp(open)?;
        }
        Ok(true)
    }

    fn reserve(&mut self, open: &mut Open) -> Step {
        let timestamp = self.next_timestamp();
        let slot = self.engine.reserve_slot(timestamp).expect("a slot above all others");
        open.transaction.hold_slot(slot);
        let entry = Bytes::from(format!("entry {timestamp} of {}", open.marker).into_bytes());
        open.reserved.push(timestamp);
        let appended = open.transaction.append_oplog(timestamp, &entry);
        self.must(appended, "append_oplog")?;
        open.oplog.push((timestamp, entry));
        Ok(())
    }

    /// Makes the oldest reserved slot the commit timestamp.
    fn stamp(&mut self, open: &mut Open) -> Step {
        let untimestamped = open.writes.iter().any(is_untimestamped_key);
        if open.reserved.is_empty() || untimestamped {
            return Ok(());
        }
        let timestamp = open.reserved.remove(0);
        if self.may(open.transaction.set_commit_timestamp(timestamp), "set_commit_timestamp")? {
            for write in open.writes.iter_mut().filter(|write| write.commit.is_none()) {
                (write.commit, write.durable) = (timestamp, timestamp);
            }
            open.commit = timestamp;
        } else {
            // Its writes came too late for this slot; it stays an entry.
            open.reserved.clear();
        }
        Ok(())
    }

    /// Keys of timestamped and untimestamped writes differ, as they do for a caller who wants exact sizes at stable.
    fn write_marker(&mut self, open: &mut Open, timestamped: bool) -> std::result::Result<bool, PowerIsGone> {
        let wanted = |ident: &&String| !open.to_prepare || self.tables[*ident].1.replicated;
        let idents: Vec<String> = self.tables.keys().filter(wanted).cloned().collect();
        if idents.is_empty() {
            return Ok(true);
        }
        let ident = self.chance.pick(&idents).clone();
        let kind = if timestamped { 't' } else { 'u' };
        let key = format!("{kind}{:03}", self.chance.below(KEYS)).into_bytes();
        let value = (!self.chance.one_in(5)).then(|| self.value(open.marker));
        self.write(open, &ident, &key, value)
    }

    fn value(&mut self, marker: u64) -> Vec<u8> {
        let length = match self.chance.below(40) {
            0 => 9000 + self.chance.below(12_000),
            1..10 => 0,
            _ => self.chance.below(900),
        };
        let mut value = format!("marker {marker} ").into_bytes();
        let noisy = self.chance.one_in(2);
        value.extend((0..length).map(|place| if noisy { self.chance.next() as u8 } else { place as u8 }));
        value
    }

    fn take_one(&mut self) -> Option<Open> {
        let place = self.chance.below(self.open.len() as u64) as usize;
        (!self.open.is_empty()).then(|| self.open.swap_remove(place))
    }

    /// Commits any of the open ones: out of order.
    pub fn commit_one(&mut self) -> Step {
        let Some(mut open) = self.take_one() else { return Ok(()) };
        if open.to_prepare && open.prepared.is_none() {
            let prepared = self.next_timestamp();
            if self.may(open.transaction.prepare(prepared), "prepare")? {
                open.prepared = prepared;
                self.open.push(open);
            }
            return Ok(());
        }
        if open.prepared.is_some() {
            return self.commit_prepared(open);
        }
        if open.commit.is_none() && open.writes.iter().any(is_timestamped_key) {
            self.stamp(&mut open)?;
            if open.commit.is_none() {
                return Ok(());
            }
        }
        self.commit(open)
    }

    fn commit_prepared(&mut self, mut open: Open) -> Step {
        let commit = if self.chance.one_in(2) { open.prepared } else { self.next_timestamp() };
        if !self.may(open.transaction.set_commit_timestamp(commit), "commit timestamp of a prepared one")? {
            return Ok(());
        }
        let durable = self.next_timestamp();
        self.must(open.transaction.set_durable_timestamp(durable), "durable timestamp")?;
        for write in &mut open.writes {
            (write.commit, write.durable) = (commit, durable);
        }
        self.commit(open)
    }

    pub fn commit(&mut self, open: Open) -> Step {
        let Open { transaction, writes, oplog, .. } = open;
        let committed = self.watched(false, |_| transaction.commit());
        let Ok(committed) = committed else {
            return match self.may(committed, "commit")? {
                true => unreachable!("it failed"),
                false => Ok(()),
            };
        };
        let newest_entry = committed.position.oplog;
        self.model.commit(writes, oplog);
        self.done.push(Done { position: committed.position, events: self.model.events.len(), newest_entry });
        Ok(())
    }

    fn roll_back_one(&mut self) -> Step {
        if let Some(open) = self.take_one() {
            open.transaction.roll_back();
        }
        Ok(())
    }

    pub fn flush(&mut self) -> Step {
        let no_holes = self.engine.timestamps().all_durable;
        let flushed = self.engine.flush_log();
        self.must(flushed, "flush")?;
        self.model.acknowledged = self.model.events.len();
        self.model.no_holes = self.model.no_holes.max(no_holes);
        Ok(())
    }

    fn wait_durable(&mut self) -> Step {
        if self.done.is_empty() {
            return Ok(());
        }
        let place = self.chance.below(self.done.len() as u64) as usize;
        // Behind a hole it would wait for ever.
        if self.engine.timestamps().all_durable < self.done[place].newest_entry {
            return Ok(());
        }
        let done = self.done.swap_remove(place);
        let waited = self.engine.wait_durable(done.position).block();
        if matches!(&waited, Err(StorageError::Io(text)) if text.contains("truncated")) {
            return Ok(());
        }
        self.must(waited, "wait_durable")?;
        self.model.acknowledged = self.model.acknowledged.max(done.events);
        self.model.no_holes = self.model.no_holes.max(done.newest_entry);
        Ok(())
    }

    fn move_timestamps(&mut self) -> Step {
        if self.mode == Mode::StandAlone {
            return Ok(());
        }
        let now = self.engine.timestamps();
        // A checkpoint of everything forgets stable; callers do not, nor do they go back.
        let least = now.stable.max(self.model.stable_max);
        let room = now.all_durable.0.saturating_sub(least.0);
        let stable = Timestamp(least.0 + self.chance.below(room + 1));
        if stable.is_some() && stable > now.oldest && stable <= now.all_durable {
            self.engine.set_stable(stable).expect("stable below all_durable");
            self.model.stable_max = stable;
        }
        if self.chance.one_in(2) {
            let now = self.engine.timestamps();
            let room = now.stable.0.saturating_sub(now.oldest.0);
            let oldest = Timestamp(now.oldest.0 + self.chance.below(room + 1));
            if oldest.is_some() {
                self.engine.set_oldest(oldest, false).expect("oldest below stable");
            }
        }
        Ok(())
    }

    /// History begins somewhere: at stable, or a little later.
    fn set_initial_data(&mut self) -> Step {
        let now = self.engine.timestamps();
        if now.initial_data.is_none() && now.stable.is_some() {
            let later = if self.chance.one_in(2) { 0 } else { 1 + self.chance.below(10) };
            self.engine.set_initial_data(Timestamp(now.stable.0 + later));
        }
        Ok(())
    }

    pub fn checkpoint(&mut self, kind: CheckpointKind) -> Step {
        let taken = self.watched(kind == CheckpointKind::Full, |engine| engine.checkpoint(kind));
        self.must(taken, "checkpoint").map(drop)
    }

    pub fn maintain(&mut self) -> Step {
        for _ in 0..1 + self.chance.below(4) {
            self.dropping_old = true;
            let worked = self.watched(false, |engine| engine.maintain());
            self.must(worked, "maintain")?;
            self.note_oplog_start();
        }
        Ok(())
    }

    pub fn truncate_old(&mut self) -> Step {
        let engine = self.engine.clone();
        let Some(oplog) = engine.oplog() else { return Ok(()) };
        let bytes = [2_000, 20_000, 200_000][self.chance.below(3) as usize];
        oplog.set_size_max(bytes).expect("a size");
        self.dropping_old = true;
        let dropped = oplog.truncate_old();
        self.must(dropped, "truncate_old")?;
        self.note_oplog_start();
        Ok(())
    }

    /// The old end moved as far as it says, but never past what a recovery may have to apply again.
    fn note_oplog_start(&mut self) {
        self.dropping_old = false;
        let engine = self.engine.clone();
        let Some(oplog) = engine.oplog() else { return };
        let before = self.model.oplog(self.model.events.len());
        let first = oplog.first().unwrap_or(Timestamp::MAX);
        let needed = self.model.checkpoints[0].stable;
        for dropped in before.keys().take_while(|timestamp| **timestamp < first) {
            assert!(*dropped <= needed, "entry {dropped} was dropped, but the checkpoint is at {needed}");
            self.model.oplog_start = dropped.next();
        }
    }

    fn create_or_drop(&mut self) -> Step {
        let extra: Vec<String> = self.tables.keys().filter(|ident| ident.starts_with("extra")).cloned().collect();
        if extra.len() > 2 {
            let ident = self.chance.pick(&extra).clone();
            // Whoever wrote to it may still commit; the writes vanish with the table.
            return self.drop_table(&ident);
        }
        let ident = format!("extra-{}", self.chance.below(6));
        if self.tables.contains_key(&ident) {
            return Ok(());
        }
        let replicated = self.chance.one_in(2);
        self.create(&ident, replicated)
    }

    /// A rollback: nothing open, stable moved, data after it gone, sometimes the oplog's new end as well.
    pub fn rewind(&mut self) -> Step {
        self.open.clear();
        let stable = self.engine.timestamps().stable;
        if stable.is_some() && !self.chance.one_in(3) {
            let cut: Vec<_> =
                self.model.checkpoints[0].writes.iter().filter(|write| write.durable <= stable).cloned().collect();
            let fenced = super::model::Checkpoint { writes: cut, ..self.model.checkpoints[0].clone() };
            let rolled = self.engine.roll_back_to_stable();
            if rolled.as_ref().is_err_and(|error| self.is_end(error)) {
                self.model.checkpoints.push(fenced);
                return Err(PowerIsGone);
            }
            self.must(rolled, "roll_back_to_stable")?;
            self.model.checkpoints = vec![fenced];
            self.model.roll_back(stable);
        }
        let engine = self.engine.clone();
        let Some(oplog) = engine.oplog().filter(|_| self.chance.one_in(2)) else { return Ok(()) };
        let last = oplog.last().unwrap_or_default().max(stable);
        let kept = Timestamp(stable.0 + self.chance.below(last.0 - stable.0 + 1));
        let cut = oplog.truncate_after(kept, false);
        self.must(cut, "truncate_after")?;
        self.model.events.push(Event::Cut(kept));
        // Timestamps behind the last entry are used again.
        self.model.no_holes = self.model.no_holes.min(oplog.last().unwrap_or_default());
        self.newest = self.engine.timestamps().all_durable.max(self.model.stable_max).0.max(10);
        Ok(())
    }

    /// A range is deleted at a timestamp after all others.
    fn truncate_range(&mut self) -> Step {
        let Some(mut open) = self.begin_with(BeginOptions::default())? else { return Ok(()) };
        let timestamped = self.mode == Mode::ReplicaSet && !self.chance.one_in(4);
        if timestamped {
            self.reserve(&mut open)?;
            self.stamp(&mut open)?;
        }
        let kind = if timestamped { 't' } else { 'u' };
        let (from, to) = (self.chance.below(KEYS), self.chance.below(KEYS));
        let (start, end) = (format!("{kind}{:03}", from.min(to)), format!("{kind}{:03}", from.max(to)));
        let idents: Vec<String> = self.tables.keys().cloned().collect();
        let ident = self.chance.pick(&idents).clone();
        if self.truncate(&mut open, &ident, start.as_bytes(), end.as_bytes())? {
            self.open.push(open);
        }
        Ok(())
    }

    /// Ends in good order.
    pub fn shut_down(&mut self) -> Step {
        self.open.clear();
        let ended = self.watched(false, |engine| engine.shut_down());
        self.must(ended, "shut_down")?;
        self.model.acknowledged = self.model.events.len();
        Ok(())
    }
}

fn first_byte(write: &Write) -> u8 {
    use super::model::Deed;
    let (Deed::Put(key, _) | Deed::Delete(key) | Deed::Truncate(key, _)) = &write.deed;
    key.first().copied().unwrap_or_default()
}

fn is_timestamped_key(write: &Write) -> bool {
    first_byte(write) == b't'
}

fn is_untimestamped_key(write: &Write) -> bool {
    first_byte(write) == b'u'
}
