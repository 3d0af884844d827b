//! Hashes of values such that values which compare equal hash alike, for grouping and distinct.
//!
//! Whole numbers hash as int64 whatever their kind, the others as the nearest double: an int64 beyond 2^53 keeps all
//! its bits that way, and a decimal that equals a double has that double for its nearest one.

use super::CompareOptions;
use crate::{DocRef, Value};
use bstr::BStr;
use pando_base::operation;
use std::hash::{Hash, Hasher};

/// Hashes a value, strings by bytes.
pub fn hash_value(value: Value<'_>, hasher: &mut impl Hasher) {
    hash_value_with(value, &CompareOptions::default(), hasher);
}

/// Hashes a value in line with `compare_with` under the same options.
pub fn hash_value_with(value: Value<'_>, options: &CompareOptions<'_>, hasher: &mut impl Hasher) {
    hasher.write_i8(value.value_type().canonical_order());
    match value {
        Value::Double(number) => hash_double(number, hasher),
        Value::Int32(number) => hasher.write_i64(number.into()),
        Value::Int64(number) => hasher.write_i64(number),
        Value::Decimal(number) => match number.to_i64_exact() {
            Some(whole) => hasher.write_i64(whole),
            None => hash_fraction(number.to_double(), hasher),
        },
        Value::String(text) | Value::Symbol(text) => match options.strings {
            Some(strings) => strings.equality_key(text).hash(hasher),
            None => hash_text(text, hasher),
        },
        Value::Document(doc) => hash_document(doc, options, hasher),
        Value::Array(array) => hash_elements(array.as_doc(), options, hasher),
        Value::Binary { subtype, bytes } => (subtype, bytes).hash(hasher),
        Value::ObjectId(id) => hasher.write(id.bytes()),
        Value::Bool(truth) => hasher.write_u8(truth.into()),
        Value::DateTime(milliseconds) => hasher.write_i64(milliseconds),
        Value::Timestamp(timestamp) => hasher.write_u64(timestamp.0),
        Value::Regex { pattern, options } => {
            hash_text(pattern, hasher);
            hash_text(options, hasher);
        }
        Value::DbPointer { namespace, id } => {
            hash_text(namespace, hasher);
            hasher.write(id.bytes());
        }
        Value::Code(code) => hash_text(code, hasher),
        Value::CodeWithScope { code, scope } => {
            hash_text(code, hasher);
            hash_document(scope, &CompareOptions { strings: None, ..*options }, hasher);
        }
        Value::Undefined | Value::Null | Value::MinKey | Value::MaxKey => {}
    }
}

/// Hashes a document in line with the comparison of documents under the same options.
fn hash_document(doc: DocRef<'_>, options: &CompareOptions<'_>, hasher: &mut impl Hasher) {
    if !options.ignore_field_order {
        return hash_elements(doc, options, hasher);
    }
    let elements = super::sorted(doc);
    hasher.write_usize(elements.len());
    for element in elements {
        hash_text(element.name, hasher);
        hash_value_with(element.value, options, hasher);
    }
}

/// The names of nested fields matter always, those outermost never get here.
fn hash_elements(doc: DocRef<'_>, options: &CompareOptions<'_>, hasher: &mut impl Hasher) {
    let mut count = 0;
    for element in doc.elements() {
        operation::count(1);
        count += 1;
        hash_text(element.name, hasher);
        hash_value_with(element.value, options, hasher);
    }
    hasher.write_usize(count);
}

fn hash_text(text: &BStr, hasher: &mut impl Hasher) {
    hasher.write(text);
    hasher.write_u8(0xFF);
}

fn hash_double(number: f64, hasher: &mut impl Hasher) {
    let whole = number as i64;
    // Two to the 63rd saturates to i64::MAX, which as a double is two to the 63rd again.
    if whole as f64 == number && whole != i64::MAX {
        hasher.write_i64(whole);
    } else {
        hash_fraction(number, hasher);
    }
}

fn hash_fraction(number: f64, hasher: &mut impl Hasher) {
    hasher.write_u64(if number.is_nan() { f64::NAN.to_bits() } else { number.to_bits() });
}
