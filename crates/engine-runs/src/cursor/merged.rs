//! A cursor that shows what one reader sees of a table's runs.
//!
//! With one run it is that run's iterator and a check of each entry. With several, the iterators stand on their next
//! entries in the direction of travel, the one with the nearest key leads, and as long as it stays ahead of the nearest other
//! (the challenger) each step costs one comparison. Through a block that ends before the challenger even that is not needed:
//! where keys only grow, each checkpoint's run lies behind the last, and a scan goes through them as through one.
//!
//! Invariants while `Place::On`: `members` are the iterators that stand on the current key, newest run first; all others
//! stand strictly further on in the direction of travel, or have left their run.

use super::iterator::{BlockPlace, Direction, RunIterator, rank_of};
use crate::block::entries::{Block, Entry};
use crate::section::Part;
use crate::{ReadPoint, Result, Stamp, TableRuns};
use bytes::Bytes;
use std::cell::Cell;
use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

const NOBODY: usize = usize::MAX;
/// So many steps in a row one run leads before it is asked whether it leads to the end of its block.
const STEPS_BEFORE_A_LOOK: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nowhere yet.
    Unset,
    /// Before the first entry.
    Before,
    /// On an entry.
    On,
    /// After the last entry.
    After,
}

/// Where the version that is shown lies.
enum Source {
    Iterator(usize),
    History { part: Arc<Part>, block: Block, entry: Entry },
}

/// What became of a key.
enum Verdict {
    Shown,
    Hidden,
    /// Deleted by a range tombstone of this run.
    Erased(usize),
}

/// A cursor over a table's base. It keeps its files alive.
pub struct RunCursor {
    table: Arc<TableRuns>,
    point: ReadPoint,
    iterators: Vec<RunIterator>,
    has_tombstones: bool,
    place: Place,
    direction: Direction,
    members: Vec<usize>,
    challenger: usize,
    /// Of the block that the leader was in when it was last asked for: whether it ends before the challenger.
    ends_before_challenger: Option<(BlockPlace, bool)>,
    /// How many steps the leader has led.
    led: u32,
    /// For each iterator, the first eight bytes of its key as a number that grows in the direction of travel, and the largest
    /// number if it has left its run.
    ranks: Vec<u64>,
    source: Source,
    loaded: OnceLock<Bytes>,
    scratch: Vec<u8>,
    /// What it reads does not stay in the cache.
    passes_by: bool,
    /// The block that a value was last taken from: the values of a block share one owner.
    whole: Cell<Option<Bytes>>,
}

impl RunCursor {
    pub(crate) fn new(table: Arc<TableRuns>, point: ReadPoint) -> RunCursor {
        let mut cursor = RunCursor {
            table: table.clone(),
            point,
            iterators: Vec::new(),
            has_tombstones: false,
            place: Place::Unset,
            direction: Direction::Forward,
            members: Vec::new(),
            challenger: NOBODY,
            ends_before_challenger: None,
            led: 0,
            ranks: Vec::new(),
            source: Source::Iterator(0),
            loaded: OnceLock::new(),
            scratch: Vec::new(),
            passes_by: false,
            whole: Cell::new(None),
        };
        cursor.rebase(table);
        cursor
    }

    /// Moves to another base of the same table; a seek must follow.
    pub fn rebase(&mut self, table: Arc<TableRuns>) {
        let iterator = if self.passes_by { RunIterator::passing } else { RunIterator::new };
        self.iterators = table.runs().iter().map(|run| iterator(run.clone())).collect();
        // Tombstones of the oldest run delete nothing.
        let newer = table.runs().len().saturating_sub(1);
        self.has_tombstones = table.runs()[..newer].iter().any(|run| run.has_tombstones());
        self.ranks = vec![0; self.iterators.len()];
        self.table = table;
        self.place = Place::Unset;
        self.source = Source::Iterator(0);
        self.loaded.take();
    }

    /// From now on nothing that has to be read stays in the cache; a seek must follow.
    pub fn pass_by(&mut self) {
        self.passes_by = true;
        self.rebase(Arc::clone(&self.table));
    }

    /// Changes who reads; a seek must follow.
    pub fn set_read_point(&mut self, point: ReadPoint) {
        self.point = point;
        self.place = Place::Unset;
    }

    /// The base it reads.
    pub fn table(&self) -> &Arc<TableRuns> {
        &self.table
    }

    /// To the first entry with a key that is not below `key`.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.start(Direction::Forward, |iterator| iterator.seek(key, false))
    }

    /// To the first entry with a key above `key`.
    pub fn seek_after(&mut self, key: &[u8]) -> Result<bool> {
        self.start(Direction::Forward, |iterator| iterator.seek(key, true))
    }

    /// To the last entry with a key that is not above `key`.
    pub fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        self.start(Direction::Backward, |iterator| iterator.seek_back(key, false))
    }

    /// To the last entry with a key below `key`.
    pub fn seek_before(&mut self, key: &[u8]) -> Result<bool> {
        self.start(Direction::Backward, |iterator| iterator.seek_back(key, true))
    }

    /// To the first entry.
    pub fn first(&mut self) -> Result<bool> {
        self.start(Direction::Forward, RunIterator::first)
    }

    /// To the last entry.
    pub fn last(&mut self) -> Result<bool> {
        self.start(Direction::Backward, RunIterator::last)
    }

    /// To the next entry. From nowhere or from before the first that is the first; at the end it stays false.
    #[inline]
    #[allow(clippy::should_implement_trait)] // it is not an iterator: it lends
    pub fn next(&mut self) -> Result<bool> {
        match self.place {
            Place::On if self.direction == Direction::Forward => self.go_on(),
            Place::On => self.turn(Direction::Forward),
            Place::Unset | Place::Before => self.first(),
            Place::After => Ok(false),
        }
    }

    /// To the previous entry. From nowhere or from after the last that is the last; at the start it stays false.
    #[inline]
    pub fn prev(&mut self) -> Result<bool> {
        match self.place {
            Place::On if self.direction == Direction::Backward => self.go_on(),
            Place::On => self.turn(Direction::Backward),
            Place::Unset | Place::After => self.last(),
            Place::Before => Ok(false),
        }
    }

    /// The common step of a scan: to the neighbouring entry, if that takes no more than a look into the block it stands in. False
    /// if it does; then the cursor has not moved. Never fails.
    #[inline]
    pub fn step_in_block(&mut self, forward: bool) -> bool {
        let direction = if forward { Direction::Forward } else { Direction::Backward };
        let Source::Iterator(shown) = self.source else { return false };
        if self.place != Place::On || self.direction != direction || self.loaded.get().is_some() {
            return false;
        }
        if let [only] = self.iterators.as_mut_slice() {
            return only.step_in_block(direction, &self.point);
        }
        if self.has_tombstones || *self.members.as_slice() != [shown] {
            return false;
        }
        if self.leads_through_block(shown) {
            return self.iterators[shown].step_in_block(direction, &self.point);
        }
        let limit = self.ranks.get(self.challenger).copied().unwrap_or(u64::MAX);
        match self.iterators[shown].step_in_block_before(direction, &self.point, limit) {
            Some(rank) => {
                self.ranks[shown] = rank;
                self.led = self.led.saturating_add(1);
                true
            }
            None => false,
        }
    }

    /// True if no other run has anything to say before the end of the block that this one stands in. Runs whose keys are
    /// mixed lead by turns: the look at the block's end is for who has led for a while.
    #[inline]
    fn leads_through_block(&mut self, shown: usize) -> bool {
        if self.led < STEPS_BEFORE_A_LOOK {
            return false;
        }
        let place = self.iterators[shown].block_place();
        match self.ends_before_challenger {
            Some((known, ends_before)) if known == place => ends_before,
            _ => {
                let challenger = self.iterators.get(self.challenger).map(|challenger| challenger.key());
                let ends_before = challenger
                    .is_none_or(|challenger| self.iterators[shown].block_ends_before(challenger, self.direction));
                self.ends_before_challenger = Some((place, ends_before));
                ends_before
            }
        }
    }

    /// True if it stands on an entry.
    pub fn is_valid(&self) -> bool {
        self.place == Place::On
    }

    /// The key of the entry it stands on; empty if it stands on none.
    #[inline]
    pub fn key(&self) -> &[u8] {
        if self.place != Place::On {
            return &[];
        }
        let leader = if self.iterators.len() == 1 { 0 } else { self.members.first().copied().unwrap_or(0) };
        self.iterators.get(leader).map_or(&[], |iterator| iterator.key())
    }

    /// When the shown version was committed.
    #[inline]
    pub fn stamp(&self) -> Stamp {
        match &self.source {
            Source::Iterator(position) => self.iterators.get(*position).map_or(Stamp::SETTLED, |it| it.entry().stamp),
            Source::History { entry, .. } => entry.stamp,
        }
    }

    /// The value, sharing the block's memory where it lies in one.
    #[inline]
    pub fn value(&self) -> Result<Bytes> {
        let Some((part, block, entry)) = self.version() else { return Ok(Bytes::new()) };
        if entry.is_out_of_line() {
            return part.core.value(block.clone(), entry);
        }
        let mut whole = self.whole.take();
        let value = block.share_value(entry, &mut whole);
        self.whole.set(whole);
        Ok(value)
    }

    /// The value as a slice.
    #[inline]
    pub fn value_slice(&self) -> Result<&[u8]> {
        let Some((part, block, entry)) = self.version() else { return Ok(&[]) };
        if !entry.is_out_of_line() {
            return Ok(block.value(entry));
        }
        if let Some(value) = self.loaded.get() {
            return Ok(value);
        }
        let value = part.core.value(block.clone(), entry)?;
        Ok(self.loaded.get_or_init(|| value))
    }

    /// The length of the value, without reading it.
    pub fn value_length(&self) -> u64 {
        self.version().map_or(0, |(_, block, entry)| block.value_length(entry))
    }

    #[inline]
    fn version(&self) -> Option<(&Arc<Part>, &Block, &Entry)> {
        if self.place != Place::On {
            return None;
        }
        match &self.source {
            Source::Iterator(position) => {
                let iterator = self.iterators.get(*position)?;
                Some((iterator.part()?, iterator.block()?, iterator.entry()))
            }
            Source::History { part, block, entry } => Some((part, block, entry)),
        }
    }

    /// Places all iterators and goes to the first visible key from there.
    fn start(&mut self, direction: Direction, place: impl Fn(&mut RunIterator) -> Result<()>) -> Result<bool> {
        self.place = Place::Unset;
        self.direction = direction;
        self.iterators.iter_mut().try_for_each(place)?;
        if let [_] = self.iterators.as_slice() {
            return self.settle_single();
        }
        self.select_anew();
        self.settle_merged()
    }

    /// One step further in the same direction.
    #[inline]
    fn go_on(&mut self) -> Result<bool> {
        if let [only] = self.iterators.as_mut_slice() {
            match self.direction {
                Direction::Forward => only.next(),
                Direction::Backward => only.prev(),
            }
            .inspect_err(|_| self.place = Place::Unset)?;
            return self.settle_single();
        }
        self.place = Place::Unset;
        self.advance_merged()?;
        self.settle_merged()
    }

    /// Turns round on the current key.
    #[cold]
    fn turn(&mut self, direction: Direction) -> Result<bool> {
        if self.iterators.len() == 1 {
            self.direction = direction;
            return self.go_on();
        }
        let mut key = std::mem::take(&mut self.scratch);
        key.clear();
        key.extend_from_slice(self.key());
        let moved = match direction {
            Direction::Forward => self.seek_after(&key),
            Direction::Backward => self.seek_before(&key),
        };
        self.scratch = key;
        moved
    }

    fn leave(&mut self) -> Result<bool> {
        self.place = match self.direction {
            Direction::Forward => Place::After,
            Direction::Backward => Place::Before,
        };
        Ok(false)
    }

    #[inline]
    fn show(&mut self, source: Source) {
        self.source = source;
        self.place = Place::On;
        if self.loaded.get().is_some() {
            self.loaded.take();
        }
    }

    /// With one run: from the iterator's position to the first visible entry.
    #[inline]
    fn settle_single(&mut self) -> Result<bool> {
        loop {
            let Some(iterator) = self.iterators.first() else { return self.leave() };
            if !iterator.is_valid() {
                return self.leave();
            }
            if iterator.is_visible(&self.point) {
                if !iterator.entry().is_deleted() {
                    self.show(Source::Iterator(0));
                    return Ok(true);
                }
            } else if let Some(source) = self.history(0)?.filter(|source| !source.is_deletion()) {
                self.show(source);
                return Ok(true);
            }
            self.place = Place::Unset;
            let Some(iterator) = self.iterators.first_mut() else { return self.leave() };
            match self.direction {
                Direction::Forward => iterator.next()?,
                Direction::Backward => iterator.prev()?,
            }
        }
    }

    /// The visible version in the history of the key that an iterator stands on.
    fn history(&self, position: usize) -> Result<Option<Source>> {
        let Some(iterator) = self.iterators.get(position).filter(|iterator| iterator.entry().has_history()) else {
            return Ok(None);
        };
        let Some(part) = iterator.part() else { return Ok(None) };
        let found = part.find_in_history(iterator.key(), &self.point)?;
        Ok(found.map(|(block, entry)| Source::History { part: part.clone(), block, entry }))
    }

    /// With several runs: from the leader's key to the first visible one.
    #[inline]
    fn settle_merged(&mut self) -> Result<bool> {
        loop {
            if self.members.is_empty() {
                return self.leave();
            }
            match self.judge()? {
                Verdict::Shown => return Ok(true),
                Verdict::Hidden => self.advance_merged()?,
                Verdict::Erased(run) => self.skip_erased(run)?,
            }
        }
    }

    /// Decides what the reader sees of the current key.
    #[inline]
    fn judge(&mut self) -> Result<Verdict> {
        if self.has_tombstones {
            return self.judge_with_tombstones();
        }
        for position in 0..self.members.len() {
            if let Some(verdict) = self.judge_member(self.members[position])? {
                return Ok(verdict);
            }
        }
        Ok(Verdict::Hidden)
    }

    #[cold]
    fn judge_with_tombstones(&mut self) -> Result<Verdict> {
        let oldest = self.members.last().copied().unwrap_or(0);
        for position in 0..=oldest {
            if self.members.contains(&position)
                && let Some(verdict) = self.judge_member(position)?
            {
                return Ok(verdict);
            }
            let run = self.iterators[position].run();
            if run.has_tombstones()
                && let Some(part) = run.part_for(self.iterators[oldest].key())
                && part.erased(self.iterators[oldest].key(), &self.point)?.is_some()
            {
                return Ok(Verdict::Erased(position));
            }
        }
        Ok(Verdict::Hidden)
    }

    /// What one run says of the key its iterator stands on; `None` if nothing.
    #[inline]
    fn judge_member(&mut self, position: usize) -> Result<Option<Verdict>> {
        let Some(iterator) = self.iterators.get(position) else { return Ok(None) };
        let source = if iterator.is_visible(&self.point) {
            if iterator.entry().is_deleted() {
                return Ok(Some(Verdict::Hidden));
            }
            Source::Iterator(position)
        } else {
            match self.history(position)? {
                None => return Ok(None),
                Some(source) if source.is_deletion() => return Ok(Some(Verdict::Hidden)),
                Some(source) => source,
            }
        };
        self.show(source);
        Ok(Some(Verdict::Shown))
    }

    /// Leaves the current key behind.
    #[inline]
    fn advance_merged(&mut self) -> Result<()> {
        for position in 0..self.members.len() {
            let member = self.members[position];
            let iterator = &mut self.iterators[member];
            match self.direction {
                Direction::Forward => iterator.next()?,
                Direction::Backward => iterator.prev()?,
            }
            self.ranks[member] = self.rank(member);
        }
        if let [leader] = *self.members.as_slice()
            && self.iterators[leader].is_valid()
            && (self.challenger == NOBODY || self.order(leader, self.challenger) == Ordering::Less)
        {
            self.led = self.led.saturating_add(1);
            return Ok(());
        }
        self.select();
        Ok(())
    }

    #[inline]
    fn rank(&self, position: usize) -> u64 {
        let iterator = &self.iterators[position];
        if iterator.is_valid() { rank_of(iterator.head(), self.direction) } else { u64::MAX }
    }

    fn select_anew(&mut self) {
        for position in 0..self.iterators.len() {
            self.ranks[position] = self.rank(position);
        }
        self.select();
    }

    /// Finds the nearest key, who stands on it, and the nearest other.
    fn select(&mut self) {
        self.members.clear();
        self.challenger = NOBODY;
        self.ends_before_challenger = None;
        self.led = 0;
        let mut leader = NOBODY;
        for position in 0..self.ranks.len() {
            if self.ranks[position] == u64::MAX && !self.iterators[position].is_valid() {
                continue;
            }
            if leader == NOBODY {
                leader = position;
                self.members.push(position);
                continue;
            }
            match self.order(position, leader) {
                Ordering::Less => {
                    self.challenger = leader;
                    leader = position;
                    self.members.clear();
                    self.members.push(position);
                }
                Ordering::Equal => self.members.push(position),
                Ordering::Greater => {
                    if self.challenger == NOBODY || self.order(position, self.challenger) == Ordering::Less {
                        self.challenger = position;
                    }
                }
            }
        }
    }

    /// `Less` if iterator `a` comes first in the direction of travel. Both must be on an entry.
    #[inline]
    fn order(&self, a: usize, b: usize) -> Ordering {
        match self.ranks[a].cmp(&self.ranks[b]) {
            Ordering::Equal => self.order_fully(a, b),
            order => order,
        }
    }

    #[inline]
    fn order_fully(&self, a: usize, b: usize) -> Ordering {
        let (a, b) = (self.iterators[a].key(), self.iterators[b].key());
        // Up to eight bytes the numbers are the keys, but for zeros at the end.
        let order = if a.len() <= 8 && b.len() <= 8 { a.len().cmp(&b.len()) } else { a.cmp(b) };
        match self.direction {
            Direction::Forward => order,
            Direction::Backward => order.reverse(),
        }
    }

    /// The current key is deleted by a range tombstone of `run`: older runs can go to the end of what it deletes at once.
    fn skip_erased(&mut self, run: usize) -> Result<()> {
        let Some(leader) = self.members.first().copied() else { return Ok(()) };
        let key = self.iterators[leader].key().to_vec();
        let part = self.iterators[run].run().part_for(&key).cloned();
        let Some(fragment) = part.map(|part| part.fragment(&key)).transpose()?.flatten() else {
            return self.advance_merged();
        };
        let (start, end) = fragment;
        for older in run + 1..self.iterators.len() {
            let iterator = &mut self.iterators[older];
            if !iterator.is_valid() {
                continue;
            }
            match (self.direction, &end) {
                (Direction::Forward, Some(end)) if iterator.key() < end.as_ref() => iterator.seek(end, false)?,
                (Direction::Forward, None) => iterator.unset(),
                (Direction::Backward, _) if iterator.key() >= start.as_ref() => iterator.seek_back(&start, true)?,
                _ => {}
            }
        }
        // Newer runs that stand on the key showed nothing of it.
        for newer in 0..=run {
            let iterator = &mut self.iterators[newer];
            if iterator.is_valid() && iterator.key() == key {
                match self.direction {
                    Direction::Forward => iterator.next()?,
                    Direction::Backward => iterator.prev()?,
                }
            }
        }
        self.select_anew();
        Ok(())
    }
}

impl Source {
    fn is_deletion(&self) -> bool {
        matches!(self, Source::History { entry, .. } if entry.is_deleted())
    }
}
