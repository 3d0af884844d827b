//! `$percentile` and `$median`: as accumulators, in windows and as expressions.
//!
//! MongoDB promises an approximation; here all numbers are kept, so that the result is exact: the number at the rank, never one between two.

use crate::expression::Operand;
use crate::{Expression, ParseContext};
use pando_base::{Error, Result, operation};
use pando_doc::{Array, Element, OwnedValue, Value};

/// Sorting a number among others is so many steps.
const SORTED_STEPS: usize = 4;

/// Numbers that are being collected.
#[derive(Clone, Debug, Default)]
pub(super) struct Percentile {
    numbers: Vec<f64>,
}

impl Percentile {
    /// Takes a number; what is none, or no number at all, is passed over.
    pub(super) fn add(&mut self, value: &Operand<'_>) {
        if let Some(number) = value.as_number().map(|number| number.to_double()).filter(|number| !number.is_nan()) {
            self.numbers.push(number);
        }
    }

    /// All numbers so far.
    pub(super) fn numbers(&self) -> &[f64] {
        &self.numbers
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.numbers.len() * size_of::<f64>()
    }

    /// The median as a number, percentiles as an array of them; nulls without any number.
    pub(super) fn result(&self, shares: &[f64], is_median: bool) -> OwnedValue {
        let mut sorted = self.numbers.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |share: &f64| {
            let rank = (sorted.len() as f64 * share).ceil() as usize;
            let place = rank.saturating_sub(1).min(sorted.len().saturating_sub(1));
            sorted.get(place).map_or(OwnedValue::Null, |number| OwnedValue::Double(*number))
        };
        match (is_median, shares.first()) {
            (true, Some(share)) => at(share),
            _ => OwnedValue::Array(Array::from_iter(shares.iter().map(at))),
        }
    }
}

/// The arguments: what is reckoned, and of what, as it is written.
pub(crate) fn parse_percentile<'a>(
    element: Element<'a>,
    not_object: i32,
    context: &ParseContext,
) -> Result<(Vec<f64>, Value<'a>)> {
    let name = element.name;
    let is_median = name == "$median";
    let Value::Document(arguments) = element.value else {
        return Err(Error::location(not_object, format!("specification must be an object; found {element}")));
    };
    let (mut input, mut shares, mut method) = (None, None, None);
    for argument in arguments.elements() {
        match &**argument.name {
            b"input" => input = Some(argument.value),
            b"p" if !is_median => shares = Some(argument.value),
            b"method" => method = Some(argument.value),
            _ => {
                let reason = format!("BSON field '{name}.{}' is an unknown field.", argument.name);
                return Err(Error::location(40415, reason));
            }
        }
    }
    let missing =
        |field: &str| Error::location(40414, format!("BSON field '{name}.{field}' is missing but a required field"));
    match method.ok_or_else(|| missing("method"))? {
        Value::String(method) if method == "approximate" => {}
        Value::String(_) => {
            return Err(Error::bad_value("Currently only 'approximate' can be used as percentile 'method'."));
        }
        other => {
            let found = other.value_type();
            let reason = format!("BSON field '{name}.method' is the wrong type '{found}', expected type 'string'");
            return Err(Error::type_mismatch(reason));
        }
    }
    let input = input.ok_or_else(|| missing("input"))?;
    let shares = match is_median {
        true => vec![0.5],
        false => parse_shares(shares.ok_or_else(|| missing("p"))?, context)?,
    };
    Ok((shares, input))
}

fn parse_shares(written: Value<'_>, context: &ParseContext) -> Result<Vec<f64>> {
    let expression = Expression::parse(written, context)?.folded()?;
    let Some(constant) = expression.as_constant() else {
        let reason =
            format!("The $percentile 'p' field must be an array of constant values, but found value: {written}.");
        return Err(Error::location(7750300, reason));
    };
    let refused = |code, found: Value<'_>| {
        let reason =
            format!("The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: {found}");
        Error::location(code, reason)
    };
    let array = match constant.unwrap_or(Value::Null) {
        Value::Array(array) if !array.is_empty() => array,
        other => return Err(refused(7750301, other)),
    };
    let share = |value: Value<'_>| {
        let number = value.as_number().ok_or_else(|| refused(7750302, value))?.to_double();
        if (0.0..=1.0).contains(&number) { Ok(number) } else { Err(refused(7750303, value)) }
    };
    array.values().map(share).collect()
}

/// The percentiles of a number or of the numbers of an array.
pub(crate) fn of_operand(input: &Operand<'_>, shares: &[f64], is_median: bool) -> Result<OwnedValue> {
    let mut percentile = Percentile::default();
    match input.array_operands()? {
        Some(values) => values.iter().for_each(|value| percentile.add(value)),
        None => percentile.add(input),
    }
    operation::tick((percentile.numbers.len() * SORTED_STEPS) as u64)?;
    Ok(percentile.result(shares, is_median))
}
