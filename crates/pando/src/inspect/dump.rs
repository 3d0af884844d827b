//! `dump`: keys and values of one table, as committed.

use crate::error::{PandoError, Result};
use crate::show;
use clap::Args;
use pando_storage::{Cursor, Engine, Entry};
use std::io::Write;

/// Bytes of a key or value that are shown unless all are asked for.
const SHOWN_BYTES_MAX: usize = 200;

/// Which part of which table.
#[derive(Args)]
pub struct Dump {
    /// The table's name
    table: String,
    /// Begins at this key, given as text or as 0x and hexadecimal digits
    #[arg(long)]
    start: Option<String>,
    /// How many pairs; 0 for all
    #[arg(long, default_value_t = 100)]
    limit: u64,
    /// Goes backward
    #[arg(long)]
    reverse: bool,
    /// Shows long keys and values to their end
    #[arg(long)]
    whole: bool,
}

impl Dump {
    pub fn run(&self, engine: &dyn Engine, out: &mut dyn Write) -> Result<()> {
        let start = self.start.as_deref().map(show::parse_bytes).transpose().map_err(PandoError::Argument)?;
        let table = engine.open_table(&self.table)?;
        let mut cursor = engine.committed_cursor(&table)?;
        let length_max = if self.whole { usize::MAX } else { SHOWN_BYTES_MAX };
        let mut count = 0;
        let mut entry = self.begin(&mut *cursor, start.as_deref())?;
        while let Some(Entry { key, value }) = entry {
            if count == self.limit && self.limit != 0 {
                return Ok(writeln!(out, "… and more; --limit 0 shows all")?);
            }
            writeln!(out, "{} = {}", show::bytes(key, length_max), show::bytes(value, length_max))?;
            count += 1;
            entry = if self.reverse { cursor.previous()? } else { cursor.next()? };
        }
        Ok(writeln!(out, "{count} pairs")?)
    }

    fn begin<'a>(&self, cursor: &'a mut dyn Cursor, start: Option<&[u8]>) -> Result<Option<Entry<'a>>> {
        Ok(match (start, self.reverse) {
            (None, false) => cursor.first()?,
            (None, true) => cursor.last()?,
            (Some(start), false) => cursor.seek(start)?,
            (Some(start), true) => cursor.seek_back(start)?,
        })
    }
}
