//! The values of the functions, for all documents of a partition.

use super::bounds::Bounds;
use super::function::{Rank, WindowFunction};
use super::removable::{Covariance, Deviation, Removable};
use crate::pipeline::stages::ordering;
use crate::spill::SpilledDocument;
use pando_base::{Error, Result};
use pando_doc::{Decimal128, DocRef, Number, OwnedValue, Value, compare_with};
use pando_expr::{Accumulator, AccumulatorKind, Expression, ExpressionLimits, SharedCollator};
use pando_sorter::SpilledList;

/// One partition, in order.
pub(super) struct Partition<'p> {
    pub(super) documents: &'p SpilledList<SpilledDocument>,
    /// What the documents are sorted by, if it is one field.
    pub(super) keys: &'p [OwnedValue],
    pub(super) collator: &'p Option<SharedCollator>,
    pub(super) limits: ExpressionLimits,
    /// What an accumulator may remember.
    pub(super) memory_bytes_max: u64,
}

/// A value for each document; none leaves the field out.
type Values = Vec<Option<OwnedValue>>;
/// The first and last place of a window; none if it is empty.
type Ends = Option<(usize, usize)>;

impl Partition<'_> {
    pub(super) fn reckon(&self, function: &WindowFunction) -> Result<Values> {
        match function {
            WindowFunction::Accumulate { kind, input, count, bounds } => {
                let count = count.as_ref().map(|count| count.evaluate_document(DocRef::EMPTY)).transpose()?;
                let is_sample = matches!(kind, AccumulatorKind::StdDevSamp);
                let is_deviation = is_sample || matches!(kind, AccumulatorKind::StdDevPop);
                if is_deviation && !bounds.begins_with_partition() {
                    return self.slide(&mut Deviation::new(is_sample)?, input, bounds);
                }
                let start = || Ok(Accumulator::new(kind, count.as_ref(), self.collator.clone())?.within(self.limits));
                self.accumulate(&start, input, bounds)
            }
            WindowFunction::Edge { input, is_last, bounds } => self.for_windows(bounds, |ends| match ends {
                None => Ok(Some(OwnedValue::Null)),
                Some((first, last)) => self.value(input, if *is_last { last } else { first }),
            }),
            WindowFunction::Shift { by, output, default } => (0..self.documents.len())
                .map(|place| match usize::try_from((place as i64).saturating_add(*by)) {
                    Ok(other) if other < self.documents.len() => self.value(output, other),
                    _ => Ok(Some(default.clone())),
                })
                .collect(),
            WindowFunction::Rank(rank) => Ok(self.ranks(*rank)),
            WindowFunction::Derivative { input, unit_milliseconds, bounds } => self.for_windows(bounds, |ends| {
                ends.map_or(Ok(Some(OwnedValue::Null)), |ends| self.derivative(input, *unit_milliseconds, ends))
            }),
            WindowFunction::Integral { input, unit_milliseconds, bounds } => self.for_windows(bounds, |ends| {
                ends.map_or(Ok(Some(OwnedValue::Null)), |ends| self.integral(input, *unit_milliseconds, ends))
            }),
            WindowFunction::Covariance { input, is_sample, bounds } => {
                self.slide(&mut Covariance::new(*is_sample)?, input, bounds)
            }
            WindowFunction::ExponentialAverage { input, alpha } => self.exponential_average(input, *alpha),
            WindowFunction::LastObserved { input } => {
                let mut last = OwnedValue::Null;
                let mut values = Vec::with_capacity(self.documents.len());
                for place in 0..self.documents.len() {
                    if let Some(value) = self.value(input, place)?.filter(|value| !value.view().is_nullish()) {
                        last = value;
                    }
                    values.push(Some(last.clone()));
                }
                Ok(values)
            }
            WindowFunction::LinearFill { input } => self.linear_fill(input),
        }
    }

    fn value(&self, input: &Expression, place: usize) -> Result<Option<OwnedValue>> {
        match self.documents.get(place)? {
            Some(SpilledDocument(document)) => Ok(input.evaluate_document(document.view())?.into_value()),
            None => Ok(None),
        }
    }

    fn key(&self, place: usize) -> Value<'_> {
        self.keys.get(place).map_or(Value::Null, OwnedValue::view)
    }

    fn for_windows(
        &self,
        bounds: &Bounds,
        mut reckon: impl FnMut(Ends) -> Result<Option<OwnedValue>>,
    ) -> Result<Values> {
        let mut known: Option<(Ends, Option<OwnedValue>)> = None;
        let mut values = Vec::with_capacity(self.documents.len());
        for place in 0..self.documents.len() {
            let ends = bounds.endpoints(place, self.documents.len(), self.keys)?;
            let value = match &known {
                Some((before, value)) if *before == ends => value.clone(),
                _ => reckon(ends)?,
            };
            known = Some((ends, value.clone()));
            values.push(value);
        }
        Ok(values)
    }

    /// Windows that begin with the partition only grow; others are reckoned anew when they change.
    fn accumulate(
        &self,
        start: &dyn Fn() -> Result<Accumulator>,
        input: &Expression,
        bounds: &Bounds,
    ) -> Result<Values> {
        let add = |accumulator: &mut Accumulator, place: usize| match self.documents.get(place)? {
            Some(SpilledDocument(document)) => {
                accumulator.add(input.evaluate_document(document.view())?)?;
                self.check_memory(accumulator.memory_bytes() as u64)
            }
            None => Ok(()),
        };
        let (mut growing, mut taken) = (start()?, 0);
        let is_growing = bounds.begins_with_partition();
        self.for_windows(bounds, |ends| {
            let result = match ends {
                Some((_, last)) if is_growing => {
                    while taken <= last {
                        add(&mut growing, taken)?;
                        taken += 1;
                    }
                    growing.result()
                }
                Some((first, last)) => {
                    let mut accumulator = start()?;
                    (first..=last).try_for_each(|place| add(&mut accumulator, place))?;
                    accumulator.result()
                }
                None => start()?.result(),
            };
            Ok(Some(result.unwrap_or(OwnedValue::Null)))
        })
    }

    /// Windows of which each goes on where the one before it ended.
    fn slide(&self, function: &mut dyn Removable, input: &Expression, bounds: &Bounds) -> Result<Values> {
        // The places that are in: from the first on, up to the second.
        let (mut from, mut to) = (0, 0);
        self.for_windows(bounds, |ends| {
            let (first, end) = ends.map_or((to, to), |(first, last)| (first, last + 1));
            for place in to.max(first)..end {
                function.add(self.value(input, place)?.as_ref().map(OwnedValue::view))?;
            }
            for place in from..first.min(to) {
                function.remove(self.value(input, place)?.as_ref().map(OwnedValue::view))?;
            }
            (from, to) = (first, to.max(end));
            function.value().map(Some)
        })
    }

    fn check_memory(&self, used_bytes: u64) -> Result<()> {
        let memory_bytes_max = self.memory_bytes_max;
        if used_bytes <= memory_bytes_max {
            return Ok(());
        }
        let reason = format!(
            "Exceeded memory limit in DocumentSourceSetWindowFields, used {used_bytes} bytes but max allowed is {memory_bytes_max}"
        );
        Err(Error::location(5414201, reason))
    }

    fn ranks(&self, rank: Rank) -> Values {
        let options = ordering::options(self.collator);
        let mut current = 0_i64;
        let mut values = Vec::with_capacity(self.documents.len());
        for place in 0..self.documents.len() {
            let is_new = place == 0 || compare_with(self.key(place), self.key(place - 1), &options).is_ne();
            current = match rank {
                Rank::Number => current + 1,
                Rank::Dense => current + i64::from(is_new),
                Rank::Sparse if is_new => place as i64 + 1,
                Rank::Sparse => current,
            };
            values.push(Some(OwnedValue::from(Number::narrowest(current))));
        }
        values
    }

    fn derivative(
        &self,
        input: &Expression,
        unit: Option<i64>,
        (first, last): (usize, usize),
    ) -> Result<Option<OwnedValue>> {
        let (left, right) = (self.key(first), self.key(last));
        let is_date = |value: Value<'_>| matches!(value, Value::DateTime(_));
        match unit {
            Some(_) if !is_date(left) || !is_date(right) => {
                let reason = "$derivative with 'unit' expects the sortBy field to be a Date";
                return Err(Error::location(5624900, reason));
            }
            None if is_date(left) || is_date(right) => {
                return Err(Error::location(5624901, "$derivative where the sortBy is a Date requires an 'unit'"));
            }
            None if !left.is_number() || !right.is_number() => {
                let reason = "$derivative (with no 'unit') expects the sortBy field to be numeric";
                return Err(Error::location(5624902, reason));
            }
            _ => {}
        }
        let (low, high) = (self.value(input, first)?, self.value(input, last)?);
        let is_nothing = |value: &Option<OwnedValue>| value.as_ref().is_none_or(|value| value.view().is_nullish());
        if is_nothing(&low) || is_nothing(&high) {
            return Err(Error::location(5624903, "$derivative input must not be null or missing"));
        }
        let rise = difference(high.as_ref().map(OwnedValue::view), low.as_ref().map(OwnedValue::view))?;
        let run = difference(Some(right), Some(left))?;
        let Some(slope) = rise.divided_by(run) else { return Ok(Some(OwnedValue::Null)) };
        let slope = unit.map_or(slope, |unit| slope.times(Number::Int64(unit)));
        Ok(Some(OwnedValue::from(slope)))
    }

    /// The area below the values, by trapezoids.
    fn integral(
        &self,
        input: &Expression,
        unit: Option<i64>,
        (first, last): (usize, usize),
    ) -> Result<Option<OwnedValue>> {
        let mut before: Option<(usize, Number)> = None;
        let mut area = Accumulator::new(&AccumulatorKind::Sum, None, None)?;
        let mut is_nan = false;
        for place in first..=last {
            let height = self.value(input, place)?;
            let height =
                self.check_integral(place, height.as_ref().and_then(|height| height.view().as_number()), unit)?;
            is_nan |= height.is_nan() || self.key(place).as_number().is_some_and(Number::is_nan);
            if let Some((other, lower)) = before {
                let width = difference(Some(self.key(place)), Some(self.key(other)))?;
                let part = height.plus(lower).times(width).divided_by(Number::Double(2.0));
                area.add(part.map_or(OwnedValue::Null, OwnedValue::from).into())?;
            }
            before = Some((place, height));
        }
        if is_nan {
            return Ok(Some(OwnedValue::Double(f64::NAN)));
        }
        let area = area.result().and_then(|area| area.view().as_number()).unwrap_or(Number::Int32(0));
        let area = unit.map_or(Some(area), |unit| area.divided_by(Number::Int64(unit)));
        Ok(Some(area.map_or(OwnedValue::Null, OwnedValue::from)))
    }

    fn check_integral(&self, place: usize, height: Option<Number>, unit: Option<i64>) -> Result<Number> {
        let key = self.key(place);
        let is_date = matches!(key, Value::DateTime(_));
        let (Some(height), true) = (height, is_date || key.is_number()) else {
            let reason = "The input value of $integral window function must be a vector of 2 value, the first value must be \
                          numeric or date type and the second must be numeric.";
            return Err(Error::location(5423900, reason));
        };
        match unit {
            Some(_) if !is_date => {
                Err(Error::location(5423901, "$integral with 'unit' expects the sortBy field to be a Date"))
            }
            None if is_date => {
                Err(Error::location(5423902, "$integral (with no 'unit') expects the sortBy field to be numeric"))
            }
            _ => Ok(height),
        }
    }

    fn exponential_average(&self, input: &Expression, alpha: Decimal128) -> Result<Values> {
        let (mut current, mut is_decimal): (Option<Decimal128>, bool) = (None, false);
        let mut values = Vec::with_capacity(self.documents.len());
        for place in 0..self.documents.len() {
            if let Some(number) = self.value(input, place)?.and_then(|value| value.view().as_number()) {
                is_decimal |= matches!(number, Number::Decimal(_));
                let number = number.to_decimal();
                current = Some(match current {
                    None => number,
                    Some(current) => number * alpha + current * (Decimal128::from(1) - alpha),
                });
            }
            values.push(Some(match current {
                None => OwnedValue::Null,
                Some(current) if is_decimal => OwnedValue::Decimal(current),
                Some(current) => OwnedValue::Double(current.to_double()),
            }));
        }
        Ok(values)
    }

    /// Gaps between two known values are filled along a straight line.
    fn linear_fill(&self, input: &Expression) -> Result<Values> {
        let mut values: Values = Vec::with_capacity(self.documents.len());
        for place in 0..self.documents.len() {
            let value = self.value(input, place)?.filter(|value| !value.view().is_nullish());
            if let Some(value) = value.as_ref().filter(|value| !value.view().is_number()) {
                let found = value.view().value_type();
                let reason = format!("Value to be filled must be numeric or nullish, but found {found}");
                return Err(Error::type_mismatch(reason));
            }
            self.check_fill_key(place)?;
            values.push(value);
        }
        let known: Vec<usize> =
            (0..values.len()).filter(|place| values.get(*place).is_some_and(Option::is_some)).collect();
        for pair in known.windows(2) {
            let [from, to] = *pair else { continue };
            for place in from + 1..to {
                let filled = self.between(&values, from, to, place)?;
                if let Some(slot) = values.get_mut(place) {
                    *slot = Some(filled);
                }
            }
        }
        Ok(values.into_iter().map(|value| Some(value.unwrap_or(OwnedValue::Null))).collect())
    }

    fn check_fill_key(&self, place: usize) -> Result<()> {
        let key = self.key(place);
        let is_date = |key: Value<'_>| matches!(key, Value::DateTime(_) | Value::Timestamp(_) | Value::ObjectId(_));
        if !key.is_number() && !is_date(key) {
            let reason = format!("Value of the sortBy field must be numeric or a date, but found {}", key.value_type());
            return Err(Error::type_mismatch(reason));
        }
        let Some(before) = place.checked_sub(1).map(|before| self.key(before)) else { return Ok(()) };
        if compare_with(key, before, &ordering::options(self.collator)).is_eq() {
            return Err(Error::location(6050106, "There can be no repeated values in the sort field"));
        }
        if key.is_number() != before.is_number() {
            let reason = format!(
                "Conflicting sort value types, previously received type {}, but found {}",
                before.value_type(),
                key.value_type()
            );
            return Err(Error::type_mismatch(reason));
        }
        Ok(())
    }

    fn between(&self, values: &[Option<OwnedValue>], from: usize, to: usize, place: usize) -> Result<OwnedValue> {
        let number = |place: usize| {
            values
                .get(place)
                .and_then(Option::as_ref)
                .and_then(|value| value.view().as_number())
                .unwrap_or(Number::Int32(0))
        };
        let (low, high) = (number(from), number(to));
        let whole = difference(Some(self.key(to)), Some(self.key(from)))?;
        let part = difference(Some(self.key(place)), Some(self.key(from)))?;
        let slope = high.minus(low).divided_by(whole);
        Ok(slope.map_or(OwnedValue::Null, |slope| OwnedValue::from(low.plus(part.times(slope)))))
    }
}

/// Of two numbers, or of two dates in milliseconds.
fn difference(left: Option<Value<'_>>, right: Option<Value<'_>>) -> Result<Number> {
    let milliseconds = |value: Value<'_>| match value {
        Value::DateTime(date) => Some(date),
        Value::Timestamp(timestamp) => Some(i64::from(timestamp.seconds()) * 1000),
        Value::ObjectId(id) => Some(id.milliseconds()),
        _ => None,
    };
    let (left, right) = (left.unwrap_or(Value::Null), right.unwrap_or(Value::Null));
    match (left.as_number(), right.as_number(), milliseconds(left), milliseconds(right)) {
        (Some(left), Some(right), ..) => Ok(left.minus(right)),
        (_, _, Some(left), Some(right)) => Ok(Number::Int64(left.wrapping_sub(right))),
        _ => {
            let reason = format!("can't $subtract {} from {}", right.value_type(), left.value_type());
            Err(Error::type_mismatch(reason))
        }
    }
}
