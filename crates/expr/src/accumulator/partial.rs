//! What an accumulator has remembered so far, as a value, and going on from it: so that the groups of a `$group` can go to disk and back.
//!
//! The value is an array whose form is known only here. Parts are merged in the order in which their values were added.

use super::state::{Accumulator, State};
use super::sum::whole;
use crate::limits::value_bytes;
use pando_base::{Error, Result};
use pando_doc::{Array, ArrayBuilder, ArrayRef, CompareOptions, Value};

impl Accumulator {
    /// What was remembered so far.
    pub fn partial(&self) -> Array {
        let mut out = ArrayBuilder::new();
        match &self.state {
            State::Sum(sum) => sum.write(&mut out),
            State::Avg(sum, count) => {
                sum.write(&mut out);
                out.push(*count);
            }
            State::Extreme(best, _) => best.iter().for_each(|best| out.push(best.view())),
            State::First(None) => {}
            State::First(Some(value)) | State::Last(value) => {
                out.push(true);
                value.iter().for_each(|value| out.push(value.view()));
            }
            State::Push(values) => values.iter().for_each(|value| out.push(value.view())),
            State::Set(values) => values.values().iter().for_each(|value| out.push(value.view())),
            State::Merge(_) => self.result().iter().for_each(|merged| out.push(merged.view())),
            State::Deviation(deviation, _) => deviation.write(&mut out),
            State::Count(count) => out.push(*count),
            State::Ranked(ranked) => ranked.write(&mut out),
            State::Script(scripted) => scripted.write(&mut out),
            State::Percentile(percentile, ..) => percentile.numbers().iter().for_each(|number| out.push(*number)),
        }
        out.finish()
    }

    /// Goes on with what another accumulator of the same kind has remembered of later values.
    pub fn merge(&mut self, partial: ArrayRef<'_>) -> Result<()> {
        let damaged = || Error::internal("the partial result of an accumulator has another form");
        let mut values = partial.values();
        let collator = self.collator.clone();
        let options = CompareOptions { strings: crate::context::strings(&collator), ..CompareOptions::default() };
        match &mut self.state {
            State::Sum(sum) => sum.merge(&mut values).ok_or_else(damaged)?,
            State::Avg(sum, count) => {
                sum.merge(&mut values).ok_or_else(damaged)?;
                *count += values.next().and_then(whole).ok_or_else(damaged)?;
            }
            State::First(first) => {
                if first.is_none() && values.next().is_some() {
                    *first = Some(values.next().map(Value::to_owned));
                }
            }
            State::Last(last) => {
                values.next();
                *last = values.next().map(Value::to_owned);
            }
            State::Set(known) => {
                for value in values {
                    if known.insert(value.to_owned(), &options) {
                        self.memory_bytes += value_bytes(value);
                    }
                }
            }
            State::Deviation(deviation, _) => deviation.merge(&mut values).ok_or_else(damaged)?,
            State::Count(count) => *count += values.next().and_then(whole).ok_or_else(damaged)?,
            State::Ranked(ranked) => {
                ranked.merge(values, &options);
                self.memory_bytes = ranked.memory_bytes();
            }
            State::Script(scripted) => {
                scripted.merge(values)?;
                self.memory_bytes = scripted.memory_bytes();
            }
            // These take their parts as they took the values.
            State::Extreme(..) | State::Push(_) | State::Merge(_) | State::Percentile(..) => {
                return values.try_for_each(|value| self.add(value.into()));
            }
        }
        self.check_memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accumulator::AccumulatorKind;
    use crate::expression::Operand;
    use pando_doc::{Decimal128, OwnedValue, doc};

    /// Every kind over every value, cut at every place, gives the same as in one go.
    #[test]
    fn x14_partial_results_merge_to_the_whole() {
        let decimal = OwnedValue::Decimal(Decimal128::from(7_i64));
        let values: Vec<Option<OwnedValue>> = vec![
            Some(OwnedValue::Int32(3)),
            Some(OwnedValue::Double(0.5)),
            None,
            Some(OwnedValue::Null),
            Some(OwnedValue::Int64(1 << 62)),
            Some(OwnedValue::Int64(1 << 62)),
            Some(OwnedValue::from("text")),
            Some(OwnedValue::Int32(3)),
            Some(OwnedValue::Double(-1e30)),
            Some(decimal),
            Some(OwnedValue::Double(1e30)),
        ];
        let pairs: Vec<Option<OwnedValue>> = (0..8)
            .map(|number| Some(OwnedValue::Document(doc! { "document": { "a": (number * 5 % 4) }, "output": number })))
            .collect();
        let documents: Vec<Option<OwnedValue>> =
            (0..5).map(|number| Some(OwnedValue::Document(doc! { "a": number, "b": 1 }))).collect();
        let kinds = [
            AccumulatorKind::Sum,
            AccumulatorKind::Avg,
            AccumulatorKind::Min,
            AccumulatorKind::Max,
            AccumulatorKind::First,
            AccumulatorKind::Last,
            AccumulatorKind::Push,
            AccumulatorKind::AddToSet,
            AccumulatorKind::Count,
            AccumulatorKind::FirstN,
            AccumulatorKind::LastN,
            AccumulatorKind::MinN,
            AccumulatorKind::MaxN,
            AccumulatorKind::Percentile { shares: vec![0.2, 0.9], is_median: false },
        ];
        for kind in &kinds {
            check(kind, &values);
        }
        check(&AccumulatorKind::MergeObjects, &documents);
        for (from_end, is_single) in [(false, false), (true, false), (false, true), (true, true)] {
            check(&AccumulatorKind::Top { pattern: doc! { "a": 1 }, from_end, is_single }, &pairs);
        }
    }

    fn check(kind: &AccumulatorKind, values: &[Option<OwnedValue>]) {
        let count = OwnedValue::Int32(3);
        let count = Operand::from(count);
        let fresh = || Accumulator::new(kind, Some(&count), None).unwrap();
        let fill = |accumulator: &mut Accumulator, values: &[Option<OwnedValue>]| {
            for value in values {
                accumulator.add(value.clone().map_or(Operand::Missing, Operand::from)).unwrap();
            }
        };
        let mut whole = fresh();
        fill(&mut whole, values);
        for cut in 1..values.len() {
            let (early, late) = values.split_at(cut);
            let mut merged = fresh();
            for part in [early, late] {
                let mut accumulator = fresh();
                fill(&mut accumulator, part);
                merged.merge(accumulator.partial().view()).unwrap();
            }
            assert_eq!(merged.result(), whole.result(), "{} cut at {cut}", kind.name());
        }
    }

    #[test]
    fn x14_accumulators_of_many_values_count_what_they_keep() {
        let count = Operand::from(OwnedValue::Int32(2));
        for kind in [AccumulatorKind::FirstN, AccumulatorKind::LastN, AccumulatorKind::MinN, AccumulatorKind::MaxN] {
            let mut accumulator = Accumulator::new(&kind, Some(&count), None).unwrap();
            let empty = accumulator.memory_bytes();
            for letter in ["a", "c", "b", "d"] {
                accumulator.add(OwnedValue::from(letter.repeat(1000).as_str()).into()).unwrap();
            }
            let kept = accumulator.memory_bytes() - empty;
            assert!((2000..6000).contains(&kept), "{}: {kept}", kind.name());
        }
    }

    #[test]
    fn x14_deviations_merge() {
        for kind in [AccumulatorKind::StdDevPop, AccumulatorKind::StdDevSamp] {
            let numbers = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
            let reckon = |numbers: &[f64]| {
                let mut accumulator = Accumulator::new(&kind, None, None).unwrap();
                numbers.iter().for_each(|number| accumulator.add(OwnedValue::Double(*number).into()).unwrap());
                accumulator
            };
            let whole = reckon(&numbers).result().unwrap().view().to_double().unwrap();
            let mut merged = Accumulator::new(&kind, None, None).unwrap();
            merged.merge(reckon(&numbers[..1]).partial().view()).unwrap();
            merged.merge(reckon(&numbers[1..4]).partial().view()).unwrap();
            merged.merge(reckon(&numbers[4..]).partial().view()).unwrap();
            let merged = merged.result().unwrap().view().to_double().unwrap();
            assert!((merged - whole).abs() < 1e-12, "{merged} {whole}");
        }
    }
}
