//! Intervals of values, and sorted lists of them.
//!
//! A list is ascending and its intervals neither overlap nor touch. All of this is in the order of `pando_doc::compare`;
//! the strings of a collated index have been replaced by their sort keys before they get here.

use pando_base::operation;
use pando_doc::{OwnedValue, compare};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A range of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// The least value.
    pub start: OwnedValue,
    /// The greatest value.
    pub end: OwnedValue,
    /// The least value belongs to it.
    pub start_inclusive: bool,
    /// The greatest value belongs to it.
    pub end_inclusive: bool,
}

impl Interval {
    /// A range.
    pub fn new(start: OwnedValue, start_inclusive: bool, end: OwnedValue, end_inclusive: bool) -> Interval {
        Interval { start, end, start_inclusive, end_inclusive }
    }

    /// A single value.
    pub fn point(value: OwnedValue) -> Interval {
        Interval { start: value.clone(), end: value, start_inclusive: true, end_inclusive: true }
    }

    /// Every value there is.
    pub fn everything() -> Interval {
        Interval::new(OwnedValue::MinKey, true, OwnedValue::MaxKey, true)
    }

    /// True for a single value.
    pub fn is_point(&self) -> bool {
        self.start_inclusive && self.end_inclusive && compare(self.start.view(), self.end.view()).is_eq()
    }

    /// True for every value there is.
    pub fn is_everything(&self) -> bool {
        matches!(self.start, OwnedValue::MinKey)
            && matches!(self.end, OwnedValue::MaxKey)
            && self.start_inclusive
            && self.end_inclusive
    }

    fn is_empty(&self) -> bool {
        match compare(self.start.view(), self.end.view()) {
            Ordering::Less => false,
            Ordering::Equal => !(self.start_inclusive && self.end_inclusive),
            Ordering::Greater => true,
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = if self.start_inclusive { '[' } else { '(' };
        let close = if self.end_inclusive { ']' } else { ')' };
        write!(f, "{open}{}, {}{close}", self.start.view(), self.end.view())
    }
}

/// Ascending intervals that neither overlap nor touch. A clone shares them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntervalList(Arc<Vec<Interval>>);

impl IntervalList {
    /// The union of these intervals, in whatever order they come.
    pub fn of(intervals: impl IntoIterator<Item = Interval>) -> IntervalList {
        let mut intervals: Vec<Interval> = intervals.into_iter().filter(|interval| !interval.is_empty()).collect();
        // The constants of a list come sorted.
        if !intervals.is_sorted_by(|left, right| compare_starts(left, right).is_le()) {
            intervals.sort_by(compare_starts);
        }
        let mut merged: Vec<Interval> = Vec::with_capacity(intervals.len());
        for interval in intervals {
            operation::count(1);
            match merged.last_mut() {
                Some(last) if touches(last, &interval) => extend(last, interval),
                _ => merged.push(interval),
            }
        }
        IntervalList(Arc::new(merged))
    }

    /// Every value there is.
    pub fn everything() -> IntervalList {
        IntervalList(Arc::new(vec![Interval::everything()]))
    }

    /// One value.
    pub fn point(value: OwnedValue) -> IntervalList {
        IntervalList(Arc::new(vec![Interval::point(value)]))
    }

    /// No value.
    pub fn nothing() -> IntervalList {
        IntervalList::default()
    }

    /// The intervals.
    pub fn intervals(&self) -> &[Interval] {
        &self.0
    }

    /// True for every value there is.
    pub fn is_everything(&self) -> bool {
        matches!(self.0.as_slice(), [only] if only.is_everything())
    }

    /// True for no value.
    pub fn is_nothing(&self) -> bool {
        self.0.is_empty()
    }

    /// True for a single value.
    pub fn is_point(&self) -> bool {
        matches!(self.0.as_slice(), [only] if only.is_point())
    }

    /// True for single values only.
    pub fn is_all_points(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(Interval::is_point)
    }

    /// What is in one of both.
    #[must_use]
    pub fn union(self, other: IntervalList) -> IntervalList {
        let owned = |list: IntervalList| Arc::try_unwrap(list.0).unwrap_or_else(|shared| shared.to_vec());
        IntervalList::of(owned(self).into_iter().chain(owned(other)))
    }

    /// What is in both.
    #[must_use]
    pub fn intersect(&self, other: &IntervalList) -> IntervalList {
        if self.is_everything() {
            return other.clone();
        }
        if other.is_everything() {
            return self.clone();
        }
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut common = Vec::new();
        while let (Some(one), Some(two)) = (left.peek(), right.peek()) {
            operation::count(4);
            let both = intersect_intervals(one, two);
            if !both.is_empty() {
                common.push(both);
            }
            // Whatever ends first cannot meet anything further on.
            if compare_ends(one, two).is_lt() {
                left.next();
            } else {
                right.next();
            }
        }
        IntervalList(Arc::new(common))
    }

    /// What is not in it.
    #[must_use]
    pub fn complement(&self) -> IntervalList {
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let (mut start, mut inclusive) = (OwnedValue::MinKey, true);
        for interval in self.0.iter() {
            let end_inclusive = !interval.start_inclusive;
            gaps.push(Interval::new(start, inclusive, interval.start.clone(), end_inclusive));
            (start, inclusive) = (interval.end.clone(), !interval.end_inclusive);
        }
        gaps.push(Interval::new(start, inclusive, OwnedValue::MaxKey, true));
        IntervalList::of(gaps)
    }
}

impl fmt::Display for IntervalList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, interval) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{interval}")?;
        }
        Ok(())
    }
}

fn compare_starts(left: &Interval, right: &Interval) -> Ordering {
    operation::count(1);
    compare(left.start.view(), right.start.view()).then(right.start_inclusive.cmp(&left.start_inclusive))
}

fn compare_ends(left: &Interval, right: &Interval) -> Ordering {
    compare(left.end.view(), right.end.view()).then(left.end_inclusive.cmp(&right.end_inclusive))
}

/// True if the second, which starts no earlier, leaves no gap after the first.
fn touches(first: &Interval, second: &Interval) -> bool {
    match compare(second.start.view(), first.end.view()) {
        Ordering::Less => true,
        Ordering::Equal => first.end_inclusive || second.start_inclusive,
        Ordering::Greater => false,
    }
}

fn extend(first: &mut Interval, second: Interval) {
    if compare_ends(first, &second).is_lt() {
        first.end = second.end;
        first.end_inclusive = second.end_inclusive;
    }
}

fn intersect_intervals(left: &Interval, right: &Interval) -> Interval {
    // The later start, the earlier end; of two equal ones that which leaves its value out.
    let start = if compare_starts(left, right).is_lt() { right } else { left };
    let end = if compare_ends(left, right).is_lt() { left } else { right };
    Interval::new(start.start.clone(), start.start_inclusive, end.end.clone(), end.end_inclusive)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: i32, start_inclusive: bool, end: i32, end_inclusive: bool) -> Interval {
        Interval::new(start.into(), start_inclusive, end.into(), end_inclusive)
    }

    #[test]
    fn intervals_are_merged_intersected_and_complemented() {
        let list = IntervalList::of([range(5, false, 9, true), range(1, true, 3, false), range(3, true, 4, true)]);
        assert_eq!(list.to_string(), "[1, 4], (5, 9]");
        let other = IntervalList::of([range(2, false, 6, false), range(9, true, 12, true)]);
        assert_eq!(list.intersect(&other).to_string(), "(2, 4], (5, 6), [9, 9]");
        assert_eq!(list.complement().to_string(), "[MinKey, 1), (4, 5], (9, MaxKey]");
        assert_eq!(list.complement().complement(), list);
        assert!(IntervalList::of([range(3, true, 3, false), range(4, true, 2, true)]).is_nothing());
        assert!(IntervalList::nothing().complement().is_everything());
        assert!(IntervalList::everything().complement().is_nothing());
    }
}
