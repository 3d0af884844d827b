//! From keys back to values.
//!
//! Values go straight into a document that is being built. Field names are not part of a key, so a key's values have empty
//! names. The bytes and the type bits may be damaged: that gives an error, or a value that nobody wrote, never a panic, and
//! always a well-formed document.

use crate::components::{deeper, end_of_key, read_binary_header};
use crate::number::{self, RestoredNumber};
use crate::reader::Reader;
use crate::type_bits::TypeBitsReader;
use crate::{Error, KeyOrdering, Result, Version, canonical};
use pando_base::Timestamp;
use pando_doc::{Doc, DocBuilder, ObjectId, OwnedValue, Value};
use std::io::Write;

/// The values of a key as a document with empty names. What follows the key's end is ignored.
pub fn to_doc(key: &[u8], ordering: KeyOrdering, type_bits: &[u8], version: Version) -> Result<Doc> {
    let mut out = DocBuilder::with_capacity(key.len() + 32);
    let mut decoder = Decoder::new(key, ordering, TypeBitsReader::new(type_bits)?, version);
    while decoder.append_next(&mut out, b"")? {}
    Ok(out.finish())
}

/// The values of a key.
pub fn to_values(key: &[u8], ordering: KeyOrdering, type_bits: &[u8], version: Version) -> Result<Vec<OwnedValue>> {
    let doc = to_doc(key, ordering, type_bits, version)?;
    Ok(doc.elements().map(|element| element.value.to_shared(&doc)).collect())
}

/// Reads a key value by value.
pub struct Decoder<'a> {
    reader: Reader<'a>,
    type_bits: TypeBitsReader<'a>,
    ordering: KeyOrdering,
    version: Version,
    index: usize,
}

impl<'a> Decoder<'a> {
    /// A decoder before the first value.
    pub fn new(key: &'a [u8], ordering: KeyOrdering, type_bits: TypeBitsReader<'a>, version: Version) -> Decoder<'a> {
        Decoder { reader: Reader::new(key), type_bits, ordering, version, index: 0 }
    }

    /// Adds the next value to the document, under this name; false at the key's end.
    pub fn append_next(&mut self, out: &mut DocBuilder, name: &[u8]) -> Result<bool> {
        if end_of_key(self.reader.peek_raw()).is_some() {
            return Ok(false);
        }
        self.reader.set_inverted(self.ordering.is_descending(self.index));
        self.index += 1;
        let component_type = self.reader.byte()?;
        self.value(component_type, out, name, 0)?;
        Ok(true)
    }

    fn value(&mut self, component_type: u8, out: &mut DocBuilder, name: &[u8], depth: usize) -> Result<()> {
        match component_type {
            canonical::OBJECT_ID => out.append(name, self.object_id()?),
            canonical::MIN_KEY => out.append(name, Value::MinKey),
            canonical::MAX_KEY => out.append(name, Value::MaxKey),
            canonical::NULL => out.append(name, Value::Null),
            canonical::UNDEFINED => out.append(name, Value::Undefined),
            canonical::BOOL_FALSE => out.append(name, Value::Bool(false)),
            canonical::BOOL_TRUE => out.append(name, Value::Bool(true)),
            canonical::DATE => out.append(name, Value::DateTime((self.reader.u64()? ^ 1 << 63) as i64)),
            canonical::TIMESTAMP => out.append(name, Value::Timestamp(Timestamp(self.reader.u64()?))),
            canonical::OBJECT => {
                let open = out.begin_document(name);
                self.fields(out, depth)?;
                out.end(open);
            }
            canonical::ARRAY => {
                let open = out.begin_array(name);
                self.array_values(out, depth)?;
                out.end(open);
            }
            _ if number::is_number(component_type) => self.number(component_type, out, name)?,
            _ => self.bytes_value(component_type, out, name, depth)?,
        }
        Ok(())
    }

    fn object_id(&mut self) -> Result<Value<'static>> {
        Ok(Value::ObjectId(ObjectId::from_bytes(self.reader.array()?)))
    }

    fn number(&mut self, component_type: u8, out: &mut DocBuilder, name: &[u8]) -> Result<()> {
        let parsed = number::parse(component_type, &mut self.reader, self.version)?;
        let value = match number::restore(parsed, &mut self.type_bits, self.version)? {
            RestoredNumber::Int32(number) => Value::Int32(number),
            RestoredNumber::Int64(number) => Value::Int64(number),
            RestoredNumber::Double(number) => Value::Double(number),
            RestoredNumber::Decimal(number) => Value::Decimal(number),
        };
        out.append(name, value);
        Ok(())
    }

    /// Values that have to be collected before they can be written.
    fn bytes_value(&mut self, component_type: u8, out: &mut DocBuilder, name: &[u8], depth: usize) -> Result<()> {
        let mut bytes = Vec::new();
        match component_type {
            canonical::STRING => {
                let is_symbol = self.type_bits.is_symbol()?;
                self.reader.take_text(&mut bytes)?;
                let text = bytes[..].into();
                out.append(name, if is_symbol { Value::Symbol(text) } else { Value::String(text) });
            }
            canonical::CODE => {
                self.reader.take_text(&mut bytes)?;
                out.append(name, Value::Code(bytes[..].into()));
            }
            canonical::CODE_WITH_SCOPE => {
                self.reader.take_text(&mut bytes)?;
                let mut scope = DocBuilder::new();
                self.fields(&mut scope, depth)?;
                let scope = scope.finish();
                out.append(name, Value::CodeWithScope { code: bytes[..].into(), scope: scope.view() });
            }
            canonical::BINARY => {
                let (length, subtype) = read_binary_header(&mut self.reader)?;
                self.reader.take(length, &mut bytes)?;
                out.append(name, Value::Binary { subtype, bytes: &bytes });
            }
            canonical::REGEX => {
                let mut options = Vec::new();
                self.reader.take_name(&mut bytes)?;
                self.reader.take_name(&mut options)?;
                out.append(name, Value::Regex { pattern: bytes[..].into(), options: options[..].into() });
            }
            canonical::DB_POINTER => {
                let length = self.reader.u32()? as usize;
                self.reader.take(length, &mut bytes)?;
                let id = ObjectId::from_bytes(self.reader.array()?);
                out.append(name, Value::DbPointer { namespace: bytes[..].into(), id });
            }
            _ => return Err(Error::UnknownType(component_type)),
        }
        Ok(())
    }

    fn fields(&mut self, out: &mut DocBuilder, depth: usize) -> Result<()> {
        let depth = deeper(depth)?;
        let mut name = Vec::new();
        while self.reader.byte()? != canonical::TERMINATOR {
            name.clear();
            self.reader.take_name(&mut name)?;
            let component_type = self.reader.byte()?;
            self.value(component_type, out, &name, depth)?;
        }
        Ok(())
    }

    fn array_values(&mut self, out: &mut DocBuilder, depth: usize) -> Result<()> {
        let depth = deeper(depth)?;
        let mut name = Vec::new();
        for index in 0_u64.. {
            let component_type = self.reader.byte()?;
            if component_type == canonical::TERMINATOR {
                break;
            }
            name.clear();
            // Writing to a vector does not fail.
            let _ = write!(name, "{index}");
            self.value(component_type, out, &name, depth)?;
        }
        Ok(())
    }
}
