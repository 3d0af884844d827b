//! The keys that results are sorted by: bytes whose order is the wanted one.
//!
//! A sort sees arrays as an index does: of all keys that an index with this pattern would have for the document, the first
//! counts. So the keys are made by the index's own generator.

use super::Member;
use crate::request::SortPattern;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{Collator, Doc, DocRef, OwnedValue};
use pando_expr::SharedCollator;
use pando_expr::metadata::MetaSet;
use pando_index::{KeyGenerator, KeySet};
use pando_keystring::{Discriminator, KeyOrdering, StackBuilder, Version};

/// Makes sort keys.
pub struct SortKeyGenerator {
    generator: KeyGenerator,
    pattern: SortPattern,
    ordering: KeyOrdering,
    collator: Option<SharedCollator>,
    keys: KeySet,
}

impl SortKeyGenerator {
    /// Keys for this order.
    pub fn new(pattern: &SortPattern, collator: Option<SharedCollator>) -> Result<SortKeyGenerator> {
        let document = pattern.to_key_pattern();
        let shared = collator.clone().map(|collator| collator as pando_index::SharedCollator);
        let generator = KeyGenerator::new(document.view(), false, shared)?;
        let ordering = generator.ordering();
        Ok(SortKeyGenerator { generator, pattern: pattern.clone(), ordering, collator, keys: KeySet::new() })
    }

    /// The key of a document. If the order is by something else too, that has to be in it: see [`SortPattern::to_key_pattern`].
    pub fn of_document(&mut self, document: DocRef<'_>) -> Result<Box<[u8]>> {
        self.generator.keys(document, &mut self.keys).map_err(|error| match error.code() {
            ErrorCode::CannotIndexParallelArrays => Error::bad_value("cannot sort with keys that are parallel arrays"),
            _ => error,
        })?;
        let first = self.keys.iter().next();
        debug_assert!(first.is_some(), "every document has a key in an index that is not sparse");
        Ok(first.map_or_else(Box::default, |key| Box::from(key.bytes)))
    }

    /// The values that a document is sorted by.
    pub fn values(&mut self, document: DocRef<'_>) -> Result<Vec<OwnedValue>> {
        self.of_document(document)?;
        let Some(key) = self.keys.iter().next() else { return Ok(Vec::new()) };
        Ok(pando_keystring::to_values(key.bytes, self.ordering, key.type_bits, Version::V1)?)
    }

    /// The key of a found record: from its document, or else from the key that it was found by.
    pub fn of_member(&mut self, member: &Member) -> Result<Box<[u8]>> {
        if self.pattern.needs_metadata() {
            let wanted = self.pattern.metadata().fold(MetaSet::default(), MetaSet::with);
            return self.of_document(member.with_metadata(wanted, None)?.view());
        }
        match (&member.document, &member.key) {
            (Some(document), _) => self.of_document(document.view()),
            (None, Some(key)) => self.of_values(&key.to_doc()?),
            (None, None) => Err(Error::internal("a result without document and key cannot be sorted")),
        }
    }

    /// The key from values that stand under whole paths.
    fn of_values(&self, values: &Doc) -> Result<Box<[u8]>> {
        let mut builder = StackBuilder::new(Version::V1, self.ordering);
        for path in self.pattern.paths() {
            let value = values.get(path.text()).unwrap_or(pando_doc::Value::Null);
            // The keys of a collated index are sort keys already.
            builder.append(value)?;
        }
        builder.finish(Discriminator::Inclusive);
        Ok(Box::from(builder.bytes()))
    }

    /// The collation of the order.
    pub fn collator(&self) -> Option<&dyn Collator> {
        self.collator.as_deref().map(|collator| collator as &dyn Collator)
    }
}
