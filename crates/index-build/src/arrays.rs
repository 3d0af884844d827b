//! What a build has learnt of arrays: it is written into the catalog when the index becomes ready.

use pando_catalog::MultikeyComponents;
use pando_index::Arrays;

/// Whether an index is multikey, and through which parts of its paths. It only grows: too much is slower, never wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LearntArrays {
    pub(crate) is_multikey: bool,
    pub(crate) paths: Vec<MultikeyComponents>,
}

impl LearntArrays {
    pub(crate) fn new(tracked_field_count: usize) -> LearntArrays {
        LearntArrays { is_multikey: false, paths: vec![MultikeyComponents::NONE; tracked_field_count] }
    }

    pub(crate) fn take_in(&mut self, arrays: Arrays<'_>) {
        self.is_multikey |= arrays.is_multikey;
        self.paths.iter_mut().zip(arrays.paths).for_each(|(known, new)| known.union(new));
    }

    pub(crate) fn join(&mut self, other: &LearntArrays) {
        self.take_in(Arrays { is_multikey: other.is_multikey, paths: &other.paths });
    }
}
