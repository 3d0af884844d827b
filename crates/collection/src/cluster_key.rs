//! Record ids of clustered collections: the `_id`, or the field that takes its place, as a memcmp-ordered key.
//!
//! Equal values of different types (`1`, `1.0`) have one record id; so they exclude each other, as they should. The type is
//! in the document.

use pando_base::{Error, RecordId, Result};
use pando_doc::{Collator, DocRef, Value};
use pando_keystring::{KeyOrdering, StackBuilder, Version};

/// The record id of a document with this cluster key; strings are compared by the collection's collation.
pub fn cluster_key(key: Value<'_>, collator: Option<&dyn Collator>) -> Result<RecordId> {
    let mut builder = StackBuilder::new(Version::V1, KeyOrdering::ASCENDING);
    match collator {
        None => builder.append(key)?,
        Some(collator) => builder.append_collated(key, collator)?,
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
pub(crate) fn cluster_key_of(document: DocRef<'_>, field: &str, collator: Option<&dyn Collator>) -> Result<RecordId> {
    match document.get(field) {
        // A query by one of its elements would not find it by its place.
        Some(Value::Array(_)) if field != "_id" => {
            Err(Error::bad_value(format!("The cluster key '{field}' can't be an array")))
        }
        Some(key) => cluster_key(key, collator),
        None => Err(Error::bad_value(format!("Document {document} is missing the '{field}' field"))),
    }
}
