//! Decimals: encoding, text, rounding, arithmetic, against the `bson` crate and known values.

use super::*;
use crate::Value;
use crate::compare::compare_numbers;
use proptest::prelude::*;

fn decimal(text: &str) -> Decimal128 {
    text.parse().unwrap()
}

#[test]
fn decimals_print_as_mongodb_prints_them() {
    for text in [
        "0",
        "-0",
        "1",
        "-1",
        "123",
        "0.1",
        "0.001234",
        "0.000001",
        "1E-7",
        "1.23E-7",
        "1E+3",
        "1.2E+5",
        "0E+3",
        "0E-8",
        "0.00",
        "12.50",
        "NaN",
        "Infinity",
        "-Infinity",
        "9.999999999999999999999999999999999E+6144",
        "1E-6176",
        "1234567890123456789012345678901234",
        "0.1234567890123456789012345678901234",
        "-1.00E-8",
    ] {
        assert_eq!(decimal(text).to_string(), text);
    }
    for (text, printed) in [
        ("+1", "1"),
        ("inf", "Infinity"),
        ("-INFINITY", "-Infinity"),
        ("nan", "NaN"),
        ("1e3", "1E+3"),
        (".5", "0.5"),
        ("5.", "5"),
        ("007", "7"),
        ("1E+6112", "1.0E+6112"),
        ("0E+9999", "0E+6111"),
        ("0E-9999", "0E-6176"),
        ("1E+7000", "Infinity"),
        ("-1E+7000", "-Infinity"),
        ("1E-7000", "0E-6176"),
        ("12345678901234567890123456789012345", "1.234567890123456789012345678901234E+34"),
        ("12345678901234567890123456789012355", "1.234567890123456789012345678901236E+34"),
        ("99999999999999999999999999999999995", "1.000000000000000000000000000000000E+35"),
        ("123456789012345678901234567890123450000000001", "1.234567890123456789012345678901235E+44"),
    ] {
        assert_eq!(decimal(text).to_string(), printed, "{text}");
    }
    for wrong in ["", "-", ".", "1e", "1e+", "--1", "1.2.3", "0x1", " 1", "1 ", "infinit", "1e1.5"] {
        assert_eq!(wrong.parse::<Decimal128>(), Err(NotADecimal), "{wrong}");
    }
}

#[test]
fn rounding_while_reading_is_told() {
    let flags = |text: &str| Decimal128::parse(text).map(|r| (r.inexact, r.overflow, r.underflow)).unwrap();
    assert_eq!(flags("1.5"), (false, false, false));
    assert_eq!(flags("1.00000000000000000000000000000000001"), (true, false, false));
    assert_eq!(flags("1E+6145"), (true, true, false));
    assert_eq!(flags("15E-6177"), (true, false, true));
}

#[test]
fn encodings_that_are_not_canonical_are_kept_and_count_as_zero() {
    // The coefficient is ten to the 34th; then one with both upper combination bits set.
    let large = 10_u128.pow(34);
    for high in [0x3040_0000_0000_0000 | (large >> 64) as u64, 0x6C10_0000_0000_0000] {
        let odd = Decimal128::from_halves(high, large as u64);
        assert!(odd.is_zero() && odd.is_finite());
        assert_eq!(Decimal128::from_bid_bytes(odd.to_bid_bytes()), odd);
        assert!(compare_numbers(Value::Decimal(odd), Value::Int32(0)).is_eq());
    }
}

#[test]
fn arithmetic() {
    for (result, expected) in [
        (decimal("0.1") + decimal("0.2"), "0.3"),
        (decimal("1.20") - decimal("1.2"), "0.00"),
        (decimal("1.20") * decimal("3"), "3.60"),
        (decimal("1") / decimal("3"), "0.3333333333333333333333333333333333"),
        (decimal("1") / decimal("0"), "Infinity"),
        (decimal("-1") / decimal("0"), "-Infinity"),
        (decimal("0") / decimal("0"), "NaN"),
        (decimal("-0") + decimal("-0"), "-0"),
        (Decimal128::MAX + Decimal128::MAX, "Infinity"),
        (Decimal128::MIN_POSITIVE * Decimal128::MIN_POSITIVE, "0E-6176"),
        (decimal("Infinity") - decimal("Infinity"), "NaN"),
        (decimal("7") % decimal("-3"), "1"),
        (decimal("-7.5") % decimal("2"), "-1.5"),
        (decimal("1E+6000") % decimal("7"), "1"),
        (decimal("7") % decimal("1E+6000"), "7"),
        (decimal("1") % decimal("0"), "NaN"),
        (decimal("5") % decimal("Infinity"), "5"),
        (decimal("2.345").quantize(decimal("0.01"), Rounding::HalfEven), "2.34"),
        (decimal("2.345").quantize(decimal("0.01"), Rounding::HalfUp), "2.35"),
        (decimal("-2.5").round_to_whole(Rounding::HalfEven), "-2"),
        (decimal("-2.5").round_to_whole(Rounding::Floor), "-3"),
        (decimal("-2.5").round_to_whole(Rounding::Ceiling), "-2"),
        (decimal("2.9").round_to_whole(Rounding::TowardZero), "2"),
        (decimal("1E+9").round_to_whole(Rounding::TowardZero), "1E+9"),
        (decimal("2").square_root(), "1.414213562373095048801688724209698"),
        (decimal("1").exponential(), "2.718281828459045235360287471352662"),
        (decimal("10").natural_logarithm(), "2.302585092994045684017991454684364"),
        (decimal("1000").decimal_logarithm(), "3"),
        (decimal("2").power(decimal("10")), "1024.000000000000000000000000000000"),
        (-decimal("1.0"), "-1.0"),
        (decimal("-1.0").abs(), "1.0"),
    ] {
        assert_eq!(result.to_string(), expected);
    }
}

#[test]
fn the_six_thousandth_power_of_ten_leaves_what_the_rule_says() {
    // 10^6000 mod 7: ten is 3 mod 7, whose order is 6, which divides 6000.
    assert_eq!((decimal("1E+6001") % decimal("7")).to_string(), "3");
}

#[test]
fn doubles_in_full() {
    assert_eq!(Decimal128::from_double_34_digits(0.1).to_string(), "0.1000000000000000055511151231257827");
    assert_eq!(Decimal128::from_double_34_digits(0.5).to_string(), "0.5");
    assert_eq!(Decimal128::from_double_34_digits(3.0).to_string(), "3");
    assert_eq!((decimal("0.1").to_double(), decimal("1E+400").to_double()), (0.1, f64::INFINITY));
    assert_eq!((decimal("1E-400").to_double(), decimal("-0").to_double().to_bits()), (0.0, (-0.0_f64).to_bits()));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn text_leads_back(negative: bool, coefficient in 0..=COEFFICIENT_MAX, exponent in EXPONENT_MIN..=EXPONENT_MAX) {
        let number = Decimal128::from_parts(Parts::Finite { negative, coefficient, exponent }).unwrap();
        prop_assert_eq!(number.parts(), Parts::Finite { negative, coefficient, exponent });
        prop_assert_eq!(number.to_string().parse::<Decimal128>().unwrap(), number);
    }

    #[test]
    fn the_bson_crate_agrees_on_text(bytes: [u8; 16]) {
        let ours = Decimal128::from_bid_bytes(bytes);
        prop_assert_eq!(ours.to_bid_bytes(), bytes);
        // Coefficients beyond 34 digits are zeros to us, and to the standard; the other crate shows their digits.
        if !matches!(ours.parts(), Parts::Finite { coefficient: 0, .. }) {
            let text = bson::Decimal128::from_bytes(bytes).to_string();
            prop_assert_eq!(ours.to_string(), text);
        }
    }

    #[test]
    fn whole_numbers_add_and_multiply_exactly(left: i64, right: i32) {
        let (a, b) = (Decimal128::from(left), Decimal128::from(right));
        prop_assert_eq!((a + b).to_string(), (i128::from(left) + i128::from(right)).to_string());
        prop_assert_eq!((a - b).to_string(), (i128::from(left) - i128::from(right)).to_string());
        prop_assume!(left != 0 && right != 0);
        prop_assert_eq!((a * b).to_string(), (i128::from(left) * i128::from(right)).to_string());
        let rest = i128::from(left) % i128::from(right);
        prop_assert!(compare_numbers(Value::Decimal(a % b), Value::Int64(rest as i64)).is_eq());
    }
}

#[test]
fn what_is_no_number_keeps_its_sign() {
    let negative = Decimal128::NAN.negate();
    let one = decimal("1");
    for result in [
        one + negative,
        negative * one,
        negative % one,
        negative.square_root(),
        negative.quantize(one, Rounding::HalfEven),
    ] {
        assert!(result.is_nan() && result.is_sign_negative());
    }
    assert!(!(Decimal128::INFINITY - Decimal128::INFINITY).is_sign_negative());
}
