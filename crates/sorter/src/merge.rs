//! Merging ranges: always the least key of all, of equal ones that of the earliest range.

use crate::collected::head;
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
    /// The first bytes of the key decide nearly always.
    head: u64,
    place: usize,
}

impl Head {
    /// Goes to the next entry; false at the end.
    fn advance(&mut self) -> Result<bool> {
        let has_more = self.reader.advance()?;
        self.head = head(self.reader.key());
        Ok(has_more)
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        let by_key = || (other.reader.key(), other.place).cmp(&(self.reader.key(), self.place));
        other.head.cmp(&self.head).then_with(by_key)
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
    /// The least entry was given away: its range goes on with the next call, so that the key need not be copied.
    is_taken: bool,
    /// How many more there may be.
    left: u64,
    values: PhantomData<fn() -> V>,
}

impl<V: Spilled> Merged<V> {
    pub(crate) fn new(file: &Arc<SpillFile>, ranges: &[RangeDescription], limit: Option<u64>) -> Result<Merged<V>> {
        let mut heads = Vec::with_capacity(ranges.len());
        for (place, range) in ranges.iter().enumerate() {
            let mut head = Head { reader: RangeReader::new(file, *range), head: 0, place };
            if head.advance()? {
                heads.push(head);
            }
        }
        let left = limit.unwrap_or(u64::MAX);
        Ok(Merged { heads: heads.into(), is_taken: false, left, values: PhantomData })
    }

    pub(crate) fn empty() -> Merged<V> {
        Merged { heads: BinaryHeap::new(), is_taken: false, left: 0, values: PhantomData }
    }

    /// The next entry. After an error there is nothing more.
    pub fn next_entry(&mut self) -> Result<Option<(&[u8], V)>> {
        if self.left == 0 {
            return Ok(None);
        }
        match self.go_on() {
            Ok(None) => Ok(None),
            Ok(Some(value)) => {
                self.left -= 1;
                Ok(self.heads.peek().map(|least| (least.reader.key(), value)))
            }
            Err(error) => {
                self.left = 0;
                Err(error)
            }
        }
    }

    /// Goes to the next entry: its value.
    fn go_on(&mut self) -> Result<Option<V>> {
        if std::mem::take(&mut self.is_taken)
            && let Some(mut least) = self.heads.peek_mut()
            && !least.advance()?
        {
            PeekMut::pop(least);
        }
        let Some(least) = self.heads.peek() else { return Ok(None) };
        self.is_taken = true;
        least.reader.value().map(Some)
    }
}
