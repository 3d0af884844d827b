//! Operators that look into arrays or take parts of them.

use super::places::Places;
use super::{Environment, Operand};
use pando_base::{Error, Result, operation};
use pando_doc::{Number, Value};

/// A whole number of 32 bits, with the codes of the errors: not a number, not whole.
pub(super) fn whole_i32(operand: &Operand<'_>, codes: (i32, i32), what: &str) -> Result<i32> {
    let Some(number) = operand.as_number() else {
        return Err(Error::location(codes.0, format!("{what} must be numeric, but is {}", operand.type_name())));
    };
    number.to_i64_exact().and_then(|whole| i32::try_from(whole).ok()).ok_or_else(|| {
        let shown = Value::from(number);
        Error::location(codes.1, format!("{what} must be representable as a 32-bit integer: {shown}"))
    })
}

pub(super) fn array_elem_at<'a>(
    operands: &[Operand<'a>],
    _: &Environment<'_>,
    places: &mut Places<'a>,
) -> Result<Operand<'a>> {
    let [array, index] = operands else { return Ok(Operand::NULL) };
    if array.is_nullish() || index.is_nullish() {
        return Ok(Operand::NULL);
    }
    let index = match array.or_null() {
        Value::Array(_) => whole_i32(index, (28690, 28691), "$arrayElemAt's second argument")?,
        _ => {
            let reason = format!("$arrayElemAt's first argument must be an array, but is {}", array.type_name());
            return Err(Error::location(28689, reason));
        }
    };
    places.value_at(array, index.into())
}

pub(super) fn first<'a>(operands: &[Operand<'a>], _: &Environment<'_>, places: &mut Places<'a>) -> Result<Operand<'a>> {
    end(operands, "$first", 0, places)
}

pub(super) fn last<'a>(operands: &[Operand<'a>], _: &Environment<'_>, places: &mut Places<'a>) -> Result<Operand<'a>> {
    end(operands, "$last", -1, places)
}

fn end<'a>(operands: &[Operand<'a>], name: &str, index: i64, places: &mut Places<'a>) -> Result<Operand<'a>> {
    let Some(array) = operands.first() else { return Ok(Operand::NULL) };
    match array.or_null() {
        Value::Array(_) => places.value_at(array, index),
        value if value.is_nullish() => Ok(Operand::NULL),
        _ => {
            let reason = format!("{name}'s argument must be an array, but is {}", array.type_name());
            Err(Error::location(28689, reason))
        }
    }
}

pub(super) fn size<'a>(operands: &[Operand<'a>], _: &Environment<'_>, places: &mut Places<'a>) -> Result<Operand<'a>> {
    match operands.first() {
        Some(array) if matches!(array.view(), Some(Value::Array(_))) => Ok(Operand::from(places.length(array)? as i32)),
        other => {
            let found = other.map_or("missing", Operand::type_name);
            let reason = format!("The argument to $size must be an array, but was of type: {found}");
            Err(Error::location(17124, reason))
        }
    }
}

pub(super) fn is_array<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    Ok(Operand::from(matches!(operands.first().and_then(Operand::view), Some(Value::Array(_)))))
}

pub(super) fn is_in<'a>(operands: &[Operand<'a>], environment: &Environment<'_>) -> Result<Operand<'a>> {
    let [sought, array] = operands else { return Ok(Operand::NULL) };
    let Some(Value::Array(values)) = array.view() else {
        let reason = format!("$in requires an array as a second argument, found: {}", array.type_name());
        return Err(Error::location(40081, reason));
    };
    for value in values.values() {
        operation::tick(1)?;
        if environment.compare(value, sought.comparable()).is_eq() {
            return Ok(Operand::from(true));
        }
    }
    Ok(Operand::from(false))
}

pub(super) fn index_of_array<'a>(operands: &[Operand<'a>], environment: &Environment<'_>) -> Result<Operand<'a>> {
    let (Some(array), Some(sought)) = (operands.first(), operands.get(1)) else { return Ok(Operand::NULL) };
    if array.is_nullish() {
        return Ok(Operand::NULL);
    }
    let Some(Value::Array(values)) = array.view() else {
        let reason = format!("$indexOfArray requires an array as a first argument, found: {}", array.type_name());
        return Err(Error::location(40090, reason));
    };
    let start = operands.get(2).map_or(Ok(0), |operand| index_bound(operand, "$indexOfArray", "starting"))?;
    let end = operands.get(3).map_or(Ok(usize::MAX), |operand| index_bound(operand, "$indexOfArray", "ending"))?;
    for (index, value) in values.values().enumerate().take(end) {
        operation::tick(1)?;
        if index >= start && environment.compare(value, sought.comparable()).is_eq() {
            return Ok(Operand::from(index as i32));
        }
    }
    Ok(Operand::from(-1))
}

/// A bound of `$indexOf…`: whole and not negative.
pub(super) fn index_bound(operand: &Operand<'_>, name: &str, which: &str) -> Result<usize> {
    let whole = operand.as_number().and_then(Number::to_i64_exact).filter(|whole| i32::try_from(*whole).is_ok());
    let whole = whole.ok_or_else(|| {
        let reason = format!(
            "{name} requires an integral {which} index, found a value of type: {}, with value: \"{}\"",
            operand.type_name(),
            operand.or_null()
        );
        Error::location(40096, reason)
    })?;
    usize::try_from(whole)
        .map_err(|_| Error::location(40097, format!("{name} requires a nonnegative {which} index, found: {whole}")))
}

pub(super) fn slice<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let (Some(array), Some(second)) = (operands.first(), operands.get(1)) else { return Ok(Operand::NULL) };
    let third = operands.get(2);
    if array.is_nullish() || second.is_nullish() || third.is_some_and(Operand::is_nullish) {
        return Ok(Operand::NULL);
    }
    let Some(values) = array.array_operands()? else {
        let reason = format!("First argument to $slice must be an array, but is of type: {}", array.type_name());
        return Err(Error::location(28724, reason));
    };
    let second = whole_i32(second, (28725, 28726), "Second argument to $slice")?;
    let length = values.len();
    let from_end = |count: i32| length.saturating_sub(count.unsigned_abs() as usize);
    let (start, count) = match third {
        None if second >= 0 => (0, second as usize),
        None => (from_end(second), second.unsigned_abs() as usize),
        Some(third) => {
            let count = whole_i32(third, (28727, 28728), "Third argument to $slice")?;
            if count <= 0 {
                let reason = format!("Third argument to $slice must be positive: {count}");
                return Err(Error::location(28729, reason));
            }
            (if second < 0 { from_end(second) } else { second as usize }, count as usize)
        }
    };
    Operand::array(values.into_iter().skip(start).take(count))
}

/// The operands of `$firstN` and its kin: how many, and the values.
fn count_and_values<'a>(operands: &[Option<Operand<'a>>], name: &str) -> Result<(usize, Vec<Operand<'a>>)> {
    let [Some(count), Some(input)] = operands else { return Err(Error::internal("both operands are required")) };
    let Some(values) = input.array_operands()? else {
        let reason = format!("Value for 'input' must be an array, but found {}", input.type_name());
        return Err(Error::location(5788200, format!("{name}: {reason}")));
    };
    Ok((crate::accumulator::parse_count(count)?, values))
}

pub(super) fn first_n<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let (count, values) = count_and_values(operands, "$firstN")?;
    Operand::array(values.into_iter().take(count))
}

pub(super) fn last_n<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let (count, values) = count_and_values(operands, "$lastN")?;
    let skipped = values.len().saturating_sub(count);
    Operand::array(values.into_iter().skip(skipped))
}

pub(super) fn max_n<'a>(operands: &[Option<Operand<'a>>], environment: &Environment<'_>) -> Result<Operand<'a>> {
    let (count, mut values) = count_and_values(operands, "$maxN")?;
    values.retain(|value| !value.is_nullish());
    let values = operation::sort_by(values, |left, right| environment.compare(right.or_null(), left.or_null()))?;
    Operand::array(values.into_iter().take(count))
}

pub(super) fn min_n<'a>(operands: &[Option<Operand<'a>>], environment: &Environment<'_>) -> Result<Operand<'a>> {
    let (count, mut values) = count_and_values(operands, "$minN")?;
    values.retain(|value| !value.is_nullish());
    let values = operation::sort_by(values, |left, right| environment.compare(left.or_null(), right.or_null()))?;
    Operand::array(values.into_iter().take(count))
}
