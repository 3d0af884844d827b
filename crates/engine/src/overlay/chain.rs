//! The versions of one key, oldest first.
//!
//! Most chains have one version and no allocation of their own. A long one (a hot key within the history window) is
//! searched by halves: sequences grow along the chain, and so do commit timestamps from `ordered_from` on.

use super::version::{Freed, Version};
use crate::visibility::{Outcome, ReadView, TransactionState, Visibility};
use pando_engine_runs::{ReadPoint, RetentionPoint, Stamp};
use std::collections::VecDeque;
use std::sync::Arc;

/// Up to here a chain is walked; beyond, it is searched by halves.
const WALK_MAX: usize = 8;

/// What a view finds in a chain.
pub enum ChainRead<'a> {
    /// No version that the view can see: look in the base.
    Nothing,
    /// A prepared transaction is in the way.
    PrepareConflict,
    /// This one.
    Version(&'a Version),
}

/// The newest part of a key's history.
#[derive(Default)]
pub struct Chain {
    versions: Versions,
    /// From this place on, the timestamps of settled versions are in order, none counting as the lowest. They are out of
    /// order where a version without one lies over one that has one, and where a deleted range came in late.
    ordered_from: usize,
}

#[derive(Default)]
enum Versions {
    #[default]
    None,
    One(Version),
    Many(VecDeque<Version>),
}

impl Chain {
    /// How many versions.
    pub fn len(&self) -> usize {
        match &self.versions {
            Versions::None => 0,
            Versions::One(_) => 1,
            Versions::Many(many) => many.len(),
        }
    }

    /// True without versions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The version at a place, oldest first.
    pub fn get(&self, place: usize) -> Option<&Version> {
        #[cfg(test)]
        super::tests::STEPS.set(super::tests::STEPS.get() + 1);
        match &self.versions {
            Versions::One(version) if place == 0 => Some(version),
            Versions::Many(many) => many.get(place),
            _ => None,
        }
    }

    fn get_mut(&mut self, place: usize) -> Option<&mut Version> {
        match &mut self.versions {
            Versions::One(version) if place == 0 => Some(version),
            Versions::Many(many) => many.get_mut(place),
            _ => None,
        }
    }

    /// Lets the processor fetch what the newest version points at.
    pub fn fetch(&self) {
        match &self.versions {
            Versions::None => {}
            Versions::One(version) => version.fetch(),
            Versions::Many(many) => many.back().into_iter().for_each(Version::fetch),
        }
    }

    /// Newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &Version> {
        (0..self.len()).rev().filter_map(|place| self.get(place))
    }

    /// The newest version that is not aborted.
    pub fn newest(&self) -> Option<&Version> {
        self.newest_first().find(|version| version.outcome() != Outcome::Aborted)
    }

    /// The newest version for writing over.
    pub fn newest_mut(&mut self) -> Option<&mut Version> {
        match &mut self.versions {
            Versions::None => None,
            Versions::One(version) => Some(version),
            Versions::Many(many) => many.back_mut(),
        }
    }

    /// Adds a version on top and settles what lies below.
    pub fn push(&mut self, version: Version) {
        self.settle();
        let is_settled = version.settled_stamp().is_some();
        self.versions = match std::mem::take(&mut self.versions) {
            Versions::None => Versions::One(version),
            Versions::One(older) => Versions::Many(VecDeque::from([older, version])),
            Versions::Many(mut many) => {
                many.push_back(version);
                Versions::Many(many)
            }
        };
        if is_settled {
            self.note_order(self.len() - 1);
        }
    }

    /// Settles the versions at the new end whose fate is known.
    fn settle(&mut self) {
        for place in self.len() - self.pending()..self.len() {
            if self.get_mut(place).is_some_and(Version::settle) {
                self.note_order(place);
            }
        }
    }

    /// How many versions at the new end are not settled.
    fn pending(&self) -> usize {
        self.newest_first().take_while(|version| version.settled_stamp().is_none()).count()
    }

    /// Compares a settled version with the one below it.
    fn note_order(&mut self, place: usize) {
        let commit = |place: usize| Some(self.get(place)?.settled_stamp()?.commit);
        let below = (0..place).rev().find_map(commit);
        if below.is_some_and(|below| commit(place).is_some_and(|commit| commit < below)) {
            self.ordered_from = self.ordered_from.max(place);
        }
    }

    /// The first version, newest first, that the view can see.
    pub fn read(&self, view: &ReadView) -> ChainRead<'_> {
        let length = self.len();
        for (walked, place) in (0..length).rev().enumerate() {
            let Some(version) = self.get(place) else { break };
            if walked >= WALK_MAX && version.settled_stamp().is_some() {
                return self.search(view.point(), place + 1);
            }
            if version.is_own(view) {
                return ChainRead::Version(version);
            }
            match view.judge(&version.outcome()) {
                Visibility::Visible => return ChainRead::Version(version),
                Visibility::PrepareConflict => return ChainRead::PrepareConflict,
                Visibility::Hidden => {}
            }
        }
        ChainRead::Nothing
    }

    /// Searches the first `end` versions. All are settled, except perhaps aborted ones that are about to be removed.
    fn search(&self, point: &ReadPoint, end: usize) -> ChainRead<'_> {
        let in_snapshot = self.first_place(0, end, |stamp| stamp.sequence > point.sequence);
        let ordered_from = self.ordered_from.min(in_snapshot);
        let at_time = self.first_place(ordered_from, in_snapshot, |stamp| stamp.commit > point.timestamp);
        let visible = (0..at_time)
            .rev()
            .filter_map(|place| self.get(place))
            .find(|version| version.settled_stamp().is_some_and(|stamp| point.sees(&stamp)));
        visible.map_or(ChainRead::Nothing, ChainRead::Version)
    }

    /// The first place from `start` to `end` where `beyond` holds, given that it then holds to the end.
    fn first_place(&self, start: usize, end: usize, beyond: impl Fn(&Stamp) -> bool) -> usize {
        let (mut low, mut high) = (start, end);
        while low < high {
            let middle = low + (high - low) / 2;
            let settled = (low..=middle).rev().find_map(|place| Some((place, self.get(place)?.settled_stamp()?)));
            match settled {
                Some((place, stamp)) if beyond(&stamp) => high = place,
                _ => low = middle + 1,
            }
        }
        low
    }

    /// Drops from the old end what is in the base or needed by nobody. The newest stays.
    pub fn prune(&mut self, retention: &RetentionPoint) -> Freed {
        let mut freed = Freed::default();
        while self.len() > 1 {
            let (Some(oldest), Some(next)) = (self.get(0), self.get(1)) else { break };
            let (Some(older), Some(newer)) = (oldest.settled_stamp(), next.settled_stamp()) else { break };
            if !oldest.in_base() && retention.needs(&older, &newer) {
                break;
            }
            self.pop_oldest(&mut freed);
        }
        freed
    }

    fn pop_oldest(&mut self, freed: &mut Freed) {
        let popped = match &mut self.versions {
            Versions::None => None,
            Versions::One(_) => match std::mem::take(&mut self.versions) {
                Versions::One(version) => Some(version),
                _ => None,
            },
            Versions::Many(many) => many.pop_front(),
        };
        let Some(version) = popped else { return };
        freed.count(&version);
        self.ordered_from = self.ordered_from.saturating_sub(1);
    }

    /// Removes versions for which `dead` holds.
    pub fn remove(&mut self, dead: impl Fn(&Version) -> bool) -> Freed {
        let mut freed = Freed::default();
        let mut kept = VecDeque::new();
        match std::mem::take(&mut self.versions) {
            Versions::None => {}
            Versions::One(version) => kept.push_back(version),
            Versions::Many(many) => kept = many,
        }
        kept.retain(|version| {
            let goes = dead(version);
            if goes {
                freed.count(version);
            }
            !goes
        });
        self.versions = match kept.len() {
            0 => Versions::None,
            1 => kept.pop_front().map_or(Versions::None, Versions::One),
            _ => Versions::Many(kept),
        };
        self.note_all_order();
        freed
    }

    /// Removes what a rolled-back transaction wrote.
    pub fn remove_of(&mut self, state: &Arc<TransactionState>) -> Freed {
        // Its versions are pending, and nearly always those are at the new end: a long history is not looked at.
        let pending = self.pending();
        let mut freed = Freed::default();
        if let Versions::Many(many) = &mut self.versions
            && many.len() > WALK_MAX
        {
            for place in (many.len() - pending..many.len()).rev() {
                if many.get(place).is_some_and(|version| version.is_of(state))
                    && let Some(version) = many.remove(place)
                {
                    freed.count(&version);
                }
            }
        }
        match freed == Freed::default() {
            true => self.remove(|version| version.is_of(state)),
            false => freed,
        }
    }

    /// Marks versions that the base now has: those that were taken, and everything below them. Then drops all but the
    /// newest of these. Returns what was freed and the bytes marked.
    pub fn mark_in_base(&mut self, taken: impl Fn(&Version) -> bool) -> (Freed, usize) {
        self.settle();
        let mut marked = 0;
        let mut below = false;
        for place in (0..self.len()).rev() {
            let Some(version) = self.get_mut(place) else { break };
            below |= version.in_base() || taken(version);
            if below && !version.in_base() && version.settled_stamp().is_some() {
                version.set_in_base();
                marked += version.size_bytes();
            }
        }
        let mut freed = Freed::default();
        while self.len() > 1 && self.get(0).is_some_and(Version::in_base) {
            self.pop_oldest(&mut freed);
        }
        (freed, marked)
    }

    /// Enters a committed deletion that came as a range, at its place in the order, as one that the base has. Nothing is
    /// entered into a chain that has only newer versions. Returns the bytes that it takes.
    pub fn enter_deletion(&mut self, stamp: Stamp) -> usize {
        self.settle();
        let place = self.first_place_after(stamp.sequence);
        if place == 0 {
            return 0;
        }
        let mut deletion = Version::committed(stamp, None);
        deletion.set_in_base();
        let mut many = match std::mem::take(&mut self.versions) {
            Versions::None => VecDeque::new(),
            Versions::One(version) => VecDeque::from([version]),
            Versions::Many(many) => many,
        };
        let bytes = deletion.size_bytes();
        many.insert(place, deletion);
        self.versions = Versions::Many(many);
        self.note_all_order();
        bytes
    }

    fn note_all_order(&mut self) {
        self.ordered_from = 0;
        (1..self.len()).for_each(|place| self.note_order(place));
    }

    /// The place of the first version that is not committed before the sequence, or may not be.
    fn first_place_after(&self, sequence: u64) -> usize {
        let newer = |version: &Version| match version.outcome() {
            Outcome::Committed { stamp, .. } => stamp.sequence >= sequence,
            Outcome::Aborted => false,
            Outcome::Running | Outcome::Prepared { .. } => true,
        };
        (0..self.len()).find(|place| self.get(*place).is_some_and(newer)).unwrap_or(self.len())
    }

    /// True if the base has every version.
    pub fn is_clean(&self) -> bool {
        self.newest_first().all(Version::in_base)
    }
}
