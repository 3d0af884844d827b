//! Writing one value as a component, always ascending; a descending component is inverted afterwards by the builder.
//!
//! After the type byte (see `canonical`):
//!
//! * numbers: see `number`
//! * strings, symbols, code: the bytes, each zero followed by `FF`, then a zero. Code with scope: the scope as a document
//!   follows.
//! * documents: for each field its canonical type, its name, a zero, its value as a component; then a zero. The order is
//!   that of types, then names, then values, and a document that continues another one sorts after it.
//! * arrays: the values as components, then a zero
//! * binary: the length in one byte, or `FF` and four bytes; the subtype; the bytes. Shorter ones sort first.
//! * regular expressions: pattern and options, a zero behind each. Neither can contain one.
//! * database pointers: four bytes of length, the namespace, the object id
//! * dates: eight bytes with the sign flipped. Timestamps: eight bytes.
//!
//! A collator replaces strings, at any depth, by its sort keys. Names, code and scopes stay.

use crate::buffer::KeyBuffer;
use crate::number::{EncodedNumber, encode_decimal, encode_double, encode_integer};
use crate::number::{Magnitude, biased_decimal_exponent, decimal_zero_index};
use crate::type_bits::{NumberType, TypeBits};
use crate::{Error, Result, Version, canonical};
use bstr::BStr;
use pando_doc::{Collator, Decimal128, DecimalParts, DocRef, Value};

/// Appends components to a buffer and their type bits.
pub(crate) struct Encoder<'a, B> {
    pub(crate) out: &'a mut B,
    pub(crate) type_bits: &'a mut TypeBits,
    pub(crate) version: Version,
    pub(crate) collator: Option<&'a dyn Collator>,
}

impl<B: KeyBuffer> Encoder<'_, B> {
    pub(crate) fn value(&mut self, value: Value<'_>) -> Result<()> {
        match value {
            Value::ObjectId(id) => self.typed(canonical::OBJECT_ID, id.bytes()),
            Value::Int32(number) => {
                self.type_bits.append_number(NumberType::Int32);
                self.number(encode_integer(number.into(), self.version));
            }
            Value::Int64(number) => {
                self.type_bits.append_number(NumberType::Int64);
                self.number(encode_integer(number, self.version));
            }
            Value::String(text) => self.string(text),
            Value::Double(number) => self.double(number),
            Value::Decimal(number) => self.decimal(number)?,
            Value::MinKey => self.out.push(canonical::MIN_KEY),
            Value::MaxKey => self.out.push(canonical::MAX_KEY),
            Value::Undefined => self.out.push(canonical::UNDEFINED),
            Value::Null => self.out.push(canonical::NULL),
            Value::Bool(false) => self.out.push(canonical::BOOL_FALSE),
            Value::Bool(true) => self.out.push(canonical::BOOL_TRUE),
            Value::DateTime(milliseconds) => {
                self.typed(canonical::DATE, &(milliseconds as u64 ^ 1 << 63).to_be_bytes());
            }
            Value::Timestamp(timestamp) => self.typed(canonical::TIMESTAMP, &timestamp.0.to_be_bytes()),
            _ => self.long_value(value)?,
        }
        Ok(())
    }

    fn long_value(&mut self, value: Value<'_>) -> Result<()> {
        match value {
            Value::Document(document) => {
                self.out.push(canonical::OBJECT);
                self.document(document)?;
            }
            Value::Array(array) => {
                self.out.push(canonical::ARRAY);
                for value in array.values() {
                    self.value(value)?;
                }
                self.out.push(canonical::TERMINATOR);
            }
            Value::Binary { subtype, bytes } => self.binary(subtype, bytes),
            Value::Regex { pattern, options } => {
                self.out.push(canonical::REGEX);
                self.name(pattern);
                self.name(options);
            }
            Value::DbPointer { namespace, id } => {
                // A document is below 2^31 bytes, so is everything in it.
                self.typed(canonical::DB_POINTER, &(namespace.len() as u32).to_be_bytes());
                self.out.extend(namespace);
                self.out.extend(id.bytes());
            }
            Value::Code(code) => {
                self.out.push(canonical::CODE);
                self.text(code);
            }
            Value::CodeWithScope { code, scope } => {
                self.out.push(canonical::CODE_WITH_SCOPE);
                self.text(code);
                let collator = self.collator.take();
                self.document(scope)?;
                self.collator = collator;
            }
            Value::Symbol(_) if self.collator.is_some() => return Err(Error::SymbolWithCollation),
            Value::Symbol(text) => {
                self.type_bits.append_symbol();
                self.out.push(canonical::STRING);
                self.text(text);
            }
            _ => debug_assert!(false, "short values are written by the caller"),
        }
        Ok(())
    }

    #[inline]
    fn typed(&mut self, component_type: u8, bytes: &[u8]) {
        self.out.push(component_type);
        self.out.extend(bytes);
    }

    #[inline]
    fn number(&mut self, number: EncodedNumber) {
        self.out.extend(number.as_slice());
    }

    fn double(&mut self, number: f64) {
        if number == 0.0 && number.is_sign_negative() {
            self.type_bits.append_negative_zero(self.version);
        } else {
            self.type_bits.append_number(NumberType::Double);
        }
        self.number(encode_double(number, self.version));
    }

    fn decimal(&mut self, number: Decimal128) -> Result<()> {
        if self.version == Version::V0 {
            return Err(Error::DecimalInVersion0);
        }
        match number.parts() {
            DecimalParts::Finite { negative, coefficient: 0, exponent } => {
                self.type_bits.append_decimal_zero(decimal_zero_index(negative, exponent));
                self.out.push(canonical::NUMBER_ZERO);
            }
            DecimalParts::Finite { negative, coefficient, exponent } => {
                self.type_bits.append_number(NumberType::Decimal);
                self.type_bits.append_decimal_exponent(biased_decimal_exponent(exponent));
                self.number(encode_decimal(negative, Magnitude { coefficient, exponent }));
            }
            DecimalParts::Nan { .. } => {
                self.type_bits.append_number(NumberType::Decimal);
                self.number(encode_double(f64::NAN, self.version));
            }
            DecimalParts::Infinity { negative } => {
                self.type_bits.append_number(NumberType::Decimal);
                let infinity = if negative { f64::NEG_INFINITY } else { f64::INFINITY };
                self.number(encode_double(infinity, self.version));
            }
        }
        Ok(())
    }

    fn string(&mut self, text: &BStr) {
        self.type_bits.append_string();
        self.out.push(canonical::STRING);
        match self.collator {
            None => self.text(text),
            Some(collator) => self.text(&collator.sort_key(text)),
        }
    }

    fn text(&mut self, mut text: &[u8]) {
        while let Some(zero) = memchr::memchr(0, text) {
            let (start, rest) = text.split_at(zero + 1);
            self.out.extend(start);
            self.out.push(canonical::ESCAPE);
            text = rest;
        }
        self.name(text);
    }

    /// Bytes that contain no zero.
    fn name(&mut self, name: &[u8]) {
        debug_assert!(!name.contains(&0));
        self.out.extend(name);
        self.out.push(canonical::TERMINATOR);
    }

    fn binary(&mut self, subtype: u8, bytes: &[u8]) {
        self.out.push(canonical::BINARY);
        match u8::try_from(bytes.len()) {
            Ok(length) if length < u8::MAX => self.out.push(length),
            _ => self.typed(u8::MAX, &(bytes.len() as u32).to_be_bytes()),
        }
        self.out.push(subtype);
        self.out.extend(bytes);
    }

    fn document(&mut self, document: DocRef<'_>) -> Result<()> {
        for element in document.elements() {
            self.out.push(generic_type(element.value));
            self.name(element.name);
            self.value(element.value)?;
        }
        self.out.push(canonical::TERMINATOR);
        Ok(())
    }
}

/// The byte that stands for a canonical type before a field's name.
fn generic_type(value: Value<'_>) -> u8 {
    match value {
        Value::MinKey => canonical::MIN_KEY,
        Value::Undefined => canonical::UNDEFINED,
        Value::Null => canonical::NULL,
        Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal(_) => canonical::NUMBER,
        Value::String(_) | Value::Symbol(_) => canonical::STRING,
        Value::Document(_) => canonical::OBJECT,
        Value::Array(_) => canonical::ARRAY,
        Value::Binary { .. } => canonical::BINARY,
        Value::ObjectId(_) => canonical::OBJECT_ID,
        Value::Bool(_) => canonical::BOOL,
        Value::DateTime(_) => canonical::DATE,
        Value::Timestamp(_) => canonical::TIMESTAMP,
        Value::Regex { .. } => canonical::REGEX,
        Value::DbPointer { .. } => canonical::DB_POINTER,
        Value::Code(_) => canonical::CODE,
        Value::CodeWithScope { .. } => canonical::CODE_WITH_SCOPE,
        Value::MaxKey => canonical::MAX_KEY,
    }
}
