//! `$setWindowFields`: fields reckoned from the documents around each document.
//!
//! It becomes a sort by the partition and then by `sortBy`, and a stage that takes one partition after the other: what of its documents
//! does not fit into memory is on disk while its fields are reckoned. `bounds` says which documents a window holds, `function` reads the functions,
//! `reckon` evaluates those that are no plain accumulators, `removable` has those from which values can be taken out again.

mod bounds;
mod function;
mod parse;
mod reckon;
mod removable;
mod source;

pub(in crate::pipeline) use parse::{parse, parse_internal};
