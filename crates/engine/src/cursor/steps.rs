//! The moves of a cursor.

use super::batch::Batch;
use super::{Direction, EngineCursor, Place};
use crate::overlay::RangeRead;
use bytes::Bytes;
use pando_env::Random;
use pando_storage::Result;
use std::cmp::Ordering;
use std::ops::Bound;

/// A random choice that hits deleted keys only is tried this often.
const RANDOM_TRIES: usize = 8;

impl EngineCursor {
    /// To the first entry at or after (before) a key, or after it if `inclusive` is false; no key: from the end.
    pub(super) fn start(&mut self, direction: Direction, key: Option<&[u8]>, inclusive: bool) -> Result<()> {
        self.view()?;
        self.single = false;
        let before = (self.direction, self.place, self.is_on_entry());
        self.remember_key();
        self.direction = direction;
        let bound = match key {
            None => Bound::Unbounded,
            Some(key) if inclusive => Bound::Included(key),
            Some(key) => Bound::Excluded(key),
        };
        self.fetch(bound)?;
        let result = self.advance();
        if result.is_err() {
            // The place is kept: the call can be repeated, and relative moves go on from the last key.
            self.forget_position();
            (self.direction, self.place) = (before.0, if before.2 { Place::At } else { before.1 });
        }
        result
    }

    fn forget_position(&mut self) {
        self.single = false;
        self.batch = None;
        self.base_ready = false;
    }

    /// One step. A change of direction, an own write since, or a repeat after a detach starts anew from the last key.
    pub(super) fn step(&mut self, direction: Direction) -> Result<()> {
        let fresh = {
            let view = self.view()?;
            self.batch.as_ref().is_some_and(|batch| batch.is_fresh(view))
        };
        match self.place {
            Place::Past => return Ok(()),
            Place::Unset => return self.start(direction, None, true),
            Place::At => {
                let key = std::mem::take(&mut self.last_key);
                let result = self.start(direction, Some(&key), false);
                if result.is_err() || !self.is_on_entry() {
                    self.last_key = key;
                }
                return result;
            }
            Place::Overlay(_) | Place::Base => {}
        }
        let goes_on = direction == self.direction && fresh && !self.single;
        if goes_on && self.place == Place::Base && self.base_is_all_there_is() {
            return self.step_in_base();
        }
        if !goes_on {
            self.remember_key();
            self.place = Place::At;
            return self.step(direction);
        }
        self.advance_or_restore()
    }

    /// True if the overlay has nothing to come, to the end of the table.
    fn base_is_all_there_is(&self) -> bool {
        self.base_ready && self.batch.as_ref().is_some_and(|batch| batch.hides_nothing_after(self.upcoming))
    }

    /// One step where the base alone decides. The key is remembered only for steps that may have to read, and so may fail.
    #[inline]
    fn step_in_base(&mut self) -> Result<()> {
        let forward = self.direction == Direction::Forward;
        if self.base.as_mut().is_some_and(|base| base.step_in_block(forward)) {
            return Ok(());
        }
        self.remember_key();
        match self.skip_base() {
            Ok(()) => {
                self.place = if self.base_ready { Place::Base } else { Place::Past };
                Ok(())
            }
            Err(error) => {
                self.forget_position();
                self.place = Place::At;
                Err(error)
            }
        }
    }

    /// After an error the cursor stands at the key it came from, and the step can be repeated.
    fn advance_or_restore(&mut self) -> Result<()> {
        self.remember_key();
        let moved = if self.place == Place::Base { self.skip_base() } else { Ok(()) };
        let result = moved.and_then(|()| self.advance());
        if result.is_err() {
            self.forget_position();
            self.place = Place::At;
        }
        result
    }

    /// Takes a batch from `bound` on, then the base that is current after it, and seeks there.
    fn fetch(&mut self, bound: Bound<&[u8]>) -> Result<()> {
        let view = self.view()?.clone();
        let body = self.body()?;
        let batch = match self.direction {
            Direction::Forward => Batch::forward(body, &view, bound),
            Direction::Backward => Batch::backward(body, &view, bound),
        };
        let generation = body.slot.generation();
        let runs = (self.base.is_none() || generation != self.base_generation).then(|| body.slot.load());
        self.batch = Some(batch);
        self.upcoming = 0;
        if let Some(runs) = runs {
            self.base_generation = generation;
            match &mut self.base {
                Some(base) => base.rebase(runs),
                None => {
                    let base = self.base.insert(runs.cursor(*view.point()));
                    if self.passes_by {
                        base.pass_by();
                    }
                }
            }
        }
        self.seek_base(bound)
    }

    fn seek_base(&mut self, bound: Bound<&[u8]>) -> Result<()> {
        if self.body()?.base_is_hidden(self.view()?.point().sequence) {
            self.base_ready = false;
            return Ok(());
        }
        let Some(base) = &mut self.base else { return Ok(()) };
        let ready = match (self.direction, bound) {
            (Direction::Forward, Bound::Unbounded) => base.first(),
            (Direction::Forward, Bound::Included(key)) => base.seek(key),
            (Direction::Forward, Bound::Excluded(key)) => base.seek_after(key),
            (Direction::Backward, Bound::Unbounded) => base.last(),
            (Direction::Backward, Bound::Included(key)) => base.seek_back(key),
            (Direction::Backward, Bound::Excluded(key)) => base.seek_before(key),
        };
        self.base_ready = ready.map_err(|error| self.core.of_base(error))?;
        Ok(())
    }

    /// Goes to the next entry: the nearer of the batch's and the base's.
    fn advance(&mut self) -> Result<()> {
        loop {
            let Some(batch) = &self.batch else { return Ok(()) };
            if self.upcoming < batch.len() {
                match self.compare_with_base(batch) {
                    Ordering::Less => {
                        if self.take_from_batch(false)? {
                            return Ok(());
                        }
                    }
                    Ordering::Equal => {
                        if self.take_from_batch(true)? {
                            return Ok(());
                        }
                    }
                    Ordering::Greater => {
                        if self.take_from_base()? {
                            return Ok(());
                        }
                    }
                }
                continue;
            }
            if self.base_is_within_reach(batch) {
                if self.take_from_base()? {
                    return Ok(());
                }
                continue;
            }
            match batch.reach().map(<[u8]>::to_vec) {
                None => {
                    self.place = Place::Past;
                    return Ok(());
                }
                Some(reach) => self.fetch_next(&reach)?,
            }
        }
    }

    /// Where the batch's next item stands to the base's, in the direction.
    fn compare_with_base(&self, batch: &Batch) -> Ordering {
        match &self.base {
            Some(base) if self.base_ready => {
                let order = batch.key(self.upcoming).cmp(base.key());
                if self.direction == Direction::Forward { order } else { order.reverse() }
            }
            _ => Ordering::Less,
        }
    }

    fn base_is_within_reach(&self, batch: &Batch) -> bool {
        let Some(base) = self.base.as_ref().filter(|_| self.base_ready) else { return false };
        match (batch.reach(), self.direction) {
            (None, _) => true,
            (Some(reach), Direction::Forward) => base.key() < reach,
            (Some(reach), Direction::Backward) => base.key() >= reach,
        }
    }

    /// The next stretch of the overlay. The base is sought again only if it changed, for it stands right already.
    fn fetch_next(&mut self, reach: &[u8]) -> Result<()> {
        let view = self.view()?.clone();
        let body = self.body()?;
        let (batch, bound) = match self.direction {
            Direction::Forward => {
                let bound = Bound::Included(reach);
                (Batch::forward(body, &view, bound), bound)
            }
            Direction::Backward => {
                let bound = Bound::Excluded(reach);
                (Batch::backward(body, &view, bound), bound)
            }
        };
        let generation = body.slot.generation();
        let runs = (generation != self.base_generation).then(|| body.slot.load());
        self.batch = Some(batch);
        self.upcoming = 0;
        if let (Some(runs), Some(base)) = (runs, &mut self.base) {
            self.base_generation = generation;
            base.rebase(runs);
            self.seek_base(bound)?;
        }
        Ok(())
    }

    /// True if the item is what the cursor stands on now.
    fn take_from_batch(&mut self, base_too: bool) -> Result<bool> {
        let item = self.upcoming;
        let Some(batch) = &self.batch else { return Ok(false) };
        if batch.is_undecided(item) {
            return self.look_again(item);
        }
        if batch.asks_base(item) {
            self.upcoming += 1;
            return if base_too { self.take_from_base() } else { Ok(false) };
        }
        let found = batch.value(item).is_some();
        self.upcoming += 1;
        if base_too {
            self.skip_base()?;
        }
        if found {
            self.place = Place::Overlay(item);
        }
        Ok(found)
    }

    /// The prepared transaction may have ended since the batch was taken, or the view ignores it as long as it has not.
    fn look_again(&mut self, item: usize) -> Result<bool> {
        let view = self.view()?.clone();
        let Some(batch) = &self.batch else { return Ok(false) };
        let found = crate::transaction::get(&self.core, &view, self.body()?, batch.key(item))?;
        if let Some(batch) = &mut self.batch {
            batch.decide(item, found);
        }
        Ok(false)
    }

    fn skip_base(&mut self) -> Result<()> {
        let Some(base) = &mut self.base else { return Ok(()) };
        self.base_ready = match self.direction {
            Direction::Forward => base.next(),
            Direction::Backward => base.prev(),
        }
        .map_err(|error| self.core.of_base(error))?;
        Ok(())
    }

    /// True if the base's entry is what the cursor stands on now; false if a deleted range hides it.
    fn take_from_base(&mut self) -> Result<bool> {
        let (Some(base), Some(batch)) = (&self.base, &self.batch) else { return Ok(false) };
        let hidden = match batch.range_over(base.key()) {
            RangeRead::Nothing => false,
            RangeRead::DeletedBefore(sequence) if base.stamp().sequence >= sequence => false,
            // It may be in the base by now, and what it did not delete there need not be newer any more: see `get`.
            seen @ RangeRead::DeletedBefore(_) => {
                let (view, body) = (self.view()?, self.body()?);
                crate::transaction::read_range(view, body, base.key()) == seen
                    || crate::transaction::get(&self.core, view, body, base.key())?.is_none()
            }
            RangeRead::PrepareConflict => {
                crate::transaction::get(&self.core, self.view()?, self.body()?, base.key())?.is_none()
            }
        };
        if hidden {
            self.skip_base()?;
            return Ok(false);
        }
        self.place = Place::Base;
        Ok(true)
    }

    /// Puts the cursor on a key that was read otherwise.
    pub(super) fn stand_on(&mut self, key: &[u8], value: Option<Bytes>) {
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.forget_position();
        match (value, &self.view) {
            (Some(value), Some(view)) => {
                self.batch = Some(Batch::single(view, key, value));
                self.place = Place::Overlay(0);
                self.upcoming = 1;
                self.single = true;
            }
            _ => self.place = Place::At,
        }
    }

    pub(super) fn choose_random(&mut self, random: &dyn Random) -> Result<()> {
        let view = self.view()?.clone();
        for _ in 0..RANDOM_TRIES {
            let body = self.body()?;
            let base = body.slot.load();
            let base_records = base.estimate(None, None).map_err(|error| self.core.of_base(error))?.records;
            let overlay_keys = body.overlay.len() as u64;
            if base_records + overlay_keys == 0 {
                break;
            }
            let key = match random.below(base_records + overlay_keys) < base_records {
                true => base
                    .random_key(random, view.point())
                    .map_err(|error| self.core.of_base(error))?
                    .map(|key| key.to_vec()),
                false => body.overlay.random_key(random),
            };
            if let Some(key) = key {
                self.start(Direction::Forward, Some(&key), true)?;
                if self.is_on_entry() {
                    return Ok(());
                }
            }
        }
        self.start(Direction::Forward, None, true)
    }
}
