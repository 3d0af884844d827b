//! A store for a human: what the dump tool prints.

use crate::manifest::state::{RunState, State};
use crate::store::Runs;
use crate::{TableId, TableRecord, UpperBound, file_name};
use pando_base::Timestamp;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

/// What a store consists of.
#[derive(Clone)]
pub struct Description {
    directory: PathBuf,
    identity: u64,
    manifest: PathBuf,
    manifest_bytes: u64,
    state: State,
}

impl Runs {
    /// The store as it is, to be printed.
    pub fn describe(&self) -> Description {
        let manifest = self.shared.manifest.lock();
        Description {
            directory: self.shared.directory.clone(),
            identity: manifest.identity(),
            manifest: manifest.path().to_owned(),
            manifest_bytes: manifest.length_bytes(),
            state: manifest.state().clone(),
        }
    }
}

impl Description {
    /// The table with this ident.
    pub fn table(&self, ident: &str) -> Option<&TableRecord> {
        self.state.tables.values().map(|table| &table.record).find(|record| record.ident == ident)
    }

    /// Only this table.
    pub fn only(mut self, table: TableId) -> Description {
        self.state.tables.retain(|id, _| *id == table);
        self
    }
}

impl Display for Description {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "base in {}", self.directory.display())?;
        writeln!(f, "  identity {:016x}", self.identity)?;
        writeln!(f, "  manifest {}, {} bytes", self.manifest.display(), self.manifest_bytes)?;
        match &self.state.mark {
            None => writeln!(f, "  no checkpoint")?,
            Some(mark) => writeln!(
                f,
                "  checkpoint up to sequence {}, log segment {} offset {}, stable {}, oldest {}, {} bytes of its own",
                mark.sequence_cut,
                mark.log_segment,
                mark.log_offset,
                mark.stable,
                mark.oldest,
                mark.extra.len()
            )?,
        }
        writeln!(f, "  {} files", self.state.files.len())?;
        for (id, file) in &self.state.files {
            let name = file_name(*id);
            writeln!(
                f,
                "    {name}: {} bytes, {} of them in {} parts",
                file.length_bytes, file.live_bytes, file.parts
            )?;
        }
        writeln!(f, "  {} tables", self.state.tables.len())?;
        for table in self.state.tables.values() {
            let record = &table.record;
            writeln!(
                f,
                "    table {} {:?}: {} records, {} bytes",
                record.id, record.ident, record.records, record.bytes
            )?;
            table.runs.iter().try_for_each(|run| write_run(f, run))?;
        }
        Ok(())
    }
}

fn write_run(f: &mut Formatter<'_>, run: &RunState) -> fmt::Result {
    writeln!(f, "      run {}: {} parts, {} bytes", run.id, run.run.parts.len(), run.run.length_bytes())?;
    for part in &run.run.parts {
        write!(f, "        {} at {}, {} bytes: ", file_name(part.file), part.offset, part.length_bytes)?;
        write!(
            f,
            "{} keys ({} deleted), {} versions ({} unsettled)",
            part.keys, part.deleted_keys, part.versions, part.unsettled
        )?;
        if part.history_bytes > 0 {
            write!(f, ", {} bytes of history", part.history_bytes)?;
        }
        if part.range_tombstones > 0 {
            write!(f, ", {} range tombstones", part.range_tombstones)?;
        }
        if part.fence != Timestamp::MAX {
            write!(f, ", dead after {}", part.fence)?;
        }
        let last = match &part.bounds.last {
            UpperBound::Included(key) => format!("{}]", readable(key)),
            UpperBound::Excluded(key) => format!("{})", readable(key)),
            UpperBound::Unbounded => "end)".to_owned(),
        };
        writeln!(f, ", keys [{}, {last}", readable(&part.bounds.first))?;
    }
    Ok(())
}

/// A key for the eye: hexadecimal, cut when long.
pub(crate) fn readable(key: &[u8]) -> String {
    let shown = &key[..key.len().min(24)];
    let hexadecimal: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    if shown.len() < key.len() { format!("{hexadecimal}... ({} bytes)", key.len()) } else { hexadecimal }
}
