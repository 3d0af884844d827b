//! Which leaf has which keys: two levels, copied on write.
//!
//! A change copies one page of at most [`PAGE_LEAVES_MAX`] leaves and the list of pages, never the whole.

use super::heads::Heads;
use super::leaf::Leaf;
use parking_lot::RwLock;
use std::sync::Arc;

const PAGE_LEAVES_MAX: usize = 128;

/// A leaf as the directory knows it.
pub type SharedLeaf = Arc<RwLock<Leaf>>;

/// The leaves in key order. Empty before the first write to a table.
#[derive(Default, Clone)]
pub struct Directory {
    /// Of the lower bounds of all pages but the first.
    heads: Heads,
    pages: Vec<Arc<Page>>,
}

/// Where a leaf is in one directory.
#[derive(Clone, Copy)]
pub struct Place {
    /// Which page.
    page: usize,
    /// Which leaf in the page.
    slot: usize,
}

#[derive(Default, Clone)]
struct Page {
    /// Of all lower bounds but the first, which every key that is looked for here is past.
    heads: Heads,
    lowers: Vec<Arc<[u8]>>,
    leaves: Vec<SharedLeaf>,
}

/// The last place whose lower bound is at or before the key. The first bound always is; the heads are those of the others.
fn last_at_or_before<'a>(heads: &Heads, key: &[u8], lower: impl Fn(usize) -> &'a [u8]) -> usize {
    let range = match heads.candidates(key) {
        Ok(range) => range,
        Err(place) => return place,
    };
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if lower(middle + 1) <= key {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

impl Page {
    fn of(lowers: Vec<Arc<[u8]>>, leaves: Vec<SharedLeaf>) -> Page {
        let heads = Heads::of(lowers.iter().skip(1).map(|lower| &**lower));
        Page { heads, lowers, leaves }
    }
}

impl Directory {
    /// A directory of one leaf.
    pub fn with_first(leaf: SharedLeaf) -> Directory {
        Directory::of(vec![Arc::new(Page::of(vec![Arc::from([])], vec![leaf]))])
    }

    /// True before the first write.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The place of the leaf that has or would have the key.
    pub fn locate(&self, key: &[u8]) -> Option<Place> {
        if self.is_empty() {
            return None;
        }
        let page = last_at_or_before(&self.heads, key, |place| &self.pages[place].lowers[0]);
        let leaves = &self.pages[page];
        let slot = last_at_or_before(&leaves.heads, key, |place| &leaves.lowers[place]);
        Some(Place { page, slot })
    }

    /// The leaf at a place of this directory.
    pub fn leaf(&self, place: Place) -> &SharedLeaf {
        &self.pages[place.page].leaves[place.slot]
    }

    /// The place of the last leaf.
    pub fn last(&self) -> Option<Place> {
        let page = self.pages.len().checked_sub(1)?;
        Some(Place { page, slot: self.pages[page].leaves.len() - 1 })
    }

    /// The place after a place, with its lower bound.
    pub fn after(&self, Place { page, slot }: Place) -> Option<(Place, &Arc<[u8]>)> {
        let (page, slot) = if slot + 1 < self.pages[page].leaves.len() { (page, slot + 1) } else { (page + 1, 0) };
        let leaves = self.pages.get(page)?;
        Some((Place { page, slot }, &leaves.lowers[slot]))
    }

    /// The place before a place.
    pub fn before(&self, Place { page, slot }: Place) -> Option<Place> {
        Some(match slot {
            0 => Place { page: page.checked_sub(1)?, slot: self.pages[page - 1].leaves.len() - 1 },
            _ => Place { page, slot: slot - 1 },
        })
    }

    /// The lower bound of a place.
    pub fn lower(&self, place: Place) -> &Arc<[u8]> {
        &self.pages[place.page].lowers[place.slot]
    }

    /// The same with a new leaf after a place.
    pub fn with_inserted(&self, Place { page, slot }: Place, lower: Arc<[u8]>, leaf: SharedLeaf) -> Directory {
        let Page { mut heads, mut lowers, mut leaves } = Page::clone(&self.pages[page]);
        let is_taken = heads.insert(slot, &lower);
        lowers.insert(slot + 1, lower);
        leaves.insert(slot + 1, leaf);
        let mut pages = self.pages.clone();
        if leaves.len() > PAGE_LEAVES_MAX {
            let middle = leaves.len() / 2;
            let upper = Page::of(lowers.split_off(middle), leaves.split_off(middle));
            pages[page] = Arc::new(Page::of(lowers, leaves));
            pages.insert(page + 1, Arc::new(upper));
            return Directory::of(pages);
        }
        // Nothing but one head is new: all bounds would have to be fetched to make them anew.
        pages[page] = Arc::new(if is_taken { Page { heads, lowers, leaves } } else { Page::of(lowers, leaves) });
        Directory { heads: self.heads.clone(), pages }
    }

    /// The same without the leaf at a place; the leaf before it, or else the one after it, takes its keys.
    pub fn without(&self, Place { page, slot }: Place) -> Directory {
        let Page { mut lowers, mut leaves, .. } = Page::clone(&self.pages[page]);
        lowers.remove(slot);
        leaves.remove(slot);
        let mut pages = self.pages.clone();
        if leaves.is_empty() {
            pages.remove(page);
        } else {
            pages[page] = Arc::new(Page::of(lowers, leaves));
        }
        if let Some(first) = pages.first_mut()
            && !first.lowers[0].is_empty()
        {
            let mut lowest = Page::clone(first);
            lowest.lowers[0] = Arc::from([]);
            *first = Arc::new(lowest);
        }
        Directory::of(pages)
    }

    /// True if the leaf is at this place.
    pub fn has_at(&self, place: Place, leaf: &SharedLeaf) -> bool {
        let page = self.pages.get(place.page);
        page.and_then(|page| page.leaves.get(place.slot)).is_some_and(|other| Arc::ptr_eq(other, leaf))
    }

    fn of(pages: Vec<Arc<Page>>) -> Directory {
        Directory { heads: Heads::of(pages.iter().skip(1).map(|page| &*page.lowers[0])), pages }
    }

    /// The leaf of a number below `leaves`.
    pub fn leaf_at(&self, mut number: usize) -> Option<&SharedLeaf> {
        for page in &self.pages {
            if let Some(leaf) = page.leaves.get(number) {
                return Some(leaf);
            }
            number -= page.leaves.len();
        }
        None
    }

    /// How many leaves.
    pub fn leaves(&self) -> usize {
        self.pages.iter().map(|page| page.leaves.len()).sum()
    }
}
