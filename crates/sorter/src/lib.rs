//! Sorting more than memory holds.
//!
//! A [`Sorter`] takes keys (bytes whose order is the wanted one) with values and gives them back in order; equal keys come in the
//! order in which they were added. What does not fit into its budget is sorted and written to a file as one *range*; at the
//! end the ranges are merged. Who keeps its entries in a form of its own, such as the groups of a `$group`, writes ranges itself
//! ([`SpilledRanges`]); who only has to get at old entries again by their number uses a [`SpilledList`].
//!
//! On disk a range is a sequence of blocks, each compressed if that pays, each with a checksum that includes its place. A
//! [`SpillDirectory`] holds the files of all sorters of a node. A file goes with its sorter; what a crash has left is removed at the next
//! start. A sorter may instead be told to keep its file ([`Sorter::persist`]): then its ranges can be opened again.
//!
//! Invariants:
//! - Memory: entries take no more than the budget (and one entry); a merge reads one block of each of at most
//!   budget / block size ranges, so many ranges are merged in several passes.
//! - Of ranges, an earlier one holds what was added earlier: only neighbours are merged, so equal keys keep their order.
//! - Damage on disk is an error that names file and offset, never data and never a panic.
//!
//! This crate must not know documents, indexes, collections or commands.

mod block;
mod collected;
mod directory;
mod error;
mod file;
mod least;
mod list;
mod merge;
mod range;
mod ranges;
mod sorter;
mod spilled;
mod statistics;
mod writing;

pub use directory::SpillDirectory;
pub use error::{Result, SorterError};
pub use list::SpilledList;
pub use merge::Merged;
pub use range::RangeDescription;
pub use ranges::SpilledRanges;
pub use sorter::{Persisted, Sorted, Sorter, SorterOptions};
pub use spilled::Spilled;
pub use statistics::SpillStatistics;
