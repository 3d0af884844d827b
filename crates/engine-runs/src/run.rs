//! A run: parts with disjoint ascending key ranges.

use crate::section::Part;
use crate::{KeyBounds, RunDescriptor};
use pando_base::Timestamp;
use std::sync::Arc;

/// A sorted run of one table.
pub struct Run {
    parts: Vec<Arc<Part>>,
    has_tombstones: bool,
}

impl Run {
    /// What it takes in memory beside its parts.
    pub(crate) const OWN_BYTES: usize = size_of::<Run>() + 3 * size_of::<usize>();

    /// A run from its parts, which must ascend without overlapping.
    pub fn new(parts: Vec<Arc<Part>>) -> Arc<Run> {
        debug_assert!(parts.is_sorted_by(|a, b| a.descriptor().bounds.last.is_before(&b.descriptor().bounds.first)));
        let has_tombstones = parts.iter().any(|part| part.has_tombstones());
        Arc::new(Run { parts, has_tombstones })
    }

    /// The parts, by key.
    pub fn parts(&self) -> &[Arc<Part>] {
        &self.parts
    }

    /// What the manifest keeps of it.
    pub fn descriptor(&self) -> RunDescriptor {
        RunDescriptor { parts: self.parts.iter().map(|part| part.descriptor().clone()).collect() }
    }

    /// From the first part's first key to the last part's last.
    pub fn bounds(&self) -> Option<KeyBounds> {
        let (first, last) = (self.parts.first()?.descriptor(), self.parts.last()?.descriptor());
        Some(KeyBounds { first: first.bounds.first.clone(), last: last.bounds.last.clone() })
    }

    /// Of the bytes on disk, those of older versions.
    pub fn history_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.descriptor().history_bytes).sum()
    }

    /// Bytes on disk.
    pub fn length_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.descriptor().length_bytes).sum()
    }

    /// Keys in it, deleted ones included.
    pub fn keys(&self) -> u64 {
        self.parts.iter().map(|part| part.descriptor().keys).sum()
    }

    /// The largest sequence in it.
    pub fn max_sequence(&self) -> u64 {
        self.parts.iter().map(|part| part.descriptor().max_sequence).max().unwrap_or(0)
    }

    /// The largest durable timestamp in it that its fence leaves alive.
    pub fn max_durable(&self) -> Timestamp {
        let alive = self.parts.iter().map(|part| part.descriptor().max_durable.min(part.fence()));
        alive.max().unwrap_or(Timestamp::NONE)
    }

    /// True if a part has range tombstones.
    #[inline]
    pub(crate) fn has_tombstones(&self) -> bool {
        self.has_tombstones
    }

    /// The position of the first part that does not end before `key`.
    #[inline]
    pub(crate) fn position(&self, key: &[u8]) -> usize {
        match self.parts.as_slice() {
            [only] => usize::from(only.descriptor().bounds.last.is_before(key)),
            parts => parts.partition_point(|part| part.descriptor().bounds.last.is_before(key)),
        }
    }

    /// The part whose range has the key.
    #[inline]
    pub(crate) fn part_for(&self, key: &[u8]) -> Option<&Arc<Part>> {
        let part = self.parts.get(self.position(key))?;
        (part.descriptor().bounds.first.as_ref() <= key).then_some(part)
    }
}
