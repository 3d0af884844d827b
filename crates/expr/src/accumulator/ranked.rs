//! The first, last, least or greatest so many: `$firstN`, `$lastN`, `$minN`, `$maxN`, `$top`, `$bottom`, `$topN`, `$bottomN`.

use super::AccumulatorKind;
use crate::expression::{Operand, sort::Pattern};
use crate::limits::value_bytes;
use pando_base::{Error, Result, operation};
use pando_doc::{ArrayBuilder, CompareOptions, OwnedValue, Value, compare_with};
use std::collections::VecDeque;

/// As many values move by a place in a step.
const MOVED_PER_STEP: usize = 8;

/// Which values are kept.
#[derive(Clone)]
enum Rank {
    First,
    Last,
    Least,
    Greatest,
    /// By the pattern over `{key, output}`; the values are outputs.
    ByPattern {
        pattern: Pattern,
        from_end: bool,
        is_single: bool,
    },
}

#[derive(Clone)]
pub(super) struct Ranked {
    rank: Rank,
    count: usize,
    /// What is compared (none where the place decides), and the value.
    kept: VecDeque<(OwnedValue, OwnedValue)>,
    /// About how much memory they take.
    memory_bytes: usize,
}

fn pair_bytes((key, value): &(OwnedValue, OwnedValue)) -> usize {
    value_bytes(key.view()) + value_bytes(value.view())
}

/// The `n` of `$firstN` and its kin.
pub(crate) fn parse_count(count: &Operand<'_>) -> Result<usize> {
    let Some(number) = count.as_number() else {
        let reason = format!("Value for 'n' must be of integral type, but found {}", count.or_null());
        return Err(Error::location(5787902, reason));
    };
    let Some(whole) = number.to_i64_exact() else {
        let reason = format!("Value for 'n' must be of integral type, but found {}", count.or_null());
        return Err(Error::location(5787903, reason));
    };
    match usize::try_from(whole) {
        Ok(whole) if whole > 0 => Ok(whole),
        _ => Err(Error::location(5787908, format!("'n' must be greater than 0, found {whole}"))),
    }
}

impl Ranked {
    pub(super) fn new(kind: &AccumulatorKind, count: Option<&Operand<'_>>) -> Result<Ranked> {
        let rank = match kind {
            AccumulatorKind::FirstN => Rank::First,
            AccumulatorKind::LastN => Rank::Last,
            AccumulatorKind::MinN => Rank::Least,
            AccumulatorKind::MaxN => Rank::Greatest,
            AccumulatorKind::Top { pattern, from_end, is_single } => {
                let pattern = Pattern::parse_fields(pattern.view())?;
                Rank::ByPattern { pattern, from_end: *from_end, is_single: *is_single }
            }
            _ => return Err(Error::internal("not an accumulator of several values")),
        };
        let count = count.map_or(Ok(1), parse_count)?;
        Ok(Ranked { rank, count, kept: VecDeque::new(), memory_bytes: 0 })
    }

    /// For `$top` and its kin the value is a document: `document` (what the pattern looks at) and `output`.
    pub(super) fn add(&mut self, value: Operand<'_>, options: &CompareOptions<'_>) -> Result<()> {
        let value = value.into_value();
        let (key, value) = match &self.rank {
            Rank::First | Rank::Last => (OwnedValue::Null, value.unwrap_or(OwnedValue::Null)),
            Rank::Least | Rank::Greatest => {
                let Some(value) = value.filter(|value| !value.view().is_nullish()) else { return Ok(()) };
                (value.clone(), value)
            }
            Rank::ByPattern { .. } => {
                let Some(Value::Document(pair)) = value.as_ref().map(OwnedValue::view) else { return Ok(()) };
                let part = |name: &str| pair.get(name).unwrap_or(Value::Null).to_owned();
                (part("document"), part("output"))
            }
        };
        // What stands behind the new one moves by a place.
        operation::tick(1 + (self.kept.len().min(self.count) / MOVED_PER_STEP) as u64)?;
        self.keep(key, value, options);
        Ok(())
    }

    /// Keeps a value, if it is among those that count.
    fn keep(&mut self, key: OwnedValue, value: OwnedValue, options: &CompareOptions<'_>) {
        match &self.rank {
            Rank::First => self.insert(self.kept.len(), key, value),
            Rank::Last => self.insert_at_end(self.kept.len(), key, value),
            Rank::Least | Rank::Greatest => {
                let is_greatest = matches!(self.rank, Rank::Greatest);
                let place = self.kept.partition_point(|(other, _)| {
                    let order = compare_with(other.view(), key.view(), options);
                    if is_greatest { order.is_ge() } else { order.is_le() }
                });
                self.insert(place, key, value);
            }
            Rank::ByPattern { pattern, from_end, .. } => {
                let place = self
                    .kept
                    .partition_point(|(other, _)| pattern.compare_documents(other.view(), key.view(), options).is_le());
                if *from_end {
                    self.insert_at_end(place, key, value);
                } else {
                    self.insert(place, key, value);
                }
            }
        }
    }

    /// Appends everything that is kept.
    pub(super) fn write(&self, out: &mut ArrayBuilder) {
        for (key, value) in &self.kept {
            out.push(key.view());
            out.push(value.view());
        }
    }

    /// Keeps what another has written, as far as it counts.
    pub(super) fn merge<'v>(&mut self, mut values: impl Iterator<Item = Value<'v>>, options: &CompareOptions<'_>) {
        while let (Some(key), Some(value)) = (values.next(), values.next()) {
            self.keep(key.to_owned(), value.to_owned(), options);
        }
    }

    /// Of too many the first goes.
    fn insert_at_end(&mut self, place: usize, key: OwnedValue, value: OwnedValue) {
        self.take_in(place, (key, value));
        if self.kept.len() > self.count {
            let gone = self.kept.pop_front();
            self.memory_bytes -= gone.as_ref().map_or(0, pair_bytes);
        }
    }

    fn take_in(&mut self, place: usize, pair: (OwnedValue, OwnedValue)) {
        self.memory_bytes += pair_bytes(&pair);
        self.kept.insert(place, pair);
    }

    /// About how much memory the values take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    fn insert(&mut self, place: usize, key: OwnedValue, value: OwnedValue) {
        if place < self.count {
            self.take_in(place, (key, value));
            if self.kept.len() > self.count {
                let gone = self.kept.pop_back();
                self.memory_bytes -= gone.as_ref().map_or(0, pair_bytes);
            }
        }
    }

    pub(super) fn result(&self) -> Option<OwnedValue> {
        match &self.rank {
            Rank::ByPattern { is_single: true, .. } => self.kept.front().map(|(_, value)| value.clone()),
            _ => Some(OwnedValue::Array(self.kept.iter().map(|(_, value)| value).collect())),
        }
    }
}
