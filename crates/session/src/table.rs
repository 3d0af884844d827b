//! Where sessions are kept: `config.transactions`, and `config.image_collection` for what findAndModify returns; beside them
//! `config.system.preimages`.
//!
//! All are written in the unit of work of the write that they tell of, without observers: secondaries and recovery make
//! them from the oplog entry.

use crate::id::LogicalSessionId;
use crate::pre_image::PreImage;
use crate::record::SessionRecord;
use pando_base::{RecordId, Result, Timestamp};
use pando_doc::{Doc, DocBuilder, DocRef};
use pando_operation::Operation;
use pando_oplog::RetryImage;
use parking_lot::Mutex;

/// Which version of a document an image is.
pub type ImageKind = RetryImage;

/// A document as a findAndModify is to return it when it is retried. A session has one, of its newest.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// `_id`: the session.
    pub session: LogicalSessionId,
    /// `txnNum`.
    pub txn_number: i64,
    /// `ts`: the entry of the write.
    pub timestamp: Timestamp,
    /// `imageKind`.
    pub kind: ImageKind,
    /// `image`.
    pub image: Doc,
    /// `invalidated`: recovery could not know the document, so that there is nothing to return.
    pub is_invalidated: bool,
}

impl Image {
    /// The document for the table.
    pub fn to_doc(&self) -> Doc {
        let mut builder = DocBuilder::with_capacity(160 + self.image.size_bytes());
        builder.append("_id", self.session.to_doc());
        builder.append("txnNum", self.txn_number);
        builder.append("ts", self.timestamp);
        let kind = match self.kind {
            RetryImage::Pre => "preImage",
            RetryImage::Post => "postImage",
        };
        builder.append("imageKind", kind);
        builder.append("image", &self.image);
        if self.is_invalidated {
            builder.append("invalidated", true);
            builder.append("invalidatedReason", "recovered from the oplog");
        }
        builder.finish()
    }

    /// Reads a document of the table.
    pub fn parse(document: DocRef<'_>) -> Result<Image> {
        use crate::fields::{Fields, boolean, document as object, long, text, timestamp};
        let fields = Fields::of("ImageEntry", document);
        let kind = fields.required("imageKind", |value| match text(value)? {
            "preImage" => Ok(RetryImage::Pre),
            "postImage" => Ok(RetryImage::Post),
            _ => Err("preImage or postImage"),
        })?;
        Ok(Image {
            session: LogicalSessionId::parse(fields.required("_id", object)?)?,
            txn_number: fields.required("txnNum", long)?,
            timestamp: fields.required("ts", timestamp)?,
            kind,
            image: fields.required("image", object)?.to_doc(),
            is_invalidated: fields.optional("invalidated", boolean)?.unwrap_or(false),
        })
    }
}

/// Where a session's record was when it was last written: a hint, which whoever follows it checks.
#[derive(Debug, Default)]
pub struct RecordPlace(Mutex<Option<RecordId>>);

impl RecordPlace {
    /// The place, if one is known.
    pub fn get(&self) -> Option<RecordId> {
        self.0.lock().clone()
    }

    /// It is here now.
    pub fn set(&self, place: Option<RecordId>) {
        *self.0.lock() = place;
    }
}

/// The tables of sessions.
pub trait SessionTable: Send + Sync {
    /// The session's record.
    fn load(&self, operation: &mut Operation, session: &LogicalSessionId) -> Result<Option<SessionRecord>>;
    /// The session's children that have records.
    fn load_children(&self, operation: &mut Operation, parent: &LogicalSessionId) -> Result<Vec<LogicalSessionId>>;
    /// Writes the session's record with the unit of work in progress.
    fn store(&self, operation: &mut Operation, record: &SessionRecord) -> Result<()>;
    /// The same, beginning at the place where the record was last.
    fn store_at(&self, operation: &mut Operation, record: &SessionRecord, _place: &RecordPlace) -> Result<()> {
        self.store(operation, record)
    }
    /// The session's image.
    fn load_image(&self, operation: &mut Operation, session: &LogicalSessionId) -> Result<Option<Image>>;
    /// Writes the session's image with the unit of work in progress.
    fn store_image(&self, operation: &mut Operation, image: &Image) -> Result<()>;

    /// Keeps the document before a change. Nothing happens where the table is not there: entries of a time before it may be applied.
    fn store_pre_image(&self, operation: &mut Operation, image: &PreImage<'_>) -> Result<()>;

    /// Removes documents that were kept before changes.
    fn remove_pre_images(&self, operation: &mut Operation, expired: &[(RecordId, Doc)]) -> Result<()>;
}
