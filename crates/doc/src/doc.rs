//! Documents and arrays that own their bytes, cheap to clone and to hand to another thread.

use crate::validate::Limits;
use crate::{ArrayRef, DocRef, Elements, Value, view};
use bytes::Bytes;
use pando_base::Result;

/// A validated document. A clone shares the bytes. Equality is that of bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Doc {
    bytes: Bytes,
}

/// A validated array. A clone shares the bytes. Equality is that of bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Array {
    doc: Doc,
}

impl Doc {
    /// The document without fields.
    pub const fn new() -> Doc {
        Doc { bytes: Bytes::from_static(view::EMPTY) }
    }

    /// Validates the bytes as exactly one document, with the default limits.
    pub fn parse(bytes: impl Into<Bytes>) -> Result<Doc> {
        Doc::parse_with(bytes, &Limits::default())
    }

    /// Validates the bytes as exactly one document.
    pub fn parse_with(bytes: impl Into<Bytes>, limits: &Limits) -> Result<Doc> {
        let bytes = bytes.into();
        DocRef::parse_with(&bytes, limits)?;
        Ok(Doc { bytes })
    }

    /// A document of bytes that were validated when they were stored. Nothing is checked; if they are damaged, fields
    /// are missing.
    pub fn trusted(bytes: impl Into<Bytes>) -> Doc {
        let bytes = bytes.into();
        Doc { bytes: if bytes.len() < view::EMPTY.len() { Bytes::from_static(view::EMPTY) } else { bytes } }
    }

    /// The document in place.
    #[inline]
    pub fn view(&self) -> DocRef<'_> {
        DocRef::trusted(&self.bytes)
    }

    /// The encoded document.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The encoded document, shared.
    pub fn shared_bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The encoded document, given away.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// How long the encoded document is.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// True without fields.
    pub fn is_empty(&self) -> bool {
        self.view().is_empty()
    }

    /// The fields in order.
    #[inline]
    pub fn elements(&self) -> Elements<'_> {
        self.view().elements()
    }

    /// The value of the first field with this name.
    #[inline]
    pub fn get(&self, name: impl AsRef<[u8]>) -> Option<Value<'_>> {
        self.view().get(name)
    }

    /// The part of the shared bytes that a view into this document has; a copy if it is of something else.
    pub fn share(&self, part: &[u8]) -> Bytes {
        let (whole, part_range) = (self.bytes.as_ptr_range(), part.as_ptr_range());
        if part_range.start >= whole.start && part_range.end <= whole.end {
            self.bytes.slice_ref(part)
        } else {
            Bytes::copy_from_slice(part)
        }
    }
}

impl Default for Doc {
    fn default() -> Doc {
        Doc::new()
    }
}

impl From<DocRef<'_>> for Doc {
    fn from(doc: DocRef<'_>) -> Doc {
        Doc { bytes: Bytes::copy_from_slice(doc.bytes()) }
    }
}

impl DocRef<'_> {
    /// A copy that owns its bytes.
    pub fn to_doc(self) -> Doc {
        Doc::from(self)
    }
}

impl Array {
    /// The array without values.
    pub const fn new() -> Array {
        Array { doc: Doc::new() }
    }

    /// An array whose bytes were checked before.
    pub fn trusted(bytes: impl Into<Bytes>) -> Array {
        Array { doc: Doc::trusted(bytes) }
    }

    /// Sees a document's values as an array.
    pub fn from_doc(doc: Doc) -> Array {
        Array { doc }
    }

    /// The array in place.
    #[inline]
    pub fn view(&self) -> ArrayRef<'_> {
        ArrayRef::from_doc(self.doc.view())
    }

    /// The array as the document that it is on the wire.
    pub fn as_doc(&self) -> &Doc {
        &self.doc
    }

    /// The values in order.
    pub fn values(&self) -> impl Iterator<Item = Value<'_>> + Clone {
        self.view().values()
    }

    /// How many values there are; walks over them.
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// True without values.
    pub fn is_empty(&self) -> bool {
        self.doc.is_empty()
    }
}

impl Default for Array {
    fn default() -> Array {
        Array::new()
    }
}

impl From<ArrayRef<'_>> for Array {
    fn from(array: ArrayRef<'_>) -> Array {
        Array { doc: Doc::from(array.as_doc()) }
    }
}

impl ArrayRef<'_> {
    /// A copy that owns its bytes.
    pub fn to_array(self) -> Array {
        Array::from(self)
    }
}
