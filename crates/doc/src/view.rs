//! Views of documents and arrays in place, and the walk over their elements.
//!
//! A view holds bytes that were validated once. So the walk needs no `Result`; on bytes that are damaged all the same
//! it ends early, it never panics and never reads outside. The decoding of one element is the hottest code of the
//! server: `get` skips over values without decoding them.

use crate::validate::{Limits, validate, validate_prefix};
use crate::{Decimal128, ObjectId, Value, ValueType};
use bstr::BStr;
use pando_base::{Result, Timestamp};

/// The bytes of the empty document.
pub(crate) const EMPTY: &[u8] = &[5, 0, 0, 0, 0];

/// A validated document, borrowed. Equality is that of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DocRef<'a> {
    bytes: &'a [u8],
}

/// A validated array, borrowed. Equality is that of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArrayRef<'a> {
    doc: DocRef<'a>,
}

/// A named value of a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Element<'a> {
    /// The field's name; never contains NUL.
    pub name: &'a BStr,
    /// The field's value.
    pub value: Value<'a>,
}

/// A named value, not decoded yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RawElement<'a> {
    /// The type of the value.
    pub value_type: ValueType,
    /// The field's name.
    pub name: &'a BStr,
    /// The encoded value.
    pub value_bytes: &'a [u8],
    /// The element as a whole: type, name, value.
    pub bytes: &'a [u8],
}

impl<'a> DocRef<'a> {
    /// The document without fields.
    pub const EMPTY: DocRef<'static> = DocRef { bytes: EMPTY };

    /// Validates the bytes as exactly one document, with the default limits.
    pub fn parse(bytes: &'a [u8]) -> Result<DocRef<'a>> {
        DocRef::parse_with(bytes, &Limits::default())
    }

    /// Validates the bytes as exactly one document.
    pub fn parse_with(bytes: &'a [u8], limits: &Limits) -> Result<DocRef<'a>> {
        validate(bytes, limits)?;
        Ok(DocRef { bytes })
    }

    /// Validates the document at the start of the bytes; returns it and the bytes after it.
    pub fn parse_prefix(bytes: &'a [u8], limits: &Limits) -> Result<(DocRef<'a>, &'a [u8])> {
        let size_bytes = validate_prefix(bytes, limits)?;
        let (bytes, rest) = bytes.split_at(size_bytes.min(bytes.len()));
        Ok((DocRef { bytes }, rest))
    }

    /// A view of bytes that were validated when they were stored. Nothing is checked; if they are damaged, fields are
    /// missing.
    #[inline]
    pub const fn trusted(bytes: &'a [u8]) -> DocRef<'a> {
        DocRef { bytes }
    }

    /// The encoded document.
    #[inline]
    pub const fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// How long the encoded document is.
    #[inline]
    pub const fn size_bytes(self) -> usize {
        self.bytes.len()
    }

    /// True without fields.
    pub const fn is_empty(self) -> bool {
        self.bytes.len() <= EMPTY.len()
    }

    /// How many fields there are; walks over them.
    pub fn field_count(self) -> usize {
        self.raw_elements().count()
    }

    /// The fields in order.
    #[inline]
    pub fn elements(self) -> Elements<'a> {
        Elements { raw: self.raw_elements() }
    }

    /// The fields in order, values not decoded.
    #[inline]
    pub fn raw_elements(self) -> RawElements<'a> {
        RawElements { rest: self.bytes.get(4..).unwrap_or_default() }
    }

    /// The encoded fields without the length in front and the zero at the end.
    #[inline]
    pub fn element_bytes(self) -> &'a [u8] {
        self.bytes.get(4..self.bytes.len().saturating_sub(1)).unwrap_or_default()
    }

    /// The field that begins at this place of the encoded document, if one does.
    pub fn element_at(self, offset: usize) -> Option<RawElement<'a>> {
        split_element(self.bytes.get(offset..)?)
    }

    /// The value of the first field with this name.
    #[inline]
    pub fn get(self, name: impl AsRef<[u8]>) -> Option<Value<'a>> {
        self.get_raw(name).and_then(RawElement::value)
    }

    /// The first field with this name, not decoded.
    #[inline]
    pub fn get_raw(self, name: impl AsRef<[u8]>) -> Option<RawElement<'a>> {
        find_named(self.raw_elements(), name.as_ref())
    }

    /// True if there is a field with this name.
    pub fn contains(self, name: impl AsRef<[u8]>) -> bool {
        self.get_raw(name).is_some()
    }

    /// The first field.
    pub fn first(self) -> Option<Element<'a>> {
        self.elements().next()
    }
}

impl<'a> ArrayRef<'a> {
    /// The array without values.
    pub const EMPTY: ArrayRef<'static> = ArrayRef { doc: DocRef::EMPTY };

    /// Sees a document's values as an array; the names are kept and ignored.
    #[inline]
    pub const fn from_doc(doc: DocRef<'a>) -> ArrayRef<'a> {
        ArrayRef { doc }
    }

    /// The array as the document that it is on the wire, with indexes for names.
    #[inline]
    pub const fn as_doc(self) -> DocRef<'a> {
        self.doc
    }

    /// The encoded array.
    pub const fn bytes(self) -> &'a [u8] {
        self.doc.bytes
    }

    /// The values in order.
    #[inline]
    pub fn values(self) -> impl Iterator<Item = Value<'a>> + Clone {
        self.doc.elements().map(|element| element.value)
    }

    /// How many values there are; walks over them.
    pub fn len(self) -> usize {
        self.doc.field_count()
    }

    /// True without values.
    pub const fn is_empty(self) -> bool {
        self.doc.is_empty()
    }

    /// The value at this place.
    pub fn get(self, index: usize) -> Option<Value<'a>> {
        self.doc.raw_elements().nth(index).and_then(RawElement::value)
    }
}

impl<'a> RawElement<'a> {
    /// Decodes the value; none only if the bytes are damaged.
    #[inline]
    pub fn value(self) -> Option<Value<'a>> {
        decode(self.value_type, self.value_bytes)
    }
}

/// The fields of a document, in order.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    raw: RawElements<'a>,
}

impl<'a> Elements<'a> {
    /// The fields not yet walked over, encoded.
    pub fn rest_bytes(&self) -> &'a [u8] {
        self.raw.rest_bytes()
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        let raw = self.raw.next()?;
        let value = raw.value();
        debug_assert!(value.is_some(), "a validated value decodes");
        Some(Element { name: raw.name, value: value? })
    }
}

impl std::iter::FusedIterator for Elements<'_> {}

/// The fields of a document, in order and not decoded.
#[derive(Clone, Debug)]
pub struct RawElements<'a> {
    rest: &'a [u8],
}

impl<'a> RawElements<'a> {
    /// The fields not yet walked over, encoded.
    pub fn rest_bytes(&self) -> &'a [u8] {
        self.rest.get(..self.rest.len().saturating_sub(1)).unwrap_or_default()
    }
}

impl<'a> Iterator for RawElements<'a> {
    type Item = RawElement<'a>;

    #[inline]
    fn next(&mut self) -> Option<RawElement<'a>> {
        let element = split_element(self.rest);
        self.rest = match element {
            Some(element) => self.rest.get(element.bytes.len()..).unwrap_or_default(),
            None => &[],
        };
        element
    }
}

impl std::iter::FusedIterator for RawElements<'_> {}

/// What the code in front of an element says of its value.
#[derive(Clone, Copy)]
struct Rule {
    /// None if no value has this code.
    value_type: Option<ValueType>,
    size: Size,
}

/// How long the values of a type are.
#[derive(Clone, Copy, PartialEq)]
enum Size {
    /// So many bytes.
    Fixed(u8),
    /// As many as the length in front of it says, and so many more.
    Told(u8),
    /// As far as its zeros.
    Searched,
}

/// The rules of all codes: one look-up for what is asked of every element.
static RULES: [Rule; 256] = rules();

const fn rules() -> [Rule; 256] {
    let mut rules = [Rule { value_type: None, size: Size::Fixed(0) }; 256];
    let mut next = 0;
    while next < ValueType::ALL.len() {
        let value_type = ValueType::ALL[next];
        rules[value_type.code() as usize] = Rule { value_type: Some(value_type), size: size_of_values(value_type) };
        next += 1;
    }
    rules
}

const fn size_of_values(value_type: ValueType) -> Size {
    match value_type {
        ValueType::Undefined | ValueType::Null | ValueType::MinKey | ValueType::MaxKey => Size::Fixed(0),
        ValueType::Bool => Size::Fixed(1),
        ValueType::Int32 => Size::Fixed(4),
        ValueType::Double | ValueType::DateTime | ValueType::Timestamp | ValueType::Int64 => Size::Fixed(8),
        ValueType::ObjectId => Size::Fixed(12),
        ValueType::Decimal => Size::Fixed(16),
        ValueType::String | ValueType::Code | ValueType::Symbol => Size::Told(4),
        ValueType::Document | ValueType::Array | ValueType::CodeWithScope => Size::Told(0),
        ValueType::Binary => Size::Told(5),
        ValueType::DbPointer => Size::Told(16),
        ValueType::Regex => Size::Searched,
    }
}

/// The first element with this name. Most names differ in length or in their first byte: comparing the rest is a call.
fn find_named<'a>(mut elements: RawElements<'a>, name: &[u8]) -> Option<RawElement<'a>> {
    elements.find(|element| {
        element.name.len() == name.len() && element.name.first() == name.first() && **element.name == *name
    })
}

/// The element at the start of the bytes; none at the zero that ends a document.
#[inline]
fn split_element(bytes: &[u8]) -> Option<RawElement<'_>> {
    let (&code, after_code) = bytes.split_first()?;
    let rule = RULES.get(usize::from(code))?;
    let value_type = rule.value_type?;
    let name_length = name_length(after_code)?;
    let value_start = name_length + 2;
    let value_length = match rule.size {
        Size::Fixed(size_bytes) => usize::from(size_bytes),
        size => sized(size, bytes.get(value_start..)?)?,
    };
    // One look at where it ends; the parts lie inside.
    let (bytes, _) = bytes.split_at_checked(value_start.checked_add(value_length)?)?;
    let (code_and_name, value_bytes) = bytes.split_at_checked(value_start)?;
    let name = BStr::new(code_and_name.get(1..=name_length)?);
    Some(RawElement { value_type, name, value_bytes, bytes })
}

/// How long the name is that a zero ends. Names are short: sixteen bytes at a time are looked at in one go.
#[inline]
pub(crate) fn name_length(bytes: &[u8]) -> Option<usize> {
    let Some(sixteen) = bytes.first_chunk::<16>() else { return name_length_beyond(bytes, 0) };
    let words = u128::from_le_bytes(*sixteen);
    match (first_zero(words as u64), first_zero((words >> 64) as u64)) {
        (Some(length), _) => Some(length),
        (None, Some(length)) => Some(length + 8),
        (None, None) => name_length_beyond(bytes, 16),
    }
}

/// The place of the first byte of a word that is zero.
#[inline]
fn first_zero(word: u64) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The lowest bit that stays is the high bit of that byte.
    let zeros = word.wrapping_sub(ONES) & !word & HIGH;
    (zeros != 0).then(|| zeros.trailing_zeros() as usize / 8)
}

/// The same for names that are longer than what was looked at, and where fewer bytes are left.
fn name_length_beyond(bytes: &[u8], mut passed: usize) -> Option<usize> {
    while let Some(eight) = bytes.get(passed..).and_then(<[u8]>::first_chunk::<8>) {
        if let Some(length) = first_zero(u64::from_le_bytes(*eight)) {
            return Some(passed + length);
        }
        passed += 8;
    }
    let rest = bytes.get(passed..)?.iter().position(|&byte| byte == 0)?;
    Some(passed + rest)
}

/// How long the value at the start of the bytes is.
#[inline]
pub(crate) fn value_size_bytes(value_type: ValueType, bytes: &[u8]) -> Option<usize> {
    sized(RULES.get(usize::from(value_type.code()))?.size, bytes)
}

#[inline]
fn sized(size: Size, bytes: &[u8]) -> Option<usize> {
    match size {
        Size::Fixed(size_bytes) => Some(usize::from(size_bytes)),
        Size::Told(more_bytes) => length_at(bytes)?.checked_add(usize::from(more_bytes)),
        Size::Searched => searched(bytes),
    }
}

#[cold]
fn searched(bytes: &[u8]) -> Option<usize> {
    let (pattern, rest) = split_c_string(bytes)?;
    let (options, _) = split_c_string(rest)?;
    Some(pattern.len() + options.len() + 2)
}

/// Decodes a value from exactly its bytes.
#[inline]
fn decode(value_type: ValueType, bytes: &[u8]) -> Option<Value<'_>> {
    Some(match value_type {
        ValueType::Double => Value::Double(f64::from_le_bytes(fixed(bytes)?)),
        ValueType::String => Value::String(text(bytes)?),
        ValueType::Document => Value::Document(DocRef { bytes }),
        ValueType::Array => Value::Array(ArrayRef { doc: DocRef { bytes } }),
        ValueType::Binary => Value::Binary { subtype: *bytes.get(4)?, bytes: bytes.get(5..)? },
        ValueType::Undefined => Value::Undefined,
        ValueType::ObjectId => Value::ObjectId(ObjectId::from_bytes(fixed(bytes)?)),
        ValueType::Bool => Value::Bool(*bytes.first()? != 0),
        ValueType::DateTime => Value::DateTime(i64::from_le_bytes(fixed(bytes)?)),
        ValueType::Null => Value::Null,
        ValueType::Regex => {
            let (pattern, rest) = split_c_string(bytes)?;
            let (options, _) = split_c_string(rest)?;
            Value::Regex { pattern: BStr::new(pattern), options: BStr::new(options) }
        }
        ValueType::DbPointer => {
            let (namespace, id) = bytes.split_at_checked(bytes.len().checked_sub(12)?)?;
            Value::DbPointer { namespace: text(namespace)?, id: ObjectId::from_bytes(fixed(id)?) }
        }
        ValueType::Code => Value::Code(text(bytes)?),
        ValueType::Symbol => Value::Symbol(text(bytes)?),
        ValueType::CodeWithScope => {
            let rest = bytes.get(4..)?;
            let (code, scope) = rest.split_at_checked(length_at(rest)?.checked_add(4)?)?;
            Value::CodeWithScope { code: text(code)?, scope: DocRef { bytes: scope } }
        }
        ValueType::Int32 => Value::Int32(i32::from_le_bytes(fixed(bytes)?)),
        ValueType::Timestamp => Value::Timestamp(Timestamp(u64::from_le_bytes(fixed(bytes)?))),
        ValueType::Int64 => Value::Int64(i64::from_le_bytes(fixed(bytes)?)),
        ValueType::Decimal => Value::Decimal(Decimal128::from_bid_bytes(fixed(bytes)?)),
        ValueType::MinKey => Value::MinKey,
        ValueType::MaxKey => Value::MaxKey,
    })
}

/// The little-endian length at the start of the bytes.
#[inline]
fn length_at(bytes: &[u8]) -> Option<usize> {
    bytes.first_chunk().map(|length| u32::from_le_bytes(*length) as usize)
}

#[inline]
fn fixed<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.first_chunk().copied()
}

/// The string between its length and its final zero.
#[inline]
fn text(bytes: &[u8]) -> Option<&BStr> {
    bytes.get(4..bytes.len().checked_sub(1)?).map(BStr::new)
}

#[inline]
fn split_c_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = bytes.iter().position(|&byte| byte == 0)?;
    Some((bytes.get(..length)?, bytes.get(length + 1..)?))
}
