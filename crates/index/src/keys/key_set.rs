//! The keys of one document in one index, in one buffer that is used again for the next document.
//!
//! Keys are in ascending order and each is there once, whatever the order in which they were made. The set also says which
//! parts of the indexed paths were arrays.

use pando_base::Result;
use pando_base::operation::{count, tick};
use pando_catalog::{MultikeyComponents, MultikeyPaths};
use pando_doc::{Collator, Value};
use pando_keystring::{Discriminator, KeyOrdering, KeyString, StackBuilder, Version};

/// So many steps are counted for each component: one document may have a hundred thousand keys in each of sixty-four indexes.
const STEPS_PER_COMPONENT: u64 = 4;

/// Keys and their type bits.
#[derive(Debug)]
pub struct KeySet {
    /// Key, type bits, key, type bits...
    buffer: Vec<u8>,
    places: Vec<Place>,
    builder: StackBuilder,
    multikey_paths: MultikeyPaths,
    /// Where several keys do not mean an array: whether there was one.
    arrays_aside: Option<bool>,
}

/// Where a key lies in the buffer.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: usize,
    key_end: usize,
    end: usize,
}

/// One key. Its bytes end with a terminator and have no record id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// What is compared.
    pub bytes: &'a [u8],
    /// Which of several equal values it was; as stored.
    pub type_bits: &'a [u8],
}

impl Key<'_> {
    /// A copy that lives on its own.
    pub fn to_key_string(self) -> KeyString {
        KeyString::from_stored(self.bytes, self.type_bits, Version::V1)
    }
}

impl Default for KeySet {
    fn default() -> KeySet {
        KeySet::new()
    }
}

impl KeySet {
    /// Without keys.
    pub fn new() -> KeySet {
        KeySet {
            buffer: Vec::new(),
            places: Vec::new(),
            builder: StackBuilder::new(Version::V1, KeyOrdering::ASCENDING),
            multikey_paths: MultikeyPaths::default(),
            arrays_aside: None,
        }
    }

    /// Forgets the keys, keeps the memory.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.places.clear();
        self.multikey_paths.clear();
        self.arrays_aside = None;
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True without keys.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The keys in ascending order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Key<'_>> + Clone {
        self.places.iter().map(|place| key_at(&self.buffer, *place))
    }

    /// For each field of the key pattern the parts of its path that were arrays; empty where nobody keeps track.
    pub fn multikey_paths(&self) -> &[MultikeyComponents] {
        &self.multikey_paths
    }

    /// True if these keys make their index multikey: there is more than one, or an array was on the way.
    pub fn is_multikey(&self) -> bool {
        if let Some(has_array) = self.arrays_aside {
            return has_array;
        }
        self.len() > 1 || self.multikey_paths.iter().any(|components| !components.is_empty())
    }

    /// Keys of `self` that are not in `other`. A key whose values are equal but of other types (`1` and `1.0`) counts as
    /// another one: its type bits have to be written.
    pub fn difference<'a>(&'a self, other: &'a KeySet) -> impl Iterator<Item = Key<'a>> {
        let mut others = other.iter().peekable();
        self.iter().filter(move |key| {
            while others.next_if(|other| other.bytes < key.bytes).is_some() {}
            others.peek() != Some(key)
        })
    }

    /// True if both have the same keys, type bits included.
    pub fn same_keys(&self, other: &KeySet) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }

    // ---- For the generators.

    /// Keeps track of so many fields.
    pub(super) fn track_paths(&mut self, field_count: usize) {
        self.multikey_paths.clear();
        self.multikey_paths.resize(field_count, MultikeyComponents::NONE);
    }

    /// Says that a part of a field's path was an array.
    pub(super) fn add_array(&mut self, field: usize, part: usize) {
        debug_assert!(field < self.multikey_paths.len());
        if let Some(components) = self.multikey_paths.get_mut(field) {
            components.insert(part);
        }
    }

    /// Says that a document has several keys without arrays too.
    pub(super) fn keep_multikey_aside(&mut self) {
        self.arrays_aside = Some(false);
    }

    /// Says that there was an array, where several keys do not mean one.
    pub(super) fn note_array(&mut self) {
        self.arrays_aside = Some(true);
    }

    /// Begins a key.
    #[inline]
    pub(super) fn begin(&mut self, ordering: KeyOrdering) {
        self.builder.reset(ordering);
    }

    /// Appends a component to the key that was begun.
    #[inline]
    pub(super) fn append(&mut self, value: Value<'_>, collator: Option<&dyn Collator>) -> Result<()> {
        tick(STEPS_PER_COMPONENT)?;
        match collator {
            None => self.builder.append(value)?,
            Some(collator) => self.builder.append_collated(value, collator)?,
        }
        Ok(())
    }

    /// Ends the key and adds it to the set.
    #[inline]
    pub(super) fn end(&mut self) {
        self.builder.finish(Discriminator::Inclusive);
        let start = self.buffer.len();
        self.buffer.extend_from_slice(self.builder.bytes());
        let key_end = self.buffer.len();
        if !self.builder.type_bits().is_all_zeros() {
            self.buffer.extend_from_slice(&self.builder.encoded_type_bits());
        }
        self.places.push(Place { start, key_end, end: self.buffer.len() });
    }

    /// Puts the keys in order and leaves out repeated ones; of equal keys the first made stays.
    pub(super) fn sort(&mut self) {
        if self.places.len() < 2 {
            return;
        }
        let buffer = &self.buffer;
        let bytes = |place: &Place| buffer.get(place.start..place.key_end).unwrap_or_default();
        self.places.sort_unstable_by(|a, b| {
            count(1);
            bytes(a).cmp(bytes(b)).then(a.start.cmp(&b.start))
        });
        self.places.dedup_by(|later, earlier| bytes(later) == bytes(earlier));
    }
}

#[inline]
fn key_at(buffer: &[u8], place: Place) -> Key<'_> {
    Key {
        bytes: buffer.get(place.start..place.key_end).unwrap_or_default(),
        type_bits: buffer.get(place.key_end..place.end).unwrap_or_default(),
    }
}
