//! Keys of text indexes: one for each term of the document, with its score, between the values of the other fields.
//!
//! The other fields must not be arrays: a key has one value of each. A document without terms has no keys.

use super::KeySet;
use bstr::BStr;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{DocRef, FieldPath, Value};
use pando_keystring::KeyOrdering;
use pando_text::{TextSpec, term_key};

/// Makes the keys of one index.
#[derive(Clone)]
pub(super) struct TextKeys {
    before: Box<[FieldPath]>,
    after: Box<[FieldPath]>,
    spec: TextSpec,
    pub(super) ordering: KeyOrdering,
}

impl TextKeys {
    pub(super) fn new(pattern: DocRef<'_>, specification: DocRef<'_>) -> Result<TextKeys> {
        let (mut before, mut after, mut is_behind) = (Vec::new(), Vec::new(), false);
        for field in pattern.elements() {
            if field.name == "_fts" || field.name == "_ftsx" {
                is_behind = true;
                continue;
            }
            let path = FieldPath::lenient(field.name)?;
            if is_behind { after.push(path) } else { before.push(path) }
        }
        Ok(TextKeys {
            before: before.into(),
            after: after.into(),
            spec: TextSpec::parse(specification)?,
            ordering: KeyOrdering::from_pattern(pattern)?,
        })
    }

    pub(super) fn keys(&self, document: DocRef<'_>, keys: &mut KeySet) -> Result<()> {
        let values = |paths: &[FieldPath]| {
            paths.iter().map(|path| plain_value(document, path)).collect::<Result<Vec<Value<'_>>>>()
        };
        let (before, after) = (values(&self.before)?, values(&self.after)?);
        for (term, score) in self.spec.terms(document)? {
            keys.begin(self.ordering);
            before.iter().try_for_each(|value| keys.append(*value, None))?;
            let term = term_key(&term);
            keys.append(Value::String(BStr::new(&term)), None)?;
            keys.append(Value::Double(score), None)?;
            after.iter().try_for_each(|value| keys.append(*value, None))?;
            keys.end();
        }
        keys.sort();
        Ok(())
    }
}

/// The value at a path without arrays; null where there is none.
fn plain_value<'d>(document: DocRef<'d>, path: &FieldPath) -> Result<Value<'d>> {
    let mut value = Value::Document(document);
    for part in path.parts() {
        let Value::Document(nested) = value else { return Ok(Value::Null) };
        value = nested.get(part).unwrap_or(Value::Null);
        if matches!(value, Value::Array(_)) {
            let reason = format!("Field '{path}' of text index contains an array in document: {document}");
            return Err(Error::new(ErrorCode::CannotBuildIndexKeys, reason));
        }
    }
    Ok(value)
}
