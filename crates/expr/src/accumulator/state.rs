//! What an accumulator remembers, and its result.

use super::javascript::{ScriptFunctions, Scripted};
use super::percentile::Percentile;
use super::ranked::Ranked;
use super::sum::{Deviation, Sum};
use super::value_set::ValueSet;
use crate::context::{SharedCollator, strings};
use crate::expression::{Fields, Operand};
use crate::limits::{ExpressionLimits, value_bytes};
use pando_base::{Error, ErrorCode, Result, operation};
use pando_doc::{CompareOptions, Doc, Number, OwnedValue, Value, compare_with};
use std::sync::Arc;

/// What is reckoned.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum AccumulatorKind {
    Sum,
    Avg,
    Min,
    Max,
    First,
    Last,
    Push,
    AddToSet,
    MergeObjects,
    StdDevPop,
    StdDevSamp,
    Count,
    /// `$firstN`; how many comes with each group.
    FirstN,
    LastN,
    MinN,
    MaxN,
    /// `$percentile` and `$median`.
    Percentile {
        /// From 0 to 1.
        shares: Vec<f64>,
        /// One value, not an array.
        is_median: bool,
    },
    /// `$accumulator` and `$_internalJsReduce`.
    Script(Arc<ScriptFunctions>),
    /// `$topN` and its kin: pairs of key and output, by a pattern.
    Top {
        pattern: Doc,
        /// True for `$bottom` and `$bottomN`.
        from_end: bool,
        /// True for `$top` and `$bottom`: one value, not an array.
        is_single: bool,
    },
}

impl AccumulatorKind {
    /// As it is written.
    pub fn name(&self) -> &'static str {
        match self {
            AccumulatorKind::Sum => "$sum",
            AccumulatorKind::Avg => "$avg",
            AccumulatorKind::Min => "$min",
            AccumulatorKind::Max => "$max",
            AccumulatorKind::First => "$first",
            AccumulatorKind::Last => "$last",
            AccumulatorKind::Push => "$push",
            AccumulatorKind::AddToSet => "$addToSet",
            AccumulatorKind::MergeObjects => "$mergeObjects",
            AccumulatorKind::StdDevPop => "$stdDevPop",
            AccumulatorKind::StdDevSamp => "$stdDevSamp",
            AccumulatorKind::Count => "$count",
            AccumulatorKind::Script(functions) => functions.name(),
            AccumulatorKind::FirstN => "$firstN",
            AccumulatorKind::LastN => "$lastN",
            AccumulatorKind::MinN => "$minN",
            AccumulatorKind::MaxN => "$maxN",
            AccumulatorKind::Percentile { is_median: true, .. } => "$median",
            AccumulatorKind::Percentile { is_median: false, .. } => "$percentile",
            AccumulatorKind::Top { from_end: false, is_single: true, .. } => "$top",
            AccumulatorKind::Top { from_end: true, is_single: true, .. } => "$bottom",
            AccumulatorKind::Top { from_end: false, is_single: false, .. } => "$topN",
            AccumulatorKind::Top { from_end: true, is_single: false, .. } => "$bottomN",
        }
    }
}

#[derive(Clone)]
pub(super) enum State {
    Sum(Sum),
    Avg(Sum, i64),
    /// The least or the greatest so far.
    Extreme(Option<OwnedValue>, bool),
    First(Option<Option<OwnedValue>>),
    Last(Option<OwnedValue>),
    Push(Vec<OwnedValue>),
    Set(ValueSet),
    Merge(Fields),
    Deviation(Deviation, bool),
    Count(i64),
    Ranked(Ranked),
    Script(Scripted),
    Percentile(Percentile, Vec<f64>, bool),
}

/// One reckoning.
#[derive(Clone)]
pub struct Accumulator {
    pub(super) state: State,
    pub(super) collator: Option<SharedCollator>,
    pub(super) memory_bytes: usize,
    memory_bytes_max: usize,
}

impl Accumulator {
    /// A reckoning of this kind. `count` is the `n` of `$firstN` and its kin, evaluated for the group.
    pub fn new(
        kind: &AccumulatorKind,
        count: Option<&Operand<'_>>,
        collator: Option<SharedCollator>,
    ) -> Result<Accumulator> {
        let state = match kind {
            AccumulatorKind::Sum => State::Sum(Sum::default()),
            AccumulatorKind::Avg => State::Avg(Sum::default(), 0),
            AccumulatorKind::Min => State::Extreme(None, false),
            AccumulatorKind::Max => State::Extreme(None, true),
            AccumulatorKind::First => State::First(None),
            AccumulatorKind::Last => State::Last(None),
            AccumulatorKind::Push => State::Push(Vec::new()),
            AccumulatorKind::AddToSet => State::Set(ValueSet::default()),
            AccumulatorKind::MergeObjects => State::Merge(Fields::default()),
            AccumulatorKind::StdDevPop => State::Deviation(Deviation::default(), false),
            AccumulatorKind::StdDevSamp => State::Deviation(Deviation::default(), true),
            AccumulatorKind::Count => State::Count(0),
            AccumulatorKind::Script(functions) => State::Script(Scripted::new(functions, count)?),
            AccumulatorKind::Percentile { shares, is_median } => {
                State::Percentile(Percentile::default(), shares.clone(), *is_median)
            }
            AccumulatorKind::FirstN
            | AccumulatorKind::LastN
            | AccumulatorKind::MinN
            | AccumulatorKind::MaxN
            | AccumulatorKind::Top { .. } => State::Ranked(Ranked::new(kind, count)?),
        };
        Ok(Accumulator { state, collator, memory_bytes: 0, memory_bytes_max: MEMORY_BYTES_MAX })
    }

    /// The same, within the server's limits.
    #[must_use]
    pub fn within(mut self, limits: ExpressionLimits) -> Accumulator {
        self.memory_bytes_max = match self.state {
            State::Push(_) => limits.push_bytes_max,
            State::Set(_) => limits.set_bytes_max,
            _ => self.memory_bytes_max,
        };
        self
    }

    /// Takes one more value.
    pub fn add(&mut self, value: Operand<'_>) -> Result<()> {
        operation::tick(VALUE_STEPS)?;
        let options = CompareOptions { strings: strings(&self.collator), ..CompareOptions::default() };
        match &mut self.state {
            State::Sum(sum) => {
                if let Some(number) = value.as_number() {
                    sum.add(number);
                }
            }
            State::Avg(sum, count) => {
                if let Some(number) = value.as_number() {
                    sum.add(number);
                    *count += 1;
                }
            }
            State::Extreme(best, is_greatest) => {
                if !value.is_nullish() {
                    let order = |best: &OwnedValue| compare_with(value.or_null(), best.view(), &options);
                    let is_better = best
                        .as_ref()
                        .is_none_or(|best| if *is_greatest { order(best).is_gt() } else { order(best).is_lt() });
                    if is_better {
                        *best = value.into_value();
                    }
                }
            }
            State::First(first) => {
                if first.is_none() {
                    *first = Some(value.into_value());
                }
            }
            State::Last(last) => *last = value.into_value(),
            State::Push(values) => {
                if let Some(value) = value.into_value() {
                    let size_bytes = value_bytes(value.view());
                    operation::tick_bytes(size_bytes)?;
                    self.memory_bytes += size_bytes;
                    values.push(value);
                }
            }
            State::Set(values) => {
                if let Some(value) = value.into_value() {
                    let size_bytes = value_bytes(value.view());
                    operation::tick_bytes(size_bytes)?;
                    if values.insert(value, &options) {
                        self.memory_bytes += size_bytes;
                    }
                }
            }
            State::Merge(fields) => match value.or_null() {
                Value::Document(doc) => {
                    fields.merge(doc)?;
                    self.memory_bytes = fields.size_bytes();
                }
                other if other.is_nullish() => {}
                other => {
                    let reason = format!(
                        "$mergeObjects requires object inputs, but input {other} is of type {}",
                        other.value_type()
                    );
                    return Err(Error::location(40400, reason));
                }
            },
            State::Deviation(deviation, _) => {
                if let Some(number) = value.as_number() {
                    deviation.add(number.to_double());
                }
            }
            State::Count(count) => *count += 1,
            State::Script(scripted) => {
                scripted.add(&value)?;
                self.memory_bytes = scripted.memory_bytes();
            }
            State::Ranked(ranked) => {
                ranked.add(value, &options)?;
                self.memory_bytes = ranked.memory_bytes();
            }
            State::Percentile(percentile, ..) => {
                percentile.add(&value);
                self.memory_bytes = percentile.memory_bytes();
            }
        }
        self.check_memory()
    }

    pub(super) fn check_memory(&self) -> Result<()> {
        let (used, limit) = (self.memory_bytes, self.memory_bytes_max);
        if used > limit {
            let name = match self.state {
                State::Push(_) => "$push ",
                State::Set(_) => "$addToSet ",
                _ => "",
            };
            let reason = format!(
                "{name}used too much memory and spilling to disk cannot reduce memory consumption any further. Used: {used} bytes. Memory limit: {limit} bytes"
            );
            return Err(Error::new(ErrorCode::ExceededMemoryLimit, reason));
        }
        Ok(())
    }

    /// Roughly how much it remembers.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Accumulator>() + self.memory_bytes
    }

    /// The result; none if it is missing. JavaScript may fail to give one.
    pub fn finish(&self) -> Result<Option<OwnedValue>> {
        match &self.state {
            State::Script(scripted) => scripted.finish(),
            _ => Ok(self.result()),
        }
    }

    /// The result of what cannot fail; none if it is missing.
    pub fn result(&self) -> Option<OwnedValue> {
        Some(match &self.state {
            State::Sum(sum) => OwnedValue::from(sum.total()),
            State::Avg(_, 0) | State::Extreme(None, _) => OwnedValue::Null,
            State::Avg(sum, count) => OwnedValue::from(match sum.as_decimal() {
                Some(decimal) => Number::Decimal(decimal / pando_doc::Decimal128::from(*count)),
                None => Number::Double(sum.as_double() / *count as f64),
            }),
            State::Extreme(Some(best), _) => best.clone(),
            State::First(first) => return first.clone().flatten(),
            State::Last(last) => return last.clone(),
            State::Push(values) => OwnedValue::Array(values.iter().collect()),
            State::Set(values) => {
                let options = CompareOptions { strings: strings(&self.collator), ..CompareOptions::default() };
                OwnedValue::Array(values.sorted(&options).into_iter().collect())
            }
            State::Merge(fields) => OwnedValue::Document(fields.to_doc()),
            State::Deviation(deviation, is_sample) => {
                deviation.result(*is_sample).map_or(OwnedValue::Null, OwnedValue::Double)
            }
            State::Count(count) => OwnedValue::from(Number::narrowest(*count)),
            State::Ranked(ranked) => return ranked.result(),
            State::Script(scripted) => return scripted.finish().ok().flatten(),
            State::Percentile(percentile, shares, is_median) => percentile.result(shares, *is_median),
        })
    }
}

/// What one accumulator may remember.
const MEMORY_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Taking a value is so many steps beside its bytes.
const VALUE_STEPS: u64 = 2;

impl std::fmt::Debug for Accumulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.result())
    }
}
