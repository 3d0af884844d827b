//! What observers are told, one type a method.

use super::{DatabaseName, DocRef, IndexCollMod, Namespace, OpTime, Operation, Uuid};
use crate::operation::{RetryImage, StatementIds};
use pando_base::{RecordId, Timestamp};
use std::collections::BTreeSet;

/// The collection that something happens to.
#[derive(Clone, Copy, Debug)]
pub struct Collection<'a> {
    /// Its name.
    pub namespace: &'a Namespace,
    /// Its id.
    pub uuid: Uuid,
    /// Are images of its documents kept for change streams?
    pub records_pre_images: bool,
}

/// Documents that are about to be inserted in one unit of work.
#[derive(Debug)]
pub struct ComingInserts<'a> {
    /// Where.
    pub collection: Collection<'a>,
    /// A place in the oplog for each, in their order; none yet.
    pub slots: &'a mut [Option<OpTime>],
}

/// One inserted document.
#[derive(Clone, Debug)]
pub struct Insert<'a> {
    /// The document as stored.
    pub document: DocRef<'a>,
    /// Where it is stored.
    pub record_id: RecordId,
    /// Its `_id` and shard key.
    pub document_key: DocRef<'a>,
    /// The statements that inserted it.
    pub statement_ids: StatementIds,
    /// The place in the oplog that was reserved for it.
    pub slot: Option<OpTime>,
    /// The shard that gets it by a resharding under way.
    pub destined_recipient: Option<&'a str>,
}

/// Documents were inserted.
#[derive(Clone, Copy, Debug)]
pub struct Inserts<'a> {
    /// Where.
    pub collection: Collection<'a>,
    /// What.
    pub inserts: &'a [Insert<'a>],
    /// By a chunk migration?
    pub from_migrate: bool,
}

/// A document was updated.
#[derive(Clone, Debug)]
pub struct Update<'a> {
    /// Where.
    pub collection: Collection<'a>,
    /// The document before.
    pub pre_image: DocRef<'a>,
    /// The document after.
    pub post_image: DocRef<'a>,
    /// The field `o` of the entry: a diff or the whole document. See `update_object`.
    pub change: DocRef<'a>,
    /// Its `_id` and shard key, as they were.
    pub document_key: DocRef<'a>,
    /// The statements that updated it.
    pub statement_ids: StatementIds,
    /// The image that a retry of findAndModify will want.
    pub retry_image: Option<RetryImage>,
    /// Places in the oplog that were reserved for it and its images.
    pub slots: &'a [OpTime],
    /// By a chunk migration, or by clean-up after one?
    pub from_migrate: bool,
    /// Could a field that the diff inserts be there already?
    pub check_existence_for_diff_insert: bool,
    /// The shard that gets it by a resharding under way.
    pub destined_recipient: Option<&'a str>,
}

/// A document was deleted.
#[derive(Clone, Debug)]
pub struct Delete<'a> {
    /// Where.
    pub collection: Collection<'a>,
    /// The document as it was.
    pub pre_image: DocRef<'a>,
    /// Its `_id` and shard key.
    pub document_key: DocRef<'a>,
    /// The statements that deleted it.
    pub statement_ids: StatementIds,
    /// The image that a retry of findAndModify will want.
    pub retry_image: Option<RetryImage>,
    /// Places in the oplog that were reserved for it and its image.
    pub slots: &'a [OpTime],
    /// By a chunk migration, or by clean-up after one?
    pub from_migrate: bool,
    /// The shard that gets it by a resharding under way.
    pub destined_recipient: Option<&'a str>,
}

/// A mark for the oplog.
#[derive(Clone, Copy, Debug)]
pub struct InternalMessage<'a> {
    /// The collection that it is about, if any.
    pub namespace: Option<&'a Namespace>,
    /// That collection's id.
    pub uuid: Option<Uuid>,
    /// What it says: the field `o`.
    pub message: DocRef<'a>,
    /// More of it: the field `o2`.
    pub message2: Option<DocRef<'a>>,
    /// The place in the oplog that was reserved for it.
    pub slot: Option<OpTime>,
}

/// A collection was created.
#[derive(Clone, Copy, Debug)]
pub struct CreateCollection<'a> {
    /// The collection.
    pub collection: Collection<'a>,
    /// Its options, without the id.
    pub options: DocRef<'a>,
    /// Its index on `_id`, unless it has none.
    pub id_index: Option<DocRef<'a>>,
    /// The place in the oplog that was reserved for it.
    pub slot: Option<OpTime>,
    /// By a chunk migration?
    pub from_migrate: bool,
}

/// A collection is dropped.
#[derive(Clone, Copy, Debug)]
pub struct DropCollection<'a> {
    /// The collection.
    pub collection: Collection<'a>,
    /// How many documents it has.
    pub record_count: u64,
    /// By a chunk migration?
    pub from_migrate: bool,
}

/// A collection was renamed.
#[derive(Clone, Copy, Debug)]
pub struct RenameCollection<'a> {
    /// The old name.
    pub from: &'a Namespace,
    /// The new name.
    pub to: &'a Namespace,
    /// The collection's id.
    pub uuid: Uuid,
    /// The id of the collection that was in the way and is gone now.
    pub dropped_target: Option<Uuid>,
    /// How many documents the one in the way had.
    pub dropped_record_count: u64,
    /// Does a temporary collection stay one?
    pub stay_temp: bool,
    /// By a chunk migration?
    pub from_migrate: bool,
}

/// Options were changed.
#[derive(Clone, Copy, Debug)]
pub struct CollMod<'a> {
    /// The collection.
    pub collection: Collection<'a>,
    /// The command.
    pub command: DocRef<'a>,
    /// The collection's options before.
    pub old_options: DocRef<'a>,
    /// What changed of an index.
    pub index: Option<&'a IndexCollMod<'a>>,
}

/// An index was created on an empty collection.
#[derive(Clone, Copy, Debug)]
pub struct CreateIndex<'a> {
    /// The collection.
    pub collection: Collection<'a>,
    /// The index.
    pub specification: DocRef<'a>,
    /// By a chunk migration?
    pub from_migrate: bool,
}

/// An index was dropped.
#[derive(Clone, Copy, Debug)]
pub struct DropIndex<'a> {
    /// The collection.
    pub collection: Collection<'a>,
    /// The index's name.
    pub index_name: &'a str,
    /// What it was, so that a rollback can make it again.
    pub specification: DocRef<'a>,
}

/// An index build starts or ends.
#[derive(Clone, Copy, Debug)]
pub struct IndexBuildArguments<'a> {
    /// The collection.
    pub collection: Collection<'a>,
    /// The build's id.
    pub build_uuid: Uuid,
    /// The indexes.
    pub specifications: &'a [DocRef<'a>],
    /// By a chunk migration?
    pub from_migrate: bool,
}

/// What a transaction did.
#[derive(Clone, Copy, Debug)]
pub struct TransactionOperations<'a> {
    /// In order.
    pub operations: &'a [Operation<'a>],
    /// Documents that some operations need images of: the operation's place, which image, the document.
    pub images: &'a [(usize, RetryImage, DocRef<'a>)],
}

/// A transaction is prepared.
#[derive(Clone, Copy, Debug)]
pub struct TransactionPrepare<'a> {
    /// What it did.
    pub operations: TransactionOperations<'a>,
    /// Places in the oplog that were reserved for its entries; the last is the prepare's own.
    pub slots: &'a [OpTime],
    /// The clock on the wall, in milliseconds since 1970.
    pub wall_ms: i64,
}

/// A prepared transaction commits.
#[derive(Clone, Copy, Debug)]
pub struct PreparedCommit<'a> {
    /// The place in the oplog that was reserved for the commit.
    pub slot: OpTime,
    /// The time at which its writes become visible.
    pub commit_timestamp: Timestamp,
    /// What it did.
    pub operations: TransactionOperations<'a>,
}

/// Entries were rolled back.
#[derive(Clone, Debug)]
pub struct Rollback<'a> {
    /// How many.
    pub entry_count: u64,
    /// Collections that they were about.
    pub namespaces: &'a BTreeSet<Namespace>,
    /// Sessions that they were about.
    pub session_ids: &'a BTreeSet<Uuid>,
    /// Databases whose identity is in doubt now.
    pub databases: &'a [DatabaseName],
    /// The shard's identity was among them.
    pub shard_identity_rolled_back: bool,
}
