//! After a checkpoint: what the base now has is marked, and what nobody needs in memory goes.

use super::cut::Cut;
use crate::core::Core;
use crate::overlay::{Freed, LeafEntry};
use crate::table::EngineTable;
use pando_engine_runs::Stamp;

impl Core {
    pub(super) fn settle(&self, cut: &Cut) {
        for table in cut.tables.iter().filter(|table| !table.overlay.is_empty() || !table.ranges.is_empty()) {
            // The run of a table that was dropped meanwhile may be left out of the base: open cursors go on in the overlay.
            if !table.is_dropped() {
                self.settle_table(cut, table);
            }
        }
    }

    fn settle_table(&self, cut: &Cut, table: &EngineTable) {
        let ranges = settled_ranges(cut, table);
        table.overlay.for_each_leaf(|leaf| {
            if !leaf.dirty && ranges.is_empty() {
                return;
            }
            leaf.fetch(0);
            let mut dirty = false;
            leaf.retain(|entry| {
                for (start, end, stamp) in &ranges {
                    if start.as_ref() <= entry.key() && end.as_ref().is_none_or(|end| entry.key() < end.as_ref()) {
                        // The range leaves the overlay: rows that it deleted must know it themselves.
                        self.memory.add_overhead(entry.chain.enter_deletion(*stamp));
                    }
                }
                let (freed, marked) = entry.chain.mark_in_base(|version| cut.takes(table, version).is_some());
                self.memory.clean(marked);
                self.memory.free(freed);
                match entry.chain.is_clean() {
                    true => self.keep_row(entry),
                    false => {
                        dirty = true;
                        true
                    }
                }
            });
            leaf.dirty = dirty;
        });
        if !ranges.is_empty() {
            table.ranges.retain(|range| cut.takes(table, &range.version).is_none());
        }
    }

    /// Whether a row that the base has stays in memory. A value that is a part of a message would keep all of it, so it gets memory
    /// of its own; unless rows take more than their share already, for then it would be dropped right after.
    fn keep_row(&self, entry: &mut LeafEntry) -> bool {
        let Some(version) = entry.chain.newest_mut().filter(|version| version.is_part()) else { return true };
        if self.memory.row_cache_excess_bytes() == 0 {
            version.detach();
            return true;
        }
        self.memory.free(entry.freed());
        self.counters.evicted_rows.increment();
        false
    }

    /// Drops rows that the base has while they take more than their share, and gives the block cache the rest.
    pub fn balance_memory(&self) {
        let mut excess = self.memory.row_cache_excess_bytes();
        for table in self.registry.all() {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(self.evict_clean(&table, excess));
        }
        self.runs.set_cache_bytes(self.memory.cache_bytes());
    }

    /// Drops clean rows of a table until so many bytes are free; how many were freed.
    fn evict_clean(&self, table: &EngineTable, wanted: u64) -> u64 {
        let mut freed_bytes = 0u64;
        table.overlay.for_each_leaf(|leaf| {
            if freed_bytes >= wanted {
                return;
            }
            leaf.retain(|entry| {
                if !entry.chain.is_clean() {
                    return true;
                }
                let freed: Freed = entry.freed();
                self.memory.free(freed);
                freed_bytes += (freed.clean + freed.dirty) as u64;
                self.counters.evicted_rows.increment();
                false
            });
        });
        freed_bytes
    }
}

type SettledRange = (bytes::Bytes, Option<bytes::Bytes>, Stamp);

fn settled_ranges(cut: &Cut, table: &EngineTable) -> Vec<SettledRange> {
    if table.ranges.is_empty() {
        return Vec::new();
    }
    table.ranges.with(|list| {
        let settled = list
            .iter()
            .filter_map(|range| Some((range.start.clone(), range.end.clone(), cut.takes(table, &range.version)?)));
        settled.collect()
    })
}
