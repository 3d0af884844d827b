//! What callers say about a write, beside the documents.

use pando_base::RecordId;
use pando_doc::{Doc, DocRef};
use pando_index::Constraints;
use pando_oplog::{OpTime, RetryImage, StatementIds};

/// One document to be inserted. It has its `_id`, in front.
#[derive(Clone, Debug)]
pub struct InsertStatement<'a> {
    /// The document.
    pub document: DocRef<'a>,
    /// Its bytes, if they may be kept as they are: they fill most of the memory that they are a part of.
    pub shared: Option<&'a Doc>,
    /// The statements of a retryable write that insert it.
    pub statement_ids: StatementIds,
    /// The place in the oplog that was reserved for it. Either every document of a batch has one or none, in rising order.
    pub slot: Option<OpTime>,
    /// Where to store it; none for the next free place. For what copies a collection with its record ids.
    pub record_id: Option<RecordId>,
    /// The shard that gets it by a resharding under way.
    pub destined_recipient: Option<&'a str>,
}

impl<'a> InsertStatement<'a> {
    /// A document, and nothing special about it.
    pub fn new(document: DocRef<'a>) -> InsertStatement<'a> {
        InsertStatement {
            document,
            shared: None,
            statement_ids: StatementIds::None,
            slot: None,
            record_id: None,
            destined_recipient: None,
        }
    }
}

/// How a batch is inserted.
#[derive(Clone, Copy, Debug, Default)]
pub struct InsertOptions {
    /// May indexes, limits and the validator refuse documents?
    pub constraints: Constraints,
    /// Is the validator left out (`bypassDocumentValidation`)?
    pub bypass_validation: bool,
    /// By a chunk migration?
    pub from_migrate: bool,
    /// May the documents' bytes be kept, instead of a copy of them? Then they should fill most of the memory that they are a
    /// part of, such as a message, since all of it stays as long as one of them.
    pub shares_documents: bool,
}

/// A document to be updated. The old version is what the operation's snapshot has.
#[derive(Clone, Debug)]
pub struct UpdateArguments<'a> {
    /// Where it is.
    pub record_id: RecordId,
    /// The document before.
    pub old: DocRef<'a>,
    /// The document after.
    pub new: DocRef<'a>,
    /// The field `o` of the oplog entry: a diff or the whole document.
    pub change: DocRef<'a>,
    /// The statements of a retryable write that update it.
    pub statement_ids: StatementIds,
    /// The image that a retry of findAndModify will want.
    pub retry_image: Option<RetryImage>,
    /// Places in the oplog that were reserved for it and its images.
    pub slots: &'a [OpTime],
    /// May indexes, limits and the validator refuse the document?
    pub constraints: Constraints,
    /// Is the validator left out?
    pub bypass_validation: bool,
    /// By a chunk migration, or by clean-up after one?
    pub from_migrate: bool,
    /// Could a field that the diff inserts be there already?
    pub check_existence_for_diff_insert: bool,
    /// The shard that gets it by a resharding under way.
    pub destined_recipient: Option<&'a str>,
}

impl<'a> UpdateArguments<'a> {
    /// A document's two versions, and nothing special about them.
    pub fn new(record_id: RecordId, old: DocRef<'a>, new: DocRef<'a>, change: DocRef<'a>) -> UpdateArguments<'a> {
        UpdateArguments {
            record_id,
            old,
            new,
            change,
            statement_ids: StatementIds::None,
            retry_image: None,
            slots: &[],
            constraints: Constraints::Enforced,
            bypass_validation: false,
            from_migrate: false,
            check_existence_for_diff_insert: false,
            destined_recipient: None,
        }
    }
}

/// A document to be deleted. It is what the operation's snapshot has.
#[derive(Clone, Debug)]
pub struct DeleteArguments<'a> {
    /// Where it is.
    pub record_id: RecordId,
    /// The document.
    pub document: DocRef<'a>,
    /// The statements of a retryable write that delete it.
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

impl<'a> DeleteArguments<'a> {
    /// A document, and nothing special about it.
    pub fn new(record_id: RecordId, document: DocRef<'a>) -> DeleteArguments<'a> {
        DeleteArguments {
            record_id,
            document,
            statement_ids: StatementIds::None,
            retry_image: None,
            slots: &[],
            from_migrate: false,
            destined_recipient: None,
        }
    }
}
