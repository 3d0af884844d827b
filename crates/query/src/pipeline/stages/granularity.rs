//! The series of preferred numbers that `$bucketAuto` rounds its boundaries to: Renard numbers, the E series of IEC 60063, 1-2-5, and
//! powers of two. Rounding up and down always leaves the number itself, except for zero.

use pando_base::{Error, Result};
use pando_doc::{Decimal128, Number};

/// What boundaries are rounded to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Granularity {
    PowersOfTwo,
    /// Ascending; the numbers repeat in every power of ten.
    Series(Vec<u32>),
}

const R5: &[u32] = &[10, 16, 25, 40, 63];
const R10: &[u32] = &[100, 125, 160, 200, 250, 315, 400, 500, 630, 800];
const R20: &[u32] =
    &[100, 112, 125, 140, 160, 180, 200, 224, 250, 280, 315, 355, 400, 450, 500, 560, 630, 710, 800, 900];
// MongoDB's table leaves out 335.
const R40: &[u32] = &[
    100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265, 280, 300, 315, 355, 375,
    400, 425, 450, 475, 500, 530, 560, 600, 630, 670, 710, 750, 800, 850, 900, 950,
];
// Only what R80 has beyond R40, as in MongoDB.
const R80: &[u32] = &[
    103, 109, 115, 122, 128, 136, 145, 155, 165, 175, 185, 195, 206, 218, 230, 243, 258, 272, 290, 307, 325, 345, 365,
    387, 412, 437, 462, 487, 515, 545, 575, 615, 650, 690, 730, 775, 825, 875, 925, 975,
];
const ONE_TWO_FIVE: &[u32] = &[10, 20, 50];
const E6: &[u32] = &[10, 15, 22, 33, 47, 68];
const E12: &[u32] = &[10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82];
const E24: &[u32] = &[10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91];

/// An E series of three digits: evenly spaced powers of ten, rounded; 920 stands in the standard where 919 would be.
fn e_series(count: u32) -> Vec<u32> {
    let number = |place: u32| (100.0 * 10_f64.powf(f64::from(place) / f64::from(count))).round() as u32;
    (0..count).map(number).map(|number| if number == 919 { 920 } else { number }).collect()
}

impl Granularity {
    pub(super) fn parse(name: &str) -> Result<Granularity> {
        let series = match name {
            "POWERSOF2" => return Ok(Granularity::PowersOfTwo),
            "R5" => R5,
            "R10" => R10,
            "R20" => R20,
            "R40" => R40,
            "R80" => R80,
            "1-2-5" => ONE_TWO_FIVE,
            "E6" => E6,
            "E12" => E12,
            "E24" => E24,
            "E48" => return Ok(Granularity::Series(e_series(48))),
            "E96" => return Ok(Granularity::Series(e_series(96))),
            "E192" => return Ok(Granularity::Series(e_series(192))),
            _ => return Err(Error::location(40257, format!("Unknown rounding granularity '{name}'"))),
        };
        Ok(Granularity::Series(series.to_vec()))
    }

    /// The next number of the series above this one.
    pub(super) fn round_up(&self, number: Number) -> Result<Number> {
        self.round(number, true)
    }

    /// The next number of the series below this one.
    pub(super) fn round_down(&self, number: Number) -> Result<Number> {
        self.round(number, false)
    }

    fn round(&self, number: Number, is_up: bool) -> Result<Number> {
        let double = number.to_double();
        if double == 0.0 {
            return Ok(number);
        }
        match self {
            Granularity::PowersOfTwo if !double.is_finite() => {
                Err(Error::location(11785400, "A granularity rounder can only round finite numbers"))
            }
            Granularity::PowersOfTwo => Ok(power_of_two(number, is_up)),
            Granularity::Series(_) if !double.is_finite() => Ok(number),
            Granularity::Series(series) => Ok(match number {
                Number::Decimal(decimal) => Number::Decimal(in_series(series, Ordered(decimal), is_up).0),
                _ => Number::Double(in_series(series, double, is_up)),
            }),
        }
    }
}

fn power_of_two(number: Number, is_up: bool) -> Number {
    let exponent = |logarithm: f64| if is_up { logarithm.floor() + 1.0 } else { logarithm.ceil() - 1.0 };
    match number {
        Number::Decimal(decimal) => {
            let two = Decimal128::from(2);
            let logarithm = (decimal.natural_logarithm() / two.natural_logarithm()).to_double();
            Number::Decimal(two.power(Decimal128::from(exponent(logarithm) as i32)))
        }
        Number::Double(double) => whole_power(exponent(double.log2()) as i32),
        whole => {
            let whole = whole.truncated_i64().unsigned_abs();
            let place = 63 - whole.leading_zeros() as i32;
            whole_power(match (is_up, whole.is_power_of_two()) {
                (true, _) => place + 1,
                (false, true) => place - 1,
                (false, false) => place,
            })
        }
    }
}

fn whole_power(exponent: i32) -> Number {
    match u32::try_from(exponent).ok().filter(|exponent| *exponent < 63) {
        Some(exponent) => Number::narrowest(1_i64 << exponent),
        None => Number::Double(2_f64.powi(exponent)),
    }
}

/// What numbers of a series are reckoned in.
trait Reckoned: Copy + PartialOrd {
    fn of(number: u32) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
}

impl Reckoned for f64 {
    fn of(number: u32) -> f64 {
        f64::from(number)
    }
    fn times(self, other: f64) -> f64 {
        self * other
    }
    fn over(self, other: f64) -> f64 {
        self / other
    }
}

/// A decimal with the order of numbers.
#[derive(Clone, Copy)]
struct Ordered(Decimal128);

impl PartialEq for Ordered {
    fn eq(&self, other: &Ordered) -> bool {
        self.partial_cmp(other).is_some_and(std::cmp::Ordering::is_eq)
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Ordered) -> Option<std::cmp::Ordering> {
        let value = |number: Decimal128| pando_doc::Value::Decimal(number);
        Some(pando_doc::compare(value(self.0), value(other.0)))
    }
}

impl Reckoned for Ordered {
    fn of(number: u32) -> Ordered {
        Ordered(Decimal128::from(i64::from(number)))
    }
    fn times(self, other: Ordered) -> Ordered {
        Ordered(self.0 * other.0)
    }
    fn over(self, other: Ordered) -> Ordered {
        Ordered(self.0 / other.0)
    }
}

/// The neighbour of a positive finite number. The power of ten is found first: the one whose numbers surround it.
fn in_series<T: Reckoned>(series: &[u32], number: T, is_up: bool) -> T {
    let ten = T::of(10);
    let at = |place: Option<&u32>, power: T| T::of(place.copied().unwrap_or(1)).times(power);
    let mut power = T::of(1);
    if is_up {
        while number >= at(series.last(), power) {
            power = power.times(ten);
        }
        while number < at(series.first(), power) {
            let above = at(series.first(), power);
            power = power.over(ten);
            if number >= at(series.last(), power) {
                return above;
            }
        }
        let place = series.partition_point(|candidate| at(Some(candidate), power) <= number);
        at(series.get(place), power)
    } else {
        while number <= at(series.first(), power) {
            power = power.over(ten);
        }
        // Below the least double there is only zero.
        if power == T::of(0) {
            return power;
        }
        while number > at(series.last(), power) {
            let below = at(series.last(), power);
            power = power.times(ten);
            if number <= at(series.first(), power) {
                return below;
            }
        }
        let place = series.partition_point(|candidate| at(Some(candidate), power) < number);
        at(series.get(place.saturating_sub(1)), power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u6_granularities_round_to_their_neighbours() {
        let up = |name: &str, number: f64| {
            Granularity::parse(name).unwrap().round_up(Number::Double(number)).unwrap().to_double()
        };
        let down = |name: &str, number: f64| {
            Granularity::parse(name).unwrap().round_down(Number::Double(number)).unwrap().to_double()
        };
        assert_eq!((up("R5", 16.0), down("R5", 16.0)), (25.0, 10.0));
        assert_eq!((up("E6", 0.8), down("E6", 0.8)), (1.0, 0.68));
        assert_eq!((up("1-2-5", 5.0), down("1-2-5", 5.0)), (10.0, 2.0));
        assert_eq!((up("POWERSOF2", 8.0), down("POWERSOF2", 8.0)), (16.0, 4.0));
        assert_eq!((up("POWERSOF2", 0.3), down("POWERSOF2", 0.3)), (0.5, 0.25));
        assert_eq!(e_series(192).iter().filter(|number| **number == 920).count(), 1);
        assert_eq!((up("R80", 5e-324), down("R80", 5e-324)), (1.02e-321, 0.0));
        assert_eq!(up("R5", f64::MAX), f64::INFINITY);
        assert!(Granularity::parse("R6").is_err());
        let decimal = Granularity::parse("E12").unwrap().round_up(Number::Decimal(Decimal128::from(9))).unwrap();
        assert_eq!(decimal.to_double(), 10.0);
    }
}
