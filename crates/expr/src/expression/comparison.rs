//! Comparisons of values of any type, by the canonical order; missing is less than null.

use super::{Environment, Operand};
use pando_base::Result;
use std::cmp::Ordering;

fn order(operands: &[Operand<'_>], environment: &Environment<'_>) -> Ordering {
    match operands {
        [left, right] => environment.compare(left.comparable(), right.comparable()),
        _ => Ordering::Equal,
    }
}

pub(super) fn cmp<'a>(operands: &[Operand<'a>], environment: &Environment<'_>) -> Result<Operand<'a>> {
    Ok(Operand::from(order(operands, environment) as i32))
}

macro_rules! comparisons {
    ($($name:ident, $accepts:ident;)*) => {
        $(pub(super) fn $name<'a>(operands: &[Operand<'a>], environment: &Environment<'_>) -> Result<Operand<'a>> {
            Ok(Operand::from(order(operands, environment).$accepts()))
        })*
    };
}

comparisons! {
    eq, is_eq;
    ne, is_ne;
    lt, is_lt;
    lte, is_le;
    gt, is_gt;
    gte, is_ge;
}
