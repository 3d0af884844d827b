//! Indexes: which keys a document has, and keeping them in step with it.
//!
//! * [`KeyGenerator`], [`KeySet`]: from a document to keys. Pure.
//! * [`Indexing`]: writing those keys, in the unit of work that writes the document; duplicates, multikey, partial
//!   indexes, indexes being built.
//!
//! This crate must not know the query language (a partial index's filter is a [`DocumentFilter`]), collations' data (a
//! collation is a `Collator`), replication or commands: see [`IndexHooks`]. Index builds lie above; their side tables plug in
//! as an [`IndexInterceptor`].
//!
//! Invariant: in every snapshot an index that is ready has exactly the keys of the documents that its filter lets in, each
//! with its record id; and its multikey state covers all of them.

mod access;
mod keys;

pub use access::{
    Arrays, Constraints, DocumentFilter, Duplicates, FAIL_POINTS, IndexAccess, IndexHooks, IndexInterceptor, Indexing,
    Interceptors, KeyCounts, KeyScratch, SideWrite, duplicate_cluster_key_error, duplicate_key_error,
};
pub use keys::{
    Key, KeyGenerator, KeySet, Purpose, SharedCollator, WILDCARD_PATH_FIELD, WildcardFields, values_along,
    wildcard_key_pattern,
};
