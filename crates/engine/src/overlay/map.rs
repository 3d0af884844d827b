//! The map of one table.

use super::chain::Chain;
use super::directory::{Directory, Place, SharedLeaf};
use super::leaf::{Leaf, LeafEntry};
use super::version::Version;
use crate::visibility::Outcome;
use arc_swap::ArcSwap;
use pando_env::Random;
use parking_lot::{Mutex, RwLock};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

/// Tables without writes share one empty directory, so that an idle table costs nothing here.
static EMPTY: LazyLock<Arc<Directory>> = LazyLock::new(|| Arc::new(Directory::default()));

/// One table's keys with recent versions.
pub struct Overlay {
    directory: ArcSwap<Directory>,
    /// How often the directory was replaced, counted right after it. Whoever reads this before the directory and again
    /// under a leaf's lock, and finds it the same, has the right leaf: that leaf's place changes only under its lock.
    generation: AtomicU64,
    grow: Mutex<()>,
    entries: AtomicUsize,
}

impl Default for Overlay {
    fn default() -> Self {
        Overlay {
            directory: ArcSwap::new(EMPTY.clone()),
            generation: AtomicU64::new(0),
            grow: Mutex::new(()),
            entries: AtomicUsize::new(0),
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

    /// Looks at a key's chain.
    pub fn read<R>(&self, key: &[u8], look: impl FnOnce(&Chain) -> R) -> Option<R> {
        if self.is_empty() {
            return None;
        }
        loop {
            let generation = self.generation();
            let directory = self.directory.load();
            let leaf = directory.leaf(directory.locate(key)?).read();
            if self.generation() == generation {
                return leaf.find(key).ok().map(|place| look(&leaf.entries()[place].chain));
            }
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
            let before = leaf.entries().len();
            let place = leaf.find(key);
            let appends = place == Err(before);
            let result = change(&mut leaf, place);
            self.count(before, leaf.entries().len());
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
            let upper = Arc::new(RwLock::new(upper));
            self.replace(Arc::new(directory.with_inserted(place, lower, upper)));
        }
    }

    /// Shows the dirty entries of the first leaf, from `from` on, that has any. Returns the first key of the leaf after
    /// that one: everything before it was shown. None: to the end.
    pub fn scan_forward(&self, from: Bound<&[u8]>, mut show: impl FnMut(&LeafEntry)) -> Option<Arc<[u8]>> {
        let start: &[u8] = match from {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => &[],
        };
        'again: loop {
            let generation = self.generation();
            let directory = self.directory.load_full();
            let mut located = directory.locate(start)?;
            loop {
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
                    Some((_, lower)) if shown => return Some(lower.clone()),
                    Some((next, _)) => {
                        drop(leaf);
                        located = next;
                    }
                }
            }
        }
    }

    /// Shows, in descending order, the dirty entries of the last leaf up to `upto` that has any. Returns that leaf's lower
    /// bound: everything from it on was shown. None: to the beginning.
    pub fn scan_backward(&self, upto: Bound<&[u8]>, mut show: impl FnMut(&LeafEntry)) -> Option<Arc<[u8]>> {
        'again: loop {
            let generation = self.generation();
            let directory = self.directory.load_full();
            let mut located = match upto {
                Bound::Included(key) | Bound::Excluded(key) => directory.locate(key)?,
                Bound::Unbounded => directory.last()?,
            };
            loop {
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
                    Some(_) if shown => return Some(directory.lower(located).clone()),
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
            let before = leaf.entries().len();
            change(&mut leaf);
            self.count(before, leaf.entries().len());
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
