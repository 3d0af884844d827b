//! Sums and deviations.

use pando_doc::{ArrayBuilder, Decimal128, Number, Value};

/// A sum that loses as little as can be: whole numbers exactly, doubles with compensation, decimals apart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    whole: i128,
    /// The sum of doubles, and what rounding took from it.
    double: f64,
    lost: f64,
    decimal: Option<Decimal128>,
    has_long: bool,
    has_double: bool,
}

impl Sum {
    pub(super) fn add(&mut self, number: Number) {
        match number {
            Number::Int32(number) => self.whole = self.whole.saturating_add(number.into()),
            Number::Int64(number) => {
                self.has_long = true;
                self.whole = self.whole.saturating_add(number.into());
            }
            Number::Double(number) => self.add_double(number),
            Number::Decimal(number) => {
                self.decimal = Some(self.decimal.map_or(number, |sum| sum + number));
            }
        }
    }

    fn add_double(&mut self, number: f64) {
        self.has_double = true;
        let sum = self.double + number;
        // Neumaier's compensation; infinite sums have nothing to compensate.
        if sum.is_finite() {
            self.lost += if self.double.abs() >= number.abs() {
                (self.double - sum) + number
            } else {
                (number - sum) + self.double
            };
        }
        self.double = sum;
    }

    /// Appends everything that is known of it.
    pub(super) fn write(&self, out: &mut ArrayBuilder) {
        out.push((self.whole >> 64) as i64);
        out.push(self.whole as i64);
        out.push(self.double);
        out.push(self.lost);
        out.push(self.decimal.map_or(Value::Null, Value::Decimal));
        out.push(self.has_long);
        out.push(self.has_double);
    }

    /// Adds what another has written; none if it is something else.
    pub(super) fn merge<'v>(&mut self, values: &mut impl Iterator<Item = Value<'v>>) -> Option<()> {
        let (high, low) = (whole(values.next()?)?, whole(values.next()?)?);
        self.whole = self.whole.saturating_add(i128::from(high) << 64 | i128::from(low as u64));
        let (Value::Double(double), Value::Double(lost)) = (values.next()?, values.next()?) else { return None };
        if let Value::Decimal(decimal) = values.next()? {
            self.add(Number::Decimal(decimal));
        }
        self.has_long |= values.next()?.as_bool()?;
        if values.next()?.as_bool()? {
            self.add_double(double);
            self.lost += lost;
        }
        Some(())
    }

    /// The doubles and whole numbers together.
    pub(super) fn as_double(&self) -> f64 {
        let whole = self.whole as f64;
        if !self.double.is_finite() {
            return self.double;
        }
        // What the conversion of the whole part loses is added after.
        let rest = (self.whole - whole as i128) as f64;
        whole + self.double + (self.lost + rest)
    }

    pub(super) fn as_decimal(&self) -> Option<Decimal128> {
        let decimal = self.decimal?;
        let whole = Decimal128::nearest(self.whole < 0, self.whole.unsigned_abs(), 0).value;
        let doubles = if self.has_double {
            Decimal128::from_double_34_digits(self.double) + Decimal128::from_double_34_digits(self.lost)
        } else {
            Decimal128::ZERO
        };
        Some(decimal + whole + doubles)
    }

    pub(super) fn total(&self) -> Number {
        if let Some(decimal) = self.as_decimal() {
            return Number::Decimal(decimal);
        }
        if self.has_double {
            return Number::Double(self.as_double());
        }
        match i64::try_from(self.whole) {
            Ok(whole) if self.has_long => Number::Int64(whole),
            Ok(whole) => Number::narrowest(whole),
            Err(_) => Number::Double(self.whole as f64),
        }
    }
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
