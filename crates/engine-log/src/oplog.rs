//! The log seen as the oplog: what `local.oplog.rs` is served from.
//!
//! Forward readers never pass the no-holes point that the core tells; backward readers start at the very end. A reader
//! notices when the entry on which it stands is truncated away. Waiting for new entries costs nothing while none come.

use crate::index::Found;
use crate::log::Inner;
use crate::reader::{Direction, OplogReader, Window};
use crate::{Log, Result};
use bytes::Bytes;
use pando_base::Timestamp;
use std::sync::Arc;

/// The oplog's side of a log. Clones share it.
#[derive(Clone)]
pub struct Oplog {
    pub(crate) inner: Arc<Inner>,
}

impl Log {
    /// The oplog.
    pub fn oplog(&self) -> Oplog {
        Oplog { inner: Arc::clone(&self.inner) }
    }
}

impl Oplog {
    /// The lowest timestamp, if there is an entry.
    pub fn first(&self) -> Option<Timestamp> {
        self.inner.index.read().first()
    }

    /// The highest timestamp, holes or not.
    pub fn last(&self) -> Option<Timestamp> {
        self.inner.index.read().last()
    }

    /// How many entries there are.
    pub fn count(&self) -> u64 {
        self.inner.index.read().count
    }

    /// Bytes of all entries.
    pub fn size_bytes(&self) -> u64 {
        self.inner.index.read().bytes
    }

    /// Forward readers see entries up to here.
    pub fn visible(&self) -> Timestamp {
        (self.inner.no_holes)()
    }

    /// The entry with exactly this timestamp, visible or not.
    pub fn get(&self, timestamp: Timestamp) -> Result<Option<Bytes>> {
        let mut window = Window::default();
        // A truncation between look-up and read makes the look-up stale; then it is done again.
        loop {
            let generation = self.inner.index.read().generation;
            let Some(found) = self.inner.ask(|index, rows| index.exact(timestamp, rows))? else { return Ok(None) };
            match self.inner.read_entry(&found, &mut window, Direction::Forward) {
                Err(_) if self.inner.index.read().generation != generation => {}
                other => return other.map(Some),
            }
        }
    }

    /// True if there is an entry with exactly this timestamp, visible or not.
    pub fn contains(&self, timestamp: Timestamp) -> Result<bool> {
        Ok(self.exact(timestamp)?.is_some())
    }

    /// A reader in ascending order, before the first entry.
    pub fn forward(&self) -> OplogReader {
        OplogReader::new(self.clone(), Direction::Forward)
    }

    /// A reader in descending order, after the last entry.
    pub fn backward(&self) -> OplogReader {
        OplogReader::new(self.clone(), Direction::Backward)
    }

    /// Changes with each truncation; what the waits below compare.
    pub fn generation(&self) -> u64 {
        self.inner.index.read().generation
    }

    /// Blocks until entries after a timestamp may be visible, or the oplog was truncated since `generation`.
    pub fn wait_for_visible_after(&self, timestamp: Timestamp, generation: u64) -> Result<()> {
        loop {
            let listener = self.inner.visibility.listen();
            if self.wait_is_over(timestamp, generation)? {
                return Ok(());
            }
            listener.wait();
        }
    }

    /// Completes when entries after a timestamp may be visible, or the oplog was truncated since `generation`.
    pub async fn wait_for_visible_after_async(&self, timestamp: Timestamp, generation: u64) -> Result<()> {
        loop {
            let listener = self.inner.visibility.listen();
            if self.wait_is_over(timestamp, generation)? {
                return Ok(());
            }
            listener.wait_async().await;
        }
    }

    fn wait_is_over(&self, timestamp: Timestamp, generation: u64) -> Result<bool> {
        self.inner.check_running()?;
        if self.inner.index.read().generation != generation {
            return Ok(true);
        }
        // Visibility may be ahead of the newest entry; only an entry is worth waking for.
        let to = self.visible();
        Ok(to > timestamp && !self.inner.ask(|index, rows| index.forward(timestamp.next(), to, 1, rows))?.is_empty())
    }

    pub(crate) fn exact(&self, timestamp: Timestamp) -> Result<Option<Found>> {
        self.inner.ask(|index, rows| index.exact(timestamp, rows))
    }
}
