//! Collections, indexes and views: what there is, where it lies, and how that changes.
//!
//! - [`Catalog`] is the handle of a node. [`DurableCatalog`] below it is the table `_mdb_catalog`, one document a
//!   collection; [`CollectionCatalog`] above it is one immutable version of everything in memory.
//! - [`Collection`], [`Index`] and [`ViewDefinition`] are what is found there: immutable too, shared, replaced by every DDL.
//! - A read starts with [`Catalog::establish`], which gives a [`CatalogView`]: the version that belongs to the operation's
//!   snapshot, without locks. A write has locked the collection and asks [`Catalog::collection_for_write`].
//! - DDL are methods of [`Catalog`] inside a unit of work, told to observers, published by the commit.
//! - Dropped tables go later: [`Reaper`].
//!
//! Invariants:
//! - What a view finds is what its snapshot has, whatever commits meanwhile.
//! - A version in the catalog is never changed; a table that a version refers to exists as long as the version is held.
//! - Every table of the catalog's making is in the durable catalog, or waits for the reaper.
//!
//! Lock order: the lock manager's locks; an operation's uncommitted changes; the writing of versions, then its queue; the
//! reaper's list; the map of open tables. None is held over an await, and only the first over a call into the engine.
//!
//! This crate must not know how keys are made, how documents are written or read by queries, nor what replication does
//! with what observers are told.

mod catalog;
mod check;
mod collection;
mod ddl;
mod durable;
mod engine_options;
mod fail_points;
mod ident;
mod index;
mod index_spec;
mod load;
mod memory;
mod options;
mod read;
mod reaper;
mod repair;
mod uncommitted;
mod views;

pub use catalog::Catalog;
pub use collection::Collection;
pub use ddl::{
    CollModChange, CollModOutcome, IndexChange, Observers, PreparedIndex, RenameOptions, SystemViewsWriter,
    requires_id_index,
};
pub use durable::{
    CATALOG_IDENT, CatalogEntry, CatalogFeatures, DurableCatalog, IndexEntry, list_catalog_row, list_catalog_view_row,
};
pub use fail_points::FAIL_POINTS;
pub use ident::INTERNAL_PREFIX;
pub use index::{
    ID_INDEX_NAME, Index, IndexDescriptor, IndexKind, MultikeyComponents, MultikeyPaths, MultikeyState,
    is_id_key_pattern, is_wildcard_path,
};
pub use index_spec::{
    EXPIRE_AFTER_SECONDS_INACTIVE, FAIL_POINTS as EXPIRY_FAIL_POINTS, INDEX_VERSION, INDEXES_MAX, SpecFit,
    compare_with_existing, complete_index_spec, default_id_index_spec, default_index_name, is_expiry_usable,
    known_fields_of_index, validate_id_index_spec, validate_index_spec, validate_key_pattern, with_usable_expiry,
};
pub use load::{LoadReport, UnfinishedBuild};
pub use memory::CollectionCatalog;
pub use options::{CAPPED_SIZE_BYTES_MAX, ClusteredIndex, CollectionOptions, ValidationAction, ValidationLevel};
pub use read::CatalogView;
pub use reaper::Reaper;
pub use repair::{CatalogRepair, repair_catalog};
pub use views::{
    ResolvedView, VIEW_DEPTH_MAX, VIEW_PIPELINE_BYTES_MAX, ViewCatalog, ViewDefinition, referenced_collections,
};
