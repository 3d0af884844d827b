//! A list of documents that a client sent either as a document sequence or as an array in the body.
//!
//! Commands such as insert do not care which; this is one view of both. The bytes are validated already, so iterating
//! costs a length check for each document and cannot fail. An array's elements are checked to be documents when the
//! view is made.

use crate::reader::Reader;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{ArrayRef, DocRef, RawElements, Value, ValueType};

/// Several documents in a message.
#[derive(Clone, Copy, Debug)]
pub struct Documents<'a> {
    source: Source<'a>,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Sequence(&'a [u8]),
    Array(ArrayRef<'a>),
}

impl<'a> Documents<'a> {
    /// Documents one after the other, validated before.
    pub(crate) fn in_sequence(bytes: &'a [u8], count: usize) -> Documents<'a> {
        Documents { source: Source::Sequence(bytes), count }
    }

    /// The documents of an array. `field` (such as `insert.documents`) is what an error names.
    pub fn in_array(value: Value<'a>, field: impl Fn() -> String) -> Result<Documents<'a>> {
        let Value::Array(array) = value else {
            return Err(wrong_type(&field(), value.value_type(), "array"));
        };
        let mut count = 0;
        for element in array.as_doc().raw_elements() {
            if element.value_type != ValueType::Document {
                return Err(wrong_type(&format!("{}.{count}", field()), element.value_type, "object"));
            }
            count += 1;
        }
        Ok(Documents { source: Source::Array(array), count })
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.count
    }

    /// None at all?
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The bytes of all of them together, roughly: an array has names as well.
    pub fn size_bytes(&self) -> usize {
        match self.source {
            Source::Sequence(bytes) => bytes.len(),
            Source::Array(array) => array.bytes().len(),
        }
    }

    /// One after the other.
    pub fn iter(&self) -> DocumentsIter<'a> {
        let walk = match self.source {
            Source::Sequence(bytes) => Walk::Sequence(Reader::new(bytes)),
            Source::Array(array) => Walk::Array(array.as_doc().raw_elements()),
        };
        DocumentsIter { walk, left: self.count }
    }
}

impl<'a> IntoIterator for Documents<'a> {
    type Item = DocRef<'a>;
    type IntoIter = DocumentsIter<'a>;

    fn into_iter(self) -> DocumentsIter<'a> {
        self.iter()
    }
}

/// Iterates over `Documents`.
#[derive(Clone, Debug)]
pub struct DocumentsIter<'a> {
    walk: Walk<'a>,
    left: usize,
}

#[derive(Clone, Debug)]
enum Walk<'a> {
    Sequence(Reader<'a>),
    Array(RawElements<'a>),
}

impl<'a> Iterator for DocumentsIter<'a> {
    type Item = DocRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<DocRef<'a>> {
        let bytes = match &mut self.walk {
            Walk::Sequence(reader) => reader.document_bytes()?,
            Walk::Array(elements) => elements.next()?.value_bytes,
        };
        debug_assert!(self.left > 0, "the count was taken from the same bytes");
        self.left = self.left.saturating_sub(1);
        Some(DocRef::trusted(bytes))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for DocumentsIter<'_> {}

fn wrong_type(field: &str, found: ValueType, expected: &str) -> Error {
    let reason = format!("BSON field '{field}' is the wrong type '{}', expected type '{expected}'", found.name());
    Error::new(ErrorCode::TypeMismatch, reason)
}
