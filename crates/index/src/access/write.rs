//! Writing the keys of one document, index by index.

use super::duplicate::duplicate_key_error;
use super::hooks::{Arrays, SideWrite};
use super::{IndexAccess, Indexing};
use crate::{Key, KeySet, Purpose};
use pando_base::{AnyFailPoint, FailPoint, RecordId, Result};
use pando_catalog::{Collection, Index};
use pando_doc::DocRef;
use pando_operation::Operation;
use pando_storage::Insertion;
use std::ops::AddAssign;

/// Indexes do not learn that they have several keys of a document.
static SKIP_MULTIKEY: FailPoint = FailPoint::new("skipUpdateIndexMultikey");
/// The keys of a document that is deleted stay in the index that the data names.
static SKIP_UNINDEXING: FailPoint<String> = FailPoint::with_data("skipUnindexingDocumentWhenDeleted", |bytes| {
    let data = if bytes.is_empty() { DocRef::EMPTY } else { DocRef::parse(bytes)? };
    Ok(data.get("indexName").and_then(|name| name.as_str()).unwrap_or_default().to_owned())
});

/// The fail points of this crate.
pub const FAIL_POINTS: &[&dyn AnyFailPoint] = &[&SKIP_MULTIKEY, &SKIP_UNINDEXING];

/// Whether indexes may refuse a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Constraints {
    /// They may: a client's write.
    #[default]
    Enforced,
    /// They may not: what another node has done is applied.
    Relaxed,
}

/// What is done about a key that another document has.
pub enum Duplicates<'a> {
    /// Both have it.
    Allowed,
    /// `DuplicateKey`.
    Refused,
    /// Both have it, and somebody is told, so that it can be looked at again when an index build ends.
    Told(&'a mut dyn FnMut(&mut Operation, Key<'_>) -> Result<()>),
}

/// Keys written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyCounts {
    /// How many were added.
    pub inserted: u64,
    /// How many were removed.
    pub deleted: u64,
}

impl AddAssign for KeyCounts {
    fn add_assign(&mut self, other: KeyCounts) {
        self.inserted += other.inserted;
        self.deleted += other.deleted;
    }
}

/// Memory for keys, used again from document to document.
#[derive(Debug, Default)]
pub struct KeyScratch {
    new: KeySet,
    old: KeySet,
}

/// One index of a collection with what is needed to write to it.
struct Target<'a> {
    collection: &'a Collection,
    index: &'a Index,
    access: &'a IndexAccess,
    record_id: &'a RecordId,
    constraints: Constraints,
}

impl Indexing {
    /// Adds the keys of a new document to every index.
    pub fn insert(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        document: DocRef<'_>,
        record_id: &RecordId,
        constraints: Constraints,
        scratch: &mut KeyScratch,
    ) -> Result<KeyCounts> {
        let mut counts = KeyCounts::default();
        scratch.old.clear();
        for index in &collection.indexes {
            let access = self.access(index)?;
            let target = Target { collection, index, access: &access, record_id, constraints };
            self.new_keys(operation, &target, document, &mut scratch.new)?;
            counts.inserted += self.add(operation, &target, &scratch.new, &scratch.old)?;
        }
        Ok(counts)
    }

    /// Removes the keys of a document from every index.
    pub fn remove(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        document: DocRef<'_>,
        record_id: &RecordId,
        scratch: &mut KeyScratch,
    ) -> Result<KeyCounts> {
        let mut counts = KeyCounts::default();
        for index in &collection.indexes {
            if SKIP_UNINDEXING.hit_if(|name| name == index.name()).is_some() {
                continue;
            }
            let access = self.access(index)?;
            let constraints = Constraints::Relaxed;
            let target = Target { collection, index, access: &access, record_id, constraints };
            target.old_keys(document, &mut scratch.old);
            counts.deleted += self.take(operation, &target, &mut scratch.old.iter())?;
        }
        Ok(counts)
    }

    /// Brings every index from the old version of a document to the new one.
    #[allow(clippy::too_many_arguments, reason = "a document's two versions and where it lies")]
    pub fn update(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        old: DocRef<'_>,
        new: DocRef<'_>,
        record_id: &RecordId,
        constraints: Constraints,
        scratch: &mut KeyScratch,
    ) -> Result<KeyCounts> {
        let mut counts = KeyCounts::default();
        for index in &collection.indexes {
            let access = self.access(index)?;
            if !access.may_differ(old, new) {
                continue;
            }
            let target = Target { collection, index, access: &access, record_id, constraints };
            target.old_keys(old, &mut scratch.old);
            self.new_keys(operation, &target, new, &mut scratch.new)?;
            let KeyScratch { new, old } = &*scratch;
            counts.deleted += self.take(operation, &target, &mut old.difference(new))?;
            counts.inserted += self.add(operation, &target, new, old)?;
        }
        Ok(counts)
    }

    /// The keys of a document that is written. What cannot be indexed yet has none where constraints are relaxed; a build
    /// under way looks at it again.
    fn new_keys(
        &self,
        operation: &mut Operation,
        target: &Target<'_>,
        document: DocRef<'_>,
        keys: &mut KeySet,
    ) -> Result<()> {
        let Target { access, index, record_id, constraints, .. } = *target;
        match (access.keys(document, keys), constraints) {
            (Ok(()), _) => Ok(()),
            (Err(error), Constraints::Enforced) => Err(error),
            (Err(_), Constraints::Relaxed) => match self.interceptor(index) {
                Some(interceptor) => interceptor.skip(operation, index, record_id),
                None => Ok(()),
            },
        }
    }

    /// Adds keys to the index, or to the side table of its build, except those that it has already.
    fn add(&self, operation: &mut Operation, target: &Target<'_>, keys: &KeySet, has: &KeySet) -> Result<u64> {
        let Target { index, record_id, .. } = *target;
        if let Some(interceptor) = self.interceptor(index) {
            let arrays = Arrays { is_multikey: keys.is_multikey(), paths: keys.multikey_paths() };
            let mut added = keys.difference(has);
            return interceptor.side_write(operation, index, SideWrite::Insert, &mut added, record_id, arrays);
        }
        let allowed = target.allows_duplicates();
        let mut duplicates = if allowed { Duplicates::Allowed } else { Duplicates::Refused };
        let mut count = 0;
        for key in keys.difference(has) {
            target.insert_key(operation, key, &mut duplicates)?;
            count += 1;
        }
        self.note_multikey(operation, target, keys)?;
        Ok(count)
    }

    /// Adds keys that were made before, e.g. by an index build, to one index. Returns how many.
    pub fn insert_keys<'k>(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        index: &Index,
        keys: impl IntoIterator<Item = Key<'k>>,
        record_id: &RecordId,
        duplicates: &mut Duplicates<'_>,
    ) -> Result<u64> {
        let access = self.access(index)?;
        let constraints = Constraints::Enforced;
        let target = Target { collection, index, access: &access, record_id, constraints };
        let mut count = 0;
        for key in keys {
            target.insert_key(operation, key, duplicates)?;
            count += 1;
        }
        Ok(count)
    }

    /// Removes keys that were made before from one index. Returns how many.
    pub fn remove_keys<'k>(
        &self,
        operation: &mut Operation,
        index: &Index,
        keys: impl IntoIterator<Item = Key<'k>>,
        record_id: &RecordId,
    ) -> Result<u64> {
        let mut count = 0;
        for key in keys {
            index.data.unindex(&mut operation.recovery_unit, key.bytes, record_id)?;
            count += 1;
        }
        Ok(count)
    }

    fn take(
        &self,
        operation: &mut Operation,
        target: &Target<'_>,
        keys: &mut dyn Iterator<Item = Key<'_>>,
    ) -> Result<u64> {
        let Target { index, record_id, .. } = *target;
        match self.interceptor(index) {
            Some(interceptor) => {
                interceptor.side_write(operation, index, SideWrite::Remove, keys, record_id, Arrays::default())
            }
            None => self.remove_keys(operation, index, keys, record_id),
        }
    }

    #[inline]
    fn interceptor(&self, index: &Index) -> Option<std::sync::Arc<dyn super::IndexInterceptor>> {
        if index.ready { None } else { self.hooks.interceptor(index) }
    }

    /// Has it written down that the index is multikey, if these keys make it so and nobody knows.
    fn note_multikey(&self, operation: &mut Operation, target: &Target<'_>, keys: &KeySet) -> Result<()> {
        let paths = keys.multikey_paths();
        if !keys.is_multikey() || target.index.multikey.covers(paths) || SKIP_MULTIKEY.should_fail() {
            return Ok(());
        }
        self.hooks.set_multikey(operation, target.collection, target.index, paths)
    }
}

impl Target<'_> {
    /// The keys of a document that leaves. One that could not be indexed by today's rules may be there all the same, left
    /// behind by relaxed constraints: then it has no keys.
    fn old_keys(&self, document: DocRef<'_>, keys: &mut KeySet) {
        if self.access.keys_for(document, Purpose::Removing, keys).is_err() {
            debug_assert!(keys.is_empty());
        }
    }

    fn allows_duplicates(&self) -> bool {
        let descriptor = &self.index.descriptor;
        if descriptor.is_id_index() {
            return false;
        }
        match self.constraints {
            Constraints::Relaxed => true,
            Constraints::Enforced if descriptor.prepare_unique => !self.index.ready,
            Constraints::Enforced => !descriptor.unique,
        }
    }

    fn insert_key(&self, operation: &mut Operation, key: Key<'_>, duplicates: &mut Duplicates<'_>) -> Result<()> {
        let allowed = matches!(duplicates, Duplicates::Allowed);
        let data = &self.index.data;
        let unit = &mut operation.recovery_unit;
        match (data.insert(unit, key.bytes, self.record_id, key.type_bits, allowed)?, duplicates) {
            (Insertion::Done | Insertion::Present, _) => Ok(()),
            (Insertion::Duplicate(_), Duplicates::Told(tell)) if !self.index.descriptor.is_id_index() => {
                data.insert(unit, key.bytes, self.record_id, key.type_bits, true)?;
                tell(operation, key)
            }
            (Insertion::Duplicate(_), _) => Err(self.duplicate(key)),
        }
    }

    #[cold]
    fn duplicate(&self, key: Key<'_>) -> pando_base::Error {
        let ordering = self.access.generator().ordering();
        duplicate_key_error(&self.collection.namespace, &self.index.descriptor, key, ordering)
    }
}
