//! The map of one table.

use super::chain::Chain;
use super::directory::{Directory, Place, SharedLeaf};
use super::leaf::{Leaf, LeafEntry};
use super::version::Version;
use crate::visibility::Outcome;
use arc_swap::ArcSwap;
use pando_engine_runs::prefetch_at;
use pando_env::Random;
use parking_lot::{Mutex, RwLock};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

/// Tables without writes share one empty directory, so that an idle table costs nothing here.
static EMPTY: LazyLock<Arc<Directory>> = LazyLock::new(|| Arc::new(Directory::default()));

/// So many leaves a scan looks at in vain before it says how far it came. A row cache can be thousands of leaves, none of them dirty.
const CLEAN_LEAVES_MAX: usize = 32;

/// Which rows a reader wants to see here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// All.
    All,
    /// At least those that the base does not have.
    Dirty,
}

/// One table's keys with recent versions.
pub struct Overlay {
    directory: ArcSwap<Directory>,
    /// How often the directory was replaced, counted right after it. Whoever reads this before the directory and again
    /// under a leaf's lock, and finds it the same, has the right leaf: that leaf's place changes only under its lock.
    generation: AtomicU64,
    grow: Mutex<()>,
    entries: AtomicUsize,
    dirty_leaves: AtomicUsize,
}

impl Default for Overlay {
    fn default() -> Self {
        Overlay {
            directory: ArcSwap::new(EMPTY.clone()),
            generation: AtomicU64::new(0),
            grow: Mutex::new(()),
            entries: AtomicUsize::new(0),
            dirty_leaves: AtomicUsize::new(0),
        }
    }
}

impl Overlay {
    /// How many keys. Once it is seen to be zero, what was here is in the base that is loaded afterwards.
    pub fn len(&self) -> usize {
        self.entries.load(Ordering::Acquire)
    }

    /// True without keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if the base has all there is. As with `len`: the base that is loaded afterwards.
    pub fn is_clean(&self) -> bool {
        self.dirty_leaves.load(Ordering::Acquire) == 0
    }

    /// Looks at a key's chain. None: the base that is loaded afterwards decides.
    pub fn read<R>(&self, key: &[u8], rows: Rows, look: impl FnOnce(&Chain) -> R) -> Option<R> {
        if self.is_empty() || (rows == Rows::Dirty && self.is_clean()) {
            return None;
        }
        loop {
            let generation = self.generation();
            let directory = self.directory.load();
            let leaf = directory.leaf(directory.locate(key)?);
            // Its lock is in the first line; what is looked at under it is in the second, too.
            prefetch_at(Arc::as_ptr(leaf));
            let leaf = leaf.read();
            if self.generation() != generation {
                continue;
            }
            if rows == Rows::Dirty && !leaf.dirty {
                return None;
            }
            return leaf.find(key).ok().map(|place| look(&leaf.entries()[place].chain));
        }
    }

    /// Begins to load the leaves that reads of dirty rows will look at into the processor's cache.
    pub fn announce(&self, keys: &[&[u8]]) {
        if self.is_clean() {
            return;
        }
        let directory = self.directory.load();
        for place in keys.iter().filter_map(|key| directory.locate(key)) {
            prefetch_at(Arc::as_ptr(directory.leaf(place)));
        }
    }

    /// Changes the leaf that has or would have the key. `change` gets the place from `Leaf::find`.
    pub fn write<R>(&self, key: &[u8], change: impl FnOnce(&mut Leaf, Result<usize, usize>) -> R) -> R {
        loop {
            let generation = self.generation();
            let directory = self.directory.load();
            let Some(located) = directory.locate(key) else {
                self.make_first_leaf();
                continue;
            };
            let mut leaf = directory.leaf(located).write();
            if self.generation() != generation {
                continue;
            }
            let (before, was_dirty) = (leaf.entries().len(), leaf.dirty);
            let place = leaf.find(key);
            let appends = place == Err(before);
            let result = change(&mut leaf, place);
            self.count(before, leaf.entries().len());
            self.count_dirty(was_dirty, leaf.dirty);
            if leaf.is_full() {
                self.split(generation, located, &mut leaf, appends);
            }
            return result;
        }
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Called with the `grow` lock held, and that of the leaf whose place changes.
    fn replace(&self, directory: Arc<Directory>) {
        self.directory.store(directory);
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn count(&self, before: usize, after: usize) {
        match after >= before {
            true => self.entries.fetch_add(after - before, Ordering::Release),
            false => self.entries.fetch_sub(before - after, Ordering::Release),
        };
    }

    fn count_dirty(&self, before: bool, after: bool) {
        match (before, after) {
            (false, true) => _ = self.dirty_leaves.fetch_add(1, Ordering::Release),
            (true, false) => _ = self.dirty_leaves.fetch_sub(1, Ordering::Release),
            _ => {}
        }
    }

    fn make_first_leaf(&self) {
        let _grow = self.grow.lock();
        if self.directory.load().is_empty() {
            self.replace(Arc::new(Directory::with_first(SharedLeaf::default())));
        }
    }

    /// Called with the leaf's lock held. Another leaf may have changed the directory since, hence the second look.
    fn split(&self, seen: u64, located: Place, leaf: &mut Leaf, ascending: bool) {
        let upper = leaf.split(ascending);
        let Some(first) = upper.entries().first() else { return };
        let lower: Arc<[u8]> = first.key().into();
        let _grow = self.grow.lock();
        let directory = self.directory.load();
        let place = if self.generation() == seen { Some(located) } else { directory.locate(&lower) };
        if let Some(place) = place {
            self.count_dirty(false, upper.dirty);
            let upper = Arc::new(RwLock::new(upper));
            self.replace(Arc::new(directory.with_inserted(place, lower, upper)));
        }
    }

    /// Shows the dirty entries of the first leaf, from `from` on, that has any, unless that is far. Returns the first key of
    /// the leaf after the last that was looked at: everything before it was shown. None: to the end.
    pub fn scan_forward(&self, from: Bound<&[u8]>, mut show: impl FnMut(&LeafEntry)) -> Option<Arc<[u8]>> {
        let start: &[u8] = match from {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => &[],
        };
        if self.is_clean() {
            return None;
        }
        'again: loop {
            let generation = self.generation();
            let directory = self.directory.load_full();
            let mut located = directory.locate(start)?;
            for looked_at in 1.. {
                let next = directory.after(located);
                let leaf = directory.leaf(located).read();
                if self.generation() != generation {
                    continue 'again;
                }
                let mut shown = false;
                if leaf.dirty {
                    let first = first_place(&leaf, from);
                    leaf.fetch(first);
                    for entry in &leaf.entries()[first..] {
                        if !entry.chain.is_clean() {
                            show(entry);
                            shown = true;
                        }
                    }
                }
                match next {
                    None => return None,
                    Some((_, lower)) if shown || looked_at >= CLEAN_LEAVES_MAX => return Some(lower.clone()),
                    Some((next, _)) => {
                        drop(leaf);
                        located = next;
                    }
                }
            }
        }
    }

    /// Shows, in descending order, the dirty entries of the last leaf up to `upto` that has any, unless that is far. Returns the
    /// lower bound of the last leaf that was looked at: everything from it on was shown. None: to the beginning.
    pub fn scan_backward(&self, upto: Bound<&[u8]>, mut show: impl FnMut(&LeafEntry)) -> Option<Arc<[u8]>> {
        if self.is_clean() {
            return None;
        }
        'again: loop {
            let generation = self.generation();
            let directory = self.directory.load_full();
            let mut located = match upto {
                Bound::Included(key) | Bound::Excluded(key) => directory.locate(key)?,
                Bound::Unbounded => directory.last()?,
            };
            for looked_at in 1.. {
                let leaf = directory.leaf(located).read();
                if self.generation() != generation {
                    continue 'again;
                }
                let mut shown = false;
                if leaf.dirty {
                    for entry in leaf.entries()[..end_place(&leaf, upto)].iter().rev() {
                        if !entry.chain.is_clean() {
                            show(entry);
                            shown = true;
                        }
                    }
                }
                match directory.before(located) {
                    None => return None,
                    Some(_) if shown || looked_at >= CLEAN_LEAVES_MAX => {
                        return Some(directory.lower(located).clone());
                    }
                    Some(previous) => {
                        drop(leaf);
                        located = previous;
                    }
                }
            }
        }
    }

    /// A key of a random leaf.
    pub fn random_key(&self, random: &dyn Random) -> Option<Vec<u8>> {
        let directory = self.directory.load_full();
        let leaf = directory.leaf_at(random.below(directory.leaves() as u64) as usize)?;
        let leaf = leaf.read();
        let entry = leaf.entries().get(random.below(leaf.entries().len() as u64) as usize)?;
        Some(entry.key().to_vec())
    }

    /// Lets `change` work on every leaf in turn, and drops leaves that it leaves empty. Keys that are written meanwhile
    /// may be met or not.
    pub fn for_each_leaf(&self, mut change: impl FnMut(&mut Leaf)) {
        let mut from: Arc<[u8]> = Arc::from([]);
        loop {
            let generation = self.generation();
            let directory = self.directory.load_full();
            let Some(located) = directory.locate(&from) else { return };
            let next = directory.after(located).map(|(_, lower)| lower.clone());
            let shared = directory.leaf(located);
            let mut leaf = shared.write();
            if self.generation() != generation {
                continue;
            }
            let (before, was_dirty) = (leaf.entries().len(), leaf.dirty);
            change(&mut leaf);
            leaf.dirty &= !leaf.entries().is_empty();
            self.count(before, leaf.entries().len());
            self.count_dirty(was_dirty, leaf.dirty);
            if leaf.entries().is_empty() {
                self.drop_leaf(located, shared);
            }
            drop(leaf);
            match next {
                Some(lower) => from = lower,
                None => return,
            }
        }
    }

    /// Called with the leaf's lock held.
    fn drop_leaf(&self, place: Place, leaf: &SharedLeaf) {
        let _grow = self.grow.lock();
        let directory = self.directory.load();
        // The place is still right unless another leaf was split or dropped in between: then the leaf stays, empty.
        if directory.has_at(place, leaf) {
            let smaller = directory.without(place);
            self.replace(if smaller.is_empty() { EMPTY.clone() } else { Arc::new(smaller) });
        }
    }
}

fn first_place(leaf: &Leaf, from: Bound<&[u8]>) -> usize {
    match from {
        Bound::Unbounded => 0,
        Bound::Included(key) => leaf.find(key).unwrap_or_else(|place| place),
        Bound::Excluded(key) => leaf.find(key).map_or_else(|place| place, |place| place + 1),
    }
}

fn end_place(leaf: &Leaf, upto: Bound<&[u8]>) -> usize {
    match upto {
        Bound::Unbounded => leaf.entries().len(),
        Bound::Included(key) => leaf.find(key).map_or_else(|place| place, |place| place + 1),
        Bound::Excluded(key) => leaf.find(key).unwrap_or_else(|place| place),
    }
}

/// Shows each dirty key of the range with its newest version that is not aborted.
pub fn for_each_dirty(overlay: &Overlay, start: &[u8], end: Option<&[u8]>, mut show: impl FnMut(&[u8], &Version)) {
    let mut from: Arc<[u8]> = start.into();
    loop {
        let next = overlay.scan_forward(Bound::Included(&from), |entry| {
            if end.is_none_or(|end| entry.key() < end)
                && let Some(newest) = entry.chain.newest()
            {
                debug_assert_ne!(newest.outcome(), Outcome::Aborted);
                show(entry.key(), newest);
            }
        });
        match next {
            Some(next) if end.is_none_or(|end| next.as_ref() < end) => from = next,
            _ => return,
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use bytes::Bytes;
    use pando_base::Timestamp;
    use pando_engine_runs::Stamp;

    const KEYS: u64 = 20_000;

    fn write(overlay: &Overlay, key: u64) {
        overlay.write(&key.to_be_bytes(), |leaf, place| {
            leaf.dirty = true;
            let entry = match place {
                Ok(place) => leaf.entry_mut(place),
                Err(place) => Some(leaf.insert(place, &key.to_be_bytes())),
            };
            let version = Version::committed(Stamp::new(1, Timestamp(1)), Some(Bytes::from_static(b"value")));
            entry.expect("it is there").chain.push(version);
        });
    }

    /// The base has everything, as after a checkpoint.
    fn settle(overlay: &Overlay) {
        overlay.for_each_leaf(|leaf| {
            leaf.retain(|entry| {
                entry.chain.mark_in_base(|_| true);
                true
            });
            leaf.dirty = false;
        });
    }

    fn dirty_leaves(overlay: &Overlay) -> usize {
        let directory = overlay.directory.load_full();
        (0..directory.leaves()).filter_map(|leaf| directory.leaf_at(leaf)).filter(|leaf| leaf.read().dirty).count()
    }

    fn shown_forward(overlay: &Overlay) -> (Vec<u64>, usize) {
        let (mut shown, mut calls, mut from) = (Vec::new(), 0, Some(Arc::from([])));
        while let Some(start) = from {
            calls += 1;
            from = overlay.scan_forward(Bound::Included(&start), |entry| shown.push(number(entry)));
        }
        (shown, calls)
    }

    fn shown_backward(overlay: &Overlay) -> Vec<u64> {
        let mut shown = Vec::new();
        let mut upto = overlay.scan_backward(Bound::Unbounded, |entry| shown.push(number(entry)));
        while let Some(end) = upto {
            upto = overlay.scan_backward(Bound::Excluded(&end), |entry| shown.push(number(entry)));
        }
        shown.reverse();
        shown
    }

    fn number(entry: &LeafEntry) -> u64 {
        entry.key().try_into().map(u64::from_be_bytes).expect("a number")
    }

    #[test]
    fn x4_scans_show_every_dirty_key_and_walk_over_clean_leaves_in_stretches() {
        let overlay = Overlay::default();
        (0..KEYS).for_each(|key| write(&overlay, key * 7 % KEYS));
        assert_eq!(overlay.dirty_leaves.load(Ordering::Relaxed), dirty_leaves(&overlay));
        assert_eq!(shown_forward(&overlay).0, (0..KEYS).collect::<Vec<_>>());
        settle(&overlay);
        assert!(overlay.is_clean());
        assert_eq!(shown_forward(&overlay), (Vec::new(), 1));
        let written = [3, KEYS / 2, KEYS / 2 + 1, KEYS - 1];
        written.iter().for_each(|key| write(&overlay, *key));
        assert_eq!(overlay.dirty_leaves.load(Ordering::Relaxed), dirty_leaves(&overlay));
        let (shown, calls) = shown_forward(&overlay);
        assert_eq!(shown, written);
        assert!(calls > KEYS as usize / super::super::leaf::LEAF_ENTRIES_MAX / CLEAN_LEAVES_MAX, "{calls} calls");
        assert_eq!(shown_backward(&overlay), written);
        settle(&overlay);
        assert!(overlay.is_clean());
        overlay.for_each_leaf(|leaf| leaf.retain(|_| false));
        assert!(overlay.is_empty() && overlay.is_clean());
    }
}
