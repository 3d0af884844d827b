//! Which indexes have several keys for one document, and through which components of their paths.
//!
//! The state is kept in memory, shared by every version of a collection, and only ever grows: what was multikey once stays
//! so. A reader that takes a state for more multikey than its snapshot needs is slower, never wrong. The durable catalog is
//! written when something new is learned, before it is entered here (see `ddl::multikey`).

use pando_base::{ErrorCode, Result, ensure};
use pando_doc::{DocBuilder, DocRef, Value};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Words of a set of components: more than documents can nest.
const WORDS: usize = 4;
/// The most components of a path that can be told apart.
const COMPONENTS_MAX: usize = WORDS * 64;

/// The components of one path that were arrays, by their place in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MultikeyComponents([u64; WORDS]);

impl MultikeyComponents {
    /// No component.
    pub const NONE: MultikeyComponents = MultikeyComponents([0; WORDS]);

    /// Adds a component. Places past what documents can nest are left out.
    pub fn insert(&mut self, component: usize) {
        debug_assert!(component < COMPONENTS_MAX, "documents do not nest that deeply");
        if let Some(word) = self.0.get_mut(component / 64) {
            *word |= 1 << (component % 64);
        }
    }

    /// True if the component is in the set.
    pub fn contains(&self, component: usize) -> bool {
        self.0.get(component / 64).is_some_and(|word| word & 1 << (component % 64) != 0)
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// Adds all of another set.
    pub fn union(&mut self, other: &MultikeyComponents) {
        self.0.iter_mut().zip(other.0).for_each(|(word, more)| *word |= more);
    }

    /// True if all of this is in the other.
    pub fn is_subset(&self, other: &MultikeyComponents) -> bool {
        self.0.iter().zip(other.0).all(|(word, more)| word & !more == 0)
    }

    /// The components, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..COMPONENTS_MAX).filter(|component| self.contains(*component))
    }
}

impl FromIterator<usize> for MultikeyComponents {
    fn from_iter<I: IntoIterator<Item = usize>>(components: I) -> MultikeyComponents {
        let mut set = MultikeyComponents::NONE;
        components.into_iter().for_each(|component| set.insert(component));
        set
    }
}

/// For each field of a key pattern the components that were arrays. Empty where an index does not keep them.
pub type MultikeyPaths = SmallVec<[MultikeyComponents; 2]>;

/// What is known about one index, shared by all versions of it.
#[derive(Debug, Default)]
pub struct MultikeyState {
    is_multikey: AtomicBool,
    /// One row a field of the key; none where paths are not tracked.
    paths: Box<[[AtomicU64; WORDS]]>,
}

impl MultikeyState {
    /// An index that is not multikey, with so many fields whose paths are tracked.
    pub fn new(tracked_fields: usize) -> MultikeyState {
        MultikeyState {
            is_multikey: AtomicBool::new(false),
            paths: (0..tracked_fields).map(|_| Default::default()).collect(),
        }
    }

    /// As it was written down.
    pub fn restored(tracked_fields: usize, is_multikey: bool, paths: &[MultikeyComponents]) -> MultikeyState {
        let state = MultikeyState::new(tracked_fields);
        if is_multikey {
            state.raise(paths);
        }
        state
    }

    /// True once a document had several keys.
    #[inline]
    pub fn is_multikey(&self) -> bool {
        self.is_multikey.load(Ordering::Acquire)
    }

    /// The components of each field that were arrays; none where they are not tracked.
    pub fn paths(&self) -> MultikeyPaths {
        let load = |row: &[AtomicU64; WORDS]| {
            MultikeyComponents(std::array::from_fn(|word| row[word].load(Ordering::Acquire)))
        };
        self.paths.iter().map(load).collect()
    }

    /// True if paths are tracked.
    pub fn tracks_paths(&self) -> bool {
        !self.paths.is_empty()
    }

    /// True if nothing of this is new: the usual case, asked for every document with several keys.
    #[inline]
    pub fn covers(&self, paths: &[MultikeyComponents]) -> bool {
        if !self.is_multikey() {
            return false;
        }
        self.paths
            .iter()
            .zip(paths)
            .all(|(row, new)| row.iter().zip(new.0).all(|(known, new)| new & !known.load(Ordering::Acquire) == 0))
    }

    /// Takes in what was learned and written down.
    pub fn raise(&self, paths: &[MultikeyComponents]) {
        for (row, new) in self.paths.iter().zip(paths) {
            row.iter().zip(new.0).for_each(|(known, new)| {
                known.fetch_or(new, Ordering::AcqRel);
            });
        }
        self.is_multikey.store(true, Ordering::Release);
    }
}

/// Writes paths as the durable catalog has them: for each field a byte per component, 1 for an array.
pub(crate) fn append_paths(builder: &mut DocBuilder, key: DocRef<'_>, paths: &[MultikeyComponents]) {
    for (element, components) in key.elements().zip(paths) {
        let component_count = element.name.split(|byte| *byte == b'.').count();
        let bytes: Vec<u8> = (0..component_count).map(|place| u8::from(components.contains(place))).collect();
        builder.append(element.name, Value::Binary { subtype: 0, bytes: &bytes });
    }
}

/// Reads paths as the durable catalog has them.
pub(crate) fn parse_paths(paths: DocRef<'_>) -> Result<MultikeyPaths> {
    let parse = |value: Value<'_>| {
        let Value::Binary { bytes, .. } = value else {
            return Err(pando_base::Error::failed_to_parse("multikeyPaths has a field that is not binary"));
        };
        ensure!(bytes.len() <= COMPONENTS_MAX, ErrorCode::FailedToParse, "multikeyPaths has a path that is too long");
        Ok(bytes.iter().enumerate().filter(|(_, byte)| **byte != 0).map(|(place, _)| place).collect())
    };
    paths.elements().map(|element| parse(element.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn x11_the_state_grows_and_knows_what_is_new() {
        let state = MultikeyState::new(2);
        let first = [MultikeyComponents::from_iter([0]), MultikeyComponents::NONE];
        assert!(!state.covers(&first));
        state.raise(&first);
        assert!(state.is_multikey() && state.covers(&first));
        let second = [MultikeyComponents::NONE, MultikeyComponents::from_iter([1, 199])];
        assert!(!state.covers(&second));
        state.raise(&second);
        assert_eq!(state.paths()[..], [first[0], second[1]]);
    }

    #[test]
    fn x11_paths_are_written_a_byte_a_component() {
        let key = doc! { "a.b": 1, "c": 1 };
        let paths = [MultikeyComponents::from_iter([1]), MultikeyComponents::NONE];
        let mut builder = DocBuilder::new();
        append_paths(&mut builder, key.view(), &paths);
        let written = builder.finish();
        assert_eq!(written.get("a.b"), Some(Value::Binary { subtype: 0, bytes: &[0, 1] }));
        assert_eq!(written.get("c"), Some(Value::Binary { subtype: 0, bytes: &[0] }));
        assert_eq!(parse_paths(written.view()).unwrap()[..], paths);
        assert!(parse_paths(doc! { "a": 1 }.view()).is_err());
        let long = vec![1; COMPONENTS_MAX + 1];
        assert!(parse_paths(doc! { "a": Value::Binary { subtype: 0, bytes: &long } }.view()).is_err());
    }
}
