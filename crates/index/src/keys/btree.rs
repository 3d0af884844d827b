//! Keys of ordinary indexes: the values at one or more dotted paths, in order.
//!
//! Most documents have no array on the indexed paths; for them [`BtreeKeys::without_arrays`] makes one key in one pass.
//! When it meets an array it gives up and `Expansion` (in `expand.rs`) starts over with the full rules.
//!
//! What is missing counts as null. A sparse index has no key of a document that lacks every field.

use super::expand::Expansion;
use super::{KeySet, SharedCollator};
use pando_base::Result;
use pando_doc::{DocRef, FieldPath, Value};
use pando_keystring::KeyOrdering;
use std::ops::ControlFlow;

/// Makes the keys of one index.
#[derive(Clone)]
pub(super) struct BtreeKeys {
    pub(super) paths: Box<[FieldPath]>,
    pub(super) ordering: KeyOrdering,
    pub(super) sparse: bool,
    /// The index on `_id`, whose value is never an array.
    is_id: bool,
    pub(super) collator: Option<SharedCollator>,
}

impl BtreeKeys {
    pub(super) fn new(pattern: DocRef<'_>, sparse: bool, collator: Option<SharedCollator>) -> Result<BtreeKeys> {
        let paths = pattern.elements().map(|field| FieldPath::lenient(field.name)).collect::<Result<Box<[_]>>>()?;
        let is_id = matches!(&*paths, [path] if path.text() == "_id");
        Ok(BtreeKeys { paths, ordering: KeyOrdering::from_pattern(pattern)?, sparse, is_id, collator })
    }

    pub(super) fn keys(&self, doc: DocRef<'_>, keys: &mut KeySet) -> Result<()> {
        keys.track_paths(self.paths.len());
        if self.is_id {
            return self.id_key(doc, keys);
        }
        if self.without_arrays(doc, keys)?.is_break() {
            Expansion::new(self).run(doc, keys)?;
            keys.sort();
        }
        if keys.is_empty() && !self.sparse {
            return self.key_of(self.paths.iter().map(|_| Value::Null), keys);
        }
        Ok(())
    }

    fn id_key(&self, doc: DocRef<'_>, keys: &mut KeySet) -> Result<()> {
        self.key_of([doc.get("_id").unwrap_or(Value::Null)], keys)
    }

    /// Makes the one key of a document without arrays; stops at the first array, with no key made.
    fn without_arrays(&self, doc: DocRef<'_>, keys: &mut KeySet) -> Result<ControlFlow<()>> {
        keys.begin(self.ordering);
        let mut missing = 0;
        for path in &self.paths {
            let value = match value_at(doc, path) {
                Found::Array => return Ok(ControlFlow::Break(())),
                Found::Value(value) => value,
                Found::Nothing => {
                    missing += 1;
                    Value::Null
                }
            };
            keys.append(value, self.collator())?;
        }
        if !(self.sparse && missing == self.paths.len()) {
            keys.end();
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Adds the key that consists of these values.
    pub(super) fn key_of<'a>(&self, values: impl IntoIterator<Item = Value<'a>>, keys: &mut KeySet) -> Result<()> {
        keys.begin(self.ordering);
        values.into_iter().try_for_each(|value| keys.append(value, self.collator()))?;
        keys.end();
        Ok(())
    }

    #[inline]
    fn collator(&self) -> Option<&dyn pando_doc::Collator> {
        self.collator.as_deref().map(|collator| collator as _)
    }
}

/// What lies at a path.
enum Found<'a> {
    Value(Value<'a>),
    Nothing,
    Array,
}

/// The value at the path, as long as no array is met.
#[inline]
fn value_at<'a>(doc: DocRef<'a>, path: &FieldPath) -> Found<'a> {
    let mut current = doc;
    let last = path.part_count() - 1;
    for position in 0..=last {
        match current.get(path.part(position)) {
            Some(Value::Array(_)) => return Found::Array,
            Some(value) if position == last => return Found::Value(value),
            Some(Value::Document(nested)) => current = nested,
            _ => return Found::Nothing,
        }
    }
    Found::Nothing
}
