//! Arithmetic and conversions at their edges.

use super::Number::{self, Decimal, Double, Int32, Int64};
use crate::{Decimal128, doc};

fn decimal(text: &str) -> Number {
    Decimal(text.parse().unwrap())
}

#[test]
fn the_widest_kind_wins() {
    assert_eq!(Int32(1).plus(Int32(2)), Int32(3));
    assert_eq!(Int32(1).plus(Int64(2)), Int64(3));
    assert_eq!(Int64(1).plus(Double(2.5)), Double(3.5));
    assert_eq!(Double(0.5).plus(decimal("1")), decimal("1.500000000000000"));
    assert_eq!(Int32(6).times(decimal("1.5")), decimal("9.0"));
    assert_eq!(Int64(7).minus(Int32(9)), Int64(-2));
}

#[test]
fn overflow_widens_or_is_refused() {
    assert_eq!(Int32(i32::MAX).plus(Int32(1)), Int64(1 << 31));
    assert_eq!(Int32(i32::MIN).minus(Int32(1)), Int64(i64::from(i32::MIN) - 1));
    assert_eq!(Int32(i32::MIN).times(Int32(-1)), Int64(1 << 31));
    assert_eq!(Int64(i64::MAX).plus(Int32(1)), Double(9_223_372_036_854_775_808.0));
    assert_eq!(Int64(i64::MIN).minus(Int64(1)), Double(-9_223_372_036_854_775_808.0));
    assert_eq!(Int64(1 << 62).times(Int64(4)), Double(18_446_744_073_709_551_616.0));
    assert_eq!(Int64(i64::MAX).checked_add(Int32(1)), None);
    assert_eq!(Int64(1 << 62).checked_multiply(Int32(2)), None);
    assert_eq!(Int32(i32::MAX).checked_add(Int32(1)), Some(Int64(1 << 31)));
}

#[test]
fn division_and_remainder() {
    assert_eq!(Int32(7).divided_by(Int32(2)), Some(Double(3.5)));
    assert_eq!(Int32(6).divided_by(decimal("4")), Some(decimal("1.5")));
    assert_eq!((Int32(1).divided_by(Double(-0.0)), Int32(1).divided_by(decimal("0E+3"))), (None, None));
    assert_eq!(Int32(-7).modulo(Int32(3)), Some(Int32(-1)));
    assert_eq!(Int32(7).modulo(Int64(-4)), Some(Int64(3)));
    assert_eq!(Int32(7).modulo(Double(4.0)), Some(Int32(3)));
    assert_eq!(Int32(7).modulo(Double(2.5)), Some(Double(2.0)));
    assert_eq!(Double(7.5).modulo(Int32(2)), Some(Double(1.5)));
    assert_eq!(Int64(i64::MIN).modulo(Int32(-1)), Some(Int64(0)));
    assert_eq!(Int32(i32::MIN).modulo(Int32(-1)), Some(Int32(0)));
    assert_eq!(decimal("-7.5").modulo(Int32(2)), Some(decimal("-1.5")));
    assert_eq!((Int32(1).modulo(Int32(0)), Int32(1).modulo(decimal("0"))), (None, None));
}

#[test]
fn conversions_to_whole_numbers() {
    assert_eq!(Double(9_223_372_036_854_775_808.0).to_i64_exact(), None);
    assert_eq!(Double(-9_223_372_036_854_775_808.0).to_i64_exact(), Some(i64::MIN));
    assert_eq!((Double(0.5).to_i64_exact(), Double(f64::NAN).to_i64_exact()), (None, None));
    assert_eq!(decimal("1E+3").to_i64_exact(), Some(1000));
    assert_eq!(decimal("1000.00").to_i64_exact(), Some(1000));
    assert_eq!(decimal("9223372036854775808").to_i64_exact(), None);
    assert_eq!((decimal("2.5").truncated_i64(), decimal("3.5").truncated_i64()), (2, 4));
    assert_eq!((Double(-2.9).truncated_i64(), Double(1e300).truncated_i64()), (-2, i64::MAX));
    assert_eq!((decimal("-1E+40").truncated_i64(), decimal("NaN").truncated_i64()), (i64::MIN, 0));
}

#[test]
fn whole_numbers_in_requests_are_refused_in_mongodbs_words() {
    let request = doc! { "a": 1.5, "b": f64::NAN, "c": 1e30, "d": "x", "e": -1, "f": 3_000_000_000_i64, "g": 7.0 };
    let field = |name: &str| request.elements().find(|element| element.name == name).unwrap();
    let reason = |name: &str| field(name).parse_non_negative_i32().unwrap_err().reason().to_owned();
    assert_eq!(reason("a"), "Expected an integer: a: 1.5");
    assert_eq!(reason("b"), "Expected an integer, but found NaN in: b: nan.0");
    assert_eq!(reason("c"), "Cannot represent as a 64-bit integer: c: 1e+30.0");
    assert_eq!(reason("d"), "Expected a number in: d: \"x\"");
    assert_eq!(reason("e"), "Expected a non-negative number in: e: -1");
    assert_eq!(reason("f"), "Cannot represent f: 3000000000 in an int");
    assert_eq!(field("g").parse_non_negative_i32().unwrap(), 7);
    assert_eq!(field("f").parse_i64().unwrap(), 3_000_000_000);
}

#[test]
fn a_double_becomes_a_decimal_of_fifteen_digits() {
    for (double, text) in [(0.1, "0.100000000000000"), (1.0, "1.00000000000000"), (1e20, "1.00000000000000E+20")] {
        assert_eq!(Decimal128::from(double).to_string(), text);
    }
    assert_eq!(Decimal128::from(-0.0).to_string(), "-0");
}
