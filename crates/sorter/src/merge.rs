//! Merging ranges: always the least key of all, of equal ones that of the earliest range.

use crate::file::SpillFile;
use crate::range::{RangeDescription, RangeReader};
use crate::{Result, Spilled};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::marker::PhantomData;
use std::sync::Arc;

/// A range at its present entry. The order is turned around, since a heap gives its greatest first.
struct Head {
    reader: RangeReader,
    place: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        (other.reader.key(), other.place).cmp(&(self.reader.key(), self.place))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

/// The entries of several ranges in order.
pub struct Merged<V> {
    heads: BinaryHeap<Head>,
    /// How many more there may be.
    left: u64,
    values: PhantomData<fn() -> V>,
}

impl<V: Spilled> Merged<V> {
    pub(crate) fn new(file: &Arc<SpillFile>, ranges: &[RangeDescription], limit: Option<u64>) -> Result<Merged<V>> {
        let mut heads = Vec::with_capacity(ranges.len());
        for (place, range) in ranges.iter().enumerate() {
            let mut reader = RangeReader::new(file, *range);
            if reader.advance()? {
                heads.push(Head { reader, place });
            }
        }
        Ok(Merged { heads: heads.into(), left: limit.unwrap_or(u64::MAX), values: PhantomData })
    }

    pub(crate) fn empty() -> Merged<V> {
        Merged { heads: BinaryHeap::new(), left: 0, values: PhantomData }
    }

    /// The next entry. After an error there is nothing more.
    pub fn next_entry(&mut self) -> Result<Option<(Box<[u8]>, V)>> {
        if self.left == 0 {
            return Ok(None);
        }
        let next = self.take();
        match &next {
            Ok(_) => self.left -= 1,
            Err(_) => self.left = 0,
        }
        next
    }

    fn take(&mut self) -> Result<Option<(Box<[u8]>, V)>> {
        let Some(mut least) = self.heads.peek_mut() else { return Ok(None) };
        let entry = (Box::from(least.reader.key()), least.reader.value()?);
        if !least.reader.advance()? {
            PeekMut::pop(least);
        }
        Ok(Some(entry))
    }
}
