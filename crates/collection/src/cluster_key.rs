//! Record ids of clustered collections: the `_id` as a memcmp-ordered key.
//!
//! Equal values of different types (`1`, `1.0`) have one record id; so they exclude each other, as they should. The type is
//! in the document.

use pando_base::{Error, RecordId, Result};
use pando_doc::{Collator, DocRef, Value};
use pando_keystring::{KeyOrdering, StackBuilder, Version};

/// The record id of a document with this `_id`; strings are compared by the collection's collation.
pub fn cluster_key(id: Value<'_>, collator: Option<&dyn Collator>) -> Result<RecordId> {
    let mut builder = StackBuilder::new(Version::V1, KeyOrdering::ASCENDING);
    match collator {
        None => builder.append(id)?,
        Some(collator) => builder.append_collated(id, collator)?,
    }
    let bytes = builder.bytes();
    if bytes.len() > RecordId::BYTES_LENGTH_MAX {
        let reason = format!(
            "The size of the RecordId was greater than the maximum: {} > {}",
            bytes.len(),
            RecordId::BYTES_LENGTH_MAX
        );
        return Err(Error::location(5894900, reason));
    }
    Ok(RecordId::Bytes(bytes.into()))
}

/// The record id of a document of a clustered collection.
pub(crate) fn cluster_key_of(document: DocRef<'_>, collator: Option<&dyn Collator>) -> Result<RecordId> {
    match document.get("_id") {
        Some(id) => cluster_key(id, collator),
        None => Err(Error::bad_value(format!("Document {document} is missing the '_id' field"))),
    }
}
