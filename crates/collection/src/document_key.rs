//! What names a document in the oplog: its `_id`. A sharded collection adds its shard key; that is for the sharding issue.

use pando_doc::{DocBuilder, DocRef};

/// What the key of most documents has room in: an `_id` that is an object id, a UUID, or a short text.
pub(crate) const KEY_BYTES: usize = 64;

/// Appends the document's key behind the bytes, as a document of its own. One without `_id` is named by all of itself.
pub(crate) fn append_document_key(buffer: Vec<u8>, document: DocRef<'_>) -> Vec<u8> {
    let mut key = DocBuilder::behind(buffer);
    match document.get_raw("_id") {
        Some(id) => key.append_raw(id),
        None => key.append_all(document),
    }
    key.finish_buffer()
}

/// The document's key.
pub(crate) fn document_key(document: DocRef<'_>) -> Vec<u8> {
    append_document_key(Vec::with_capacity(KEY_BYTES), document)
}
