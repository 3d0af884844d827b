//! Sets: arrays whose order and repetitions do not matter.

use super::{Environment, Operand};
use pando_base::{Error, Result};
use pando_doc::{ArrayRef, OwnedValue, Value};
use std::cmp::Ordering;

/// The values, sorted, each once.
fn sorted<'a>(array: ArrayRef<'a>, environment: &Environment<'_>) -> Vec<Value<'a>> {
    let mut values: Vec<Value<'a>> = array.values().collect();
    values.sort_by(|left, right| environment.compare(*left, *right));
    values.dedup_by(|left, right| environment.compare(*left, *right).is_eq());
    values
}

fn has(sorted: &[Value<'_>], value: Value<'_>, environment: &Environment<'_>) -> bool {
    sorted.binary_search_by(|other| environment.compare(*other, value)).is_ok()
}

fn as_array<'o>(operand: &'o Operand<'_>, code: i32, reason: impl FnOnce(&str) -> String) -> Result<ArrayRef<'o>> {
    match operand.view() {
        Some(Value::Array(array)) => Ok(array),
        _ => Err(Error::location(code, reason(operand.type_name()))),
    }
}

fn made<'a>(values: Vec<Value<'_>>) -> Operand<'a> {
    Operand::Owned(OwnedValue::Array(values.into_iter().collect()))
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
    all.sort_by(|left, right| environment.compare(*left, *right));
    all.dedup_by(|left, right| environment.compare(*left, *right).is_eq());
    Ok(made(all))
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
        let values = sorted(array, environment);
        common = Some(match common {
            None => values,
            Some(common) => common.into_iter().filter(|value| has(&values, *value, environment)).collect(),
        });
    }
    Ok(made(common.unwrap_or_default()))
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
    let taken = sorted(as_array(right, 17049, refused("Second"))?, environment);
    // The order of the first operand is kept.
    let mut kept: Vec<Value<'_>> = Vec::new();
    let mut seen: Vec<Value<'_>> = Vec::new();
    for value in left.values() {
        let place = seen.binary_search_by(|other| environment.compare(*other, value));
        if let (Err(place), false) = (place, has(&taken, value, environment)) {
            seen.insert(place, value);
            kept.push(value);
        }
    }
    Ok(made(kept))
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
        let values = sorted(array, environment);
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
    let whole = sorted(as_array(right, 17042, refused("Second"))?, environment);
    Ok(Operand::from(left.values().all(|value| has(&whole, value, environment))))
}

pub(super) fn any_element_true<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let Some(operand) = operands.first() else { return Ok(Operand::NULL) };
    let array =
        as_array(operand, 17041, |found| format!("$anyElementTrue's argument must be an array, but is {found}"))?;
    Ok(Operand::from(array.values().any(|value| value.is_true())))
}

pub(super) fn all_elements_true<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let Some(operand) = operands.first() else { return Ok(Operand::NULL) };
    let array =
        as_array(operand, 17040, |found| format!("$allElementsTrue's argument must be an array, but is {found}"))?;
    Ok(Operand::from(array.values().all(|value| value.is_true())))
}
