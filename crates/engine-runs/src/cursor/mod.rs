//! Cursors over the runs of a table.
//!
//! [`iterator`] steps through one run without looking at visibility; [`RunCursor`] merges as many of them as there are
//! runs and shows what one reader sees. Both keep their blocks alive by `Arc`, so nothing they point at can move.

pub(crate) mod iterator;
mod merged;
#[cfg(test)]
mod tests;

pub use merged::RunCursor;
