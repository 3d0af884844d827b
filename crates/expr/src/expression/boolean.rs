//! `$not`; `$and` and `$or` are nodes of the tree.

use super::{Environment, Operand};
use pando_base::Result;

pub(super) fn not<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    Ok(Operand::from(!operands.first().is_some_and(Operand::is_true)))
}
