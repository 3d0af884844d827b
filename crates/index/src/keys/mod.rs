//! From a document to the keys of an index.
//!
//! Pure: no storage, no catalog. A [`KeyGenerator`] is made once for an index and shared; it writes into a [`KeySet`] that
//! the caller uses again, so that a document without arrays costs no allocation.
//!
//! Kinds of index that are not built yet have a row in [`KeyGenerator::new`] and an error that names them; a new kind is a
//! variant here and a file beside `btree.rs`.

mod along_path;
mod btree;
mod expand;
mod hashed;
mod key_set;
#[cfg(test)]
mod tests;
mod text;
mod two_d;
mod two_d_sphere;
mod wildcard;

pub use along_path::values_along;
pub use key_set::{Key, KeySet};

use btree::BtreeKeys;
use hashed::HashedKeys;
use pando_base::{ErrorCode, Result, bail};
use pando_catalog::IndexKind;
use pando_doc::DocRef;
pub use pando_doc::SharedCollator;
use pando_keystring::KeyOrdering;
use text::TextKeys;
use two_d::TwoDKeys;
use two_d_sphere::TwoDSphereKeys;
use wildcard::WildcardKeys;
pub use wildcard::{WILDCARD_PATH_FIELD, WildcardFields, wildcard_key_pattern};

/// Why keys are made. Removing is more lenient, so that what should never have been indexed can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Purpose {
    /// They are going to be written, or compared with what was.
    #[default]
    Adding,
    /// They are going to be removed.
    Removing,
}

/// Makes the keys of one index.
#[derive(Clone)]
pub struct KeyGenerator {
    kind: Kind,
    field_count: usize,
}

#[derive(Clone)]
enum Kind {
    Btree(BtreeKeys),
    Hashed(HashedKeys),
    Text(TextKeys),
    TwoD(TwoDKeys),
    TwoDSphere(TwoDSphereKeys),
    Wildcard(WildcardKeys),
}

impl KeyGenerator {
    /// The generator for a key pattern. Strings are compared by the collation, if there is one.
    pub fn new(pattern: DocRef<'_>, sparse: bool, collator: Option<SharedCollator>) -> Result<KeyGenerator> {
        let kind = match IndexKind::of_key_pattern(pattern) {
            Some(IndexKind::Btree) => Kind::Btree(BtreeKeys::new(pattern, sparse, collator)?),
            Some(IndexKind::Hashed) => Kind::Hashed(HashedKeys::new(pattern, sparse, collator)?),
            Some(IndexKind::Wildcard) => Kind::Wildcard(WildcardKeys::new(pattern, None, collator)?),
            Some(kind @ (IndexKind::Text | IndexKind::TwoD | IndexKind::TwoDSphere | IndexKind::TwoDSphereBucket)) => {
                bail!(
                    ErrorCode::CannotCreateIndex,
                    "Index type '{}' is not built yet, in the key pattern {pattern}",
                    kind.plugin_name()
                )
            }
            None => bail!(ErrorCode::CannotCreateIndex, "Unknown index plugin in the key pattern {pattern}"),
        };
        // The path of a wildcard is a component too.
        let field_count = pattern.field_count() + usize::from(matches!(kind, Kind::Wildcard(_)));
        Ok(KeyGenerator { kind, field_count })
    }

    /// The generator of a text index, which is made from the whole specification.
    pub fn text(pattern: DocRef<'_>, specification: DocRef<'_>) -> Result<KeyGenerator> {
        let kind = Kind::Text(TextKeys::new(pattern, specification)?);
        Ok(KeyGenerator { kind, field_count: pattern.field_count() })
    }

    /// The generator of a `2d` index, whose specification says how finely it divides the plane.
    pub fn two_d(pattern: DocRef<'_>, specification: DocRef<'_>) -> Result<KeyGenerator> {
        let kind = Kind::TwoD(TwoDKeys::new(pattern, specification)?);
        Ok(KeyGenerator { kind, field_count: pattern.field_count() })
    }

    /// The generator of a `2dsphere` index, whose specification says how finely shapes are covered. A document may have so many keys.
    pub fn two_d_sphere(
        pattern: DocRef<'_>,
        specification: DocRef<'_>,
        collator: Option<SharedCollator>,
        keys_max: usize,
    ) -> Result<KeyGenerator> {
        let kind = Kind::TwoDSphere(TwoDSphereKeys::new(pattern, specification, collator, keys_max)?);
        Ok(KeyGenerator { kind, field_count: pattern.field_count() })
    }

    /// The generator of a wildcard index, which may have a projection.
    pub fn wildcard(
        pattern: DocRef<'_>,
        projection: Option<DocRef<'_>>,
        collator: Option<SharedCollator>,
    ) -> Result<KeyGenerator> {
        let kind = Kind::Wildcard(WildcardKeys::new(pattern, projection, collator)?);
        Ok(KeyGenerator { kind, field_count: pattern.field_count() + 1 })
    }

    /// Puts the document's keys into the set, whatever it held before. On an error the set is empty.
    pub fn keys(&self, doc: DocRef<'_>, keys: &mut KeySet) -> Result<()> {
        self.keys_for(doc, Purpose::Adding, keys)
    }

    /// The same, saying why.
    pub fn keys_for(&self, doc: DocRef<'_>, purpose: Purpose, keys: &mut KeySet) -> Result<()> {
        keys.clear();
        let outcome = match &self.kind {
            Kind::Btree(generator) => generator.keys(doc, keys),
            Kind::Hashed(generator) => generator.keys(doc, purpose, keys),
            Kind::Text(generator) => generator.keys(doc, keys),
            Kind::TwoD(generator) => generator.keys(doc, keys),
            Kind::TwoDSphere(generator) => generator.keys(doc, purpose, keys),
            Kind::Wildcard(generator) => generator.keys(doc, keys),
        };
        if outcome.is_err() {
            keys.clear();
        }
        outcome
    }

    /// The directions of the key's components.
    pub fn ordering(&self) -> KeyOrdering {
        match &self.kind {
            Kind::Btree(generator) => generator.ordering,
            Kind::Hashed(generator) => generator.ordering(),
            Kind::Text(generator) => generator.ordering,
            Kind::TwoD(generator) => generator.ordering,
            Kind::TwoDSphere(generator) => generator.ordering,
            Kind::Wildcard(generator) => generator.ordering,
        }
    }

    /// How many components a key has.
    pub fn field_count(&self) -> usize {
        self.field_count
    }
}
