//! How a diff is written, and its reading where it has parts in a fixed order.

use super::compute::{ArrayNode, Change, DocumentNode, Node};
use bstr::{BStr, ByteSlice};
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, DocRef, RawElement, RawElements, Value, ValueType};

pub(super) const DELETES: &str = "d";
pub(crate) const UPDATES: &str = "u";
pub(super) const INSERTS: &str = "i";
pub(super) const INNER_PREFIX: u8 = b's';
pub(super) const SET_PREFIX: u8 = b'u';
pub(super) const ARRAY_MARK: &str = "a";
pub(super) const LENGTH: &str = "l";

/// An empty document.
pub(super) const DOCUMENT_BASE_BYTES: usize = 5;
/// An empty document and `a: true`, as MongoDB counts it.
pub(super) const ARRAY_BASE_BYTES: usize = 9;
/// A section: type, one-letter name, an empty document.
pub(super) const SECTION_BYTES: usize = 8;
/// `l` with its length.
pub(super) const RESIZE_BYTES: usize = 7;

/// An array index in decimal, after a letter.
pub(super) struct Digits {
    text: [u8; 21],
    start: usize,
}

impl Digits {
    pub(super) fn of(mut index: usize) -> Digits {
        let mut digits = Digits { text: [0; 21], start: 21 };
        loop {
            digits.push((index % 10) as u8 + b'0');
            index /= 10;
            if index == 0 {
                return digits;
            }
        }
    }

    fn with_prefix(mut self, prefix: u8) -> Digits {
        self.push(prefix);
        self
    }

    /// In front of the others.
    fn push(&mut self, byte: u8) {
        debug_assert!(self.start > 0, "twenty digits and a letter have room");
        self.start = self.start.saturating_sub(1);
        if let Some(place) = self.text.get_mut(self.start) {
            *place = byte;
        }
    }

    pub(super) fn as_bstr(&self) -> &BStr {
        self.text.get(self.start..).unwrap_or_default().as_bstr()
    }
}

/// Writes a diff as a document.
pub(super) fn write(diff: &DocumentNode<'_>) -> Doc {
    let mut builder = DocBuilder::new();
    write_document(diff, &mut builder);
    builder.finish()
}

pub(crate) fn write_document(node: &DocumentNode<'_>, builder: &mut DocBuilder) {
    if !node.deletes.is_empty() {
        let section = builder.begin_document(DELETES);
        node.deletes.iter().for_each(|name| builder.append(name, false));
        builder.end(section);
    }
    write_section(UPDATES, &node.updates, builder);
    write_section(INSERTS, &node.inserts, builder);
    let mut name = Vec::new();
    for (field, inner) in &node.inner {
        name.clear();
        name.push(INNER_PREFIX);
        name.extend_from_slice(field);
        write_inner(&name, inner, builder);
    }
}

fn write_section(name: &str, elements: &[RawElement<'_>], builder: &mut DocBuilder) {
    if !elements.is_empty() {
        let section = builder.begin_document(name);
        elements.iter().for_each(|element| builder.append_raw(*element));
        builder.end(section);
    }
}

fn write_array(node: &ArrayNode<'_>, builder: &mut DocBuilder) {
    builder.append(ARRAY_MARK, true);
    if let Some(length) = node.length {
        builder.append(LENGTH, length as i32);
    }
    for (index, change) in &node.changes {
        let digits = Digits::of(*index);
        match change {
            Change::Set(element) => builder.append_raw_as(digits.with_prefix(SET_PREFIX).as_bstr(), *element),
            Change::Inner(inner) => write_inner(digits.with_prefix(INNER_PREFIX).as_bstr(), inner, builder),
        }
    }
}

fn write_inner(name: &[u8], node: &Node<'_>, builder: &mut DocBuilder) {
    let open = builder.begin_document(name);
    match node {
        Node::Document(node) => write_document(node, builder),
        Node::Array(node) => write_array(node, builder),
    }
    builder.end(open);
}

/// A diff that was read: of a document or of an array?
#[derive(Clone)]
pub(super) enum DiffRef<'a> {
    Document(DocumentDiff<'a>),
    Array(ArrayDiff<'a>),
}

/// The parts of a document's diff.
#[derive(Clone, Default)]
pub(super) struct DocumentDiff<'a> {
    pub(super) deletes: Option<DocRef<'a>>,
    pub(super) updates: Option<DocRef<'a>>,
    pub(super) inserts: Option<DocRef<'a>>,
    pub(super) inner: Vec<(&'a BStr, DocRef<'a>)>,
}

/// The parts of an array's diff.
#[derive(Clone)]
pub(super) struct ArrayDiff<'a> {
    pub(super) length: Option<usize>,
    changes: RawElements<'a>,
}

/// One change of an array.
pub(super) enum ArrayChange<'a> {
    Set(RawElement<'a>),
    Inner(DocRef<'a>),
}

impl<'a> DiffRef<'a> {
    pub(super) fn read(diff: DocRef<'a>) -> Result<DiffRef<'a>> {
        match diff.raw_elements().next() {
            None => Err(Error::location(4770500, "Expected diff to be non-empty")),
            Some(first) if first.name == ARRAY_MARK => ArrayDiff::read(diff).map(DiffRef::Array),
            Some(_) => DocumentDiff::read(diff).map(DiffRef::Document),
        }
    }
}

impl<'a> DocumentDiff<'a> {
    pub(super) fn read(diff: DocRef<'a>) -> Result<DocumentDiff<'a>> {
        let mut parts = DocumentDiff::default();
        let mut reached = 0;
        for element in diff.raw_elements() {
            let Some((letter, field)) = element.name.split_first() else {
                return Err(Error::location(4770505, "Expected sections field names in diff to be non-empty"));
            };
            let section = DocRef::trusted(element.value_bytes);
            let order = match letter {
                b'd' => 1,
                b'u' => 2,
                b'i' => 3,
                &INNER_PREFIX => 4,
                _ => 0,
            };
            let is_in_order = order > reached || (order == 4 && reached == 4);
            if !is_in_order || (order < 4 && !field.is_empty()) {
                return Err(Error::location(4770503, format!("Unexpected section: {} in document diff", element.name)));
            }
            if element.value_type != ValueType::Document {
                return Err(Error::location(4770507, format!("Expected {} section to be an object", element.name)));
            }
            reached = order;
            match order {
                1 => parts.deletes = Some(section),
                2 => parts.updates = Some(section),
                3 => parts.inserts = Some(section),
                _ => parts.inner.push((field.as_bstr(), section)),
            }
        }
        Ok(parts)
    }
}

impl<'a> ArrayDiff<'a> {
    fn read(diff: DocRef<'a>) -> Result<ArrayDiff<'a>> {
        let mut changes = diff.raw_elements();
        if changes.next().and_then(RawElement::value) != Some(Value::Bool(true)) {
            return Err(Error::location(4770520, "Expected array header to be value true"));
        }
        let mut ahead = changes.clone();
        let Some(first) = ahead.next().filter(|first| first.name == LENGTH) else {
            return Ok(ArrayDiff { length: None, changes });
        };
        let Some(Value::Int32(length)) = first.value() else {
            return Err(Error::location(4770507, "Expected l section to be an int"));
        };
        let length = usize::try_from(length).map_err(|_| Error::bad_value("Negative array length in diff"))?;
        Ok(ArrayDiff { length: Some(length), changes: ahead })
    }

    /// The next change and its index.
    pub(super) fn next_change(&mut self) -> Result<Option<(usize, ArrayChange<'a>)>> {
        let Some(element) = self.changes.next() else {
            return Ok(None);
        };
        let Some((letter, digits)) = element.name.split_first().filter(|(_, digits)| !digits.is_empty()) else {
            let reason = "expected field name to be at least two characters long";
            return Err(Error::location(4770521, reason));
        };
        let index = index_from(digits.as_bstr())?;
        match *letter {
            SET_PREFIX => Ok(Some((index, ArrayChange::Set(element)))),
            INNER_PREFIX if element.value_type == ValueType::Document => {
                Ok(Some((index, ArrayChange::Inner(DocRef::trusted(element.value_bytes)))))
            }
            INNER_PREFIX => Err(Error::location(4770501, format!("expected sub diff at index {index}"))),
            _ => Err(Error::location(4770502, format!("Expected either 'u' or 's' at index {index}"))),
        }
    }
}

fn index_from(digits: &BStr) -> Result<usize> {
    let is_number = digits.iter().all(u8::is_ascii_digit);
    let index = digits.to_str().ok().filter(|_| is_number).and_then(|text| text.parse().ok());
    index.ok_or_else(|| Error::location(4770512, format!("Expected integer but got {digits}")))
}
