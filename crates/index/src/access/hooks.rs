//! What indexes need from the layers above, as traits that those implement.

use crate::{Key, SharedCollator};
use bstr::BString;
use pando_base::{RecordId, Result};
use pando_catalog::{Collection, Index, IndexDescriptor, MultikeyComponents};
use pando_doc::DocRef;
use pando_operation::Operation;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;

/// Decides which documents a partial index has keys of.
pub trait DocumentFilter: Send + Sync {
    /// True if the document has keys.
    fn matches(&self, document: DocRef<'_>) -> bool;

    /// The top-level fields that decide; none if any may.
    fn roots(&self) -> Option<Vec<BString>> {
        None
    }
}

/// What happens to keys that an index build is not ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SideWrite {
    /// They are to be inserted.
    Insert,
    /// They are to be removed.
    Remove,
}

/// What the keys of a document tell of arrays.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrays<'a> {
    /// They make their index multikey.
    pub is_multikey: bool,
    /// For each field the parts of its path that were arrays; none where nobody keeps track.
    pub paths: &'a [MultikeyComponents],
}

/// Takes the keys of writes that go on during an index build, to apply them when its first pass is done.
pub trait IndexInterceptor: Send + Sync {
    /// Keeps the keys, in the operation's unit of work. Returns how many were kept.
    fn side_write(
        &self,
        operation: &mut Operation,
        index: &Index,
        kind: SideWrite,
        keys: &mut dyn Iterator<Item = Key<'_>>,
        record_id: &RecordId,
        arrays: Arrays<'_>,
    ) -> Result<u64>;

    /// Keeps, in the operation's unit of work, that a document could not be indexed, to look at it again at the end.
    fn skip(&self, operation: &mut Operation, index: &Index, record_id: &RecordId) -> Result<()>;
}

/// The interceptors of the builds that are under way, by the tables of their indexes. One lock, held for a look-up.
#[derive(Default)]
pub struct Interceptors(RwLock<HashMap<String, Arc<dyn IndexInterceptor>>>);

impl Interceptors {
    /// Who takes the keys of this index.
    pub fn of(&self, index: &Index) -> Option<Arc<dyn IndexInterceptor>> {
        self.0.read().get(index.ident()).cloned()
    }

    /// From now on the keys of the index with this table go there.
    pub fn install(&self, ident: &str, interceptor: Arc<dyn IndexInterceptor>) {
        self.0.write().insert(ident.to_owned(), interceptor);
    }

    /// They go into the index again.
    pub fn remove(&self, ident: &str) {
        self.0.write().remove(ident);
    }
}

/// What only the layers above can do for an index.
pub trait IndexHooks: Send + Sync {
    /// Reads the filter of a partial index; strings in it are compared by the index's collation.
    fn filter(
        &self,
        descriptor: &IndexDescriptor,
        expression: DocRef<'_>,
        collator: Option<&SharedCollator>,
    ) -> Result<Arc<dyn DocumentFilter>>;

    /// Makes the collation of an index.
    fn collator(&self, collation: DocRef<'_>) -> Result<SharedCollator>;

    /// Writes down that the index is multikey through these paths: `Catalog::set_multikey`, or on a secondary a note for the
    /// start of the batch. Called in the operation's unit of work, only if the index's state does not say so yet.
    fn set_multikey(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        index: &Index,
        paths: &[MultikeyComponents],
    ) -> Result<()>;

    /// How many keys a document may have in an index of places.
    fn generated_keys_max(&self) -> usize {
        100_000
    }

    /// Who takes the keys of an index that is being built; nobody if they go into the index as it is.
    fn interceptor(&self, _index: &Index) -> Option<Arc<dyn IndexInterceptor>> {
        None
    }
}
