//! A leaf: some neighbouring keys and their chains, under one lock.

use super::chain::Chain;
use super::version::Freed;

/// More entries than this split the leaf.
pub const LEAF_ENTRIES_MAX: usize = 128;
/// What an entry costs beside its key and its versions.
pub const ENTRY_OVERHEAD_BYTES: usize = 64;

/// A key and its versions.
pub struct LeafEntry {
    key: Box<[u8]>,
    /// The versions.
    pub chain: Chain,
}

/// Entries in key order. The first eight bytes of each key lie beside the pointer, so that most comparisons of a search
/// stay within one cache line.
#[derive(Default)]
pub struct Leaf {
    heads: Vec<u64>,
    // Boxed: an insertion moves pointers, not chains, and the search reads the heads only.
    #[allow(clippy::vec_box)]
    entries: Vec<Box<LeafEntry>>,
    /// False only if every chain is clean.
    pub dirty: bool,
}

/// The first eight bytes of a key as a number that orders like the key, as far as it goes.
pub fn head(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut chunk = [0; 8];
            chunk[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(chunk)
        }
    }
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
        let wanted = head(key);
        let first = self.heads.partition_point(|head| *head < wanted);
        // Equal heads are rare for record ids and common for keys with long prefixes: then the whole keys decide.
        let mut end = first;
        while self.heads.get(end) == Some(&wanted) {
            end += 1;
            if end - first > 4 {
                end = first + self.heads[first..].partition_point(|head| *head == wanted);
                break;
            }
        }
        match self.entries[first..end].binary_search_by(|entry| entry.key.as_ref().cmp(key)) {
            Ok(place) => Ok(first + place),
            Err(place) => Err(first + place),
        }
    }

    /// Puts an empty chain at a place that `find` gave.
    pub fn insert(&mut self, place: usize, key: &[u8]) -> &mut LeafEntry {
        self.heads.insert(place, head(key));
        self.entries.insert(place, Box::new(LeafEntry { key: key.into(), chain: Chain::default() }));
        &mut self.entries[place]
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
        self.entries.retain_mut(|entry| stays(entry));
        self.heads.clear();
        self.heads.extend(self.entries.iter().map(|entry| head(&entry.key)));
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
        Leaf { heads: self.heads.split_off(middle), entries: self.entries.split_off(middle), dirty: self.dirty }
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
