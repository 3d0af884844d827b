//! Documents as they were before a change, kept for change streams in `config.system.preimages`.
//!
//! They are written in the unit of work of the change, without observers, as the tables of sessions are: secondaries and recovery
//! make them from the oplog entry. They lie there by collection and time, so that what has expired of a collection is its
//! beginning.

use pando_base::{Timestamp, Uuid};
use pando_doc::{Doc, DocBuilder, DocRef, Value};

/// A document before a change.
#[derive(Clone, Copy, Debug)]
pub struct PreImage<'a> {
    /// The collection.
    pub collection: Uuid,
    /// The entry that has the change.
    pub time: Timestamp,
    /// Which of the entry's operations it is.
    pub apply_ops_index: i64,
    /// When the change was made, in milliseconds since 1970.
    pub wall_ms: i64,
    /// The document.
    pub document: DocRef<'a>,
}

impl PreImage<'_> {
    /// The document for the table.
    pub fn to_doc(&self) -> Doc {
        let mut builder = DocBuilder::with_capacity(128 + self.document.size_bytes());
        builder.document("_id", |id| {
            id.append("nsUUID", Value::Binary { subtype: 4, bytes: self.collection.as_bytes() });
            id.append("ts", self.time);
            id.append("applyOpsIndex", self.apply_ops_index);
        });
        builder.append("operationTime", Value::DateTime(self.wall_ms));
        builder.append("preImage", self.document);
        builder.finish()
    }
}
