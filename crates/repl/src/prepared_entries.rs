//! Keeps the oplog entries of prepared transactions: their writes are nowhere else, so that a start after a crash makes them anew
//! from there.
//!
//! A transaction that has ended needs them until a checkpoint has what it did: recovery that begins before its end meets the end and
//! looks for the entries. While a node starts everything is kept, until all that is prepared has been made anew.
//!
//! Its lock is taken after no other and held for a few instructions.

use pando_base::{Error, Result, Timestamp};
use pando_storage::{Engine, OplogPin};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

const PIN_NAME: &str = "prepared";

/// What is kept, and why.
pub(crate) struct PreparedEntries {
    engine: Arc<dyn Engine>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Everything, while the node starts.
    all: Option<Arc<dyn OplogPin>>,
    /// From the first entry on, by the time of preparation.
    prepared: BTreeMap<Timestamp, Arc<dyn OplogPin>>,
    /// Those of transactions that ended, with the time of their ends.
    ended: Vec<(Timestamp, Arc<dyn OplogPin>)>,
}

impl PreparedEntries {
    /// In this engine's oplog.
    pub(crate) fn new(engine: Arc<dyn Engine>) -> PreparedEntries {
        PreparedEntries { engine, kept: Mutex::default() }
    }

    /// Keeps entries from this one on, as long as what is given back lives or is handed to [`Self::prepared`].
    pub(crate) fn keep(&self, first: Timestamp) -> Result<Arc<dyn OplogPin>> {
        let oplog = self.engine.oplog().ok_or_else(|| Error::internal("what is prepared needs an oplog"))?;
        Ok(oplog.pin(PIN_NAME, first)?)
    }

    /// A transaction is prepared, as of this time.
    pub(crate) fn prepared(&self, prepared: Timestamp, pin: Arc<dyn OplogPin>) {
        self.kept.lock().prepared.insert(prepared, pin);
    }

    /// It has ended by an entry of this time.
    pub(crate) fn ended(&self, prepared: Timestamp, end: Timestamp) {
        let mut kept = self.kept.lock();
        if let Some(pin) = kept.prepared.remove(&prepared) {
            kept.ended.push((end, pin));
        }
    }

    /// Lets go what the last checkpoint has.
    pub(crate) fn let_go(&self) {
        if self.kept.lock().ended.is_empty() {
            return;
        }
        let checkpoint = self.engine.timestamps().checkpoint;
        let gone: Vec<_> = self.kept.lock().ended.extract_if(.., |(end, _)| *end <= checkpoint).collect();
        // The log's lock is not taken below this one.
        drop(gone);
    }

    /// Keeps everything: the node starts.
    pub(crate) fn keep_all(&self) -> Result<()> {
        let pin = self.keep(Timestamp(1))?;
        self.kept.lock().all = Some(pin);
        Ok(())
    }

    /// All that is prepared has its own keeping. What recovery has done again is in no checkpoint yet: until one has it, the next
    /// recovery may need whatever this one did.
    pub(crate) fn started(&self) {
        let last = self.engine.oplog().and_then(|oplog| oplog.last()).unwrap_or_default();
        let mut kept = self.kept.lock();
        if let Some(pin) = kept.all.take() {
            kept.ended.push((last, pin));
        }
    }
}
