//! Commands about collections, indexes, views and databases themselves: what there is, how large it is, and how it changes.
//!
//! One file each. What several share:
//! - `change`: locks, and units of work that are tried again;
//! - `collection_options`, `collation`, `view_pipeline`, `partial_filter`, `same_options`: what clients may ask for;
//! - `system_views`: documents of `system.views`; `copy`: documents of a collection into a new one;
//! - `building`: waiting for index builds, and ending those that are in the way;
//! - `cursor_reply`, `storage_stats`: parts of replies.
//!
//! Who lists takes no locks: it sees one version of the catalog, whatever changes meanwhile. Who changes takes the global
//! and the database's lock in IX and collections in X (`dropDatabase` the database in X), in the order of their ids, and
//! keeps them to the end.

mod building;
mod cap_trunc;
mod change;
mod clone_collection_as_capped;
mod coll_mod;
mod coll_stats;
mod collation;
mod collection_options;
mod compact;
mod convert_to_capped;
mod copy;
mod create;
pub(crate) mod create_fail_points;
mod create_indexes;
mod cursor_reply;
mod data_size;
mod db_hash;
mod db_stats;
mod drop;
mod drop_database;
mod drop_indexes;
mod drops_pending;
mod empty_capped;
pub(crate) mod fail_points;
mod fsync;
mod list_collections;
mod list_databases;
mod list_indexes;
mod names;
mod partial_filter;
mod re_index;
mod rename_collection;
mod same_options;
mod set_index_commit_quorum;
mod split_vector;
mod startup;
mod storage_stats;
mod system_views;
mod unique_conversion;
mod validate;
mod validate_db_metadata;
mod view_pipeline;
mod vote_commit_index_build;

use crate::CommandRow;

pub(crate) use change::{change, ensure_system_views, lock_exclusively};
pub(crate) use copy::temporary_name;
pub(crate) use create::create_from_oplog;
pub(crate) use create_indexes::add_to_empty;
pub(crate) use db_hash::hex;
pub use drops_pending::DropsPending;
pub use startup::check_at_startup;
pub(crate) use storage_stats::append_storage_stats;
pub(crate) use system_views::ViewDocuments;
pub use validate::VALIDATE_PARAMETERS;

/// The commands of this area.
pub static ROWS: &[CommandRow] = &[
    cap_trunc::ROW,
    clone_collection_as_capped::ROW,
    coll_mod::ROW,
    coll_stats::ROW,
    compact::ROW,
    convert_to_capped::ROW,
    create::ROW,
    create_indexes::ROW,
    data_size::ROW,
    db_hash::ROW,
    db_stats::ROW,
    drop::ROW,
    drop_database::ROW,
    drop_indexes::ROW,
    empty_capped::ROW,
    fsync::ROW,
    fsync::UNLOCK_ROW,
    list_collections::ROW,
    list_databases::ROW,
    list_indexes::ROW,
    re_index::ROW,
    rename_collection::ROW,
    set_index_commit_quorum::ROW,
    split_vector::ROW,
    validate::ROW,
    validate_db_metadata::ROW,
    vote_commit_index_build::ROW,
];
