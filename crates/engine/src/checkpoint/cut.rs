//! The cut: what belongs to a checkpoint and what does not.

use crate::core::Core;
use crate::ledger::Book;
use crate::overlay::Version;
use crate::table::EngineTable;
use crate::visibility::{Outcome, SnapshotTicket};
use pando_base::Timestamp;
use pando_engine_log::LogPosition;
use pando_engine_runs::Stamp;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Where a checkpoint is to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// At everything committed.
    Full,
    /// At the stable timestamp.
    Stable,
    /// At an earlier stable timestamp.
    At(Timestamp),
}

/// One moment of the engine.
pub struct Cut {
    /// The last published commit.
    pub sequence: u64,
    /// The log's end.
    pub position: LogPosition,
    /// The stable timestamp; none takes everything.
    pub stable: Option<Timestamp>,
    /// The oldest timestamp.
    pub oldest: Timestamp,
    /// Versions above stable are taken too.
    pub spill: bool,
    /// Tables whose record in the manifest changes, with their size at the cut.
    pub sizes: Vec<(Arc<EngineTable>, Book)>,
    /// The tables there are.
    pub tables: Vec<Arc<EngineTable>>,
    /// The last table number given.
    pub last_table: u64,
    /// The engine's count of changes.
    pub changes: u64,
    /// Bytes ever appended to the log.
    pub log_bytes: u64,
    _snapshot: SnapshotTicket,
}

impl Core {
    /// Takes the cut. Commits, creations and drops happen under the log's lock, so none of them is half in it.
    pub(super) fn take_cut(&self, target: Target, spill: bool) -> Cut {
        let log_bytes = self.log.statistics().appended_bytes;
        let guard = self.log.lock();
        let stable = match target {
            Target::Full => None,
            Target::Stable => Some(self.keeper.stable()),
            Target::At(timestamp) => Some(timestamp),
        };
        let oldest = self.keeper.begin_checkpoint(stable);
        let tables = self.registry.all();
        let sizes = tables.iter().filter_map(|table| {
            let book = table.ledger.lock().book(stable.filter(|_| !table.logged));
            let changed = !table.is_in_manifest() || book != *table.checkpointed.lock();
            changed.then(|| (table.clone(), book))
        });
        let snapshot = self.snapshots.open(Timestamp::MAX);
        Cut {
            sequence: snapshot.sequence(),
            position: self.replaying.lock().unwrap_or_else(|| guard.position()),
            stable,
            oldest,
            spill,
            sizes: sizes.collect(),
            tables,
            last_table: self.registry.last_id(),
            changes: self.changes.load(Ordering::Relaxed),
            log_bytes,
            _snapshot: snapshot,
        }
    }
}

impl Cut {
    /// As the mark tells it.
    pub fn recorded_stable(&self) -> Timestamp {
        self.stable.unwrap_or(Timestamp::NONE)
    }

    /// The version's stamp if it belongs to the checkpoint. The answer never changes: what is published by the cut has its
    /// outcome, and what commits later has a later sequence.
    ///
    /// Everything in a logged table is taken: the log before the cut is no longer applied.
    pub fn takes(&self, table: &EngineTable, version: &Version) -> Option<Stamp> {
        let Outcome::Committed { stamp, commit_sequence } = version.outcome() else { return None };
        let all = table.logged || self.spill || stamp.commit.is_none();
        let stable = all || self.stable.is_none_or(|stable| stamp.durable <= stable);
        (commit_sequence <= self.sequence && stable).then_some(stamp)
    }
}
