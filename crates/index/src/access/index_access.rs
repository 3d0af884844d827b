//! What is made of an index's descriptor once and used for every document: its key generator and its filter.

use super::hooks::{DocumentFilter, IndexHooks};
use crate::{KeyGenerator, KeySet, Purpose, SharedCollator};
use bstr::{BString, ByteSlice};
use pando_base::{ErrorCode, Result, ensure};
use pando_catalog::{IndexDescriptor, IndexKind};
use pando_doc::{DocRef, Value};
use pando_keystring::{Version, to_doc};
use std::sync::Arc;

/// An index's way from documents to keys.
pub struct IndexAccess {
    generator: KeyGenerator,
    filter: Option<Arc<dyn DocumentFilter>>,
    collator: Option<SharedCollator>,
    /// The top-level fields that its keys are made from, and those that its filter looks at.
    roots: Box<[BString]>,
    /// Its keys may be made from any field, or its filter may look at any.
    looks_everywhere: bool,
    /// It is of version 1, whose keys cannot have decimals.
    refuses_decimals: bool,
}

impl IndexAccess {
    /// Makes it; fails for a kind of index that there is not, and for a filter that does not parse.
    pub fn new(descriptor: &IndexDescriptor, hooks: &dyn IndexHooks) -> Result<IndexAccess> {
        let pattern = descriptor.key_pattern.view();
        let collator = descriptor.collation.as_ref().map(|collation| hooks.collator(collation.view())).transpose()?;
        let filter = descriptor.partial_filter.as_ref();
        let filter = filter.map(|filter| hooks.filter(descriptor, filter.view(), collator.as_ref())).transpose()?;
        let looks_everywhere = matches!(descriptor.kind, IndexKind::Text | IndexKind::Wildcard);
        let specification = descriptor.specification.view();
        let generator = match descriptor.kind {
            IndexKind::Text => KeyGenerator::text(pattern, specification)?,
            IndexKind::TwoD => KeyGenerator::two_d(pattern, specification)?,
            IndexKind::TwoDSphere | IndexKind::TwoDSphereBucket => {
                KeyGenerator::two_d_sphere(pattern, specification, collator.clone(), hooks.generated_keys_max())?
            }
            IndexKind::Wildcard => {
                let projection = descriptor.wildcard_projection.as_ref().map(|projection| projection.view());
                KeyGenerator::wildcard(pattern, projection, collator.clone())?
            }
            _ => KeyGenerator::new(pattern, descriptor.sparse, collator.clone())?,
        };
        let root = |path: &[u8]| BString::from(path.split_once_str(".").map_or(path, |(root, _)| root));
        let filter_roots = filter.as_ref().map(|filter| filter.roots());
        let looks_everywhere = looks_everywhere || matches!(filter_roots, Some(None));
        let mut roots: Vec<BString> = pattern.elements().map(|field| root(field.name)).collect();
        roots.extend(filter_roots.into_iter().flatten().flatten());
        // Which fields such an index looks at is not in its pattern.
        let refuses_decimals = descriptor.version == 1;
        Ok(IndexAccess { generator, filter, collator, roots: roots.into(), looks_everywhere, refuses_decimals })
    }

    /// Makes keys, whatever the filter says.
    pub fn generator(&self) -> &KeyGenerator {
        &self.generator
    }

    /// How its strings are compared; none for bytes.
    pub fn collator(&self) -> Option<&SharedCollator> {
        self.collator.as_ref()
    }

    /// True if the filter, where there is one, lets the document in.
    pub fn includes(&self, document: DocRef<'_>) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.matches(document))
    }

    /// The keys that the index has of a document.
    pub fn keys(&self, document: DocRef<'_>, keys: &mut KeySet) -> Result<()> {
        self.keys_for(document, Purpose::Adding, keys)
    }

    /// The same, saying why.
    pub fn keys_for(&self, document: DocRef<'_>, purpose: Purpose, keys: &mut KeySet) -> Result<()> {
        if !self.includes(document) {
            keys.clear();
            return Ok(());
        }
        self.generator.keys_for(document, purpose, keys)?;
        if self.refuses_decimals && purpose == Purpose::Adding {
            self.check_decimals(keys)?;
        }
        Ok(())
    }

    fn check_decimals(&self, keys: &KeySet) -> Result<()> {
        for key in keys.iter() {
            let values = to_doc(key.bytes, self.generator.ordering(), key.type_bits, Version::V1).unwrap_or_default();
            ensure!(
                !values.elements().any(|element| has_decimals(element.value)),
                ErrorCode::UnsupportedFormat,
                "Index version does not support NumberDecimal"
            );
        }
        Ok(())
    }

    /// False if the keys of both versions of a document are surely the same: the fields that they are made from, and those that
    /// the filter looks at, are equal, byte for byte.
    pub fn may_differ(&self, old: DocRef<'_>, new: DocRef<'_>) -> bool {
        let same = |root: &BString| match (old.get_raw(root), new.get_raw(root)) {
            (Some(old), Some(new)) => old.bytes == new.bytes,
            (None, None) => true,
            _ => false,
        };
        self.looks_everywhere || !self.roots.iter().all(same)
    }
}

fn has_decimals(value: Value<'_>) -> bool {
    match value {
        Value::Decimal(_) => true,
        Value::Document(document) => document.elements().any(|element| has_decimals(element.value)),
        Value::Array(values) => values.values().any(has_decimals),
        _ => false,
    }
}
