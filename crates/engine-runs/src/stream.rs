//! All live versions of several runs, merged: what merges, verify and the dump read.
//!
//! Versions come one at a time, keys ascending and newest first within a key, so that a key with millions of them costs no
//! memory. Given a [`RetentionPoint`], what nobody can need any more is left out and stamps are settled. Blocks that have
//! to be read do not stay in the cache.
//!
//! A range tombstone of a run acts on the older ones: where some of their versions survive under it, it appears above them
//! as a deletion. The tombstones themselves are kept aside, see [`VersionStream::range_tombstones`].

use crate::block::entries::{Block, Entry};
use crate::cursor::iterator::RunIterator;
use crate::run::Run;
use crate::section::Part;
use crate::section::history::HistoryWalk;
use crate::section::tombstones::Tombstones;
use crate::{RangeTombstone, ReadPoint, Result, RetentionPoint, Stamp};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;

/// What to read and what to leave out.
#[derive(Clone, Debug, Default)]
pub struct StreamOptions {
    /// The first key; `None` for all from the start.
    pub start: Option<Bytes>,
    /// The first key that is not read; `None` for all to the end.
    pub end: Option<Bytes>,
    /// What may be left out; `None` keeps every live version as it is.
    pub retention: Option<RetentionPoint>,
    /// True if no older run has anything in the range: then deletions that hide nothing can go, too.
    pub is_bottom: bool,
}

/// Where a version's value lies.
#[derive(Clone)]
enum Content {
    Deleted,
    Stored { part: Arc<Part>, block: Block, entry: Entry },
}

#[derive(Clone)]
struct Found {
    stamp: Stamp,
    content: Content,
    /// Stands for a range tombstone.
    is_synthetic: bool,
}

/// What of the current key comes next.
enum Stage {
    /// The newest entry of this run.
    Newest(usize),
    /// The history of this run.
    History(usize, Box<HistoryWalk>),
    /// The range tombstones of this run.
    Tombstones(usize),
    Done,
}

/// A stream of versions.
pub struct VersionStream {
    options: StreamOptions,
    iterators: Vec<RunIterator>,
    tombstones: Tombstones,
    has_tombstones: bool,
    // The current key.
    key: Vec<u8>,
    members: Vec<usize>,
    stage: Stage,
    synthetic: VecDeque<Found>,
    deletions_in_run: Vec<Stamp>,
    last_in_run: Option<Stamp>,
    last_seen: Option<Stamp>,
    last_kept: Option<Stamp>,
    waiting_deletions: VecDeque<(Found, bool)>,
    ready: VecDeque<Found>,
    key_ended: bool,
    current: Option<Found>,
    is_new_key: bool,
    key_shown: bool,
}

impl VersionStream {
    /// A stream over runs, newest first.
    pub fn new(runs: &[Arc<Run>], options: StreamOptions) -> Result<VersionStream> {
        let mut iterators: Vec<RunIterator> = runs.iter().map(|run| RunIterator::passing(run.clone())).collect();
        for iterator in &mut iterators {
            match &options.start {
                Some(start) => iterator.seek(start, false)?,
                None => iterator.first()?,
            }
        }
        let has_tombstones = runs.iter().any(|run| run.has_tombstones());
        let tombstones = if has_tombstones { surviving_tombstones(runs, &options)? } else { Tombstones::default() };
        Ok(VersionStream {
            options,
            iterators,
            tombstones,
            has_tombstones,
            key: Vec::new(),
            members: Vec::new(),
            stage: Stage::Done,
            synthetic: VecDeque::new(),
            deletions_in_run: Vec::new(),
            last_in_run: None,
            last_seen: None,
            last_kept: None,
            waiting_deletions: VecDeque::new(),
            ready: VecDeque::new(),
            key_ended: true,
            current: None,
            is_new_key: false,
            key_shown: false,
        })
    }

    /// The range tombstones that must go on; give them to the writer before the first key.
    pub fn range_tombstones(&self) -> Vec<RangeTombstone> {
        self.tombstones.iter().collect()
    }

    /// To the next version; false at the end.
    #[allow(clippy::should_implement_trait)] // it is not an iterator: it lends
    pub fn next(&mut self) -> Result<bool> {
        loop {
            if let Some(found) = self.ready.pop_front() {
                self.current = Some(found);
                self.is_new_key = !self.key_shown;
                self.key_shown = true;
                return Ok(true);
            }
            if self.key_ended && !self.begin_key()? {
                self.current = None;
                return Ok(false);
            }
            match self.next_live()? {
                Some(found) => self.consider(found),
                None => self.end_key(),
            }
        }
    }

    /// The key of the current version.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// True on the first version of a key.
    pub fn is_new_key(&self) -> bool {
        self.is_new_key
    }

    /// The stamp of the current version, settled if a retention point allows it.
    pub fn stamp(&self) -> Stamp {
        let stamp = self.current.as_ref().map_or(Stamp::SETTLED, |found| found.stamp);
        self.options.retention.as_ref().map_or(stamp, |retention| retention.settle(&stamp))
    }

    /// The value of the current version; `None` for a deletion.
    pub fn value(&self) -> Result<Option<Bytes>> {
        match self.current.as_ref().map(|found| &found.content) {
            Some(Content::Stored { part, block, entry }) => part.core.value(block.clone(), entry).map(Some),
            _ => Ok(None),
        }
    }

    /// Steps all iterators off the finished key and finds the next one.
    fn begin_key(&mut self) -> Result<bool> {
        for &member in &self.members {
            self.iterators[member].next()?;
        }
        self.members.clear();
        for position in 0..self.iterators.len() {
            let iterator = &self.iterators[position];
            if !iterator.is_valid() {
                continue;
            }
            let order = match self.members.first() {
                Some(leader) => iterator.key().cmp(self.iterators[*leader].key()),
                None => std::cmp::Ordering::Less,
            };
            if order.is_lt() {
                self.members.clear();
            }
            if order.is_le() {
                self.members.push(position);
            }
        }
        let Some(&leader) = self.members.first() else { return Ok(false) };
        let key = self.iterators[leader].key();
        if self.options.end.as_ref().is_some_and(|end| key >= end.as_ref()) {
            self.members.clear();
            self.iterators.iter_mut().for_each(RunIterator::unset);
            return Ok(false);
        }
        self.key.clear();
        self.key.extend_from_slice(key);
        self.stage = Stage::Newest(0);
        self.synthetic.clear();
        self.deletions_in_run.clear();
        self.last_seen = None;
        self.last_kept = None;
        self.key_ended = false;
        self.key_shown = false;
        Ok(true)
    }

    /// The next live version of the current key, unfiltered.
    fn next_live(&mut self) -> Result<Option<Found>> {
        loop {
            if let Some(found) = self.synthetic.pop_front() {
                return Ok(Some(found));
            }
            let oldest = self.members.last().copied().unwrap_or(0);
            match std::mem::replace(&mut self.stage, Stage::Done) {
                Stage::Done => return Ok(None),
                Stage::Newest(run) if run > oldest => return Ok(None),
                Stage::Newest(run) => {
                    self.deletions_in_run.clear();
                    self.last_in_run = None;
                    if let Some(found) = self.enter_run(run)? {
                        return Ok(Some(found));
                    }
                }
                Stage::History(run, mut walk) => match walk.next(&self.key)? {
                    Some((block, entry)) => {
                        self.stage = Stage::History(run, walk);
                        let part = self.iterators[run].part().cloned();
                        if let Some(found) = part.and_then(|part| live(&part, &block, &entry)) {
                            return Ok(Some(found));
                        }
                    }
                    None => self.stage = Stage::Tombstones(run),
                },
                Stage::Tombstones(run) => {
                    self.stage = Stage::Newest(run + 1);
                    if self.has_tombstones && run < oldest {
                        self.collect_synthetic(run)?;
                    }
                }
            }
        }
    }

    /// Looks at one run's newest entry; sets the stage to what follows it.
    fn enter_run(&mut self, run: usize) -> Result<Option<Found>> {
        self.stage = Stage::Tombstones(run);
        if !self.members.contains(&run) {
            return Ok(None);
        }
        let iterator = &self.iterators[run];
        let (Some(part), Some(block)) = (iterator.part(), iterator.block()) else { return Ok(None) };
        let found = live(part, block, iterator.entry());
        if iterator.entry().has_history() {
            let walk = HistoryWalk::start(&part.core, &self.key, &ReadPoint::LATEST, false)?;
            self.stage = Stage::History(run, Box::new(walk));
        }
        Ok(found)
    }

    /// Turns the range tombstones of a run over this key into deletions, except those that the run itself has as such.
    fn collect_synthetic(&mut self, run: usize) -> Result<()> {
        let Some(part) = self.iterators[run].run().part_for(&self.key) else { return Ok(()) };
        if !part.has_tombstones() {
            return Ok(());
        }
        for stamp in part.core.root()?.tombstones.over(&self.key) {
            // Of versions that the same run has below the tombstone, it says so itself, see `RangeTombstone`. Only stamps of
            // one run can be compared: a younger run may be settled where this one is not.
            let is_ordered = self.last_in_run.is_none_or(|last| {
                stamp.sequence <= last.sequence && (last.commit.is_none() || stamp.commit <= last.commit)
            });
            if stamp.is_alive(part.fence()) && is_ordered && !self.deletions_in_run.contains(stamp) {
                let found = Found { stamp: *stamp, content: Content::Deleted, is_synthetic: true };
                self.synthetic.push_back(found);
            }
        }
        Ok(())
    }

    /// Decides whether a version is kept. Deletions wait until something older is kept, too.
    fn consider(&mut self, found: Found) {
        let stamp = found.stamp;
        let is_needed = match (&self.options.retention, self.last_seen, self.last_kept) {
            (Some(retention), Some(seen), Some(kept)) => {
                retention.needs(&stamp, &seen) && (seen == kept || retention.needs(&stamp, &kept))
            }
            _ => true,
        };
        if matches!(found.content, Content::Deleted) {
            self.deletions_in_run.push(stamp);
        }
        self.last_in_run = Some(stamp);
        self.last_seen = Some(stamp);
        if !is_needed {
            return;
        }
        self.last_kept = Some(stamp);
        if matches!(found.content, Content::Deleted) {
            let can_go = found.is_synthetic || self.can_go_at_bottom(&stamp);
            self.waiting_deletions.push_back((found, can_go));
        } else {
            self.release_deletions();
            self.ready.push_back(found);
        }
    }

    /// A deletion that hides nothing is only wanted for conflict checks.
    fn can_go_at_bottom(&self, stamp: &Stamp) -> bool {
        let retention = self.options.retention.as_ref();
        self.options.is_bottom && retention.is_some_and(|retention| retention.sequence_is_settled(stamp.sequence))
    }

    fn end_key(&mut self) {
        while self.waiting_deletions.back().is_some_and(|(_, can_go)| *can_go) {
            self.waiting_deletions.pop_back();
        }
        self.release_deletions();
        self.key_ended = true;
    }

    fn release_deletions(&mut self) {
        self.ready.extend(self.waiting_deletions.drain(..).map(|(found, _)| found));
    }
}

fn live(part: &Arc<Part>, block: &Block, entry: &Entry) -> Option<Found> {
    if !entry.stamp.is_alive(part.fence()) {
        return None;
    }
    let content = match entry.is_deleted() {
        true => Content::Deleted,
        false => Content::Stored { part: part.clone(), block: block.clone(), entry: *entry },
    };
    Some(Found { stamp: entry.stamp, content, is_synthetic: false })
}

/// The live tombstones of all runs that someone may still need, cut to the range.
fn surviving_tombstones(runs: &[Arc<Run>], options: &StreamOptions) -> Result<Tombstones> {
    let mut all = Vec::new();
    for part in runs.iter().flat_map(|run| run.parts()) {
        all.extend(part.range_tombstones()?.into_iter().filter(|one| one.stamp.is_alive(part.fence())));
    }
    let all = Tombstones::new(&all).clipped(options.start.as_ref(), options.end.as_ref());
    let Some(retention) = &options.retention else { return Ok(all) };
    Ok(all.chosen(|stamps| {
        let mut kept: Vec<Stamp> = Vec::new();
        for (position, stamp) in stamps.iter().enumerate() {
            let newer = position.checked_sub(1).and_then(|newer| stamps.get(newer));
            if newer.is_none_or(|newer| retention.needs(stamp, newer)) {
                kept.push(*stamp);
            }
        }
        if options.is_bottom {
            kept.retain(|stamp| !retention.sequence_is_settled(stamp.sequence));
        }
        let mut settled: Vec<Stamp> = kept.iter().map(|stamp| retention.settle(stamp)).collect();
        settled.dedup();
        settled
    }))
}
