//! Sets: arrays whose order and repetitions do not matter.

use super::{Environment, Operand, Values};
use pando_base::{Error, Result, operation};
use pando_doc::{ArrayRef, Value};
use std::cmp::Ordering;

/// The values, sorted, each once.
fn sorted<'a>(array: ArrayRef<'a>, environment: &Environment<'_>) -> Result<Vec<Value<'a>>> {
    once(array.values().collect(), environment)
}

fn once<'a>(values: Vec<Value<'a>>, environment: &Environment<'_>) -> Result<Vec<Value<'a>>> {
    let values = operation::sort_by(values, |left, right| environment.compare(*left, *right))?;
    operation::dedup_by(values, |left, right| environment.compare(*left, *right).is_eq())
}

/// One search is so many steps.
const SEARCH_STEPS: u64 = 16;

fn has(sorted: &[Value<'_>], value: Value<'_>, environment: &Environment<'_>) -> Result<bool> {
    operation::tick(SEARCH_STEPS)?;
    Ok(sorted.binary_search_by(|other| environment.compare(*other, value)).is_ok())
}

fn as_array<'o>(operand: &'o Operand<'_>, code: i32, reason: impl FnOnce(&str) -> String) -> Result<ArrayRef<'o>> {
    match operand.view() {
        Some(Value::Array(array)) => Ok(array),
        _ => Err(Error::location(code, reason(operand.type_name()))),
    }
}

fn made<'a>(values: Vec<Value<'_>>) -> Result<Operand<'a>> {
    let mut made = Values::new();
    values.into_iter().try_for_each(|value| made.push(value))?;
    Ok(made.finish())
}

pub(super) fn set_union<'a>(operands: &[Operand<'a>], environment: &Environment<'_>) -> Result<Operand<'a>> {
    let mut all = Vec::new();
    for operand in operands {
        if operand.is_nullish() {
            return Ok(Operand::NULL);
        }
        let array = as_array(operand, 17043, |found| {
            format!("All operands of $setUnion must be arrays. One argument is of type: {found}")
        })?;
        all.extend(array.values());
    }
    made(once(all, environment)?)
}

pub(super) fn set_intersection<'a>(operands: &[Operand<'a>], environment: &Environment<'_>) -> Result<Operand<'a>> {
    let mut common: Option<Vec<Value<'_>>> = None;
    for operand in operands {
        if operand.is_nullish() {
            return Ok(Operand::NULL);
        }
        let array = as_array(operand, 17047, |found| {
            format!("All operands of $setIntersection must be arrays. One argument is of type: {found}")
        })?;
        let values = sorted(array, environment)?;
        common = Some(match common {
            None => values,
            Some(before) => {
                let mut kept = Vec::new();
                for value in before {
                    if has(&values, value, environment)? {
                        kept.push(value);
                    }
                }
                kept
            }
        });
    }
    made(common.unwrap_or_default())
}

pub(super) fn set_difference<'a>(operands: &[Operand<'a>], environment: &Environment<'_>) -> Result<Operand<'a>> {
    let [left, right] = operands else { return Ok(Operand::NULL) };
    if left.is_nullish() || right.is_nullish() {
        return Ok(Operand::NULL);
    }
    let refused = |which: &'static str| {
        move |found: &str| {
            format!("both operands of $setDifference must be arrays. {which} argument is of type: {found}")
        }
    };
    let left = as_array(left, 17048, refused("First"))?;
    let taken = sorted(as_array(right, 17049, refused("Second"))?, environment)?;
    // Of equal values the first stays; then the order of the first operand is restored.
    let places: Vec<(usize, Value<'_>)> = left.values().enumerate().collect();
    let places = operation::sort_by(places, |one, other| environment.compare(one.1, other.1))?;
    let places = operation::dedup_by(places, |one, other| environment.compare(one.1, other.1).is_eq())?;
    let mut kept = Vec::new();
    for (place, value) in places {
        if !has(&taken, value, environment)? {
            kept.push((place, value));
        }
    }
    let kept = operation::sort_by(kept, |one, other| one.0.cmp(&other.0))?;
    made(kept.into_iter().map(|(_, value)| value).collect())
}

pub(super) fn set_equals<'a>(operands: &[Operand<'a>], environment: &Environment<'_>) -> Result<Operand<'a>> {
    if operands.len() < 2 {
        let reason = format!("$setEquals needs at least two arguments had: {}", operands.len());
        return Err(Error::location(17045, reason));
    }
    let mut first: Option<Vec<Value<'_>>> = None;
    let mut are_equal = true;
    for operand in operands {
        let array = as_array(operand, 17044, |found| {
            format!("All operands of $setEquals must be arrays. One argument is of type: {found}")
        })?;
        let values = sorted(array, environment)?;
        match &first {
            None => first = Some(values),
            Some(first) => are_equal &= same(first, &values, environment),
        }
    }
    Ok(Operand::from(are_equal))
}

fn same(left: &[Value<'_>], right: &[Value<'_>], environment: &Environment<'_>) -> bool {
    let is_equal = |(left, right): (&Value<'_>, &Value<'_>)| environment.compare(*left, *right) == Ordering::Equal;
    left.len() == right.len() && left.iter().zip(right).all(is_equal)
}

pub(super) fn set_is_subset<'a>(operands: &[Operand<'a>], environment: &Environment<'_>) -> Result<Operand<'a>> {
    let [left, right] = operands else { return Ok(Operand::NULL) };
    let refused = |which: &'static str| {
        move |found: &str| format!("both operands of $setIsSubset must be arrays. {which} argument is of type: {found}")
    };
    let left = as_array(left, 17046, refused("First"))?;
    let whole = sorted(as_array(right, 17042, refused("Second"))?, environment)?;
    for value in left.values() {
        if !has(&whole, value, environment)? {
            return Ok(Operand::from(false));
        }
    }
    Ok(Operand::from(true))
}

/// `$setIsSubset` of a constant, with a code of its own for what is no array.
pub(super) fn is_subset_of_constant<'a>(
    operands: &[Operand<'a>],
    environment: &Environment<'_>,
) -> Result<Operand<'a>> {
    match operands.first() {
        Some(left) if !matches!(left.view(), Some(Value::Array(_))) => {
            let found = left.type_name();
            let reason = format!("both operands of $setIsSubset must be arrays. First argument is of type: {found}");
            Err(Error::location(17310, reason))
        }
        _ => set_is_subset(operands, environment),
    }
}

pub(super) fn any_element_true<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let Some(operand) = operands.first() else { return Ok(Operand::NULL) };
    let array =
        as_array(operand, 17041, |found| format!("$anyElementTrue's argument must be an array, but is {found}"))?;
    Ok(Operand::from(find_truth(array, true)?))
}

pub(super) fn all_elements_true<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let Some(operand) = operands.first() else { return Ok(Operand::NULL) };
    let array =
        as_array(operand, 17040, |found| format!("$allElementsTrue's argument must be an array, but is {found}"))?;
    Ok(Operand::from(!find_truth(array, false)?))
}

/// True if a value counts as this.
fn find_truth(array: ArrayRef<'_>, truth: bool) -> Result<bool> {
    for value in array.values() {
        operation::tick(1)?;
        if value.is_true() == truth {
            return Ok(true);
        }
    }
    Ok(false)
}
