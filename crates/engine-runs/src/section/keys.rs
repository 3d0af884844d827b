//! A sorted list of keys in memory, made for searching.
//!
//! The prefix that all keys share is cut; of the rest the first eight bytes lie side by side as numbers, so that a search
//! reads full keys only where those are equal.

use crate::block::builder::shared_length;
use std::cmp::Ordering;

/// Sorted keys; duplicates are allowed.
#[derive(Default)]
pub(crate) struct KeyTable {
    prefix: Box<[u8]>,
    heads: Box<[u64]>,
    ends: Box<[u32]>,
    suffixes: Box<[u8]>,
}

impl KeyTable {
    /// From ascending keys. `None` if they are out of order or too long to address.
    pub(crate) fn new(keys: &[&[u8]]) -> Option<KeyTable> {
        if !keys.is_sorted() {
            return None;
        }
        let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return Some(KeyTable::default()) };
        let prefix = &first[..shared_length(first, last)];
        let mut suffixes = Vec::new();
        let mut ends = Vec::with_capacity(keys.len());
        for key in keys {
            suffixes.extend_from_slice(key.get(prefix.len()..)?);
            ends.push(u32::try_from(suffixes.len()).ok()?);
        }
        let heads = keys.iter().map(|key| head(&key[prefix.len()..])).collect();
        Some(KeyTable { prefix: prefix.into(), heads, ends: ends.into(), suffixes: suffixes.into() })
    }

    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.heads.len()
    }

    /// Bytes in memory.
    pub(crate) fn size_bytes(&self) -> usize {
        self.prefix.len() + self.heads.len() * 12 + self.suffixes.len()
    }

    /// The key at a position, in its two pieces.
    pub(crate) fn key(&self, position: usize) -> (&[u8], &[u8]) {
        (&self.prefix, self.suffix(position))
    }

    fn suffix(&self, position: usize) -> &[u8] {
        let start = match position.checked_sub(1) {
            Some(previous) => self.ends.get(previous).copied().unwrap_or_default(),
            None => 0,
        };
        let end = self.ends.get(position).copied().unwrap_or_default();
        self.suffixes.get(start as usize..end as usize).unwrap_or_default()
    }

    /// The position of the first key that is not below `key`.
    #[inline]
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        self.bound(key, Ordering::Less)
    }

    /// The position of the first key above `key`.
    #[inline]
    pub(crate) fn upper_bound(&self, key: &[u8]) -> usize {
        self.bound(key, Ordering::Greater)
    }

    /// The number of keys that compare to `key` as less, or with `Greater` as less or equal.
    #[inline]
    fn bound(&self, key: &[u8], tie: Ordering) -> usize {
        let Some(suffix) = key.strip_prefix(&*self.prefix) else {
            return if key < &*self.prefix { 0 } else { self.len() };
        };
        let wanted = head(suffix);
        let mut low = self.heads.partition_point(|head| *head < wanted);
        if self.heads.get(low) != Some(&wanted) {
            return low;
        }
        let mut high = low + self.heads[low..].partition_point(|head| *head == wanted);
        while low < high {
            let middle = low + (high - low) / 2;
            let below = match self.suffix(middle).cmp(suffix) {
                Ordering::Less => true,
                Ordering::Equal => tie == Ordering::Greater,
                Ordering::Greater => false,
            };
            if below {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[inline]
fn head(suffix: &[u8]) -> u64 {
    if let Some(first) = suffix.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0; 8];
    padded[..suffix.len()].copy_from_slice(suffix);
    u64::from_be_bytes(padded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_equal_those_of_a_plain_list() {
        let mut keys: Vec<Vec<u8>> = vec![b"ab".to_vec(), b"ab".to_vec(), b"ab\0".to_vec(), b"abc".to_vec()];
        keys.extend((0..200u64).map(|n| [b"abcdefgh__________", n.to_be_bytes().as_slice()].concat()));
        keys.extend((0..50u8).map(|n| vec![b'a', b'z', n, n, n]));
        let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let table = KeyTable::new(&slices).unwrap();
        let mut probes = keys.clone();
        probes.extend(keys.iter().map(|key| [key, b"\0".as_slice()].concat()));
        probes.extend(keys.iter().map(|key| key[..key.len() - 1].to_vec()));
        probes.push(vec![0xff]);
        for probe in probes {
            assert_eq!(table.lower_bound(&probe), keys.partition_point(|key| *key < probe), "{probe:?}");
            assert_eq!(table.upper_bound(&probe), keys.partition_point(|key| *key <= probe), "{probe:?}");
        }
        assert!(KeyTable::new(&[b"b", b"a"]).is_none());
        assert_eq!(KeyTable::default().lower_bound(b"x"), 0);
    }
}
