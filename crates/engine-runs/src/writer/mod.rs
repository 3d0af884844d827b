//! Writing runs: sorted versions in, checked and durable files out.
//!
//! Tables follow each other; small ones share a file, a large one goes on in further files. Blocks are encoded and compressed
//! by a [`pipeline`] (on other threads where there are any) and placed into the file in order by [`section`];
//! [`output`] owns the file. Nothing becomes part of the store here: the result is a [`NewRuns`].
//!
//! Rules for the caller, checked: keys of a table ascend strictly; versions of a key come newest first; range tombstones come
//! before the first key of their table.

mod dictionary;
mod output;
mod pipeline;
mod section;
#[cfg(test)]
mod tests;

use crate::new_runs::FileGuard;
use crate::walk;
use crate::{
    FileDescriptor, FileId, FilterPrefix, NewRuns, RangeTombstone, Result, RunDescriptor, RunFile, RunsError, TableId,
    Version,
};
use output::Output;
use pando_env::Env;
pub use pipeline::IsHurried;
use pipeline::Pipeline;
use section::SectionWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a writer lays out and compresses. The defaults are the measured ones.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// A data block is closed when its keys and values reach this.
    pub block_bytes: usize,
    /// The same for history blocks, which are read less often.
    pub history_block_bytes: usize,
    /// But not with fewer versions than this, unless it is many times as large: versions of a key are much alike, and only the first
    /// in a block has nothing to be like.
    pub history_versions_min: usize,
    /// A file is closed at the first key after this.
    pub file_bytes: u64,
    /// The zstd level.
    pub level: i32,
    /// The size of a table's dictionary; zero for none.
    pub dictionary_bytes: usize,
    /// A table's values are coded by phrases if that makes a sample at most this large, in percent of what zstd makes of
    /// it in one piece; zero for never.
    pub phrases_percent_max: u64,
    /// Larger values get a frame of their own.
    pub inline_value_bytes_max: usize,
    /// Threads that may compress, the caller's included; never more than the environment has.
    pub threads: usize,
}

impl Default for WriterOptions {
    fn default() -> Self {
        WriterOptions {
            block_bytes: 4 << 10,
            history_block_bytes: 16 << 10,
            history_versions_min: 32,
            file_bytes: 64 << 20,
            level: 1,
            dictionary_bytes: 4 << 10,
            phrases_percent_max: 108,
            inline_value_bytes_max: 16 << 10,
            threads: 4,
        }
    }
}

/// How one table is written.
#[derive(Clone, Debug, Default)]
pub struct TableWriteOptions {
    /// What of each key the filters know.
    pub filter_prefix: FilterPrefix,
    /// The table's name, kept in the file for salvage only.
    pub ident: String,
}

/// Writes one run for each of a list of tables. Dropping it before [`RunWriter::finish`] removes its files.
pub struct RunWriter {
    env: Env,
    directory: PathBuf,
    numbers: Arc<AtomicU64>,
    options: WriterOptions,
    pipeline: Pipeline,
    output: Option<Output>,
    table: Option<(TableId, SectionWriter)>,
    files: Vec<FileDescriptor>,
    tables: Vec<(TableId, RunDescriptor)>,
    guard: FileGuard,
    written_bytes: u64,
}

impl RunWriter {
    /// A writer into a directory. `numbers` holds the next free file number.
    pub fn new(env: &Env, directory: &Path, numbers: Arc<AtomicU64>, options: WriterOptions) -> RunWriter {
        RunWriter {
            env: env.clone(),
            directory: directory.to_path_buf(),
            numbers,
            pipeline: Pipeline::new(env, options.threads, options.level),
            options,
            output: None,
            table: None,
            files: Vec::new(),
            tables: Vec::new(),
            guard: FileGuard::new(env.disk().clone()),
            written_bytes: 0,
        }
    }

    /// Compresses on threads that take only what others leave of the processors, until this says that there is no more time.
    pub fn standing_back_until(mut self, is_hurried: IsHurried) -> RunWriter {
        self.pipeline.stand_back_until(is_hurried);
        self
    }

    /// Begins a table; the one before must be finished.
    pub fn begin_table(&mut self, table: TableId, options: TableWriteOptions) -> Result<()> {
        if self.table.is_some() {
            return Err(RunsError::Invalid("the previous table is not finished".into()));
        }
        self.table = Some((table, SectionWriter::new(options)));
        Ok(())
    }

    /// Adds a key with all its versions, newest first.
    pub fn add(&mut self, key: &[u8], versions: &[Version<'_>]) -> Result<()> {
        versions.iter().try_for_each(|version| self.add_version(key, *version))
    }

    /// Adds one version. The same key as before means the next older version of it.
    pub fn add_version(&mut self, key: &[u8], version: Version<'_>) -> Result<()> {
        let Some((_, section)) = &mut self.table else { return Err(no_table()) };
        let is_new = section.is_next_key(key)?;
        self.add_at(key, is_new, version)
    }

    /// Adds the only version of a key.
    pub fn add_key(&mut self, key: &[u8], version: Version<'_>) -> Result<()> {
        let Some((_, section)) = &mut self.table else { return Err(no_table()) };
        match section.is_next_key(key)? {
            true => self.add_at(key, true, version),
            false => Err(keys_must_ascend()),
        }
    }

    fn add_at(&mut self, key: &[u8], is_new: bool, version: Version<'_>) -> Result<()> {
        let Some((_, section)) = &mut self.table else { return Err(no_table()) };
        if is_new {
            if section.is_block_full(&self.options) {
                section.cut_data_block(Some(key), &mut self.pipeline);
                self.place_finished_blocks()?;
            }
            if self.output.as_ref().is_some_and(|output| output.offset() >= self.options.file_bytes) {
                if self.table.as_ref().is_some_and(|(_, section)| section.part_has_keys()) {
                    self.end_part(Some(key))?;
                }
                self.close_file()?;
            }
        }
        self.open_file()?;
        let (Some((_, section)), Some(output)) = (&mut self.table, &mut self.output) else { return Err(no_table()) };
        section.add(key, is_new, version, &self.options, output, &mut self.pipeline)
    }

    /// Adds a range tombstone, before the first key of the table. It acts on older runs only, see [`RangeTombstone`].
    pub fn add_range_tombstone(&mut self, tombstone: RangeTombstone) -> Result<()> {
        let Some((_, section)) = &mut self.table else { return Err(no_table()) };
        section.add_range_tombstone(tombstone)
    }

    /// Ends the current table.
    pub fn finish_table(&mut self) -> Result<()> {
        if self.table.as_ref().is_some_and(|(_, section)| !section.is_blank()) {
            self.open_file()?;
            self.end_part(None)?;
        }
        let Some((table, section)) = self.table.take() else { return Err(no_table()) };
        let parts = section.into_parts();
        if !parts.is_empty() {
            self.tables.push((table, RunDescriptor { parts }));
        }
        Ok(())
    }

    /// Ends the last file, checks all of them and makes them durable.
    pub fn finish(mut self) -> Result<NewRuns> {
        if self.table.is_some() {
            self.finish_table()?;
        }
        self.close_file()?;
        for descriptor in &self.files {
            walk::check_file(&RunFile::new(&self.env, &self.directory, descriptor.clone()))?;
        }
        if !self.files.is_empty() {
            let synced = self.env.disk().sync_directory(&self.directory);
            synced.map_err(|source| RunsError::io(&self.directory, "sync directory", source))?;
        }
        let empty = FileGuard::new(self.env.disk().clone());
        let guard = std::mem::replace(&mut self.guard, empty);
        Ok(NewRuns::new(std::mem::take(&mut self.files), std::mem::take(&mut self.tables), guard))
    }

    /// Bytes written to files so far, for pacing.
    pub fn bytes_written(&self) -> u64 {
        self.written_bytes + self.output.as_ref().map_or(0, Output::offset)
    }

    /// The files begun so far.
    pub fn files_begun(&self) -> Vec<FileId> {
        let open = self.output.as_ref().map(|output| output.id());
        self.files.iter().map(|file| file.id).chain(open).collect()
    }

    fn open_file(&mut self) -> Result<()> {
        if self.output.is_none() {
            let id = self.numbers.fetch_add(1, Ordering::Relaxed);
            let path = self.directory.join(crate::file_name(id));
            let output = Output::create(&self.env, &path, id)?;
            self.guard.protect(path);
            self.output = Some(output);
        }
        Ok(())
    }

    fn close_file(&mut self) -> Result<()> {
        let Some(output) = self.output.take() else { return Ok(()) };
        let descriptor = output.finish()?;
        self.written_bytes += descriptor.length_bytes;
        self.files.push(descriptor);
        Ok(())
    }

    /// Ends the section in the current file. `next_key` is the first key of the table's next part, if there is one.
    fn end_part(&mut self, next_key: Option<&[u8]>) -> Result<()> {
        let (Some((_, section)), Some(output)) = (&mut self.table, &mut self.output) else { return Err(no_table()) };
        section.end_part(next_key, &self.options, output, &mut self.pipeline)
    }

    fn place_finished_blocks(&mut self) -> Result<()> {
        self.open_file()?;
        let (Some((_, section)), Some(output)) = (&mut self.table, &mut self.output) else { return Err(no_table()) };
        section.place_finished(&self.options, output, &mut self.pipeline)
    }
}

fn keys_must_ascend() -> RunsError {
    RunsError::Invalid("keys must ascend".into())
}

fn no_table() -> RunsError {
    RunsError::Invalid("no table was begun".into())
}
