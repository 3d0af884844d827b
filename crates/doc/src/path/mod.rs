//! Dotted paths, and what they lead to in a document by MongoDB's rules for arrays.
//!
//! A matcher sees `a.b` in every document of an array `a`, and a number in a path as both a place in an array and a
//! name. The walk reports each value it comes to, also that a value is missing: `{a: null}` matches where it is.
//! The walk goes one level deeper for each part of the path, and paths are bounded by `FieldPath`.

mod field_path;
mod visit;

#[cfg(test)]
mod tests;

pub use field_path::{FieldPath, check_field_name};
pub use visit::{LeafArrays, NonLeafArrays, PathOptions, Visit, get_path, get_path_with_indexes, visit_path};
