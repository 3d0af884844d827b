//! The two sides of a run, kept in step.

use super::notes::Notes;
use super::observe::{difference, observe, observe_facts};
use super::operation::{Operation, Step};
use super::side::{Answer, Side};
use super::{Config, Subject, TABLES};
use crate::{ModelDisk, ModelEngine};
use pando_base::Timestamp;
use pando_storage::{CheckpointKind, Durability, Engine, ReadAt, StorageError, TimestampControl, TransactionSource};
use std::sync::Arc;

/// What went wrong, in words.
pub type Fault = String;

/// The oracle, the engine under test, and what was done to both.
pub struct World<'a> {
    config: Config,
    subject: &'a mut dyn Subject,
    pub(super) oracle: Arc<ModelEngine>,
    expected: Side,
    found: Side,
    pub(super) notes: Notes,
    /// The greatest timestamp in any step.
    pub(super) timestamp_max: Timestamp,
    /// The oracle's and the subject's count of ended prepared transactions when they were opened.
    epochs: (u64, u64),
    /// What the oracle answered last.
    last_answer: Option<Answer>,
}

impl<'a> World<'a> {
    /// A fresh oracle beside a fresh subject.
    pub fn new(subject: &'a mut dyn Subject, config: Config) -> Result<World<'a>, Fault> {
        let oracle = open(&ModelDisk::new(), &config)?;
        let expected = Side::new(oracle.clone(), TABLES);
        let found = Side::new(subject.engine(), TABLES);
        let epochs = (expected.engine.prepare_epoch(), found.engine.prepare_epoch());
        let notes = Notes::new(config.mode);
        let timestamp_max = Timestamp::NONE;
        Ok(World { config, subject, oracle, expected, found, notes, timestamp_max, epochs, last_answer: None })
    }

    /// Does a step on both sides. False if it makes no sense now.
    pub fn step(&mut self, operation: &Operation) -> Result<bool, Fault> {
        if !self.notes.allows(operation, &self.oracle) {
            return Ok(false);
        }
        self.timestamp_max = self.timestamp_max.max(operation.timestamp());
        match operation {
            Operation::CompareAll => {
                if let Some(difference) = self.difference_all(&self.oracle, &*self.found.engine) {
                    return Err(difference);
                }
            }
            Operation::RestartClean => self.restart_clean()?,
            Operation::Crash => self.crash()?,
            Operation::CrashDuring { operation, changes } => {
                if !self.subject.lose_power_after(*changes) {
                    return Ok(false);
                }
                self.crash_during(operation)?;
            }
            Operation::Checkpoint { full } => self.checkpoint(operation, *full)?,
            Operation::MoveRandom { cursor, .. } => self.move_random(operation, *cursor)?,
            Operation::Commit { transaction }
            | Operation::RollBack { transaction }
            | Operation::Prepare { transaction, .. } => {
                self.release_cursors(*transaction)?;
                self.both(operation)?;
            }
            Operation::TruncateOplog { .. } | Operation::ResetOplog => {
                for cursor in self.notes.oplog_cursors.keys().copied().collect::<Vec<_>>() {
                    self.both(&Operation::CloseOplog { cursor })?;
                }
                self.both(operation)?;
            }
            operation => self.both(operation)?,
        }
        let epochs = (self.expected.engine.prepare_epoch(), self.found.engine.prepare_epoch());
        if epochs.0 - self.epochs.0 != epochs.1 - self.epochs.1 {
            return Err(format!("prepare epochs, at open and now: {:?}, {epochs:?}", self.epochs));
        }
        Ok(true)
    }

    /// The kind of a step that was just done, and of its answer.
    pub fn last_answer(&mut self, operation: &Operation) -> (String, String) {
        let word = |text: String| text.chars().take_while(char::is_ascii_alphanumeric).collect();
        let answer = match self.last_answer.take() {
            Some(Answer::Failed(kind)) => kind,
            Some(answer) => word(format!("{answer:?}")),
            None => "Done".into(),
        };
        (word(format!("{operation:?}")), answer)
    }

    /// The plain case: the same call on both sides, with equal answers.
    fn both(&mut self, operation: &Operation) -> Result<(), Fault> {
        let expected = self.expected.perform(operation);
        if let (Some(transaction), true) = (operation.transaction(), self.oracle.is_unspecified()) {
            return self.abandon(transaction);
        }
        let found = self.found.perform(operation);
        check(&expected, &found)?;
        self.notes.learn(operation, &expected, &self.oracle);
        self.last_answer = Some(expected);
        Ok(())
    }

    /// The rules leave open what the oracle just did: the transaction ends without the other side having done it.
    fn abandon(&mut self, transaction: usize) -> Result<(), Fault> {
        self.release_cursors(transaction)?;
        self.both(&Operation::RollBack { transaction })
    }

    /// A cursor does not outlive its transaction attached.
    fn release_cursors(&mut self, transaction: usize) -> Result<(), Fault> {
        for (cursor, note) in self.notes.cursors_of(transaction) {
            match note.can_detach() {
                true => self.both(&Operation::Detach { cursor })?,
                false => self.both(&Operation::CloseCursor { cursor })?,
            }
        }
        Ok(())
    }

    /// The engine's random key must be one that is there.
    fn move_random(&mut self, operation: &Operation, cursor: usize) -> Result<(), Fault> {
        let found = self.found.perform(operation);
        let Answer::Pair(found) = found else { return Err(format!("a random key gave {found:?}")) };
        let looked_up = match (&found, self.expected.cursors.get_mut(&cursor)) {
            (Some((key, _)), Some(cursor)) => cursor.seek_exact(key),
            (None, Some(cursor)) => cursor.first(),
            _ => return Ok(()),
        };
        let expected = looked_up.map(|entry| entry.map(|entry| (entry.key.to_vec(), entry.value.to_vec())));
        let found = found.map(|(key, value)| (key, value.to_vec()));
        if expected.as_ref() != Ok(&found) {
            return Err(format!("a random key gave {found:?}, where there is {expected:?}"));
        }
        self.both(&Operation::Move { cursor, step: Step::First })
    }

    /// Where the rules leave open whether a checkpoint is due, the oracle follows.
    fn checkpoint(&mut self, operation: &Operation, full: bool) -> Result<(), Fault> {
        let kind = if full { CheckpointKind::Full } else { CheckpointKind::Automatic };
        let due = self.oracle.expects_checkpoint(kind);
        let found = self.found.perform(operation);
        let taken = match (due, &found) {
            (Some(due), _) => due,
            (None, Answer::Checkpoint(taken, _)) => *taken,
            (None, _) => true,
        };
        let expected = match taken {
            true => match self.oracle.take_checkpoint(kind) {
                Ok(outcome) => Answer::Checkpoint(outcome.taken, outcome.timestamp),
                Err(error) => Answer::from(error),
            },
            false => Answer::Checkpoint(false, Timestamp::NONE),
        };
        match (&expected, &found) {
            (Answer::Checkpoint(false, _), Answer::Checkpoint(false, _)) => Ok(()),
            _ => check(&expected, &found),
        }
    }

    fn difference_all(&self, oracle: &ModelEngine, engine: &dyn Engine) -> Option<String> {
        let points = self.read_points(oracle);
        difference(&observe(oracle, &points, self.config.keys), &observe(engine, &points, self.config.keys))
    }

    /// Read points that the oracle and another engine must agree on.
    fn read_points(&self, oracle: &ModelEngine) -> Vec<ReadAt> {
        let now = oracle.timestamps();
        let start = now.oldest.max(self.notes.history_start).max(Timestamp(1));
        let end = self.timestamp_max.max(start);
        let step = ((end.0 - start.0) / 8).max(1);
        let mut timestamps = vec![start, end, now.stable, now.stable.next(), now.all_durable];
        timestamps.extend((start.0..end.0).step_by(step as usize).map(Timestamp));
        timestamps.retain(|timestamp| *timestamp >= start);
        timestamps.sort_unstable();
        timestamps.dedup();
        let mut points: Vec<ReadAt> = timestamps.into_iter().map(ReadAt::Timestamp).collect();
        points.push(ReadAt::Latest);
        if now.all_durable.is_none() || now.all_durable >= start {
            points.push(ReadAt::AllDurable);
        }
        points
    }

    /// A clean restart; where it is not said whether the last checkpoint was due, either will do.
    fn restart_clean(&mut self) -> Result<(), Fault> {
        self.close_all();
        let due = self.oracle.expects_checkpoint(CheckpointKind::Automatic);
        self.oracle.flush_log().map_err(words)?;
        let mut candidates = Vec::new();
        if due != Some(true) {
            candidates.push(self.oracle.disk().copy());
        }
        if due != Some(false) {
            self.oracle.take_checkpoint(CheckpointKind::Automatic).map_err(words)?;
            candidates.push(self.oracle.disk().copy());
        }
        self.subject.restart_clean();
        self.find_equal(candidates.into_iter(), "a clean restart")
    }

    /// A power loss.
    fn crash(&mut self) -> Result<(), Fault> {
        let left = what_a_crash_leaves(self.oracle.disk().copy());
        self.subject.crash();
        self.close_all();
        self.find_equal(left, "a crash")
    }

    /// A power loss during a step. If the step failed it may have been done or not; otherwise it was done.
    fn crash_during(&mut self, operation: &Operation) -> Result<(), Fault> {
        let before = self.oracle.disk().copy();
        let (found, expected) = match operation {
            Operation::RestartClean => {
                let found = self.found.engine.shut_down().map_or_else(Answer::from, |()| Answer::Done);
                self.expected.engine.flush_log().map_err(words)?;
                (found, Answer::Done)
            }
            operation => (self.found.perform(operation), self.expected.perform(operation)),
        };
        let mut disks = vec![self.oracle.disk().copy()];
        let is_done = match operation {
            // Whether the oracle would have taken this checkpoint or not, the engine may.
            Operation::RestartClean | Operation::Checkpoint { .. } => {
                let full = matches!(operation, Operation::Checkpoint { full: true });
                let kind = if full { CheckpointKind::Full } else { CheckpointKind::Automatic };
                let due = self.oracle.expects_checkpoint(kind);
                self.oracle.take_checkpoint(kind).map_err(words)?;
                disks.push(self.oracle.disk().copy());
                found == expected && due == Some(false)
            }
            _ => found == expected,
        };
        if !is_done {
            disks.extend(halfway(&before, operation, &self.config)?);
            disks.push(before);
        }
        self.subject.crash();
        self.close_all();
        let left = disks.into_iter().flat_map(what_a_crash_leaves);
        self.find_equal(left, "a crash during a step")
    }

    /// Closes everything, so that the subject alone has its engine.
    fn close_all(&mut self) {
        self.expected.close_all();
        self.found.close_all();
        self.found = Side::new(self.oracle.clone(), 0);
    }

    /// Goes on with the first disk whose engine looks like the subject's.
    fn find_equal(&mut self, disks: impl Iterator<Item = Arc<ModelDisk>>, after: &str) -> Result<(), Fault> {
        let engine = self.subject.engine();
        let facts = observe_facts(&*engine);
        let mut reasons = Vec::new();
        for disk in disks {
            let oracle = open(&disk, &self.config)?;
            let reason =
                difference(&observe_facts(&*oracle), &facts).or_else(|| self.difference_all(&oracle, &*engine));
            match reason {
                None => {
                    self.adopt(oracle, engine);
                    return Ok(());
                }
                Some(reason) if !reasons.contains(&reason) => reasons.push(reason),
                Some(_) => {}
            }
        }
        let count = reasons.len();
        let first_and_last = [reasons.first(), reasons.get(1..).and_then(<[String]>::last)];
        let told: Vec<&str> = first_and_last.into_iter().flatten().map(String::as_str).collect();
        Err(format!("after {after} none of {count} possible states is found; first and last:\n{}", told.join("\n")))
    }

    fn adopt(&mut self, oracle: Arc<ModelEngine>, engine: Arc<dyn Engine>) {
        self.expected = Side::new(oracle.clone(), TABLES);
        self.found = Side::new(engine, TABLES);
        self.epochs = (oracle.prepare_epoch(), self.found.engine.prepare_epoch());
        let tables = self.expected.tables.iter().map(|(number, table)| (*number, table.options().replicated));
        self.notes.restarted(tables);
        self.oracle = oracle;
    }
}

/// Every state that a power loss may leave: some prefix of the log must explain redo, oplog and tables alike, and some point
/// without holes that was known by then the end of the oplog.
fn what_a_crash_leaves(disk: Arc<ModelDisk>) -> impl Iterator<Item = Arc<ModelDisk>> {
    let points = disk.no_holes_candidates();
    let prefixes = (0..=disk.unflushed_count())
        .flat_map(move |records| points.clone().into_iter().map(move |point| (records, point)));
    prefixes.map(move |(records, point)| {
        let copy = disk.copy();
        copy.crash_keeping_at(records, point);
        copy
    })
}

/// States inside a step that is more than one call.
fn halfway(before: &Arc<ModelDisk>, operation: &Operation, config: &Config) -> Result<Option<Arc<ModelDisk>>, Fault> {
    let Operation::BulkLoad { table, replicated, .. } = operation else { return Ok(None) };
    let disk = before.copy();
    let oracle = open(&disk, config)?;
    Side::new(oracle, 0).perform(&Operation::CreateTable { table: *table, replicated: *replicated });
    Ok(Some(disk))
}

fn words(error: StorageError) -> Fault {
    format!("the oracle: {error:?}")
}

fn open(disk: &Arc<ModelDisk>, config: &Config) -> Result<Arc<ModelEngine>, Fault> {
    ModelEngine::open(disk, config.mode).map_err(words)
}

fn check(expected: &Answer, found: &Answer) -> Result<(), Fault> {
    match expected == found {
        true => Ok(()),
        false => Err(format!("expected {expected:?}, found {found:?}")),
    }
}
