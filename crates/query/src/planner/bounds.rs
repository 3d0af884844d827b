//! The part of an index that a scan looks at: for each field of the key a list of intervals.

use super::IntervalList;
use bstr::BString;
use pando_doc::{Doc, DocBuilder};

/// The intervals of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldBounds {
    /// The field's name in the key pattern.
    pub name: BString,
    /// Its intervals, ascending whatever the direction of the field and the scan.
    pub intervals: IntervalList,
}

/// The intervals of all fields of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexBounds {
    /// One entry a field, in the order of the key pattern.
    pub fields: Vec<FieldBounds>,
}

/// One end of a range of keys.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// The key.
    pub key: Doc,
    /// It is wanted itself.
    pub is_inclusive: bool,
}

impl End {
    fn new() -> End {
        End { key: Doc::new(), is_inclusive: true }
    }
}

/// Both ends of a range of keys, in the order of the index.
#[derive(Clone, Debug, PartialEq)]
pub struct Ends {
    /// Where it begins.
    pub first: End,
    /// Where it ends.
    pub last: End,
}

impl IndexBounds {
    /// True if some field has no interval: nothing can be found.
    pub fn is_nothing(&self) -> bool {
        self.fields.iter().any(|field| field.intervals.is_nothing())
    }

    /// True if the keys between the first and the last are all wanted: points, then at most one interval, then everything.
    pub fn is_contiguous(&self) -> bool {
        let mut rest = self.fields.iter().skip_while(|field| field.intervals.is_point());
        match rest.next() {
            None => true,
            Some(field) => {
                let everything_behind = rest.all(|field| field.intervals.is_everything());
                let is_one = field.intervals.intervals().len() == 1;
                is_one && everything_behind
            }
        }
    }

    /// The first key and the last, where all between are wanted.
    pub fn ends(&self, descending: impl Fn(usize) -> bool) -> Ends {
        let mut ends = Ends { first: End::new(), last: End::new() };
        let (mut first, mut last) = (DocBuilder::new(), DocBuilder::new());
        for (index, field) in self.fields.iter().enumerate() {
            let (Some(low), Some(high)) = (field.intervals.intervals().first(), field.intervals.intervals().last())
            else {
                continue;
            };
            let low = (&low.start, low.start_inclusive);
            let high = (&high.end, high.end_inclusive);
            let (from, to) = if descending(index) { (high, low) } else { (low, high) };
            first.append(&field.name, from.0);
            last.append(&field.name, to.0);
            ends.first.is_inclusive &= from.1;
            ends.last.is_inclusive &= to.1;
        }
        (ends.first.key, ends.last.key) = (first.finish(), last.finish());
        ends
    }

    /// As `explain` shows it, in the direction of the scan.
    pub fn to_doc(&self, descending: impl Fn(usize) -> bool) -> Doc {
        let mut builder = DocBuilder::new();
        for (index, field) in self.fields.iter().enumerate() {
            // Of a wildcard that stands for all paths, the path's bounds say everything.
            let is_repeated = self.fields.iter().take(index).any(|before| before.name == field.name);
            if is_repeated {
                continue;
            }
            builder.array(&field.name, |array| {
                let intervals = field.intervals.intervals();
                if descending(index) {
                    intervals.iter().rev().for_each(|interval| array.push(reversed(interval).as_str()));
                } else {
                    intervals.iter().for_each(|interval| array.push(interval.to_string().as_str()));
                }
            });
        }
        builder.finish()
    }
}

fn reversed(interval: &super::Interval) -> String {
    let open = if interval.end_inclusive { '[' } else { '(' };
    let close = if interval.start_inclusive { ']' } else { ')' };
    format!("{open}{}, {}{close}", interval.end.view(), interval.start.view())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::Interval;
    use pando_doc::doc;

    fn bounds(lists: Vec<IntervalList>) -> IndexBounds {
        let field = |(index, intervals)| FieldBounds { name: BString::from(format!("f{index}")), intervals };
        IndexBounds { fields: lists.into_iter().enumerate().map(field).collect() }
    }

    #[test]
    fn contiguous_bounds_are_points_an_interval_and_everything() {
        let point = || IntervalList::point(1.into());
        let range = || IntervalList::of([Interval::new(1.into(), true, 5.into(), false)]);
        let points = || IntervalList::of([Interval::point(1.into()), Interval::point(3.into())]);
        let all = IntervalList::everything;
        assert!(bounds(vec![point(), range(), all()]).is_contiguous());
        assert!(bounds(vec![point(), point()]).is_contiguous());
        assert!(!bounds(vec![range(), point()]).is_contiguous());
        assert!(!bounds(vec![points()]).is_contiguous());
        let shown = bounds(vec![range(), points()]).to_doc(|field| field == 1);
        assert_eq!(shown, doc! { "f0": ["[1, 5)"], "f1": ["[3, 3]", "[1, 1]"] });
    }
}
