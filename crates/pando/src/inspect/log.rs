//! `log`: the oplog's ends, its size and its newest entries.

use crate::error::Result;
use crate::show;
use clap::Args;
use pando_base::Timestamp;
use pando_storage::{Engine, Oplog, OplogEntry};
use std::io::Write;

/// Bytes of an entry that are shown.
const SHOWN_BYTES_MAX: usize = 200;

/// How much of it.
#[derive(Args)]
pub struct Log {
    /// How many of the newest entries
    #[arg(long, default_value_t = 20)]
    limit: usize,
}

impl Log {
    pub fn run(&self, engine: &dyn Engine, out: &mut dyn Write) -> Result<()> {
        let Some(oplog) = engine.oplog() else {
            return Ok(writeln!(out, "this store stands alone: it has no oplog")?);
        };
        summarise(oplog, out)?;
        let visible = oplog.visible();
        for OplogEntry { timestamp, entry } in self.newest(oplog)? {
            let hidden = if timestamp > visible { " (behind a hole)" } else { "" };
            writeln!(out, "{timestamp}{hidden} {}", show::bytes(&entry, SHOWN_BYTES_MAX))?;
        }
        Ok(())
    }

    /// The newest entries, oldest first.
    fn newest(&self, oplog: &dyn Oplog) -> Result<Vec<OplogEntry>> {
        let mut cursor = oplog.backward()?;
        let mut entries = Vec::new();
        while entries.len() < self.limit {
            match cursor.next()? {
                Some(entry) => entries.push(entry),
                None => break,
            }
        }
        entries.reverse();
        Ok(entries)
    }
}

fn summarise(oplog: &dyn Oplog, out: &mut dyn Write) -> Result<()> {
    let size = oplog.size();
    let bytes = show::size(u64::try_from(size.bytes).unwrap_or(0));
    writeln!(out, "{} entries, {bytes} of at most {}", size.records, show::size(oplog.size_max()))?;
    let place = |timestamp: Option<Timestamp>| timestamp.map_or("none".to_owned(), |timestamp| timestamp.to_string());
    writeln!(out, "first {}, last {}, visible up to {}", place(oplog.first()), place(oplog.last()), oplog.visible())?;
    for marker in oplog.markers() {
        let bytes = show::size(marker.bytes);
        writeln!(out, "can be dropped at once: {} entries, {bytes}, up to {}", marker.records, marker.last)?;
    }
    Ok(())
}
