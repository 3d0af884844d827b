//! Cursors: the overlay and the base, merged in key order.
//!
//! The overlay side works in *batches*: the dirty entries of one leaf, each already judged for the view, copied out under
//! the leaf's lock. A batch says how far it reaches; between its ends the overlay is known. The base side is a cursor over
//! the runs that were current *after* the batch was taken. A key that a checkpoint moves from overlay to base meanwhile is
//! therefore in the batch, or in the base, or in both, and then the overlay wins.
//!
//! Nothing that becomes visible after the snapshot can matter, except the transaction's own writes (counted in the view,
//! so that a batch knows that it is stale) and prepared transactions, which are looked up again when they are reached.
//!
//! Invariant: `place` is where the cursor stands; when it is in the base, the base cursor stands there too.

mod batch;
mod steps;

use crate::core::Core;
use crate::table::EngineTable;
use crate::transaction::EngineTransaction;
use crate::visibility::ReadView;
use batch::Batch;
use bytes::Bytes;
use pando_engine_runs::RunCursor;
use pando_env::Random;
use pando_storage::{Cursor, Entry, Result, StorageError, Table, Transaction, prefix_successor};
use std::sync::Arc;

/// Which way a cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Not on an entry; `next` starts at the first key.
    Unset,
    /// On the overlay batch's item of this number.
    Overlay(usize),
    /// On the base cursor's entry.
    Base,
    /// Past the end in the direction of the last move.
    Past,
    /// Between entries, at the key in `last_key`, after a detach or before a repeated call.
    At,
}

/// A cursor of this engine.
pub struct EngineCursor {
    core: Arc<Core>,
    table: Table,
    view: Option<Arc<ReadView>>,
    direction: Direction,
    place: Place,
    batch: Option<Batch>,
    /// The next item of the batch in the direction.
    upcoming: usize,
    base: Option<RunCursor>,
    base_generation: u64,
    /// The base cursor stands on an entry that is still to come.
    base_ready: bool,
    /// The batch is one key that was looked up: it reaches nowhere, the next step starts anew.
    single: bool,
    last_key: Vec<u8>,
    /// What it reads does not stay in the cache.
    passes_by: bool,
}

impl EngineCursor {
    /// A cursor before any seek.
    pub fn new(core: Arc<Core>, table: Table, view: Arc<ReadView>) -> EngineCursor {
        EngineCursor {
            core,
            table,
            view: Some(view),
            direction: Direction::Forward,
            place: Place::Unset,
            batch: None,
            upcoming: 0,
            base: None,
            base_generation: 0,
            base_ready: false,
            single: false,
            last_key: Vec::new(),
            passes_by: false,
        }
    }

    fn view(&self) -> Result<&Arc<ReadView>> {
        self.view.as_ref().ok_or_else(|| StorageError::IllegalOperation("the cursor is detached".into()))
    }

    fn body(&self) -> Result<&EngineTable> {
        let body = self.table.as_any().downcast_ref::<EngineTable>();
        body.ok_or_else(|| StorageError::IllegalOperation("the table belongs to another engine".into()))
    }

    /// Remembers the key stood on, before what holds it moves.
    fn remember_key(&mut self) {
        match (self.place, &self.batch, &self.base) {
            (Place::Overlay(item), Some(batch), _) => {
                self.last_key.clear();
                self.last_key.extend_from_slice(batch.key(item));
            }
            (Place::Base, _, Some(base)) => {
                self.last_key.clear();
                self.last_key.extend_from_slice(base.key());
            }
            _ => {}
        }
    }

    fn is_on_entry(&self) -> bool {
        matches!(self.place, Place::Overlay(_) | Place::Base)
    }

    fn current(&self) -> Result<Option<Entry<'_>>> {
        match (self.place, &self.batch, &self.base) {
            (Place::Overlay(item), Some(batch), _) => {
                Ok(batch.value(item).map(|value| Entry { key: batch.key(item), value }))
            }
            (Place::Base, _, Some(base)) => Ok(Some(Entry {
                key: base.key(),
                value: base.value_slice().map_err(|error| self.core.of_base(error))?,
            })),
            _ => Ok(None),
        }
    }
}

impl Cursor for EngineCursor {
    fn first(&mut self) -> Result<Option<Entry<'_>>> {
        self.start(Direction::Forward, None, true)?;
        self.current()
    }

    fn last(&mut self) -> Result<Option<Entry<'_>>> {
        self.start(Direction::Backward, None, true)?;
        self.current()
    }

    fn seek(&mut self, key: &[u8]) -> Result<Option<Entry<'_>>> {
        self.start(Direction::Forward, Some(key), true)?;
        self.current()
    }

    fn seek_back(&mut self, key: &[u8]) -> Result<Option<Entry<'_>>> {
        self.start(Direction::Backward, Some(key), true)?;
        self.current()
    }

    fn seek_exact(&mut self, key: &[u8]) -> Result<Option<Entry<'_>>> {
        let found = crate::transaction::get(&self.core, self.view()?, self.body()?, key)?;
        self.stand_on(key, found);
        self.current()
    }

    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        self.step(Direction::Forward)?;
        self.current()
    }

    fn previous(&mut self) -> Result<Option<Entry<'_>>> {
        self.step(Direction::Backward)?;
        self.current()
    }

    fn random(&mut self, random: &dyn Random) -> Result<Option<Entry<'_>>> {
        self.choose_random(random)?;
        self.current()
    }

    fn entry(&self) -> Option<Entry<'_>> {
        self.current().ok().flatten()
    }

    fn value_bytes(&self) -> Option<Bytes> {
        match (self.place, &self.batch, &self.base) {
            (Place::Overlay(item), Some(batch), _) => batch.value(item).cloned(),
            (Place::Base, _, Some(base)) => base.value().ok(),
            _ => None,
        }
    }

    fn skip_prefix(&mut self, length: usize) -> Result<Option<Entry<'_>>> {
        self.view()?;
        self.remember_key();
        if !self.is_on_entry() && self.place != Place::At {
            return Ok(None);
        }
        let prefix = self.last_key.get(..length).unwrap_or(&self.last_key);
        match prefix_successor(prefix) {
            Some(successor) => self.seek(&successor),
            None => {
                self.last()?;
                self.next()
            }
        }
    }

    fn pass_by(&mut self) {
        self.passes_by = true;
        if let Some(base) = &mut self.base {
            base.pass_by();
        }
    }

    fn detach(&mut self) {
        self.remember_key();
        if self.is_on_entry() {
            self.place = Place::At;
        }
        self.view = None;
        self.batch = None;
        self.base = None;
        self.base_ready = false;
    }

    fn attach(&mut self, transaction: &dyn Transaction) -> Result<()> {
        let transaction = transaction.as_any().downcast_ref::<EngineTransaction>();
        let transaction = transaction.filter(|transaction| transaction.core().id == self.core.id);
        let transaction =
            transaction.ok_or_else(|| StorageError::IllegalOperation("a transaction of another engine".into()))?;
        EngineTable::of(&self.table, self.core.id)?;
        self.detach();
        self.view = Some(transaction.view().clone());
        Ok(())
    }
}
