//! A projection and a document, walked side by side.

use super::ProjectionKind;
use super::array_operators::elem_match;
use super::tree::{Branch, Child};
use crate::limits::check_value;
use crate::metadata::is_metadata;
use pando_base::{Result, operation};
use pando_doc::{ArrayBuilder, ArrayRef, Doc, DocBuilder, DocRef, OwnedValue, RawElement, Value, ValueType};

/// So many bytes of a document are gone over in a step when a field is looked for.
const FIELD_BYTES: usize = 256;

pub(super) fn apply(kind: ProjectionKind, root: &Branch, doc: DocRef<'_>) -> Result<Doc> {
    let mut builder = DocBuilder::with_capacity(doc.size_bytes());
    Walk { kind, root: doc, is_slicing: true }.document(root, doc, &mut builder)?;
    operation::ended()?;
    Ok(builder.finish())
}

struct Walk<'d> {
    kind: ProjectionKind,
    /// What expressions see.
    root: DocRef<'d>,
    /// False in an array that is itself a value of an array: `$slice` does not look there.
    is_slicing: bool,
}

impl Walk<'_> {
    /// Kept fields in their order, then what is computed.
    fn document(&self, branch: &Branch, doc: DocRef<'_>, builder: &mut DocBuilder) -> Result<()> {
        let in_place = self.kind != ProjectionKind::Inclusion;
        for element in doc.raw_elements() {
            operation::tick(1)?;
            match branch.get(element.name) {
                None if in_place || is_metadata(element.name) => builder.append_raw(element),
                None | Some(Child::Exclude) => {}
                Some(Child::Include) => builder.append_raw(element),
                Some(Child::Nested(nested)) => self.nested(nested, element, builder)?,
                Some(computed) if in_place => {
                    if let Some(value) = self.compute(computed, element.value())? {
                        builder.append(element.name, value);
                    }
                }
                Some(_) => {}
            }
        }
        for (name, child) in branch.children() {
            // A field is looked for among all.
            operation::tick(1 + (doc.size_bytes() / FIELD_BYTES) as u64)?;
            check_value(builder.size_bytes())?;
            let is_present = doc.contains(name);
            match child {
                Child::Nested(nested) if !is_present && nested.has_computed() => {
                    self.made(nested, name, builder)?;
                }
                child if child.is_computed() && !(in_place && is_present) => {
                    if let Some(value) = self.compute(child, doc.get(name))? {
                        builder.append(name, value);
                    }
                }
                _ => {}
            }
        }
        check_value(builder.size_bytes())
    }

    /// A nested document that only has computed fields.
    fn made(&self, branch: &Branch, name: &bstr::BString, builder: &mut DocBuilder) -> Result<()> {
        let mut nested = DocBuilder::new();
        self.document(branch, DocRef::EMPTY, &mut nested)?;
        let nested = nested.finish();
        // In `find` and `$project` a document stays even if nothing is left in it.
        builder.append(name, nested);
        Ok(())
    }

    fn compute(&self, child: &Child, value: Option<Value<'_>>) -> Result<Option<OwnedValue>> {
        match child {
            Child::Computed(expression) => Ok(expression.evaluate_document(self.root)?.into_value()),
            Child::Slice(_) if !self.is_slicing => Ok(value.map(Value::to_owned)),
            Child::Slice(slice) => Ok(value.map(|value| slice.apply(value).unwrap_or_else(|| value.to_owned()))),
            Child::ElemMatch(expression) => value.map_or(Ok(None), |value| elem_match(expression, value)),
            _ => Ok(None),
        }
    }

    /// The fields of a nested document, or of each document of an array.
    fn nested(&self, branch: &Branch, element: RawElement<'_>, builder: &mut DocBuilder) -> Result<()> {
        match (element.value_type, element.value()) {
            (ValueType::Document, Some(Value::Document(doc))) => {
                let open = builder.begin_document(element.name);
                self.document(branch, doc, builder)?;
                builder.end(open);
            }
            (ValueType::Array, Some(Value::Array(array))) => {
                builder.append(element.name, self.array(branch, array)?);
            }
            _ if self.kind != ProjectionKind::Exclusion && branch.has_computed() => {
                let mut nested = DocBuilder::new();
                self.document(branch, DocRef::EMPTY, &mut nested)?;
                builder.append(element.name, nested.finish());
            }
            _ if self.kind != ProjectionKind::Inclusion => builder.append_raw(element),
            _ => {}
        }
        Ok(())
    }

    fn array(&self, branch: &Branch, array: ArrayRef<'_>) -> Result<pando_doc::Array> {
        let mut builder = ArrayBuilder::new();
        for value in array.values() {
            operation::tick(1)?;
            check_value(builder.size_bytes())?;
            match value {
                Value::Document(doc) => {
                    let mut nested = DocBuilder::with_capacity(doc.size_bytes());
                    self.document(branch, doc, &mut nested)?;
                    builder.push(nested.finish());
                }
                Value::Array(nested) => builder.push(Walk { is_slicing: false, ..*self }.array(branch, nested)?),
                _ if self.kind != ProjectionKind::Exclusion && branch.has_computed() => {
                    let mut nested = DocBuilder::new();
                    self.document(branch, DocRef::EMPTY, &mut nested)?;
                    builder.push(nested.finish());
                }
                value if self.kind != ProjectionKind::Inclusion => builder.push(value),
                _ => {}
            }
        }
        Ok(builder.finish())
    }
}
