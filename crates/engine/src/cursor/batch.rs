//! Dirty overlay entries of a stretch of keys, judged for one view.

use crate::overlay::{ChainRead, LeafEntry, RangeRead};
use crate::table::EngineTable;
use crate::visibility::ReadView;
use bytes::Bytes;
use std::ops::Bound;
use std::sync::Arc;

/// What the overlay says about a key.
enum Verdict {
    /// Nothing that the view can see: the base decides.
    AskBase,
    /// Deleted, whatever the base says.
    Deleted,
    Value(Bytes),
    /// A prepared transaction decides: looked up again when it is reached.
    Undecided,
}

struct Item {
    key_end: usize,
    verdict: Verdict,
}

/// A deleted range as the view sees it.
struct SeenRange {
    start: Bytes,
    end: Option<Bytes>,
    read: RangeRead,
}

/// The entries in the order of the direction.
pub struct Batch {
    /// Deleted ranges that the overlay had: taken before the base, so that one which moves there is not missed.
    ranges: Vec<SeenRange>,
    keys: Vec<u8>,
    items: Vec<Item>,
    /// The overlay is known up to here: exclusive upper bound going forward, inclusive lower bound going backward.
    reach: Option<Arc<[u8]>>,
    /// The view's own writes when the batch was taken.
    own_writes: u64,
}

impl Batch {
    /// The stretch from `from` upward.
    pub fn forward(table: &EngineTable, view: &ReadView, from: Bound<&[u8]>) -> Batch {
        let mut batch = Batch::new(view);
        batch.see_ranges(table, view);
        batch.reach = match table.overlay.is_empty() {
            true => None,
            false => table.overlay.scan_forward(from, |entry| batch.push(table, view, entry)),
        };
        batch
    }

    /// The stretch from `upto` downward.
    pub fn backward(table: &EngineTable, view: &ReadView, upto: Bound<&[u8]>) -> Batch {
        let mut batch = Batch::new(view);
        batch.see_ranges(table, view);
        batch.reach = match table.overlay.is_empty() {
            true => None,
            false => table.overlay.scan_backward(upto, |entry| batch.push(table, view, entry)),
        };
        batch
    }

    /// A batch of one known key.
    pub fn single(view: &ReadView, key: &[u8], value: Bytes) -> Batch {
        let mut batch = Batch::new(view);
        batch.push_item(key, Verdict::Value(value));
        batch
    }

    fn new(view: &ReadView) -> Batch {
        Batch { ranges: Vec::new(), keys: Vec::new(), items: Vec::new(), reach: None, own_writes: view.own_writes() }
    }

    fn see_ranges(&mut self, table: &EngineTable, view: &ReadView) {
        if table.ranges.is_empty() {
            return;
        }
        table.ranges.with(|list| {
            for range in list.iter().rev() {
                let read = range.read(view);
                if read != RangeRead::Nothing {
                    self.ranges.push(SeenRange { start: range.start.clone(), end: range.end.clone(), read });
                }
            }
        });
    }

    /// What the newest deleted range over a key of the base says.
    pub fn range_over(&self, key: &[u8]) -> RangeRead {
        let covers =
            |range: &&SeenRange| range.start.as_ref() <= key && range.end.as_ref().is_none_or(|end| key < end.as_ref());
        self.ranges.iter().find(covers).map_or(RangeRead::Nothing, |range| range.read)
    }

    fn push(&mut self, table: &EngineTable, view: &ReadView, entry: &LeafEntry) {
        let verdict = judge(table, view, entry);
        self.push_item(entry.key(), verdict);
    }

    fn push_item(&mut self, key: &[u8], verdict: Verdict) {
        self.keys.extend_from_slice(key);
        self.items.push(Item { key_end: self.keys.len(), verdict });
    }

    /// True if the view has not written since.
    pub fn is_fresh(&self, view: &ReadView) -> bool {
        self.own_writes == view.own_writes()
    }

    /// True if the base alone decides from here on: no items are left, the batch reaches to the end, and no range is deleted.
    pub fn hides_nothing_after(&self, upcoming: usize) -> bool {
        upcoming >= self.items.len() && self.reach.is_none() && self.ranges.is_empty()
    }

    /// How many items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// An item's key.
    pub fn key(&self, item: usize) -> &[u8] {
        let start = item.checked_sub(1).map_or(0, |before| self.items[before].key_end);
        &self.keys[start..self.items[item].key_end]
    }

    /// An item's value, if it has one.
    pub fn value(&self, item: usize) -> Option<&Bytes> {
        match &self.items[item].verdict {
            Verdict::Value(value) => Some(value),
            _ => None,
        }
    }

    /// True if the base decides about the item.
    pub fn asks_base(&self, item: usize) -> bool {
        matches!(self.items[item].verdict, Verdict::AskBase)
    }

    /// What was found when an undecided item was looked up.
    pub fn decide(&mut self, item: usize, value: Option<Bytes>) {
        self.items[item].verdict = value.map_or(Verdict::Deleted, Verdict::Value);
    }

    /// True if a prepared transaction decides about the item.
    pub fn is_undecided(&self, item: usize) -> bool {
        matches!(self.items[item].verdict, Verdict::Undecided)
    }

    /// How far it reaches; none: all the way.
    pub fn reach(&self) -> Option<&[u8]> {
        self.reach.as_deref()
    }
}

fn judge(table: &EngineTable, view: &ReadView, entry: &LeafEntry) -> Verdict {
    if let Some(newest) = entry.chain.newest()
        && view.waits_for_prepared(&newest.outcome())
        && !newest.is_own(view)
    {
        return Verdict::Undecided;
    }
    let range = match table.ranges.is_empty() {
        true => RangeRead::Nothing,
        false => table.ranges.read(entry.key(), view),
    };
    match (entry.chain.read(view), range) {
        (ChainRead::PrepareConflict, _) => Verdict::Undecided,
        (ChainRead::Version(version), _) if version.is_own(view) => value_or_deleted(version.value()),
        (_, RangeRead::PrepareConflict) => Verdict::Undecided,
        (ChainRead::Version(version), RangeRead::DeletedBefore(sequence))
            if version.stamp().is_some_and(|stamp| stamp.sequence < sequence) =>
        {
            Verdict::Deleted
        }
        (ChainRead::Version(version), _) => value_or_deleted(version.value()),
        // The base's entry, if there is one, is compared with the range when it is reached.
        (ChainRead::Nothing, _) => Verdict::AskBase,
    }
}

fn value_or_deleted(value: Option<&Bytes>) -> Verdict {
    value.map_or(Verdict::Deleted, |value| Verdict::Value(value.clone()))
}
