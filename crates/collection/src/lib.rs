//! The write path: one document after the other, with its index keys and everybody who must know, in one unit of work.
//!
//! [`WritePath`] belongs to the node. For each write the order is the same: the document is checked (size, validator,
//! immutable `_id`), the record is written, its index keys are written, the observers are told, and the unit commits. The
//! observer that writes the oplog sets the unit's timestamp; what was written before it gets that timestamp too. Inserts
//! whose places in the oplog were reserved in advance have a timestamp each, under which the record *and* its keys are
//! written before the next document's turn. An error anywhere undoes all of it.
//!
//! * [`WritePath::insert_documents`], [`WritePath::update_document`], [`WritePath::delete_document`],
//!   [`WritePath::truncate`];
//! * [`WritePath::put_document`]: the node's own documents, new or in place of old ones;
//! * [`WritePath::find_by_id`]: the shortest way to a document;
//! * [`capped`](capped_lock_resource): collections that give up their oldest documents;
//! * [`cluster_key`]: record ids of clustered collections;
//! * [`check_indexes`]: does every index say what the documents say?
//!
//! Calls join the unit of work in progress or make one of their own. They do not wait and take no locks: the caller holds
//! the collection in IX, and for a capped one what [`capped_lock_resource`] names. This crate must not know commands,
//! queries or how an update is expressed: it gets documents before and after.

mod arguments;
mod capped;
mod check;
mod cluster_key;
mod delete;
mod document_key;
mod find;
mod insert;
mod put;
mod rest;
#[cfg(test)]
mod tests;
mod truncate;
mod update;
mod validate;
mod validation;
mod write_path;

pub use arguments::{DeleteArguments, InsertOptions, InsertStatement, UpdateArguments};
pub use capped::{can_batch_inserts, capped_lock_resource};
pub use check::check_indexes;
pub use cluster_key::cluster_key;
pub use pando_index::{Constraints, KeyCounts};
pub use rest::rest_while_yielded;
pub use validate::{
    IndexReport, Repair, ValidateNote, ValidateOptions, ValidateReport, Validation, move_to_lost_and_found,
    record_id_value, validate_collection,
};
pub use validation::{AcceptAll, DocumentValidator};
pub use write_path::{InsertWatcher, WritePath};

/// The fail points of this crate.
pub const FAIL_POINTS: &[&dyn pando_base::AnyFailPoint] =
    &[&rest::YIELD_HANG, &rest::YIELD_WAIT, &validate::FAIL_RECORD_STORE_TRAVERSAL, &validate::FAIL_INDEX_KEY_ORDERING];
