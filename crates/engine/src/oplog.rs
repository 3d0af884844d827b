//! The log, read as the oplog.

use crate::core::Core;
use crate::failure::of_log;
use pando_base::Timestamp;
use pando_engine_log::OplogReader;
use pando_storage::{Oplog, OplogCursor, OplogEntry, OplogPin, Result, TableSize, TruncateMarker, Wait};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The oplog of an engine.
pub struct EngineOplog {
    core: Arc<Core>,
    pins: AtomicU64,
}

impl EngineOplog {
    /// Of this engine.
    pub fn new(core: Arc<Core>) -> EngineOplog {
        EngineOplog { core, pins: AtomicU64::new(0) }
    }
}

impl Core {
    /// The newest oplog entry.
    pub fn oplog_last(&self) -> Result<Option<Timestamp>> {
        Ok(self.has_oplog().then(|| self.log.oplog().last()).flatten())
    }

    /// The oplog's new end is what it is now; all_durable follows.
    fn oplog_was_cut(&self) -> Result<()> {
        self.keeper.restart_from(self.oplog_last()?.unwrap_or(Timestamp::NONE));
        self.no_holes_moved();
        Ok(())
    }
}

struct Reader {
    core: Arc<Core>,
    reader: OplogReader,
}

impl Reader {
    fn new(core: &Arc<Core>, reader: OplogReader) -> Box<Reader> {
        Box::new(Reader { core: Arc::clone(core), reader })
    }
}

fn entry((timestamp, entry): (Timestamp, bytes::Bytes)) -> OplogEntry {
    OplogEntry { timestamp, entry }
}

impl OplogCursor for Reader {
    fn seek(&mut self, timestamp: Timestamp) -> Result<Option<OplogEntry>> {
        Ok(self.reader.seek(timestamp).map_err(|error| self.core.noted(of_log(error)))?.map(entry))
    }

    fn next(&mut self) -> Result<Option<OplogEntry>> {
        Ok(self.reader.advance().map_err(|error| self.core.noted(of_log(error)))?.map(entry))
    }
}

/// A named pin of the log.
struct Pin {
    core: Arc<Core>,
    name: String,
}

impl OplogPin for Pin {
    fn advance(&self, timestamp: Timestamp) {
        self.core.log.pin(&self.name, timestamp);
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.core.log.unpin(&self.name);
    }
}

impl Oplog for EngineOplog {
    fn forward(&self) -> Result<Box<dyn OplogCursor>> {
        Ok(Reader::new(&self.core, self.core.log.oplog().forward()))
    }

    fn backward(&self) -> Result<Box<dyn OplogCursor>> {
        Ok(Reader::new(&self.core, self.core.log.oplog().backward()))
    }

    fn first(&self) -> Option<Timestamp> {
        self.core.log.oplog().first()
    }

    fn last(&self) -> Option<Timestamp> {
        self.core.log.oplog().last()
    }

    fn visible(&self) -> Timestamp {
        self.core.keeper.all_durable()
    }

    fn wait_visible(&self, timestamp: Timestamp) -> Wait {
        let (oplog, blocking) = (self.core.log.oplog(), self.core.log.oplog());
        let generation = oplog.generation();
        Wait::new(
            async move { oplog.wait_for_visible_after_async(timestamp, generation).await.map_err(of_log) },
            move || blocking.wait_for_visible_after(timestamp, generation).map_err(of_log),
        )
    }

    fn size(&self) -> TableSize {
        let oplog = self.core.log.oplog();
        TableSize::new(oplog.count() as i64, oplog.size_bytes() as i64)
    }

    fn truncate_after(&self, timestamp: Timestamp, inclusive: bool) -> Result<()> {
        self.core.check_running()?;
        let cut = self.core.log.truncate_oplog_after(timestamp, inclusive);
        cut.map_err(|error| self.core.noted(of_log(error)))?;
        self.core.oplog_was_cut()
    }

    fn reset(&self) -> Result<()> {
        self.core.check_running()?;
        self.core.log.reset_oplog().map_err(|error| self.core.noted(of_log(error)))?;
        self.core.oplog_was_cut()
    }

    fn truncate_old(&self) -> Result<usize> {
        self.core.check_running()?;
        Ok(self.core.truncate_oplog()?.markers as usize)
    }

    fn set_size_max(&self, bytes: u64) -> Result<()> {
        self.core.log.set_oplog_max_bytes(bytes);
        Ok(())
    }

    fn size_max(&self) -> u64 {
        self.core.log.oplog_max_bytes()
    }

    fn set_retention_min(&self, milliseconds: u64) -> Result<()> {
        self.core.log.set_oplog_min_retention_ms(milliseconds);
        Ok(())
    }

    fn markers(&self) -> Vec<TruncateMarker> {
        let markers = self.core.log.truncate_markers();
        let whole = markers.split_last().map(|(_, whole)| whole).unwrap_or_default();
        // A segment without entries is nothing that the oplog could drop.
        let told = whole.iter().filter(|marker| marker.records > 0).map(|marker| TruncateMarker {
            last: marker.last,
            wall_ms: marker.wall_ms,
            bytes: marker.bytes,
            records: marker.records,
        });
        told.collect()
    }

    fn pin(&self, name: &str, timestamp: Timestamp) -> Result<Arc<dyn OplogPin>> {
        // Two pins of one name must not lift each other.
        let number = self.pins.fetch_add(1, Ordering::Relaxed);
        let name = format!("{name}#{number}");
        self.core.log.pin(&name, timestamp);
        Ok(Arc::new(Pin { core: self.core.clone(), name }))
    }
}
