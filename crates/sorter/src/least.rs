//! The least entries, if only so many are wanted: a heap whose top is the worst of them.

use crate::Spilled;
use crate::collected::Collected;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

struct Entry<V> {
    key: Box<[u8]>,
    number: u64,
    value: V,
}

impl<V> Ord for Entry<V> {
    fn cmp(&self, other: &Entry<V>) -> Ordering {
        self.key.cmp(&other.key).then(self.number.cmp(&other.number))
    }
}

impl<V> PartialOrd for Entry<V> {
    fn partial_cmp(&self, other: &Entry<V>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<V> PartialEq for Entry<V> {
    fn eq(&self, other: &Entry<V>) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<V> Eq for Entry<V> {}

/// At most so many entries, none of them greater than one that was left out.
pub(crate) struct Least<V> {
    limit: u64,
    heap: BinaryHeap<Entry<V>>,
    memory_bytes: u64,
    /// The number of the next entry.
    number: u64,
    /// Only keys below this can still be wanted: as many others were given away.
    cutoff: Option<Box<[u8]>>,
}

impl<V: Spilled> Least<V> {
    pub(crate) fn new(limit: u64) -> Least<V> {
        Least { limit, heap: BinaryHeap::new(), memory_bytes: 0, number: 0, cutoff: None }
    }

    pub(crate) fn push(&mut self, key: &[u8], value: V) {
        self.number += 1;
        if !self.is_wanted(key) {
            return;
        }
        if self.is_full()
            && let Some(worst) = self.heap.pop()
        {
            self.memory_bytes -= Collected::entry_bytes(&worst.key, &worst.value);
        }
        self.memory_bytes += Collected::entry_bytes(key, &value);
        self.heap.push(Entry { key: Box::from(key), number: self.number, value });
    }

    fn is_full(&self) -> bool {
        self.heap.len() as u64 >= self.limit
    }

    fn is_wanted(&self, key: &[u8]) -> bool {
        let is_cut_off = self.cutoff.as_ref().is_some_and(|cutoff| *key >= **cutoff);
        // Of equal keys the earlier one is the less.
        let is_worse = self.is_full() && self.heap.peek().is_none_or(|worst| *key >= *worst.key);
        !(is_cut_off || is_worse)
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Gives away what there is, in order. If these are as many as are wanted, nothing that is not less than the last of them is wanted
    /// from now on.
    pub(crate) fn take_sorted(&mut self) -> Collected<V> {
        let is_full = self.is_full();
        let mut sorted = Collected::new();
        for Entry { key, value, .. } in std::mem::take(&mut self.heap).into_sorted_vec() {
            sorted.push(&key, value);
        }
        self.memory_bytes = 0;
        if is_full
            && let Some((last, _)) = sorted.iter().next_back()
            && self.cutoff.as_ref().is_none_or(|cutoff| *last < **cutoff)
        {
            self.cutoff = Some(Box::from(last));
        }
        sorted
    }
}
