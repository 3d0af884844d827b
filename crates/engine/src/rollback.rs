//! Rollback to stable: what is durable only after the stable timestamp never happened.
//!
//! Quick, because nothing is rewritten: versions leave the overlay, and the runs that have spilled ones get a fence that
//! makes those invisible at once; merges erase them later. The oplog is not touched: replication cuts it. Logged tables are
//! not touched either: what the log has acknowledged stays, and a replay would bring it back.

use crate::core::Core;
use crate::ledger::Book;
use crate::overlay::{Freed, Version};
use crate::registry::record_of;
use crate::table::EngineTable;
use pando_base::Timestamp;
use pando_engine_runs::Edit;
use pando_storage::{EngineEvent, Result, StorageError};

impl Core {
    /// Rolls back. No transaction may be open.
    pub fn roll_back_to_stable(&self) -> Result<()> {
        self.check_running()?;
        let _checkpoint = self.lock_checkpoint();
        let stable = self.keeper.stable();
        if stable.is_none() {
            return Err(StorageError::IllegalOperation("there is no stable timestamp to roll back to".into()));
        }
        let began_ns = self.env.clock().monotonic_ns();
        let mut result = Ok(());
        let quiet = self.snapshots.while_none_open(|| result = self.roll_back_quietly(stable));
        if quiet && result.is_ok() {
            let elapsed_ms = self.env.clock().monotonic_ns().saturating_sub(began_ns) / 1_000_000;
            self.tell(&EngineEvent::RolledBack { stable, elapsed_ms });
        }
        match quiet {
            true => result,
            false => Err(StorageError::Busy("transactions are open".into())),
        }
    }

    fn roll_back_quietly(&self, stable: Timestamp) -> Result<()> {
        let tables: Vec<_> = self.registry.all().into_iter().filter(|table| !table.logged).collect();
        // The fence first: if it cannot be written, nothing has happened.
        let books: Vec<_> = tables.iter().filter_map(|table| Some((table, book_at(table, stable)?))).collect();
        let spilled = tables.iter().any(|table| table.slot.load().max_durable() > stable);
        if spilled || !books.is_empty() {
            // A drop must be durable first, or a crash could bring the table back behind the fence with its old size.
            self.flush()?;
            let update = books.iter().map(|(table, book)| record_of(table, book)).collect();
            self.install(Edit { fence: Some(stable), update, ..Edit::default() })?;
        }
        for (table, book) in books {
            *table.checkpointed.lock() = book;
        }
        for table in &tables {
            self.roll_back_table(table, stable);
        }
        let latest = self.oplog_last()?.unwrap_or(Timestamp::NONE);
        self.keeper.restart_from(latest);
        self.counters.rollbacks_to_stable.increment();
        self.changes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    fn roll_back_table(&self, table: &EngineTable, stable: Timestamp) {
        let dead =
            |version: &Version| version.stamp().is_none_or(|stamp| stamp.commit.is_some() && stamp.durable > stable);
        table.overlay.for_each_leaf(|leaf| {
            leaf.retain(|entry| {
                let mut freed = entry.chain.remove(dead);
                let stays = !entry.chain.is_empty();
                if !stays {
                    freed += Freed { clean: entry.overhead_bytes(), dirty: 0 };
                }
                self.memory.free(freed);
                stays
            });
        });
        table.ranges.retain(|range| !dead(&range.version));
        table.ledger.lock().roll_back(stable);
    }
}

/// The size that the manifest is to have after the rollback, if that differs from what a full checkpoint put there.
fn book_at(table: &EngineTable, stable: Timestamp) -> Option<Book> {
    let mut book = table.checkpointed.lock().clone();
    let dead = book.pending.split_off(&stable.next());
    (!dead.is_empty()).then_some(book)
}
