//! Accumulators: one value from many, for `$group`, windows, and `$sum` and its kin over operands.
//!
//! An [`AccumulatorKind`] says what is reckoned; [`Accumulator`] is one reckoning. Sums are kept exactly as long as they are
//! whole, and with a compensation for lost digits as doubles, so that the order of the documents matters as little as in
//! MongoDB.

mod javascript;
mod of_operands;
mod parse;
mod partial;
mod percentile;
mod ranked;
mod state;
mod sum;
mod value_set;

pub use javascript::ScriptFunctions;
pub use parse::{parse_accumulator, unary_accumulator};
pub use state::{Accumulator, AccumulatorKind};

pub(crate) use of_operands::{
    avg_of_operands, max_of_operands, min_of_operands, std_dev_pop_of_operands, std_dev_samp_of_operands,
    sum_of_operands,
};
pub(crate) use percentile::{of_operand as percentile_of_operand, parse_percentile};
pub(crate) use ranked::parse_count;

#[cfg(test)]
mod tests;
