//! Documents of a column that look alike, as one stream for each scalar in them.
//!
//! The reference has every field that one of them has, in an order that serves all. A document that does not fit ends the run. A field
//! that a document lacks is missing in its stream; what cannot be told that way (an empty document beside a full one, a scalar beside a
//! document) does not fit.

use super::Encoded;
use super::blocks::{Block, encode_stream};
use bstr::BStr;
use pando_doc::{DocRef, RawElement, ValueType};
use std::collections::{HashMap, HashSet};

/// So many streams at most.
const STREAMS_MAX: usize = 256;

/// A field of the reference.
#[derive(Clone, Debug)]
pub(super) enum Node<'a> {
    Scalar { name: &'a BStr, value: Encoded<'a> },
    Nested { name: &'a BStr, value_type: ValueType, fields: Vec<Node<'a>> },
}

impl<'a> Node<'a> {
    fn of(element: RawElement<'a>) -> Node<'a> {
        match nested(element) {
            Some(doc) => Node::Nested { name: element.name, value_type: element.value_type, fields: nodes(doc) },
            None => Node::Scalar { name: element.name, value: encoded(element) },
        }
    }

    fn name(&self) -> &'a BStr {
        match self {
            Node::Scalar { name, .. } | Node::Nested { name, .. } => name,
        }
    }

    fn scalar_count(&self) -> usize {
        match self {
            Node::Scalar { .. } => 1,
            Node::Nested { fields, .. } => fields.iter().map(Node::scalar_count).sum(),
        }
    }

    /// True if a document without fields is somewhere in it: it cannot be missing.
    fn has_empty(&self) -> bool {
        match self {
            Node::Scalar { .. } => false,
            Node::Nested { fields, .. } => fields.is_empty() || fields.iter().any(Node::has_empty),
        }
    }
}

fn encoded(element: RawElement<'_>) -> Encoded<'_> {
    Encoded { value_type: element.value_type, bytes: element.value_bytes }
}

fn nested(element: RawElement<'_>) -> Option<DocRef<'_>> {
    matches!(element.value_type, ValueType::Document | ValueType::Array).then(|| DocRef::trusted(element.value_bytes))
}

fn nodes(doc: DocRef<'_>) -> Vec<Node<'_>> {
    doc.raw_elements().map(Node::of).collect()
}

/// Documents that are written together.
pub(super) struct Interleaving<'a> {
    root: ValueType,
    reference: Vec<Node<'a>>,
    /// The documents, or that there is none.
    documents: Vec<Option<DocRef<'a>>>,
}

impl<'a> Interleaving<'a> {
    /// Begins with a document; none if it has no scalars or too many.
    pub(super) fn begin(root: ValueType, document: DocRef<'a>) -> Option<Interleaving<'a>> {
        let reference = nodes(document);
        let count: usize = reference.iter().map(Node::scalar_count).sum();
        (1..=STREAMS_MAX).contains(&count).then(|| Interleaving { root, reference, documents: vec![Some(document)] })
    }

    /// Takes a document; false if it does not fit.
    pub(super) fn take(&mut self, root: ValueType, document: DocRef<'a>) -> bool {
        if root != self.root || document.is_empty() {
            return false;
        }
        if !fits(&self.reference, document) {
            let Some(merged) = merge(&self.reference, document) else { return false };
            if merged.iter().map(Node::scalar_count).sum::<usize>() > STREAMS_MAX {
                return false;
            }
            self.reference = merged;
        }
        self.documents.push(Some(document));
        true
    }

    /// Takes a missing document; false if that does not fit.
    pub(super) fn skip(&mut self) -> bool {
        let may = !self.reference.iter().any(Node::has_empty);
        if may {
            self.documents.push(None);
        }
        may
    }

    /// Writes them.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(if self.root == ValueType::Array { super::INTERLEAVED_ARRAYS } else { super::INTERLEAVED_OBJECTS });
        write_reference(&self.reference, out);
        let count: usize = self.reference.iter().map(Node::scalar_count).sum();
        let mut references = Vec::with_capacity(count);
        collect_references(&self.reference, &mut references);
        let mut streams: Vec<Vec<Option<Encoded<'_>>>> = vec![Vec::with_capacity(self.documents.len()); count];
        let mut row = Vec::with_capacity(count);
        for document in &self.documents {
            row.clear();
            flatten(&self.reference, *document, &mut row);
            for (stream, value) in streams.iter_mut().zip(&row) {
                stream.push(*value);
            }
        }
        let mut blocks: Vec<(usize, usize, Block)> = Vec::new();
        for (number, (stream, reference)) in streams.iter().zip(references).enumerate() {
            blocks.extend(encode_stream(stream, Some(reference)).into_iter().map(|block| (block.start, number, block)));
        }
        // A reader meets them by place, then by stream.
        blocks.sort_by_key(|(start, number, _)| (*start, *number));
        blocks.iter().for_each(|(_, _, block)| out.extend_from_slice(&block.bytes));
        out.push(0);
    }
}

fn write_reference(fields: &[Node<'_>], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    for field in fields {
        let value_type = match field {
            Node::Scalar { value, .. } => value.value_type,
            Node::Nested { value_type, .. } => *value_type,
        };
        out.push(value_type as u8);
        out.extend_from_slice(field.name());
        out.push(0);
        match field {
            Node::Scalar { value, .. } => out.extend_from_slice(value.bytes),
            Node::Nested { fields, .. } => write_reference(fields, out),
        }
    }
    out.push(0);
    let size_bytes = i32::try_from(out.len() - start).unwrap_or(i32::MAX);
    if let Some(length) = out.get_mut(start..start + 4) {
        length.copy_from_slice(&size_bytes.to_le_bytes());
    }
}

fn collect_references<'a>(fields: &[Node<'a>], out: &mut Vec<Encoded<'a>>) {
    for field in fields {
        match field {
            Node::Scalar { value, .. } => out.push(*value),
            Node::Nested { fields, .. } => collect_references(fields, out),
        }
    }
}

/// The document's scalars, one for each of the reference.
fn flatten<'a>(fields: &[Node<'_>], document: Option<DocRef<'a>>, out: &mut Vec<Option<Encoded<'a>>>) {
    let mut elements = document.map(|document| document.raw_elements()).into_iter().flatten().peekable();
    for field in fields {
        let same = elements.next_if(|element| element.name == field.name());
        match field {
            Node::Scalar { .. } => out.push(same.map(encoded)),
            Node::Nested { fields, .. } => flatten(fields, same.and_then(nested), out),
        }
    }
}

/// True if the document has only fields of the reference, in its order.
fn fits(fields: &[Node<'_>], document: DocRef<'_>) -> bool {
    let mut elements = document.raw_elements().peekable();
    for field in fields {
        let same = elements.next_if(|element| element.name == field.name());
        let fits = match (field, same) {
            (Node::Scalar { .. }, None) => true,
            (Node::Scalar { .. }, Some(element)) => nested(element).is_none(),
            (Node::Nested { .. }, None) => !field.has_empty(),
            (Node::Nested { fields: below, value_type, .. }, Some(element)) => {
                nested(element).is_some_and(|document| {
                    element.value_type == *value_type
                        && below.is_empty() == document.is_empty()
                        && fits(below, document)
                })
            }
        };
        if !fits {
            return false;
        }
    }
    elements.next().is_none()
}

/// A reference that serves both; none if there is no such order or they differ in kind.
fn merge<'a>(fields: &[Node<'a>], document: DocRef<'a>) -> Option<Vec<Node<'a>>> {
    let elements: Vec<RawElement<'a>> = document.raw_elements().collect();
    if elements.len() + fields.len() > 2 * STREAMS_MAX {
        return None;
    }
    let old: HashMap<&BStr, usize> = fields.iter().enumerate().map(|(place, field)| (field.name(), place)).collect();
    let new: HashSet<&BStr> = elements.iter().map(|element| element.name).collect();
    if old.len() != fields.len() || new.len() != elements.len() {
        return None;
    }
    let mut merged = Vec::with_capacity(fields.len() + 1);
    let mut rest = fields.iter().peekable();
    for element in elements {
        let Some(place) = old.get(element.name) else {
            let field = Node::of(element);
            if field.has_empty() {
                return None;
            }
            merged.push(field);
            continue;
        };
        // Fields of the reference that come before it are not in the document, or their order differs.
        while let Some(field) = rest.next_if(|field| field.name() != element.name) {
            if field.has_empty() || new.contains(field.name()) {
                return None;
            }
            merged.push(field.clone());
        }
        let field = rest.next().filter(|field| old.get(field.name()) == Some(place))?;
        merged.push(both(field, element)?);
    }
    for field in rest {
        if field.has_empty() || new.contains(field.name()) {
            return None;
        }
        merged.push(field.clone());
    }
    Some(merged)
}

fn both<'a>(field: &Node<'a>, element: RawElement<'a>) -> Option<Node<'a>> {
    match (field, nested(element)) {
        (Node::Scalar { .. }, None) => Some(field.clone()),
        (Node::Nested { name, value_type, fields }, Some(document)) => {
            if *value_type != element.value_type || fields.is_empty() != document.is_empty() {
                return None;
            }
            Some(Node::Nested { name, value_type: *value_type, fields: merge(fields, document)? })
        }
        _ => None,
    }
}
