//! Cursors: each move looks at every key in turn.

use crate::data::View;
use crate::state::{Shared, illegal};
use crate::transaction::ModelTransaction;
use bytes::Bytes;
use pando_env::Random;
use pando_storage::{Cursor, Entry, Result, Transaction};
use std::sync::Arc;

/// Where a cursor is.
#[derive(Clone)]
enum Place {
    /// Not moved yet.
    Start,
    /// On a pair.
    On(Vec<u8>, Bytes),
    /// Past an end.
    Past,
}

/// A cursor of the model.
pub struct ModelCursor {
    shared: Arc<Shared>,
    table: u64,
    /// None while detached.
    view: Option<View>,
    /// It counts among the attached ones.
    counted: bool,
    place: Place,
}

impl ModelCursor {
    /// A cursor of a transaction.
    pub fn attached(shared: &Arc<Shared>, table: u64, view: View) -> ModelCursor {
        shared.state.lock().attached_cursors += 1;
        ModelCursor { shared: shared.clone(), table, view: Some(view), counted: true, place: Place::Start }
    }

    /// A cursor of no transaction.
    pub fn free(shared: &Arc<Shared>, table: u64, view: View) -> ModelCursor {
        ModelCursor { shared: shared.clone(), table, view: Some(view), counted: false, place: Place::Start }
    }

    /// To the first key, in the order of the walk, that `fits` and has a value. After an error the place is unchanged.
    fn find(&mut self, backward: bool, fits: impl Fn(&[u8]) -> bool) -> Result<Option<Entry<'_>>> {
        let Some(view) = self.view else { return illegal("the cursor is detached") };
        let state = self.shared.state.lock();
        let mut keys: Vec<&Vec<u8>> = match state.data.tables.get(&self.table) {
            Some(table) => table.points.keys().filter(|key| fits(key)).collect(),
            None => Vec::new(),
        };
        if backward {
            keys.reverse();
        }
        let mut place = Place::Past;
        for key in keys {
            if let Some(value) = state.read(self.table, key, &view)? {
                place = Place::On(key.clone(), value);
                break;
            }
        }
        drop(state);
        self.place = place;
        Ok(self.entry())
    }

    fn nothing(&self) -> Result<Option<Entry<'_>>> {
        match self.view {
            Some(_) => Ok(None),
            None => illegal("the cursor is detached"),
        }
    }

    fn let_go(&mut self) {
        if std::mem::take(&mut self.counted) {
            self.shared.change(|state| state.attached_cursors -= 1);
        }
    }
}

impl Cursor for ModelCursor {
    fn first(&mut self) -> Result<Option<Entry<'_>>> {
        self.find(false, |_| true)
    }

    fn last(&mut self) -> Result<Option<Entry<'_>>> {
        self.find(true, |_| true)
    }

    fn seek(&mut self, key: &[u8]) -> Result<Option<Entry<'_>>> {
        self.find(false, |candidate| candidate >= key)
    }

    fn seek_back(&mut self, key: &[u8]) -> Result<Option<Entry<'_>>> {
        self.find(true, |candidate| candidate <= key)
    }

    fn seek_exact(&mut self, key: &[u8]) -> Result<Option<Entry<'_>>> {
        self.find(false, |candidate| candidate == key)
    }

    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        match self.place.clone() {
            Place::Start => self.first(),
            Place::On(from, _) => self.find(false, |candidate| candidate > from.as_slice()),
            Place::Past => self.nothing(),
        }
    }

    fn previous(&mut self) -> Result<Option<Entry<'_>>> {
        match self.place.clone() {
            Place::Start => self.last(),
            Place::On(from, _) => self.find(true, |candidate| candidate < from.as_slice()),
            Place::Past => self.nothing(),
        }
    }

    fn random(&mut self, random: &dyn Random) -> Result<Option<Entry<'_>>> {
        let mut count = 0;
        let before = self.place.clone();
        let mut entry = self.first();
        while let Ok(Some(_)) = entry {
            count += 1;
            entry = self.next();
        }
        if let Err(error) = entry {
            self.place = before;
            return Err(error);
        }
        self.first()?;
        for _ in 0..random.below(count) {
            self.next()?;
        }
        Ok(self.entry())
    }

    fn entry(&self) -> Option<Entry<'_>> {
        match &self.place {
            Place::On(key, value) => Some(Entry { key, value }),
            Place::Start | Place::Past => None,
        }
    }

    fn value_bytes(&self) -> Option<Bytes> {
        match &self.place {
            Place::On(_, value) => Some(value.clone()),
            Place::Start | Place::Past => None,
        }
    }

    fn detach(&mut self) {
        self.view = None;
        self.let_go();
    }

    fn attach(&mut self, transaction: &dyn Transaction) -> Result<()> {
        let Some(transaction) = transaction.as_any().downcast_ref::<ModelTransaction>() else {
            return illegal("a transaction of another engine");
        };
        let view = self.shared.state.lock().view_of(transaction.number)?;
        self.let_go();
        self.shared.state.lock().attached_cursors += 1;
        self.counted = true;
        self.view = Some(view);
        Ok(())
    }
}

impl Drop for ModelCursor {
    fn drop(&mut self) {
        self.let_go();
    }
}
