//! The other collection of a `$lookup` in a table, by the values of its field.
//!
//! A document is found under every value that a filter for equality would find it by: what its path leads to, the values of an array at the
//! end of it and that array, and null where the path leads nowhere. Keys are bytes that are the same for equal values, in the collation of the pipeline.
//! Found documents come in the order in which they were read, each once, as a scan with that filter gives them.
//!
//! A search waits for memory, and the larger the table the longer. So what it looks at lies together: the table itself has nothing but places,
//! eight bytes for a key, and at its place lies a record of the key with the document right behind it. Records of the same key are linked.
//!
//! Invariant: a table is whole; one that would take more than its bound is given up, and the documents are looked for one by one.

use super::local_values::values_of;
use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashTable as Places;
use pando_base::Result;
use pando_doc::{Doc, DocRef, FieldPath, PathOptions, Value, visit_path};
use pando_expr::SharedCollator;
use pando_keystring::{KeyOrdering, StackBuilder, Version};
use smallvec::SmallVec;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::ops::{ControlFlow, Range};

/// What the table takes for a key, with its free places.
const PLACE_BYTES: usize = 16;

/// What was found for a document, most often one.
pub(super) type Matches = SmallVec<[Doc; 1]>;
/// A key with its hash: most often of a number or an object id.
type Key = (u64, SmallVec<[u8; 16]>);
/// What a document is looked for by: most often one value.
type Keys = SmallVec<[Key; 1]>;
/// Where the found documents of one document lie.
type Ranges = SmallVec<[Range<usize>; 1]>;

/// What stands in front of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    /// The record of the same key that was made before; its own place if there is none.
    before: usize,
    document: usize,
    document_length: u32,
    key_length: u32,
}

impl Header {
    const BYTES: usize = 2 * (size_of::<usize>() + size_of::<u32>());

    fn append_to(&self, records: &mut Vec<u8>) {
        [self.before, self.document].iter().for_each(|place| records.extend_from_slice(&place.to_ne_bytes()));
        let lengths = [self.document_length, self.key_length];
        lengths.iter().for_each(|length| records.extend_from_slice(&length.to_ne_bytes()));
    }

    #[inline]
    fn decode(records: &[u8], place: usize) -> Option<Header> {
        let bytes = records.get(place..)?;
        let (before, bytes) = bytes.split_first_chunk()?;
        let (document, bytes) = bytes.split_first_chunk()?;
        let (document_length, bytes) = bytes.split_first_chunk()?;
        let (key_length, _) = bytes.split_first_chunk()?;
        let [before, document] = [before, document].map(|place| usize::from_ne_bytes(*place));
        let [document_length, key_length] = [document_length, key_length].map(|length| u32::from_ne_bytes(*length));
        Some(Header { before, document, document_length, key_length })
    }

    /// The document's bytes.
    fn document(&self) -> Range<usize> {
        self.document..self.document.saturating_add(self.document_length as usize)
    }
}

/// Documents by their values, while they are being read.
pub(super) struct Builder {
    foreign: FieldPath,
    collator: Option<SharedCollator>,
    records: Vec<u8>,
    places: Places<usize>,
    hasher: RandomState,
}

/// Documents by their values.
pub(super) struct HashTable {
    collator: Option<SharedCollator>,
    records: Bytes,
    /// The newest record of each key.
    places: Places<usize>,
    /// Seeded by chance, so that no client can choose keys that collide.
    hasher: RandomState,
}

impl Builder {
    pub(super) fn new(foreign: FieldPath, collator: Option<SharedCollator>) -> Builder {
        let (records, places, hasher) = (Vec::new(), Places::new(), RandomState::default());
        Builder { foreign, collator, records, places, hasher }
    }

    /// How much it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.records.len() + self.places.len() * PLACE_BYTES
    }

    /// Takes a document in.
    pub(super) fn add(&mut self, document: DocRef<'_>) -> Result<()> {
        let Builder { foreign, collator, records, places, hasher } = self;
        // The document lies behind the record of its first value; those of others refer to it there.
        let mut at = None;
        let failed = visit_path(document, foreign, PathOptions::default(), &mut |visit| {
            // What is missing, and what is undefined, is found by null.
            let value = visit.value.filter(|value| !matches!(value, Value::Undefined)).unwrap_or(Value::Null);
            let key = match key_of(value, collator.as_ref()) {
                Ok(key) => key,
                Err(error) => return ControlFlow::Break(error),
            };
            let key = key.bytes();
            let (hash, place) = (hasher.hash_one(key), records.len());
            let newest = places.find_mut(hash, |place| key_at(records, *place) == Some(key));
            let before = newest.as_deref().copied();
            // The values of one document come one after the other.
            if at.is_some()
                && before.and_then(|before| Header::decode(records, before)).map(|header| header.document) == at
            {
                return ControlFlow::Continue(());
            }
            match newest {
                Some(newest) => *newest = place,
                None => {
                    let rehash = |place: &usize| hasher.hash_one(key_at(records, *place).unwrap_or_default());
                    places.insert_unique(hash, place, rehash);
                }
            }
            let document_place = at.unwrap_or(place + Header::BYTES + key.len());
            let header = Header {
                before: before.unwrap_or(place),
                document: document_place,
                // Both are parts of a document, whose length has four bytes.
                document_length: document.size_bytes() as u32,
                key_length: key.len() as u32,
            };
            header.append_to(records);
            records.extend_from_slice(key);
            if at.is_none() {
                records.extend_from_slice(document.bytes());
                at = Some(document_place);
            }
            ControlFlow::Continue(())
        });
        match failed {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    /// The table, when all were taken in.
    pub(super) fn finish(self) -> HashTable {
        let Builder { collator, records, places, hasher, .. } = self;
        HashTable { collator, records: Bytes::from(records), places, hasher }
    }
}

impl HashTable {
    /// What belongs to each of several documents, in their order; none where that has to be looked for by a filter.
    ///
    /// Each step is done for all documents before the next one, and nothing is made in between: so the processor has several searches
    /// under way while it waits.
    pub(super) fn find_each(&self, documents: &[Doc], local: &FieldPath) -> Result<Vec<Option<Matches>>> {
        let sought = documents.iter().map(|document| self.keys_of(document.view(), local));
        let sought: Vec<Option<Keys>> = sought.collect::<Result<_>>()?;
        let found: Vec<Option<Ranges>> =
            sought.iter().map(|keys| keys.as_deref().map(|keys| self.ranges(keys))).collect();
        let share = |range: Range<usize>| Doc::trusted(self.records.slice(range));
        Ok(found.into_iter().map(|ranges| Some(ranges?.into_iter().map(share).collect())).collect())
    }

    /// What a document is looked for by; none if that takes a filter.
    fn keys_of(&self, document: DocRef<'_>, local: &FieldPath) -> Result<Option<Keys>> {
        let mut keys = Keys::new();
        for value in values_of(document, local) {
            if matches!(value, Value::Undefined) {
                return Ok(None);
            }
            let key = key_of(value, self.collator.as_ref())?;
            keys.push((self.hasher.hash_one(key.bytes()), SmallVec::from_slice(key.bytes())));
        }
        Ok(Some(keys))
    }

    /// Each document once, in the order in which they were read.
    fn ranges(&self, keys: &[Key]) -> Ranges {
        let mut found = Ranges::new();
        for (hash, key) in keys {
            let newest = self.places.find(*hash, |place| key_at(&self.records, *place) == Some(key));
            let mut next = newest.copied();
            while let Some((place, header)) =
                next.and_then(|place| Some((place, Header::decode(&self.records, place)?)))
            {
                if let Some(bytes) = self.records.get(header.document()) {
                    // Its end may lie in another line of memory: that is on its way then before it is read.
                    black_box(bytes.last().copied());
                    found.push(header.document());
                }
                next = Some(header.before).filter(|before| *before != place);
            }
        }
        if found.len() > 1 {
            found.sort_unstable_by_key(|range| range.start);
            found.dedup();
        }
        found
    }
}

/// The key of the record that lies there.
#[inline]
fn key_at(records: &[u8], place: usize) -> Option<&[u8]> {
    let header = Header::decode(records, place)?;
    let start = place + Header::BYTES;
    records.get(start..start.checked_add(header.key_length as usize)?)
}

fn key_of(value: Value<'_>, collator: Option<&SharedCollator>) -> Result<StackBuilder> {
    let mut key = StackBuilder::new(Version::V1, KeyOrdering::ASCENDING);
    match collator {
        Some(collator) => key.append_collated(value, &**collator)?,
        None => key.append(value)?,
    }
    Ok(key)
}
