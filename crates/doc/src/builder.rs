//! Builders: documents and arrays written field by field into one buffer.
//!
//! Nested documents and arrays are written in place: their length is filled in when they end. A builder can start in a
//! buffer that already holds something, so that a reply is built behind its message header. Names must not contain
//! NUL; a name that does is cut there, because it would damage the document.

use crate::{Array, Doc, DocRef, Element, RawElement, ToValue, Value, ValueType};

/// Writes a document.
#[derive(Debug)]
pub struct DocBuilder {
    buffer: Vec<u8>,
    start: usize,
}

/// Writes an array.
#[derive(Debug)]
pub struct ArrayBuilder {
    buffer: Vec<u8>,
    start: usize,
    count: u32,
}

/// A nested document or array that a builder has begun and has to end.
#[derive(Debug)]
#[must_use = "a nested document has to be ended"]
pub struct Open {
    start: usize,
}

impl DocBuilder {
    /// An empty document in a buffer of its own.
    pub fn new() -> DocBuilder {
        DocBuilder::with_capacity(64)
    }

    /// An empty document with room for this many bytes.
    pub fn with_capacity(size_bytes: usize) -> DocBuilder {
        DocBuilder::behind(Vec::with_capacity(size_bytes))
    }

    /// An empty document behind what the buffer already holds.
    pub fn behind(mut buffer: Vec<u8>) -> DocBuilder {
        let start = begin(&mut buffer);
        DocBuilder { buffer, start }
    }

    /// How long the document would be if it ended here.
    pub fn size_bytes(&self) -> usize {
        self.buffer.len() - self.start + 1
    }

    /// True without fields.
    pub fn is_empty(&self) -> bool {
        self.size_bytes() == crate::view::EMPTY.len()
    }

    /// Adds a field.
    #[inline]
    pub fn append(&mut self, name: impl AsRef<[u8]>, value: impl ToValue) {
        let value = value.to_value();
        write_header(&mut self.buffer, value.value_type(), name.as_ref());
        write_value(&mut self.buffer, value);
    }

    /// Adds a field if there is a value.
    pub fn append_some(&mut self, name: impl AsRef<[u8]>, value: Option<impl ToValue>) {
        if let Some(value) = value {
            self.append(name, value);
        }
    }

    /// Adds a field of another document.
    pub fn append_element(&mut self, element: Element<'_>) {
        self.append(element.name, element.value);
    }

    /// Adds a field of another document, as encoded there.
    #[inline]
    pub fn append_raw(&mut self, element: RawElement<'_>) {
        self.buffer.extend_from_slice(element.bytes);
    }

    /// Adds an encoded value of another document under a name of its own.
    pub fn append_raw_as(&mut self, name: impl AsRef<[u8]>, element: RawElement<'_>) {
        write_header(&mut self.buffer, element.value_type, name.as_ref());
        self.buffer.extend_from_slice(element.value_bytes);
    }

    /// Adds all fields of another document.
    pub fn append_all(&mut self, doc: DocRef<'_>) {
        self.buffer.extend_from_slice(doc.element_bytes());
    }

    /// Adds encoded fields: what `element_bytes` or `rest_bytes` gave.
    pub fn append_element_bytes(&mut self, element_bytes: &[u8]) {
        self.buffer.extend_from_slice(element_bytes);
    }

    /// Adds a nested document.
    pub fn document(&mut self, name: impl AsRef<[u8]>, fill: impl FnOnce(&mut DocBuilder)) {
        write_header(&mut self.buffer, ValueType::Document, name.as_ref());
        nest_document(&mut self.buffer, fill);
    }

    /// Adds a nested array.
    pub fn array(&mut self, name: impl AsRef<[u8]>, fill: impl FnOnce(&mut ArrayBuilder)) {
        write_header(&mut self.buffer, ValueType::Array, name.as_ref());
        nest_array(&mut self.buffer, fill);
    }

    /// Begins a nested document; what is appended from here to `end` goes into it.
    pub fn begin_document(&mut self, name: impl AsRef<[u8]>) -> Open {
        write_header(&mut self.buffer, ValueType::Document, name.as_ref());
        Open { start: begin(&mut self.buffer) }
    }

    /// Begins a nested array; `append_indexed` puts values into it.
    pub fn begin_array(&mut self, name: impl AsRef<[u8]>) -> Open {
        write_header(&mut self.buffer, ValueType::Array, name.as_ref());
        Open { start: begin(&mut self.buffer) }
    }

    /// Adds a value of a begun array.
    pub fn append_indexed(&mut self, index: u32, value: impl ToValue) {
        let value = value.to_value();
        write_index_header(&mut self.buffer, value.value_type(), index);
        write_value(&mut self.buffer, value);
    }

    /// Begins a document inside a begun array.
    pub fn begin_document_indexed(&mut self, index: u32) -> Open {
        write_index_header(&mut self.buffer, ValueType::Document, index);
        Open { start: begin(&mut self.buffer) }
    }

    /// Ends the nested document or array that was begun last.
    pub fn end(&mut self, open: Open) {
        debug_assert!(open.start > self.start, "the outermost document is ended by finish");
        end(&mut self.buffer, open.start);
    }

    /// Takes back what was appended since the document had this `size_bytes`.
    pub fn truncate(&mut self, size_bytes: usize) {
        debug_assert!(size_bytes >= crate::view::EMPTY.len());
        self.buffer.truncate(self.start + size_bytes - 1);
    }

    /// The document. The buffer must have held nothing before.
    pub fn finish(self) -> Doc {
        debug_assert_eq!(self.start, 0, "what was built behind something is finished with finish_buffer");
        Doc::trusted(self.finish_buffer())
    }

    /// The buffer with the document at its end.
    pub fn finish_buffer(mut self) -> Vec<u8> {
        end(&mut self.buffer, self.start);
        self.buffer
    }
}

impl Default for DocBuilder {
    fn default() -> DocBuilder {
        DocBuilder::new()
    }
}

impl ArrayBuilder {
    /// An empty array.
    pub fn new() -> ArrayBuilder {
        ArrayBuilder::behind(Vec::with_capacity(64))
    }

    fn behind(mut buffer: Vec<u8>) -> ArrayBuilder {
        let start = begin(&mut buffer);
        ArrayBuilder { buffer, start, count: 0 }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// True without values.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How long the array would be if it ended here.
    pub fn size_bytes(&self) -> usize {
        self.buffer.len() - self.start + 1
    }

    fn header(&mut self, value_type: ValueType) {
        write_index_header(&mut self.buffer, value_type, self.count);
        self.count += 1;
    }

    /// Adds a value.
    #[inline]
    pub fn push(&mut self, value: impl ToValue) {
        let value = value.to_value();
        self.header(value.value_type());
        write_value(&mut self.buffer, value);
    }

    /// Adds an encoded value of another document.
    pub fn push_raw(&mut self, element: RawElement<'_>) {
        self.header(element.value_type);
        self.buffer.extend_from_slice(element.value_bytes);
    }

    /// Adds a nested document.
    pub fn document(&mut self, fill: impl FnOnce(&mut DocBuilder)) {
        self.header(ValueType::Document);
        nest_document(&mut self.buffer, fill);
    }

    /// Adds a nested array.
    pub fn array(&mut self, fill: impl FnOnce(&mut ArrayBuilder)) {
        self.header(ValueType::Array);
        nest_array(&mut self.buffer, fill);
    }

    /// The array.
    pub fn finish(mut self) -> Array {
        debug_assert_eq!(self.start, 0, "a nested array ends with its document");
        end(&mut self.buffer, self.start);
        Array::from_doc(Doc::trusted(self.buffer))
    }
}

impl Default for ArrayBuilder {
    fn default() -> ArrayBuilder {
        ArrayBuilder::new()
    }
}

/// The nested builder has the buffer while it is filled.
fn nest_document(buffer: &mut Vec<u8>, fill: impl FnOnce(&mut DocBuilder)) {
    let mut nested = DocBuilder::behind(std::mem::take(buffer));
    fill(&mut nested);
    *buffer = nested.finish_buffer();
}

fn nest_array(buffer: &mut Vec<u8>, fill: impl FnOnce(&mut ArrayBuilder)) {
    let mut nested = ArrayBuilder::behind(std::mem::take(buffer));
    fill(&mut nested);
    end(&mut nested.buffer, nested.start);
    *buffer = nested.buffer;
}

/// Leaves room for a length; returns where.
fn begin(buffer: &mut Vec<u8>) -> usize {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; 4]);
    start
}

/// Ends the document that begins there.
fn end(buffer: &mut Vec<u8>, start: usize) {
    buffer.push(0);
    let length = (buffer.len() - start) as u32;
    debug_assert!(length <= i32::MAX as u32, "a document is shorter than 2 GB");
    if let Some(place) = buffer.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

#[inline]
fn write_header(buffer: &mut Vec<u8>, value_type: ValueType, name: &[u8]) {
    buffer.push(value_type.code());
    write_c_string(buffer, name);
}

fn write_index_header(buffer: &mut Vec<u8>, value_type: ValueType, index: u32) {
    buffer.push(value_type.code());
    let mut digits = [0; 10];
    let mut rest = index;
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    buffer.extend_from_slice(&digits[first..]);
    buffer.push(0);
}

#[inline]
fn write_c_string(buffer: &mut Vec<u8>, text: &[u8]) {
    let length = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    buffer.extend_from_slice(text.get(..length).unwrap_or_default());
    buffer.push(0);
}

fn write_string(buffer: &mut Vec<u8>, text: &[u8]) {
    buffer.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
    buffer.extend_from_slice(text);
    buffer.push(0);
}

#[inline]
fn write_value(buffer: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Double(number) => buffer.extend_from_slice(&number.to_le_bytes()),
        Value::String(text) | Value::Code(text) | Value::Symbol(text) => write_string(buffer, text),
        Value::Document(doc) => buffer.extend_from_slice(doc.bytes()),
        Value::Array(array) => buffer.extend_from_slice(array.bytes()),
        Value::Binary { subtype, bytes } => {
            buffer.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            buffer.push(subtype);
            buffer.extend_from_slice(bytes);
        }
        Value::Undefined | Value::Null | Value::MinKey | Value::MaxKey => {}
        Value::ObjectId(id) => buffer.extend_from_slice(id.bytes()),
        Value::Bool(truth) => buffer.push(u8::from(truth)),
        Value::DateTime(number) | Value::Int64(number) => buffer.extend_from_slice(&number.to_le_bytes()),
        Value::Regex { pattern, options } => {
            write_c_string(buffer, pattern);
            write_c_string(buffer, options);
        }
        Value::DbPointer { namespace, id } => {
            write_string(buffer, namespace);
            buffer.extend_from_slice(id.bytes());
        }
        Value::CodeWithScope { code, scope } => {
            let length = 4 + 4 + code.len() + 1 + scope.size_bytes();
            buffer.extend_from_slice(&(length as u32).to_le_bytes());
            write_string(buffer, code);
            buffer.extend_from_slice(scope.bytes());
        }
        Value::Int32(number) => buffer.extend_from_slice(&number.to_le_bytes()),
        Value::Timestamp(timestamp) => buffer.extend_from_slice(&timestamp.0.to_le_bytes()),
        Value::Decimal(number) => buffer.extend_from_slice(&number.to_bid_bytes()),
    }
}
