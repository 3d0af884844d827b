//! Sections: what a file holds of one table's run.
//!
//! Data, history and value frames are written as they come, index and filter partitions whenever one is full, the root last.
//! The manifest knows the root; the root knows the partitions; a partition knows its blocks. Everything is loaded on
//! first use and may leave memory again, except the root, which is small and stays with the [`Part`].

pub(crate) mod core;
pub(crate) mod filter;
pub(crate) mod history;
pub(crate) mod index;
pub(crate) mod keys;
pub(crate) mod part;
pub(crate) mod root;
pub(crate) mod tombstones;

pub use part::Part;
