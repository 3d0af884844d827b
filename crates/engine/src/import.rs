//! Import: tables of a copied store become tables of this one, under new numbers.
//!
//! The source is opened for reading only, which applies its log in memory: a backup's files can be taken in as they are,
//! whether their store was shut down or not, and stay as they are. If the log added nothing to the chosen tables, the
//! source's runs are streamed into runs of this store; otherwise the pairs are read through the source's overlay. Either way
//! the newest versions are taken, without their timestamps: the source's history means nothing here, and a stable timestamp
//! of this store must not take imported data back. Records and bytes are taken over from the source's books.
//!
//! All tables become part of this store in one edit of the manifest, which is durable before they can be seen. The log is
//! not told: recovery finds the tables in the manifest.

use crate::checkpoint::table_write_options;
use crate::core::Core;
use crate::cursor::EngineCursor;
use crate::failure::of_runs;
use crate::ledger::Book;
use crate::open::{self, BASE_DIRECTORY};
use crate::options::EngineOptions;
use crate::redo::TableDescription;
use crate::registry::record_of;
use crate::table::EngineTable;
use pando_engine_runs::{Edit, ImportHistory, ImportSource, ImportTable, NewRuns, Stamp, Version, WriterOptions};
use pando_storage::{
    BeginOptions, Cursor, Entry, ImportedTable, PrepareBehaviour, Result, StorageError, Table, TableBody,
};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// What the source may use for its caches; blocks are read once.
const SOURCE_MEMORY_BYTES: u64 = 64 << 20;

/// A table of the source and what it becomes.
struct Chosen {
    from: Arc<EngineTable>,
    to: Arc<EngineTable>,
    book: Book,
}

impl Core {
    /// Takes in tables of the store in another directory, which nobody has open.
    pub fn import(&self, directory: &Path, rename: &dyn Fn(&str) -> Option<String>) -> Result<Vec<ImportedTable>> {
        self.check_running()?;
        let options = EngineOptions { read_only: true, memory_bytes: SOURCE_MEMORY_BYTES, ..EngineOptions::default() };
        let source = open::open(&self.env, directory, options)?;
        let chosen = self.choose(&source, rename)?;
        let in_base = chosen.iter().all(|table| table.from.overlay.is_empty() && table.from.ranges.is_empty());
        let runs = match in_base {
            true => self.stream_runs(&directory.join(BASE_DIRECTORY), &chosen)?,
            false => self.copy_pairs(&source, &chosen)?,
        };
        self.take_in(&chosen, runs)?;
        let told =
            chosen.into_iter().map(|table| ImportedTable { ident: table.from.ident().to_owned(), table: table.to });
        Ok(told.collect())
    }

    fn choose(&self, source: &Core, rename: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Chosen>> {
        let mut chosen = Vec::new();
        let mut names = BTreeSet::new();
        for from in source.registry.all() {
            let Some(ident) = rename(from.ident()) else { continue };
            if self.registry.by_ident(&ident).is_some() || !names.insert(ident.clone()) {
                return Err(StorageError::IdentExists(ident));
            }
            let book = Book { settled: from.ledger.lock().latest(), ..Book::default() };
            let id = self.registry.next_id();
            let description = TableDescription { id, ident, options: from.options().clone() };
            let to = self.registry.make(&self.runs, description, book.clone());
            chosen.push(Chosen { from, to, book });
        }
        Ok(chosen)
    }

    /// From the source's runs.
    fn stream_runs(&self, base: &Path, chosen: &[Chosen]) -> Result<NewRuns> {
        let source = ImportSource::open(&self.env, base).map_err(of_runs)?;
        let tables =
            chosen.iter().map(|table| ImportTable { from: table.from.id(), to: record_of(&table.to, &table.book) });
        let tables: Vec<ImportTable> = tables.collect();
        let written = self.runs.write_import(&source, &tables, ImportHistory::Newest);
        written.map(|(runs, _)| runs).map_err(|error| self.noted(of_runs(error)))
    }

    /// From the source's runs and what its log has beyond them.
    fn copy_pairs(&self, source: &Arc<Core>, chosen: &[Chosen]) -> Result<NewRuns> {
        let mut writer = self.runs.writer(WriterOptions::default()).map_err(of_runs)?;
        for table in chosen {
            writer.begin_table(table.to.id(), table_write_options(&table.to)).map_err(of_runs)?;
            let options = BeginOptions { prepare: PrepareBehaviour::Ignore, ..BeginOptions::default() };
            let view = Arc::new(source.open_view(&options)?);
            let mut cursor = EngineCursor::new(source.clone(), table.from.clone() as Table, view);
            let mut entry = cursor.first()?;
            while let Some(Entry { key, value }) = entry {
                let version = Version { stamp: Stamp::SETTLED, value: Some(value) };
                writer.add_version(key, version).map_err(of_runs)?;
                entry = cursor.next()?;
            }
            writer.finish_table().map_err(of_runs)?;
        }
        writer.finish().map_err(|error| self.noted(of_runs(error)))
    }

    fn take_in(&self, chosen: &[Chosen], runs: NewRuns) -> Result<()> {
        let _one_at_a_time = self.creating.lock();
        // Somebody else may have made a table of this name meanwhile.
        if let Some(taken) = chosen.iter().find(|table| self.registry.by_ident(table.to.ident()).is_some()) {
            return Err(StorageError::IdentExists(taken.to.ident().to_owned()));
        }
        let create = chosen.iter().map(|table| record_of(&table.to, &table.book)).collect();
        self.install(Edit { add: Some(runs), create, ..Edit::default() })?;
        self.change_in_sequence(None, |_| {
            for table in chosen {
                table.to.set_in_manifest();
                self.registry.insert(table.to.clone());
            }
        })?;
        Ok(())
    }
}
