//! Doubles as MongoDB prints them: sixteen digits in messages, as many as needed in JSON.

use std::fmt;

/// The double as in error messages: sixteen significant digits, and `.0` behind whatever has no point. That includes
/// `1e+20.0`, `inf.0` and `nan.0`; clients have come to match them.
pub(super) fn in_messages(f: &mut impl fmt::Write, number: f64) -> fmt::Result {
    let text = with_digits(number, 16);
    f.write_str(&text)?;
    if text.contains('.') { Ok(()) } else { f.write_str(".0") }
}

/// The double with six significant digits, as operators have it that take numbers for strings, and a few messages: `1`,
/// `0.1`, `1e+06`, `inf`, `nan`.
pub fn short_double(number: f64) -> String {
    with_digits(number, 6)
}

fn with_digits(number: f64, digits: i32) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    arrange(&format!("{number:.places$e}", places = digits.unsigned_abs() as usize - 1), digits)
}

/// A finite double as in JSON: the fewest digits that lead back to it.
pub(super) fn in_json(number: f64) -> String {
    let text = arrange(&format!("{number:e}"), 16);
    if text.contains(['.', 'e']) { text } else { text + ".0" }
}

/// Turns `d.ddde±x` into plain notation if the exponent is between -5 and the limit, without trailing zeros.
fn arrange(scientific: &str, exponent_limit: i32) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(|&c| c != '.').collect();
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        trimmed => trimmed,
    };
    if !(-4..exponent_limit).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}{point}{rest}e{exponent_sign}{:02}", exponent.unsigned_abs());
    }
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(exponent.unsigned_abs() as usize - 1));
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        return format!("{sign}{digits:0<whole$}");
    }
    let (whole, fraction) = digits.split_at(whole);
    format!("{sign}{whole}.{fraction}")
}
