//! The other collection of a `$lookup` in a table, by the values of its field.
//!
//! A document is found under every value that a filter for equality would find it by: what its path leads to, the values of an array at the
//! end of it and that array, and null where the path leads nowhere. Keys are bytes that are the same for equal values, in the collation of the pipeline.
//! Found documents come in the order in which they were read, each once, as a scan with that filter gives them.
//!
//! The documents lie one behind the other in memory of the table's own: a search waits for the entry and for the document, not for a list
//! of documents and a count of their users as well.
//!
//! Invariant: a table is whole; one that would take more than its bound is given up, and the documents are looked for one by one.

use super::local_values::values_of;
use bytes::Bytes;
use foldhash::fast::RandomState;
use pando_base::Result;
use pando_doc::{Doc, DocRef, FieldPath, PathOptions, Value, visit_path};
use pando_expr::SharedCollator;
use pando_keystring::{KeyOrdering, StackBuilder, Version};
use smallvec::{SmallVec, smallvec};
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};

/// What an entry takes beside its key and its document.
const ENTRY_BYTES: usize = 64;

/// Most keys are of numbers or object ids and lie in the table itself: a search does not wait for memory once more.
type Key = SmallVec<[u8; 16]>;
/// Where documents begin in the table's memory, in the order in which they were read. Most values are those of one document.
type Places = SmallVec<[usize; 2]>;
/// What a document is looked for by: most often one value.
type Keys = SmallVec<[Key; 1]>;
/// Where the found documents of one document lie.
type Ranges = SmallVec<[Range<usize>; 1]>;
/// What was found for a document, most often one.
pub(super) type Matches = SmallVec<[Doc; 1]>;

/// Documents by their values, while they are being read.
pub(super) struct Builder {
    foreign: FieldPath,
    collator: Option<SharedCollator>,
    documents: Vec<u8>,
    /// Its hash is seeded by chance, so that no client can choose keys that collide.
    places: HashMap<Key, Places, RandomState>,
    memory_bytes: usize,
}

/// Documents by their values.
pub(super) struct HashTable {
    collator: Option<SharedCollator>,
    documents: Bytes,
    places: HashMap<Key, Places, RandomState>,
}

impl Builder {
    pub(super) fn new(foreign: FieldPath, collator: Option<SharedCollator>) -> Builder {
        Builder { foreign, collator, documents: Vec::new(), places: HashMap::default(), memory_bytes: 0 }
    }

    /// How much it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Takes a document in.
    pub(super) fn add(&mut self, document: DocRef<'_>) -> Result<()> {
        let place = self.documents.len();
        let Builder { foreign, collator, places, memory_bytes, .. } = self;
        *memory_bytes += size_of::<usize>() + document.size_bytes();
        let failed = visit_path(document, foreign, PathOptions::default(), &mut |visit| {
            // What is missing, and what is undefined, is found by null.
            let value = visit.value.filter(|value| !matches!(value, Value::Undefined)).unwrap_or(Value::Null);
            let key = match key_of(value, collator.as_ref()) {
                Ok(key) => key,
                Err(error) => return ControlFlow::Break(error),
            };
            *memory_bytes += size_of::<usize>();
            match places.get_mut(key.bytes()) {
                // The values of one document come one after the other.
                Some(known) if known.last() == Some(&place) => {}
                Some(known) => known.push(place),
                None => {
                    *memory_bytes += key.bytes().len() + ENTRY_BYTES;
                    places.insert(Key::from_slice(key.bytes()), smallvec![place]);
                }
            }
            ControlFlow::Continue(())
        });
        if let ControlFlow::Break(error) = failed {
            return Err(error);
        }
        self.documents.extend_from_slice(&document.size_bytes().to_ne_bytes());
        self.documents.extend_from_slice(document.bytes());
        Ok(())
    }

    /// The table, when all were taken in.
    pub(super) fn finish(self) -> HashTable {
        HashTable { collator: self.collator, documents: Bytes::from(self.documents), places: self.places }
    }
}

impl HashTable {
    /// What belongs to each of several documents, in their order; none where that has to be looked for by a filter.
    ///
    /// A search waits for the entry and then for the document. Nothing is made in between, so that the processor has several searches
    /// under way: each step is done for all documents before the next one.
    pub(super) fn find_each(&self, documents: &[Doc], local: &FieldPath) -> Result<Vec<Option<Matches>>> {
        let sought = documents.iter().map(|document| self.keys_of(document.view(), local));
        let sought: Vec<Option<Keys>> = sought.collect::<Result<_>>()?;
        let places: Vec<Option<Places>> =
            sought.iter().map(|keys| keys.as_ref().map(|keys| self.places(keys))).collect();
        let ranges: Vec<Option<Ranges>> = places
            .into_iter()
            .map(|places| Some(places?.into_iter().filter_map(|place| self.range(place)).collect()))
            .collect();
        let share = |range: Range<usize>| Doc::trusted(self.documents.slice(range));
        Ok(ranges.into_iter().map(|ranges| Some(ranges?.into_iter().map(share).collect())).collect())
    }

    /// What a document is looked for by; none if that takes a filter.
    fn keys_of(&self, document: DocRef<'_>, local: &FieldPath) -> Result<Option<Keys>> {
        let values = values_of(document, local);
        if values.iter().any(|value| matches!(value, Value::Undefined)) {
            return Ok(None);
        }
        let key = |value: &Value<'_>| Ok(Key::from_slice(key_of(*value, self.collator.as_ref())?.bytes()));
        values.iter().map(key).collect::<Result<Keys>>().map(Some)
    }

    /// Each document once, in the order in which they were read.
    fn places(&self, keys: &[Key]) -> Places {
        let mut found: Places = keys.iter().filter_map(|key| self.places.get(key)).flatten().copied().collect();
        if keys.len() > 1 {
            found.sort_unstable();
            found.dedup();
        }
        found
    }

    /// Where a document lies. Its length lies before it.
    fn range(&self, place: usize) -> Option<Range<usize>> {
        let (length, _) = self.documents.get(place..)?.split_first_chunk()?;
        let start = place + size_of::<usize>();
        let end = start.checked_add(usize::from_ne_bytes(*length)).filter(|end| *end <= self.documents.len())?;
        Some(start..end)
    }
}

fn key_of(value: Value<'_>, collator: Option<&SharedCollator>) -> Result<StackBuilder> {
    let mut key = StackBuilder::new(Version::V1, KeyOrdering::ASCENDING);
    match collator {
        Some(collator) => key.append_collated(value, &**collator)?,
        None => key.append(value)?,
    }
    Ok(key)
}
