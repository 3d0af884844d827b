//! The base: immutable sorted runs, their manifest, their cache and their merges.
//!
//! A table's base is a list of runs, newest first. A run is a list of *parts* with disjoint ascending key ranges; a part is
//! one section of a run file. Files are written once, checked, synced and never changed; the manifest says which of them
//! make up the store. Reading goes `TableSlot` → [`TableRuns`] → [`Run`] → [`Part`] → index partition → block.
//!
//! Two levels, which meet in [`PartDescriptor`] and [`NewRuns`]:
//! - the *run level* ([`block`], [`section`], [`writer`], [`cursor`], [`stream`]) knows files, blocks, keys and versions,
//!   but no manifest and no store;
//! - the *store level* knows which runs exist, installs, merges and removes them, and treats blocks as opaque.
//!
//! Invariants: of one key, versions in a newer run are newer than those in an older run, and within a run they are ordered
//! newest first. A range tombstone of a run deletes in *older* runs only (see [`RangeTombstone`]). Nothing read from disk is
//! used before its checksum, seeded with file id and offset, has been compared. Nothing but the manifest is read at open.
//!
//! This crate knows nothing of transactions, logs, table names or documents.

mod announce;
mod block;
mod cache;
mod cursor;
mod descriptor;
mod error;
mod file;
mod new_runs;
#[cfg(test)]
mod oracle;
mod prefetch;
mod retention;
mod run;
mod section;
mod stamp;
mod stream;
mod table;
mod walk;
mod wire;
mod writer;

pub use announce::Announced;
pub use block::frame::{Compression, FRAME_HEADER_BYTES, FrameHeader, FrameKind};
pub use cache::{BlockCache, CacheStatistics};
pub use cursor::RunCursor;
pub use descriptor::{FileDescriptor, KeyBounds, PartDescriptor, RunDescriptor, UpperBound};
pub use error::{Result, RunsError};
pub use file::RunFile;
pub use new_runs::{NewRuns, file_name, file_number};
pub use prefetch::prefetch_at;
pub use retention::{RetentionPoint, RetentionSource};
pub use run::Run;
pub use section::Part;
pub use section::filter::FilterPrefix;
pub use stamp::{Lookup, RangeTombstone, ReadPoint, Stamp, Version};
pub use stream::{StreamOptions, VersionStream};
pub use table::{Estimate, TableRuns};
pub use walk::{FileWalk, FrameInfo, check_file, read_file_directory};
pub use writer::{IsHurried, RunWriter, TableWriteOptions, WriterOptions};

#[cfg(test)]
mod backup_tests;
mod ballast;
mod describe;
mod import;
mod lineage;
mod manifest;
mod merge;
mod pins;
mod salvage;
mod store;
mod verify;

pub use describe::Description;
pub use import::{ImportHistory, ImportSource, ImportTable, Imported};
pub use lineage::table_hint;
pub use manifest::record::{CheckpointMark, TableRecord};
pub use merge::{Compaction, MergeCandidate, MergePolicy, MergeStep};
pub use pins::{BackupList, PinnedFile, Pins};
pub use salvage::{Lost, SalvageReport, salvage, salvage_knowing};
pub use store::{Edit, Opened, Reclaimed, Runs, RunsOptions, RunsStatistics, TableSlot};
pub use verify::{Problem, VerifyProgress, VerifyReport};

/// The number of a table. Only the manifest binds it to files, so that an import can remap it.
pub type TableId = u64;

/// The number of a run file; never reused within a store.
pub type FileId = u64;
