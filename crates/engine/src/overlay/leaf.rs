//! A leaf: some neighbouring keys and their chains, under one lock.

use super::chain::Chain;
use super::heads::Heads;
use super::key::Key;
use super::version::Freed;
use pando_engine_runs::prefetch_at;

/// More entries than this split the leaf.
pub const LEAF_ENTRIES_MAX: usize = 128;
/// From this many entries on a leaf looks what its keys have in common.
const HEADS_LOOK_MIN: usize = 8;
/// Places of entries in two cache lines.
const ENTRIES_OF_LINE_PAIR: usize = 2 * 64 / size_of::<Box<LeafEntry>>();
/// What an entry costs beside its key and its versions.
pub const ENTRY_OVERHEAD_BYTES: usize = 64;

/// A key and its versions.
pub struct LeafEntry {
    key: Key,
    /// The versions.
    pub chain: Chain,
}

/// Entries in key order.
#[derive(Default)]
pub struct Leaf {
    heads: Heads,
    // Boxed: an insertion moves pointers, not chains, and the search reads the heads only.
    #[allow(clippy::vec_box)]
    entries: Vec<Box<LeafEntry>>,
    /// False only if every chain is clean.
    pub dirty: bool,
}

impl LeafEntry {
    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// What it costs beside its versions.
    pub fn overhead_bytes(&self) -> usize {
        ENTRY_OVERHEAD_BYTES + self.key.len()
    }

    /// Everything that its removal gives back.
    pub fn freed(&self) -> Freed {
        let mut freed = Freed { clean: self.overhead_bytes(), dirty: 0 };
        self.chain.newest_first().for_each(|version| freed.count(version));
        freed
    }
}

impl Leaf {
    /// Where the key is, or where it belongs.
    pub fn find(&self, key: &[u8]) -> Result<usize, usize> {
        // Which entry it is says the search; that the places of all are near by then spares a second wait for memory.
        self.entries.chunks(ENTRIES_OF_LINE_PAIR).for_each(|pair| prefetch_at(pair.as_ptr()));
        let range = self.heads.candidates(key)?;
        let start = range.start;
        match self.entries[range].binary_search_by(|entry| entry.key().cmp(key)) {
            Ok(place) => Ok(start + place),
            Err(place) => Err(start + place),
        }
    }

    /// Puts an empty chain at a place that `find` gave.
    pub fn insert(&mut self, place: usize, key: &[u8]) -> &mut LeafEntry {
        self.entries.insert(place, Box::new(LeafEntry { key: key.into(), chain: Chain::default() }));
        if !self.heads.insert(place, key) {
            self.make_heads();
        } else if self.entries.len() >= HEADS_LOOK_MIN && self.entries.len().is_power_of_two() {
            // A growing leaf looks now and then whether its keys have more in common than it knows.
            self.fit_heads();
        }
        &mut self.entries[place]
    }

    fn make_heads(&mut self) {
        self.heads = Heads::of(self.entries.iter().map(|entry| entry.key()));
    }

    fn fit_heads(&mut self) {
        self.heads.fit(self.entries.iter().map(|entry| entry.key()));
    }

    /// Lets the processor fetch the entries from a place on and what they point at. Whoever looks at one after the other
    /// mostly waits for memory; this way the waits are side by side.
    pub fn fetch(&self, from: usize) {
        let entries = self.entries.get(from..).unwrap_or_default();
        entries.iter().for_each(|entry| prefetch_at(&raw const **entry));
        entries.iter().for_each(|entry| entry.chain.fetch());
    }

    /// The entries in order.
    pub fn entries(&self) -> &[Box<LeafEntry>] {
        &self.entries
    }

    /// An entry to change.
    pub fn entry_mut(&mut self, place: usize) -> Option<&mut LeafEntry> {
        self.entries.get_mut(place).map(|entry| &mut **entry)
    }

    /// Removes entries for which `goes` holds, after it had a chance to change them.
    pub fn retain(&mut self, mut stays: impl FnMut(&mut LeafEntry) -> bool) {
        let before = self.entries.len();
        self.entries.retain_mut(|entry| stays(entry));
        if self.entries.len() < before {
            self.make_heads();
        }
    }

    /// Removes one entry.
    pub fn remove(&mut self, place: usize) {
        self.heads.remove(place);
        self.entries.remove(place);
    }

    /// True if it should be split.
    pub fn is_full(&self) -> bool {
        self.entries.len() > LEAF_ENTRIES_MAX
    }

    /// Gives away the upper part: half, or only the last entry where keys arrive in order.
    pub fn split(&mut self, ascending: bool) -> Leaf {
        let middle = if ascending { self.entries.len() - 1 } else { self.entries.len() / 2 };
        let heads = self.heads.split_off(middle);
        let mut upper = Leaf { heads, entries: self.entries.split_off(middle), dirty: self.dirty };
        upper.fit_heads();
        self.fit_heads();
        upper
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_share_their_head_are_found() {
        let mut leaf = Leaf::default();
        let mut keys: Vec<Vec<u8>> =
            (0..40u8).map(|number| [b"long common prefix ".as_slice(), &[number]].concat()).collect();
        keys.extend([b"".to_vec(), b"a".to_vec(), b"a\0".to_vec(), b"long com".to_vec(), vec![255; 20]]);
        for key in &keys {
            let place = leaf.find(key).unwrap_err();
            leaf.insert(place, key);
        }
        keys.sort();
        assert!(leaf.entries().iter().map(|entry| entry.key().to_vec()).eq(keys.iter().cloned()));
        for (place, key) in keys.iter().enumerate() {
            assert_eq!(leaf.find(key), Ok(place));
        }
    }
}
