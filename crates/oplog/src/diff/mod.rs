//! The difference between two versions of a document, as an oplog entry's `$v: 2` update carries it.
//!
//! A diff of a document has up to four parts, in this order: `d` (names removed), `u` (fields set where they are), `i`
//! (fields set at the end), and for each changed inner document or array `s<name>` with a diff of its own. A diff of an
//! array starts with `a: true`, then `l` if the array got shorter, then `u<index>` and `s<index>` in ascending order.
//!
//! Two laws hold and are tested:
//! - `apply(pre, compute(pre, post)) == post`, byte for byte, where `compute` gives a diff at all;
//! - `apply(apply(x, d), d) == apply(x, d)` for any document `x`: a diff that was made for another version of a document
//!   never fails on it. Entries are applied again after a crash, over data that may already be newer.
//!
//! Pipelines log what a comparison finds. Operators tell what they touched, and their values are logged as they were set.
//!
//! Order of fields is part of a document. A field that has to move is put at the end by `i`, and so is all that follows
//! it in the new version. Where a diff would not be smaller than the new version there is none, inside (the whole value
//! is set) and outside (the caller logs the whole document). The same where a name occurs twice, since a diff addresses
//! fields by name.

mod apply;
mod compute;
mod describe;
mod format;
#[cfg(test)]
mod tests;
mod touched;

pub use apply::apply;
pub(crate) use compute::of_fields;
pub use compute::{Difference, compute};
pub use describe::describe;
pub(crate) use format::{UPDATES, write_document};
pub(crate) use touched::of_touched;
pub use touched::{Touched, TouchedInside};
