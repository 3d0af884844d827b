//! A sorted list of keys in memory, made for searching.
//!
//! The prefix that all keys share is cut; of the rest the first eight bytes lie side by side as numbers, so that a search
//! reads full keys only where those are equal.

use crate::block::builder::shared_length;
use crate::prefetch::prefetch;
use std::cmp::Ordering;

/// How far from where proportion says a head is looked for first.
const NEAR_HEADS: usize = 8;

/// More of a shared prefix is not cut.
const PREFIX_BYTES_MAX: usize = 24;

/// Sorted keys; duplicates are allowed. What a search looks at first lies side by side, the prefix included.
#[derive(Default)]
#[repr(C)]
pub(crate) struct KeyTable {
    heads: Box<[u64]>,
    first_head: u64,
    /// From the first head to the last.
    head_span: u64,
    /// Heads for each unit of the span.
    heads_per_span: f64,
    prefix_length: usize,
    prefix: [u8; PREFIX_BYTES_MAX],
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
        let shared = &first[..shared_length(first, last).min(PREFIX_BYTES_MAX)];
        let mut prefix = [0; PREFIX_BYTES_MAX];
        prefix.get_mut(..shared.len())?.copy_from_slice(shared);
        let mut suffixes = Vec::new();
        let mut ends = Vec::with_capacity(keys.len());
        for key in keys {
            suffixes.extend_from_slice(key.get(shared.len()..)?);
            ends.push(u32::try_from(suffixes.len()).ok()?);
        }
        let heads: Box<[u64]> = keys.iter().map(|key| head(&key[shared.len()..])).collect();
        let (first_head, last_head) = (heads.first().copied()?, heads.last().copied()?);
        let head_span = last_head - first_head;
        let heads_per_span = (heads.len() - 1) as f64 / (head_span.max(1) as f64);
        Some(KeyTable {
            heads,
            first_head,
            head_span,
            heads_per_span,
            prefix_length: shared.len(),
            prefix,
            ends: ends.into(),
            suffixes: suffixes.into(),
        })
    }

    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.heads.len()
    }

    /// Bytes in memory.
    pub(crate) fn size_bytes(&self) -> usize {
        self.heads.len() * 12 + self.suffixes.len()
    }

    /// The key at a position, in its two pieces.
    pub(crate) fn key(&self, position: usize) -> (&[u8], &[u8]) {
        (self.prefix(), self.suffix(position))
    }

    /// What follows the prefix; none if the key begins otherwise. Up to eight bytes are compared as numbers.
    #[inline]
    fn behind_prefix<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let (Some(ours), Some(theirs)) = (self.prefix.first_chunk(), key.first_chunk()) else {
            return key.strip_prefix(self.prefix());
        };
        if self.prefix_length > 8 {
            return key.strip_prefix(self.prefix());
        }
        let differs = u64::from_be_bytes(*ours) ^ u64::from_be_bytes(*theirs);
        let is_equal = differs.checked_shr(64 - 8 * self.prefix_length as u32).unwrap_or(0) == 0;
        is_equal.then(|| key.get(self.prefix_length..).unwrap_or_default())
    }

    #[inline]
    fn prefix(&self) -> &[u8] {
        self.prefix.get(..self.prefix_length).unwrap_or_default()
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
        self.bound(key, Ordering::Less, |_| ())
    }

    /// The same; `near` is told about where it will be, before memory is waited for.
    #[inline]
    pub(crate) fn lower_bound_near(&self, key: &[u8], near: impl FnOnce(usize)) -> usize {
        self.bound(key, Ordering::Less, near)
    }

    /// The position of the first key above `key`.
    #[inline]
    pub(crate) fn upper_bound(&self, key: &[u8]) -> usize {
        self.bound(key, Ordering::Greater, |_| ())
    }

    /// Loads the heads that a search will look at first into the processor's cache, and says about where it will end.
    #[inline]
    pub(crate) fn touch_near(&self, key: &[u8]) -> usize {
        let distance = head(key.get(self.prefix_length..).unwrap_or_default()).saturating_sub(self.first_head);
        let guess = self.guess(distance.min(self.head_span));
        for near in [guess.saturating_sub(NEAR_HEADS), guess + NEAR_HEADS] {
            prefetch(self.heads.get(near..).unwrap_or_default());
        }
        guess
    }

    /// Where proportion says that a head is, so far from the first.
    #[inline]
    fn guess(&self, distance: u64) -> usize {
        (distance as f64 * self.heads_per_span) as usize
    }

    /// How many heads are below `wanted`. Keys are often spread evenly (record ids, hashes): then the place is about where
    /// proportion says, and one line of memory is looked at instead of one for each halving.
    #[inline]
    fn lower_head(&self, wanted: u64, near: impl FnOnce(usize)) -> usize {
        let (first, span) = (self.first_head, self.head_span);
        let Some(distance) = wanted.checked_sub(first).filter(|distance| *distance <= span) else {
            return if wanted <= first { 0 } else { self.heads.len() };
        };
        let last = self.heads.len().saturating_sub(1);
        let guess = self.guess(distance);
        near(guess);
        let low = guess.saturating_sub(NEAR_HEADS).min(last);
        let high = (guess + NEAR_HEADS).min(last);
        let is_below = |position: usize| self.heads.get(position).is_some_and(|head| *head < wanted);
        let (start, end) = match (low == 0 || is_below(low), is_below(high)) {
            (true, false) => (low, high),
            (true, true) => (high, self.heads.len()),
            (false, _) => (0, low),
        };
        start + self.heads.get(start..end).unwrap_or_default().partition_point(|head| *head < wanted)
    }

    /// The number of keys that compare to `key` as less, or with `Greater` as less or equal.
    #[inline]
    fn bound(&self, key: &[u8], tie: Ordering, near: impl FnOnce(usize)) -> usize {
        let Some(suffix) = self.behind_prefix(key) else {
            return if key < self.prefix() { 0 } else { self.len() };
        };
        let wanted = head(suffix);
        let mut low = self.lower_head(wanted, near);
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
        for shared in [7, 8, 9, 30] {
            let keys: Vec<Vec<u8>> = (0..99u8).map(|n| [vec![b'p'; shared].as_slice(), &[n, n]].concat()).collect();
            let table = KeyTable::new(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
            let strangers =
                [vec![], vec![b'p'], vec![b'p'; 60], vec![b'q'; 9], [vec![b'p'; shared - 1], vec![b'o', 5]].concat()];
            for probe in keys.iter().chain(&strangers) {
                assert_eq!(table.lower_bound(probe), keys.partition_point(|key| key < probe), "{probe:?}");
                assert_eq!(table.upper_bound(probe), keys.partition_point(|key| key <= probe), "{probe:?}");
            }
        }
        for spread in [1u64, 3, 1 << 40] {
            let keys: Vec<[u8; 8]> =
                (0..300u64).map(|n| (n * spread + (n % 5).min(spread - 1)).to_be_bytes()).collect();
            let table = KeyTable::new(&keys.iter().map(|key| key.as_slice()).collect::<Vec<_>>()).unwrap();
            for probe in (0..320u64).flat_map(|n| [n * spread, n * spread + 2]).map(u64::to_be_bytes) {
                assert_eq!(table.lower_bound(&probe), keys.partition_point(|key| *key < probe), "{probe:?}");
            }
        }
        assert!(KeyTable::new(&[b"b", b"a"]).is_none());
        assert_eq!(KeyTable::default().lower_bound(b"x"), 0);
    }
}
