//! The other collection of a `$lookup` in a table, by the values of its field.
//!
//! A document is found under every value that a filter for equality would find it by: what its path leads to, the values of an array at the
//! end of it and that array, and null where the path leads nowhere. Keys are bytes that are the same for equal values, in the collation of the pipeline.
//! Found documents come in the order in which they were read, each once, as a scan with that filter gives them.
//!
//! Invariant: a table is whole; one that would take more than its bound is given up, and the documents are looked for one by one.

use foldhash::fast::RandomState;
use pando_base::Result;
use pando_doc::{Doc, FieldPath, PathOptions, Value, visit_path};
use pando_expr::SharedCollator;
use pando_keystring::{KeyOrdering, StackBuilder, Version};
use smallvec::{SmallVec, smallvec};
use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;

/// What an entry takes beside its key and its document.
const ENTRY_BYTES: usize = 64;

/// Most keys are of numbers or object ids and lie in the table itself: a search does not wait for memory once more.
type Key = SmallVec<[u8; 16]>;
/// Most values are those of one document.
type Places = SmallVec<[u32; 2]>;

/// Documents by their values.
pub(super) struct HashTable {
    foreign: FieldPath,
    collator: Option<SharedCollator>,
    documents: Vec<Doc>,
    /// Its hash is seeded by chance, so that no client can choose keys that collide.
    places: HashMap<Key, Places, RandomState>,
    memory_bytes: usize,
}

impl HashTable {
    pub(super) fn new(foreign: FieldPath, collator: Option<SharedCollator>) -> HashTable {
        HashTable { foreign, collator, documents: Vec::new(), places: HashMap::default(), memory_bytes: 0 }
    }

    /// How much it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Takes a document in.
    pub(super) fn add(&mut self, document: Doc) -> Result<()> {
        let place = u32::try_from(self.documents.len()).unwrap_or(u32::MAX);
        let HashTable { foreign, collator, places, memory_bytes, .. } = self;
        *memory_bytes += document.size_bytes() + size_of::<Doc>();
        let failed = visit_path(document.view(), foreign, PathOptions::default(), &mut |visit| {
            // What is missing, and what is undefined, is found by null.
            let value = visit.value.filter(|value| !matches!(value, Value::Undefined)).unwrap_or(Value::Null);
            let key = match key_of(value, collator.as_ref()) {
                Ok(key) => key,
                Err(error) => return ControlFlow::Break(error),
            };
            *memory_bytes += size_of::<u32>();
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
        self.documents.push(document);
        Ok(())
    }

    /// The documents that have one of these values; none if such a value has to be looked for by a filter.
    pub(super) fn find(&self, values: &[Value<'_>]) -> Result<Option<VecDeque<Doc>>> {
        let mut found = Places::new();
        for value in values {
            if matches!(value, Value::Undefined) {
                return Ok(None);
            }
            let key = key_of(*value, self.collator.as_ref())?;
            found.extend(self.places.get(key.bytes()).into_iter().flatten().copied());
        }
        if values.len() > 1 {
            found.sort_unstable();
            found.dedup();
        }
        Ok(Some(found.iter().filter_map(|place| self.documents.get(*place as usize).cloned()).collect()))
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
