//! Keys of hashed indexes: at one path the hash of the value, at the others the value itself.
//!
//! Arrays are refused anywhere on the paths: the hash of an array tells nothing about its values. When keys are *removed* an
//! array on the way counts as null instead, so that entries which an old version let in can go.

use super::{KeySet, Purpose, SharedCollator};
use pando_base::{Error, Result};
use pando_doc::{
    Collator, DocBuilder, DocRef, FieldPath, HASH_SEED, RawElement, Value, ValueType, hash_element, hash_null,
};
use pando_keystring::KeyOrdering;

/// Makes the keys of one index.
#[derive(Clone)]
pub(super) struct HashedKeys {
    fields: Box<[HashedField]>,
    ordering: KeyOrdering,
    sparse: bool,
    collator: Option<SharedCollator>,
}

#[derive(Clone)]
struct HashedField {
    path: FieldPath,
    is_hashed: bool,
}

impl HashedKeys {
    pub(super) fn new(pattern: DocRef<'_>, sparse: bool, collator: Option<SharedCollator>) -> Result<HashedKeys> {
        let fields = pattern.elements().map(|field| {
            Ok(HashedField { path: FieldPath::lenient(field.name)?, is_hashed: !field.value.is_number() })
        });
        let ordering = KeyOrdering::from_pattern(pattern)?;
        Ok(HashedKeys { fields: fields.collect::<Result<_>>()?, ordering, sparse, collator })
    }

    pub(super) fn ordering(&self) -> KeyOrdering {
        self.ordering
    }

    pub(super) fn keys(&self, doc: DocRef<'_>, purpose: Purpose, keys: &mut KeySet) -> Result<()> {
        keys.begin(self.ordering);
        let mut missing = 0;
        for field in &self.fields {
            let element = element_at(doc, &field.path, purpose)?;
            missing += usize::from(matches!(element, Found::Nothing));
            self.append(field, element, keys)?;
        }
        if !(self.sparse && missing == self.fields.len()) {
            keys.end();
        }
        Ok(())
    }

    fn append(&self, field: &HashedField, found: Found<'_>, keys: &mut KeySet) -> Result<()> {
        let collator = self.collator.as_deref().map(|collator| collator as &dyn Collator);
        match (found, field.is_hashed) {
            (Found::Nothing | Found::Null, true) => keys.append(Value::Int64(hash_null(HASH_SEED)), None),
            (Found::Nothing | Found::Null, false) => keys.append(Value::Null, None),
            (Found::Element(element), true) => {
                let hash = match collator {
                    None => hash_element(element, HASH_SEED),
                    Some(collator) => hash_collated(element, collator)?,
                };
                keys.append(Value::Int64(hash), None)
            }
            (Found::Element(element), false) => keys.append(element.value().unwrap_or(Value::Null), collator),
        }
    }
}

/// What lies at a path.
enum Found<'a> {
    Element(RawElement<'a>),
    /// Counts as null, but not as missing.
    Null,
    Nothing,
}

fn element_at<'a>(doc: DocRef<'a>, path: &FieldPath, purpose: Purpose) -> Result<Found<'a>> {
    let mut current = doc;
    for (position, part) in path.parts().enumerate() {
        let is_last = position + 1 == path.part_count();
        match current.get_raw(part) {
            None => return Ok(Found::Nothing),
            Some(element) if element.value_type == ValueType::Array => {
                if purpose == Purpose::Removing && !is_last {
                    return Ok(Found::Null);
                }
                return Err(array_found(path, position));
            }
            Some(element) if is_last => return Ok(Found::Element(element)),
            Some(element) => match element.value() {
                Some(Value::Document(nested)) => current = nested,
                _ => return Ok(Found::Nothing),
            },
        }
    }
    Ok(Found::Nothing)
}

fn array_found(path: &FieldPath, position: usize) -> Error {
    let parts: Vec<&[u8]> = path.parts().take(position + 1).map(|part| &**part).collect();
    let shown = bstr::BString::from(bstr::join(".", parts));
    Error::location(
        16766,
        format!("Error: hashed indexes do not currently support array values. Found array at path: {shown}"),
    )
}

/// Strings are hashed as their sort keys, so that equal ones hash alike.
fn hash_collated(element: RawElement<'_>, collator: &dyn Collator) -> Result<i64> {
    let mut out = DocBuilder::new();
    append_collated(&mut out, b"", element.value().unwrap_or(Value::Null), collator)?;
    let doc = out.finish();
    Ok(doc
        .view()
        .raw_elements()
        .next()
        .map_or_else(|| hash_null(HASH_SEED), |element| hash_element(element, HASH_SEED)))
}

fn append_collated(out: &mut DocBuilder, name: &[u8], value: Value<'_>, collator: &dyn Collator) -> Result<()> {
    match value {
        Value::String(text) => out.append(name, Value::String(collator.sort_key(text)[..].into())),
        Value::Symbol(_) => return Err(pando_keystring::Error::SymbolWithCollation.into()),
        Value::Document(nested) => {
            let open = out.begin_document(name);
            nested.elements().try_for_each(|field| append_collated(out, field.name, field.value, collator))?;
            out.end(open);
        }
        Value::Array(nested) => {
            let open = out.begin_array(name);
            nested.as_doc().elements().try_for_each(|field| append_collated(out, field.name, field.value, collator))?;
            out.end(open);
        }
        other => out.append(name, other),
    }
    Ok(())
}
