//! Sums and deviations.

use pando_doc::{ArrayBuilder, Decimal128, Number, Value};

/// A sum that loses as little as can be: decimals apart, everything else as two doubles, the sum
/// and what rounding took from it. Each number is added in the steps that MongoDB takes, so that
/// every digit of a result is the same.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    double: f64,
    lost: f64,
    /// The plain sum, for infinities.
    plain: f64,
    decimal: Option<Decimal128>,
    has_long: bool,
    has_double: bool,
}

impl Sum {
    pub(super) fn add(&mut self, number: Number) {
        match number {
            Number::Int32(number) => self.add_double(number.into()),
            Number::Int64(number) => {
                self.has_long = true;
                // Each half is a double without loss.
                let low = number % (1 << 32);
                self.add_double(low as f64);
                self.add_double((number - low) as f64);
            }
            Number::Double(number) => {
                self.has_double = true;
                self.add_double(number);
            }
            Number::Decimal(number) => {
                self.decimal = Some(self.decimal.map_or(number, |sum| sum + number));
            }
        }
    }

    fn add_double(&mut self, number: f64) {
        self.plain += number;
        let (number, lost) = sum_with_smaller(number, self.lost);
        let (sum, rest) = exact_sum(self.double, number);
        self.double = sum;
        self.lost = lost + rest;
    }

    /// Appends everything that is known of it.
    pub(super) fn write(&self, out: &mut ArrayBuilder) {
        let (double, lost) = if self.double.is_nan() { (self.plain, 0.0) } else { (self.double, self.lost) };
        out.push(double);
        out.push(lost);
        out.push(self.decimal.map_or(Value::Null, Value::Decimal));
        out.push(self.has_long);
        out.push(self.has_double);
    }

    /// Adds what another has written; none if it is something else.
    pub(super) fn merge<'v>(&mut self, values: &mut impl Iterator<Item = Value<'v>>) -> Option<()> {
        let (Value::Double(double), Value::Double(lost)) = (values.next()?, values.next()?) else { return None };
        self.add_double(double);
        self.add_double(lost);
        if let Value::Decimal(decimal) = values.next()? {
            self.add(Number::Decimal(decimal));
        }
        self.has_long |= values.next()?.as_bool()?;
        self.has_double |= values.next()?.as_bool()?;
        Some(())
    }

    /// The doubles and whole numbers together, without what rounding took.
    pub(super) fn as_double(&self) -> f64 {
        if self.double.is_nan() { self.plain } else { self.double }
    }

    pub(super) fn as_decimal(&self) -> Option<Decimal128> {
        let decimal = self.decimal?;
        let rest = if self.double.is_finite() { self.lost } else { 0.0 };
        let doubles = Decimal128::from_double_34_digits(self.as_double()) + Decimal128::from_double_34_digits(rest);
        Some(decimal + doubles)
    }

    /// The sum of whole numbers, if it has a place in 64 bits.
    fn as_long(&self) -> Option<i64> {
        if !self.double.is_finite() || self.double.abs() > -(i64::MIN as f64) {
            return None;
        }
        let nearest = self.double.round();
        let whole = nearest as i128 + ((self.double - nearest) + self.lost).round() as i128;
        i64::try_from(whole).ok()
    }

    pub(super) fn total(&self) -> Number {
        if let Some(decimal) = self.as_decimal() {
            return Number::Decimal(decimal);
        }
        if self.has_double {
            return Number::Double(self.as_double());
        }
        match self.as_long() {
            Some(whole) if self.has_long => Number::Int64(whole),
            Some(whole) => Number::narrowest(whole),
            None => Number::Double(self.as_double()),
        }
    }
}

/// The sum of two doubles, the second of them smaller, and what rounding took from it.
fn sum_with_smaller(large: f64, small: f64) -> (f64, f64) {
    let sum = large + small;
    (sum, small - (sum - large))
}

/// The sum of two doubles and what rounding took from it.
fn exact_sum(left: f64, right: f64) -> (f64, f64) {
    let sum = left + right;
    let left_part = sum - right;
    let right_part = sum - left_part;
    (sum, (left - left_part) + (right - right_part))
}

/// The mean and the spread, reckoned in one pass.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deviation {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Deviation {
    pub(super) fn add(&mut self, number: f64) {
        self.count += 1;
        let delta = number - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (number - self.mean);
    }

    pub(super) fn write(&self, out: &mut ArrayBuilder) {
        out.push(self.count as i64);
        out.push(self.mean);
        out.push(self.squares);
    }

    /// Adds what another has written; none if it is something else.
    pub(super) fn merge<'v>(&mut self, values: &mut impl Iterator<Item = Value<'v>>) -> Option<()> {
        let count = u64::try_from(whole(values.next()?)?).ok()?;
        let (Value::Double(mean), Value::Double(squares)) = (values.next()?, values.next()?) else { return None };
        if count == 0 {
            return Some(());
        }
        let (before, added) = (self.count as f64, count as f64);
        let delta = mean - self.mean;
        self.count = self.count.saturating_add(count);
        self.squares += squares + delta * delta * before * added / (before + added);
        self.mean += delta * added / (before + added);
        Some(())
    }

    /// The deviation; none without enough numbers.
    pub(super) fn result(&self, is_sample: bool) -> Option<f64> {
        let divisor = self.count.checked_sub(u64::from(is_sample)).filter(|divisor| *divisor > 0)?;
        Some((self.squares / divisor as f64).sqrt())
    }
}

/// A number as it was written here.
pub(super) fn whole(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Int64(number) => Some(number),
        _ => None,
    }
}
