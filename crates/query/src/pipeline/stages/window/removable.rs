//! Functions over windows that slide: what enters a window is added, what leaves it is taken out again. Their results depend on
//! the order of both, so that they are reckoned the way MongoDB reckons them.

use pando_base::Result;
use pando_doc::{Decimal128, Number, OwnedValue, Value};
use pando_expr::{Accumulator, AccumulatorKind};

/// What a window adds to and takes from.
pub(super) trait Removable {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()>;
    fn remove(&mut self, value: Option<Value<'_>>) -> Result<()>;
    /// The result for the values that are in.
    fn value(&mut self) -> Result<OwnedValue>;
}

/// A sum from which infinities and NaN can be taken out again.
struct RemovableSum {
    finite: Accumulator,
    nan_count: i64,
    positive_count: i64,
    negative_count: i64,
    double_count: i64,
    decimal_count: i64,
}

impl RemovableSum {
    fn new() -> Result<RemovableSum> {
        let finite = Accumulator::new(&AccumulatorKind::Sum, None, None)?;
        Ok(RemovableSum {
            finite,
            nan_count: 0,
            positive_count: 0,
            negative_count: 0,
            double_count: 0,
            decimal_count: 0,
        })
    }

    /// Adds the number so many times: once, or less than nothing.
    fn change(&mut self, number: Number, times: i32) -> Result<()> {
        let by = i64::from(times);
        match number {
            Number::Double(_) => self.double_count += by,
            Number::Decimal(_) => self.decimal_count += by,
            _ => {}
        }
        let double = number.to_double();
        let is_infinite = match number {
            Number::Decimal(decimal) => decimal.is_infinite(),
            _ => double.is_infinite(),
        };
        if number.is_nan() {
            self.nan_count += by;
        } else if is_infinite && double > 0.0 {
            self.positive_count += by;
        } else if is_infinite {
            self.negative_count += by;
        } else {
            self.finite.add(OwnedValue::from(number.times(Number::Int32(times))).into())?;
        }
        Ok(())
    }

    fn value(&self) -> Number {
        let is_decimal = self.decimal_count > 0;
        let special = |decimal, double| if is_decimal { Number::Decimal(decimal) } else { Number::Double(double) };
        match (self.nan_count > 0, self.positive_count > 0, self.negative_count > 0) {
            (true, ..) | (_, true, true) => return special(Decimal128::NAN, f64::NAN),
            (_, true, false) => return special(Decimal128::INFINITY, f64::INFINITY),
            (_, false, true) => return special(Decimal128::NEGATIVE_INFINITY, f64::NEG_INFINITY),
            _ => {}
        }
        let sum = self.finite.result().and_then(|sum| sum.view().as_number()).unwrap_or(Number::Int32(0));
        // What made it wide may have left.
        let sum = match sum {
            Number::Decimal(_) if !is_decimal => Number::Double(sum.to_double()),
            sum => sum,
        };
        match sum {
            Number::Double(double) if self.double_count == 0 => {
                let is_long = double >= i64::MIN as f64 && double < i64::MAX as f64;
                if is_long { Number::narrowest(double.round() as i64) } else { sum }
            }
            Number::Int64(whole) => Number::narrowest(whole),
            sum => sum,
        }
    }
}

/// The mean of what is in; none of nothing.
struct RemovableMean {
    sum: RemovableSum,
    count: i64,
}

impl RemovableMean {
    fn new() -> Result<RemovableMean> {
        Ok(RemovableMean { sum: RemovableSum::new()?, count: 0 })
    }

    fn change(&mut self, number: Number, times: i32) -> Result<()> {
        self.count += i64::from(times);
        self.sum.change(number, times)
    }

    fn value(&self) -> Option<Number> {
        if self.count == 0 {
            return None;
        }
        Some(match self.sum.value() {
            Number::Decimal(sum) => Number::Decimal(sum / Decimal128::from(self.count)),
            sum => Number::Double(sum.to_double() / self.count as f64),
        })
    }
}

/// `$covariancePop` and `$covarianceSamp` of pairs of numbers.
pub(super) struct Covariance {
    is_sample: bool,
    count: i64,
    mean_x: RemovableMean,
    mean_y: RemovableMean,
    products: RemovableSum,
}

impl Covariance {
    pub(super) fn new(is_sample: bool) -> Result<Covariance> {
        let (mean_x, mean_y) = (RemovableMean::new()?, RemovableMean::new()?);
        Ok(Covariance { is_sample, count: 0, mean_x, mean_y, products: RemovableSum::new()? })
    }

    /// The product of the distances from the means, as far as there are any.
    fn product(x: Number, mean_x: Option<Number>, y: Number, mean_y: Option<Number>) -> Option<Number> {
        Some(x.minus(mean_x?).times(y.minus(mean_y?)))
    }
}

/// A pair of numbers; anything else does not count.
fn pair(value: Option<Value<'_>>) -> Option<(Number, Number)> {
    let Some(Value::Array(array)) = value else { return None };
    let mut values = array.values();
    let pair = (values.next()?.as_number()?, values.next()?.as_number()?);
    values.next().is_none().then_some(pair)
}

fn is_finite(number: Number) -> bool {
    match number {
        Number::Decimal(decimal) => decimal.is_finite(),
        number => number.to_double().is_finite(),
    }
}

/// What a pair adds to the products that is not finite: one infinity, or NaN.
fn special((x, y): (Number, Number)) -> Number {
    let both = [x, y];
    let has = |test: fn(&Number) -> bool| both.iter().any(test);
    let is_decimal = has(|number| matches!(number, Number::Decimal(_)) && !number.is_nan());
    let positive = has(|number| !is_finite(*number) && !number.is_nan() && number.to_double() > 0.0);
    let negative = has(|number| !is_finite(*number) && !number.is_nan() && number.to_double() < 0.0);
    let (decimal, double) = match (has(|number| number.is_nan()), positive, negative) {
        (true, ..) | (_, true, true) => (Decimal128::NAN, f64::NAN),
        (_, true, _) => (Decimal128::INFINITY, f64::INFINITY),
        _ => (Decimal128::NEGATIVE_INFINITY, f64::NEG_INFINITY),
    };
    if is_decimal { Number::Decimal(decimal) } else { Number::Double(double) }
}

impl Removable for Covariance {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        let Some((x, y)) = pair(value) else { return Ok(()) };
        if !is_finite(x) || !is_finite(y) {
            return self.products.change(special((x, y)), 1);
        }
        self.count += 1;
        let before = self.mean_x.value();
        self.mean_x.change(x, 1)?;
        self.mean_y.change(y, 1)?;
        match Covariance::product(x, before, y, self.mean_y.value()) {
            Some(product) => self.products.change(product, 1),
            None => Ok(()),
        }
    }

    fn remove(&mut self, value: Option<Value<'_>>) -> Result<()> {
        let Some((x, y)) = pair(value) else { return Ok(()) };
        if !is_finite(x) || !is_finite(y) {
            return self.products.change(special((x, y)), -1);
        }
        self.count -= 1;
        if self.count <= 0 {
            *self = Covariance::new(self.is_sample)?;
            return Ok(());
        }
        self.mean_x.change(x, -1)?;
        if let Some(product) = Covariance::product(x, self.mean_x.value(), y, self.mean_y.value()) {
            self.products.change(product, -1)?;
        }
        self.mean_y.change(y, -1)
    }

    fn value(&mut self) -> Result<OwnedValue> {
        if self.count == 1 && !self.is_sample {
            return Ok(OwnedValue::Double(0.0));
        }
        let divisor = self.count - i64::from(self.is_sample);
        if divisor <= 0 {
            return Ok(OwnedValue::Null);
        }
        Ok(match self.products.value() {
            // The count is a double of fifteen digits: that decides how many zeros the quotient
            // keeps.
            Number::Decimal(products) => OwnedValue::Decimal(products / Decimal128::from(divisor as f64)),
            products => OwnedValue::Double(products.to_double() / divisor as f64),
        })
    }
}

/// `$stdDevPop` and `$stdDevSamp` of windows that slide.
pub(super) struct Deviation {
    is_sample: bool,
    count: i64,
    /// Values that are not finite; there is no result while they are in.
    special_count: i64,
    sum: Accumulator,
    squares: Accumulator,
}

impl Deviation {
    pub(super) fn new(is_sample: bool) -> Result<Deviation> {
        let sum = || Accumulator::new(&AccumulatorKind::Sum, None, None);
        Ok(Deviation { is_sample, count: 0, special_count: 0, sum: sum()?, squares: sum()? })
    }

    fn change(&mut self, value: Option<Value<'_>>, times: i64) -> Result<()> {
        let Some(number) = value.and_then(|value| value.as_number()) else { return Ok(()) };
        if !is_finite(number) {
            self.special_count += times;
            return Ok(());
        }
        if self.count == 0 {
            self.count += 1;
            return self.sum.add(OwnedValue::from(number).into());
        }
        if self.count + times == 0 {
            let special_count = self.special_count;
            *self = Deviation { special_count, ..Deviation::new(self.is_sample)? };
            return Ok(());
        }
        let number = number.to_double();
        let distance = self.count as f64 * number - total(&self.sum);
        self.count += times;
        let times_count = (self.count * (self.count - times)) as f64;
        self.sum.add(OwnedValue::Double(number * times as f64).into())?;
        self.squares.add(OwnedValue::Double(distance * distance * times as f64 / times_count).into())
    }
}

fn total(sum: &Accumulator) -> f64 {
    sum.result().and_then(|sum| sum.view().to_double()).unwrap_or(0.0)
}

impl Removable for Deviation {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        self.change(value, 1)
    }

    fn remove(&mut self, value: Option<Value<'_>>) -> Result<()> {
        self.change(value, -1)
    }

    fn value(&mut self) -> Result<OwnedValue> {
        let divisor = self.count - i64::from(self.is_sample);
        if self.special_count > 0 || divisor <= 0 {
            return Ok(OwnedValue::Null);
        }
        let squares = total(&self.squares);
        // Rounding may have left less than nothing.
        if squares < 0.0 || (!self.is_sample && self.count == 1) {
            self.squares = Accumulator::new(&AccumulatorKind::Sum, None, None)?;
            return Ok(OwnedValue::Int32(0));
        }
        Ok(OwnedValue::Double((squares / divisor as f64).sqrt()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::array;

    /// The results of windows of two over these values.
    fn slide(function: &mut dyn Removable, values: &[OwnedValue]) -> Vec<OwnedValue> {
        let mut results = Vec::new();
        for place in 0..values.len() {
            function.add(values.get(place).map(OwnedValue::view)).unwrap();
            if let Some(left) = place.checked_sub(2) {
                function.remove(values.get(left).map(OwnedValue::view)).unwrap();
            }
            results.push(function.value().unwrap());
        }
        results
    }

    fn pairs(pairs: &[(f64, f64)]) -> Vec<OwnedValue> {
        pairs.iter().map(|(x, y)| OwnedValue::Array(array![*x, *y])).collect()
    }

    #[test]
    fn u6_infinities_leave_a_covariance_as_they_came() {
        let values = pairs(&[(1.0, 10.0), (f64::INFINITY, 20.0), (3.0, 30.0), (5.0, 40.0)]);
        let results = slide(&mut Covariance::new(false).unwrap(), &values);
        let expected = [0.0, 0.0, 0.0, 5.0].map(OwnedValue::Double);
        assert_eq!(results, expected);
        let large = pairs(&[(1e308, 1e308), (1e308, 1e308)]);
        let last = slide(&mut Covariance::new(false).unwrap(), &large).pop();
        assert!(matches!(last, Some(OwnedValue::Double(number)) if number.is_nan()), "the sum has overflowed");
    }

    #[test]
    fn u6_a_covariance_of_decimals_keeps_few_zeros() {
        let pair = |x: &str, y: &str| {
            let decimal = |text| Decimal128::parse(text).unwrap().value;
            OwnedValue::Array(array![decimal(x), decimal(y)])
        };
        let last = |values: &[OwnedValue]| slide(&mut Covariance::new(true).unwrap(), values).pop().unwrap();
        assert_eq!(last(&[pair("1", "2"), pair("2", "4")]).to_string(), r#"1"#);
        assert_eq!(last(&[pair("42.5", "99.9"), pair("42.5", "99.9")]).to_string(), "0E+12");
        assert_eq!(last(&[pair("-0", "10"), pair("10", "30")]).to_string(), "1E+2");
    }

    #[test]
    fn u6_a_deviation_is_unknown_while_an_infinity_is_in() {
        let values = [10.0, f64::INFINITY, 20.0, 30.0].map(OwnedValue::Double);
        let results = slide(&mut Deviation::new(false).unwrap(), &values);
        let expected = [OwnedValue::Int32(0), OwnedValue::Null, OwnedValue::Null, OwnedValue::Double(5.0)];
        assert_eq!(results, expected);
        let sample = slide(&mut Deviation::new(true).unwrap(), &[OwnedValue::Int32(1)]);
        assert_eq!(sample, [OwnedValue::Null]);
    }
}
