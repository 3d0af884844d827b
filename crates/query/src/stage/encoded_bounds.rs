//! Bounds as bytes: the intervals of each field in the order in which the keys lie, compared without decoding a key.
//!
//! Components of keys sort as bytes, descending fields inverted. An interval of a descending field therefore has its ends swapped
//! here, and its list is turned around: in the space of bytes every list ascends.
//!
//! A position is a byte string to seek: going forward the first entry at or past it, going backward the last entry at or before
//! it. A bare prefix lies before all keys that begin with it, a prefix with `AFTER` behind all of them.

use crate::planner::{IndexBounds, IndexInfo, IndexScanPlan, Interval, KeyRange};
use pando_base::Result;
use pando_doc::{DocRef, OwnedValue};
use pando_keystring::{KeyOrdering, StackBuilder, Version, components};
use pando_storage::Direction;
use std::cmp::Ordering;

/// Greater than every byte that a component can begin with, inverted or not.
const AFTER: u8 = 0xFE;

/// One interval of one field.
#[derive(Clone, Debug)]
struct EncodedInterval {
    low: Vec<u8>,
    high: Vec<u8>,
    low_inclusive: bool,
    high_inclusive: bool,
}

/// What to do about a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is inside.
    Inside,
    /// Nothing before this position is inside.
    Seek(Vec<u8>),
    /// Nothing further is inside.
    Done,
}

/// The bounds of a scan.
#[derive(Clone, Debug)]
pub struct EncodedBounds {
    fields: Vec<Vec<EncodedInterval>>,
    /// Where the first keys lie and where they end, if all between are inside.
    range: Option<(Vec<u8>, Vec<u8>)>,
    ordering: KeyOrdering,
    version: Version,
    direction: Direction,
}

impl EncodedBounds {
    /// The bounds of a scan.
    pub fn of(plan: &IndexScanPlan) -> Result<EncodedBounds> {
        let info = &plan.info;
        if let Some(range) = &plan.key_range {
            return EncodedBounds::of_range(range, info, plan.direction);
        }
        let fields = encode_fields(&plan.bounds, info)?;
        let mut bounds = EncodedBounds {
            fields,
            range: None,
            ordering: info.ordering,
            version: info.version,
            direction: plan.direction,
        };
        if plan.bounds.is_contiguous() && !plan.bounds.is_nothing() {
            let low = bounds.low_position(Vec::new(), 0, 0);
            let high = bounds.high_position(Vec::new(), 0, usize::MAX);
            bounds.range = Some((low, high));
        }
        Ok(bounds)
    }

    fn of_range(range: &KeyRange, info: &IndexInfo, direction: Direction) -> Result<EncodedBounds> {
        let mut low = match &range.min {
            Some(min) => encode_key(min.view(), info)?,
            None => Vec::new(),
        };
        let mut high = match &range.max {
            Some(max) => encode_key(max.view(), info)?,
            None => vec![u8::MAX],
        };
        if range.leaves_min_out {
            low.push(AFTER);
        }
        if range.takes_max_in && range.max.is_some() {
            high.push(AFTER);
        }
        let (ordering, version) = (info.ordering, info.version);
        Ok(EncodedBounds { fields: Vec::new(), range: Some((low, high)), ordering, version, direction })
    }

    /// True if nothing can be inside.
    pub fn is_nothing(&self) -> bool {
        self.range.is_none() && self.fields.iter().any(Vec::is_empty)
    }

    /// True if everything between two keys is inside.
    pub fn is_range(&self) -> bool {
        self.range.is_some()
    }

    /// Where to begin.
    pub fn start(&self) -> Vec<u8> {
        match (&self.range, self.direction) {
            (Some((low, _)), Direction::Forward) => low.clone(),
            (Some((_, high)), Direction::Reverse) => high.clone(),
            (None, Direction::Forward) => self.low_position(Vec::new(), 0, 0),
            (None, Direction::Reverse) => self.high_position(Vec::new(), 0, usize::MAX),
        }
    }

    /// What to do about a key, without its record id.
    #[inline]
    pub fn check(&self, key: &[u8]) -> Verdict {
        if let Some((low, high)) = &self.range {
            let is_inside = match self.direction {
                Direction::Forward => key < high.as_slice(),
                Direction::Reverse => key >= low.as_slice(),
            };
            return if is_inside { Verdict::Inside } else { Verdict::Done };
        }
        match self.direction {
            Direction::Forward => self.check_forward(key),
            Direction::Reverse => self.check_backward(key),
        }
    }

    fn check_forward(&self, key: &[u8]) -> Verdict {
        let mut offset = 0;
        for (place, component) in components(key, self.ordering, self.version).enumerate() {
            let (Ok(component), Some(intervals)) = (component, self.fields.get(place)) else { break };
            let ends_before = |interval: &EncodedInterval| match interval.high.as_slice().cmp(component) {
                Ordering::Less => true,
                Ordering::Equal => !interval.high_inclusive,
                Ordering::Greater => false,
            };
            let index = intervals.partition_point(ends_before);
            let prefix = key.get(..offset).unwrap_or_default();
            let Some(interval) = intervals.get(index) else { return past(prefix, place, true) };
            let is_before = match component.cmp(&interval.low) {
                Ordering::Less => true,
                Ordering::Equal => !interval.low_inclusive,
                Ordering::Greater => false,
            };
            if is_before {
                return Verdict::Seek(self.low_position(prefix.to_vec(), place, index));
            }
            offset += component.len();
        }
        Verdict::Inside
    }

    fn check_backward(&self, key: &[u8]) -> Verdict {
        let mut offset = 0;
        for (place, component) in components(key, self.ordering, self.version).enumerate() {
            let (Ok(component), Some(intervals)) = (component, self.fields.get(place)) else { break };
            let begins_by = |interval: &EncodedInterval| match interval.low.as_slice().cmp(component) {
                Ordering::Less => true,
                Ordering::Equal => interval.low_inclusive,
                Ordering::Greater => false,
            };
            let count = intervals.partition_point(begins_by);
            let prefix = key.get(..offset).unwrap_or_default();
            let Some((index, interval)) = count.checked_sub(1).and_then(|last| Some((last, intervals.get(last)?)))
            else {
                return past(prefix, place, false);
            };
            let is_beyond = match component.cmp(&interval.high) {
                Ordering::Greater => true,
                Ordering::Equal => !interval.high_inclusive,
                Ordering::Less => false,
            };
            if is_beyond {
                return Verdict::Seek(self.high_position(prefix.to_vec(), place, index));
            }
            offset += component.len();
        }
        Verdict::Inside
    }

    /// The least position of what follows the prefix: from this interval of this field, then the first of each further one.
    fn low_position(&self, mut position: Vec<u8>, place: usize, index: usize) -> Vec<u8> {
        let mut index = index;
        for intervals in self.fields.iter().skip(place) {
            let Some(interval) = intervals.get(index) else { return position };
            position.extend_from_slice(&interval.low);
            if !interval.low_inclusive {
                position.push(AFTER);
                return position;
            }
            index = 0;
        }
        position
    }

    /// The greatest position likewise.
    fn high_position(&self, mut position: Vec<u8>, place: usize, index: usize) -> Vec<u8> {
        let mut index = index;
        for intervals in self.fields.iter().skip(place) {
            let Some(interval) = intervals.get(index.min(intervals.len().saturating_sub(1))) else { return position };
            position.extend_from_slice(&interval.high);
            if !interval.high_inclusive {
                return position;
            }
            index = usize::MAX;
        }
        position.push(AFTER);
        position
    }
}

/// Past everything that begins with the prefix, whose last component may have a further value that is inside.
fn past(prefix: &[u8], place: usize, forward: bool) -> Verdict {
    if place == 0 {
        return Verdict::Done;
    }
    let mut position = prefix.to_vec();
    if forward {
        position.push(AFTER);
    }
    Verdict::Seek(position)
}

fn encode_fields(bounds: &IndexBounds, info: &IndexInfo) -> Result<Vec<Vec<EncodedInterval>>> {
    let mut fields = Vec::with_capacity(bounds.fields.len());
    for (place, field) in bounds.fields.iter().enumerate() {
        let is_descending = info.ordering.is_descending(place);
        let encode = |interval: &Interval| encode_interval(interval, is_descending, info.version);
        let mut intervals: Vec<EncodedInterval> =
            field.intervals.intervals().iter().map(encode).collect::<Result<_>>()?;
        if is_descending {
            intervals.reverse();
        }
        debug_assert!(intervals.windows(2).all(|pair| pair[0].high <= pair[1].low), "intervals ascend as bytes");
        fields.push(intervals);
    }
    Ok(fields)
}

fn encode_interval(interval: &Interval, is_descending: bool, version: Version) -> Result<EncodedInterval> {
    let start = encode_value(&interval.start, is_descending, version)?;
    let end = encode_value(&interval.end, is_descending, version)?;
    Ok(if is_descending {
        EncodedInterval {
            low: end,
            high: start,
            low_inclusive: interval.end_inclusive,
            high_inclusive: interval.start_inclusive,
        }
    } else {
        EncodedInterval {
            low: start,
            high: end,
            low_inclusive: interval.start_inclusive,
            high_inclusive: interval.end_inclusive,
        }
    })
}

fn encode_value(value: &OwnedValue, is_descending: bool, version: Version) -> Result<Vec<u8>> {
    let ordering = if is_descending { KeyOrdering::ASCENDING.with_descending(0) } else { KeyOrdering::ASCENDING };
    let mut builder = StackBuilder::new(version, ordering);
    builder.append(value.view())?;
    Ok(builder.bytes().to_vec())
}

/// A whole key without its end: before all entries of that key.
fn encode_key(values: DocRef<'_>, info: &IndexInfo) -> Result<Vec<u8>> {
    let mut builder = StackBuilder::new(info.version, info.ordering);
    for element in values.elements() {
        builder.append(element.value)?;
    }
    Ok(builder.bytes().to_vec())
}
