//! Accumulators as expressions: over the operands, or over the values of a single operand that is an array.

use super::{Accumulator, AccumulatorKind};
use crate::expression::{Environment, Operand};
use pando_base::{Result, operation};

fn over<'a>(operands: &[Operand<'a>], environment: &Environment<'_>, kind: &AccumulatorKind) -> Result<Operand<'a>> {
    let single = match operands {
        [only] => only.array_operands()?,
        _ => None,
    };
    if matches!(kind, AccumulatorKind::Min | AccumulatorKind::Max) {
        let operands = single.as_deref().unwrap_or(operands);
        operation::tick(operands.len() as u64)?;
        return Ok(extreme(operands, environment, kind));
    }
    let mut accumulator = Accumulator::new(kind, None, None)?;
    for operand in single.as_deref().unwrap_or(operands) {
        accumulator.add(operand.clone())?;
    }
    Ok(accumulator.result().map_or(Operand::Missing, Operand::Owned))
}

/// The least or greatest in the order of the expression's collation.
fn extreme<'a>(operands: &[Operand<'a>], environment: &Environment<'_>, kind: &AccumulatorKind) -> Operand<'a> {
    let values = operands.iter().filter(|operand| !operand.is_nullish());
    let order = |left: &&Operand<'a>, right: &&Operand<'a>| environment.compare(left.or_null(), right.or_null());
    // Of equal values the first is taken.
    let best = if *kind == AccumulatorKind::Min { values.min_by(order) } else { values.rev().max_by(order) };
    best.cloned().unwrap_or(Operand::NULL)
}

macro_rules! functions {
    ($($function:ident, $kind:ident;)*) => {
        $(pub(crate) fn $function<'a>(operands: &[Operand<'a>], environment: &Environment<'_>) -> Result<Operand<'a>> {
            over(operands, environment, &AccumulatorKind::$kind)
        })*
    };
}

functions! {
    sum_of_operands, Sum;
    avg_of_operands, Avg;
    min_of_operands, Min;
    max_of_operands, Max;
    std_dev_pop_of_operands, StdDevPop;
    std_dev_samp_of_operands, StdDevSamp;
}
